/* system_policy.c -- see system_policy.h.
 *
 * This is all that runs in a process that does not use CUDA: open, stat, read, close. It must live
 * under a seccomp filter that allows only what ld.so itself calls, so the stat call is ld.so's own,
 * which differs between releases of glibc; a path that is not there costs the open alone.
 */
#include "system_policy.h"
#include "objects.h"
#include "once.h"
#include "policy.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef GPUSHIM_SYSTEM_POLICY
#error "the build defines GPUSHIM_SYSTEM_POLICY, the path of the system policy"
#endif

static char bytes[POLICY_TEXT_MAX + 1];
static struct system_policy policy = {.path = GPUSHIM_SYSTEM_POLICY};

/* glibc's ld.so: fstat before 2.33 and from 2.39 on, newfstatat with an empty path between. */
static bool linker_uses_fstat(void)
{
    const char *(*ask)(void) = NULL;
    void *found = objects_search(objects_first(), objects_first_opened(), "gnu_get_libc_version");
    memcpy(&ask, &found, sizeof found);
    const char *version = ask ? ask() : "";
    if (version[0] != '2' || version[1] != '.')
        return true;
    unsigned int minor = 0;
    for (version += 2; *version >= '0' && *version <= '9' && minor < 1000; version++)
        minor = minor * 10 + (unsigned int)(*version - '0');
    return minor < 33 || minor >= 39;
}

static int stat_as_linker(int fd, struct stat *status)
{
#if defined(SYS_newfstatat) && defined(SYS_fstat)
    if (!linker_uses_fstat())
        return (int)syscall(SYS_newfstatat, fd, "", status, AT_EMPTY_PATH);
#endif
    return (int)syscall(SYS_fstat, fd, status);
}

long read_whole_file(const char *path, char *into, size_t room, struct stat *status)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return -errno;
    long length = stat_as_linker(fd, status) != 0 ? -errno : 0;
    if (length == 0)
        length = read(fd, into, room);
    if (length < 0)
        length = -errno;
    close(fd);
    return length;
}

static void read_policy(void)
{
    int saved_errno = errno;
    long length = read_whole_file(policy.path, bytes, sizeof bytes, &policy.status);
    if (length >= 0) {
        policy.state = SYSTEM_POLICY_READ;
        policy.bytes = bytes;
        policy.length = (size_t)length;
    } else if (length == -ENOENT || length == -ENOTDIR) {
        policy.state = SYSTEM_POLICY_ABSENT;
    } else {
        policy.state = SYSTEM_POLICY_UNREADABLE;
        policy.error = (int)-length;
    }
    errno = saved_errno;
}

__attribute__((constructor)) static void at_load(void)
{
    objects_note_start();
    read_policy();
}

const struct system_policy *system_policy(void)
{
    static struct once retry;
    bool done;
    if (policy.state == SYSTEM_POLICY_UNREADABLE && once_begin(&retry, &done)) {
        read_policy();
        once_done(&retry);
    }
    return &policy;
}
