/* log.c -- see log.h. */
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { REFUSALS_MAX = 32, PATH_BYTES = 512 };

enum destination { TO_STDERR, TO_SYSLOG, TO_FILE };

static enum policy_log_level wanted = POLICY_LOG_WARN;
static enum destination destination = TO_STDERR;
static char path[PATH_BYTES];
static uint64_t refusals[REFUSALS_MAX]; /* hash of each kind seen; 0 is empty */

static bool is_word(struct policy_slice slice, const char *word)
{
    return slice.length == strlen(word) && memcmp(slice.start, word, slice.length) == 0;
}

void log_configure(enum policy_log_level level, struct policy_slice where)
{
    wanted = level;
    if (!where.start || is_word(where, "stderr"))
        return;
    if (is_word(where, "syslog")) {
        destination = TO_SYSLOG;
    } else if (where.length < sizeof path) {
        memcpy(path, where.start, where.length);
        destination = TO_FILE;
    }
}

bool log_wants(enum policy_log_level level) { return level <= wanted; }

void log_start(struct text_line *line)
{
    text_start(line);
    text_add(line, "gpushim: ");
}

/* A descriptor of ours must not be 0, 1 or 2, which a host may believe to be its own. */
static int above_standard(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(fd);
    return moved;
}

/* libc's syslog takes locks and speaks with the host's identity. */
static void write_syslog(enum policy_log_level level, const struct text_line *line)
{
    enum { FACILITY_USER = 1 << 3, ERROR = 3, WARNING = 4, INFORMATION = 6, DEBUG = 7 };
    static const unsigned char severity[] = {WARNING, ERROR, WARNING, INFORMATION, DEBUG};
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/dev/log"};
    struct text_line message;
    text_start(&message);
    text_add(&message, "<");
    text_add_number(&message, (uint64_t)(FACILITY_USER | severity[level]));
    text_add(&message, ">gpushim[");
    text_add_number(&message, (uint64_t)getpid());
    text_add(&message, "]: ");
    text_add(&message, line->bytes + strlen("gpushim: "));
    int fd = above_standard(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd < 0)
        return;
    ssize_t sent = sendto(fd, message.bytes, message.length, MSG_DONTWAIT | MSG_NOSIGNAL,
                          (const struct sockaddr *)&address, sizeof address);
    (void)sent; /* or dropped */
    close(fd);
}

/* A reader that is gone, or a limit on file sizes, must cost the host a message and not its life:
 * the signal that such a write raises is held back and taken away. */
static void write_descriptor(int fd, const struct text_line *line)
{
    char bytes[TEXT_BYTES + 1];
    sigset_t raised, before, pending;
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    if (poll(&ready, 1, 0) != 1 || !(ready.revents & POLLOUT))
        return; /* a reader that does not read must not stop the host */
    memcpy(bytes, line->bytes, line->length);
    bytes[line->length] = '\n';
    sigemptyset(&raised);
    sigaddset(&raised, SIGPIPE);
    sigaddset(&raised, SIGXFSZ);
    sigpending(&pending);
    sigprocmask(SIG_BLOCK, &raised, &before);
    ssize_t written = write(fd, bytes, line->length + 1);
    if (written < 0 && (errno == EPIPE || errno == EFBIG) && !sigismember(&pending, SIGPIPE) &&
        !sigismember(&pending, SIGXFSZ))
        sigtimedwait(&raised, NULL, &(struct timespec){0, 0});
    sigprocmask(SIG_SETMASK, &before, NULL);
}

void log_write(enum policy_log_level level, const struct text_line *line)
{
    int saved_errno = errno;
    if (!log_wants(level))
        return;
    if (destination == TO_SYSLOG) {
        write_syslog(level, line);
    } else if (destination == TO_FILE) {
        int flags = O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
        int fd = above_standard(open(path, flags));
        if (fd >= 0) {
            write_descriptor(fd, line);
            close(fd);
        }
    } else {
        write_descriptor(STDERR_FILENO, line);
    }
    errno = saved_errno;
}

static uint64_t mix(uint64_t hash, unsigned int value)
{
    return (hash ^ value) * 1099511628211U; /* FNV-1a */
}

static uint64_t mix_string(uint64_t hash, const char *string)
{
    for (; *string; string++)
        hash = mix(hash, (unsigned char)*string);
    return mix(hash, 0);
}

bool log_first_refusal(const char *rule, const char *call, int device, int other)
{
    uint64_t kind = mix_string(mix_string(14695981039346656037U, rule), call);
    kind = mix(mix(kind, (unsigned int)device), (unsigned int)other) | 1;
    for (int i = 0; i < REFUSALS_MAX; i++) {
        uint64_t seen = 0;
        if (__atomic_compare_exchange_n(&refusals[i], &seen, kind, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            return true;
        if (seen == kind)
            return false;
    }
    return false;
}
