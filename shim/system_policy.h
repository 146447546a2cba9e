/* system_policy.h -- the bytes of the system policy file, read as the object is loaded.
 *
 * Knows: one path, five system calls. Must not know: what the bytes mean.
 * Read at load, since a process may change its root or drop rights later; everything else waits for
 * the first use of CUDA.
 */
#ifndef GPUSHIM_SHIM_SYSTEM_POLICY_H
#define GPUSHIM_SHIM_SYSTEM_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

enum system_policy_state {
    SYSTEM_POLICY_ABSENT,     /* no such file: no system policy */
    SYSTEM_POLICY_READ,       /* bytes, length and status are valid */
    SYSTEM_POLICY_UNREADABLE, /* it is there, or may be, and could not be read: `error` is the errno
                               */
};

struct system_policy {
    const char *path;
    enum system_policy_state state;
    int error;
    const char
        *bytes; /* of static memory; one byte more than POLICY_TEXT_MAX is read, to see excess */
    size_t length;
    struct stat status; /* of the descriptor that was read */
};

/* What was read at load; where that failed, it is tried once more here. Thread-safe. */
const struct system_policy *system_policy(void);

/* Reads at most `room` bytes of a file into `bytes`: the length, or a negative errno. Opens without
 * blocking on a FIFO, without a controlling terminal, close-on-exec; async-signal-safe. `status` is
 * the descriptor's own. */
long read_whole_file(const char *path, char *bytes, size_t room, struct stat *status);

#endif
