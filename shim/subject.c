/* subject.c -- see subject.h. */
#include "subject.h"
#include "system_policy.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { DEFAULT_OVERFLOW = 65534 };

static const char *user_name(const struct policy_subject *self, uid_t user)
{
    struct subject_memory *memory = self->context;
    struct passwd entry, *found = NULL;
    if (getpwuid_r(user, &entry, memory->entry, sizeof memory->entry, &found) != 0 || !found)
        return NULL;
    return found->pw_name;
}

static const char *group_name(const struct policy_subject *self, gid_t group)
{
    struct subject_memory *memory = self->context;
    struct group entry, *found = NULL;
    if (getgrgid_r(group, &entry, memory->entry, sizeof memory->entry, &found) != 0 || !found)
        return NULL;
    return found->gr_name;
}

/* The length of a file that fits into the room with a byte to spare, or -1. */
static ssize_t read_all(const char *path, char *into, size_t room)
{
    size_t length = 0;
    ssize_t got = 1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return -1;
    while (got > 0 && length < room) {
        got = read(fd, into + length, room - length);
        if (got < 0 && errno == EINTR)
            got = 1;
        else if (got > 0)
            length += (size_t)got;
    }
    close(fd);
    return got == 0 ? (ssize_t)length : -1;
}

/* Address space of its own, of which only what is used costs memory. */
static struct policy_slice ask_file(struct subject_file *file, const char *path)
{
    if (file->asked)
        return file->bytes;
    file->asked = true;
    void *room = mmap(NULL, SUBJECT_FILE_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return file->bytes;
    file->room = room;
    ssize_t length = read_all(path, room, SUBJECT_FILE_BYTES);
    if (length >= 0)
        file->bytes = (struct policy_slice){room, (size_t)length};
    return file->bytes;
}

static struct policy_slice cgroups(const struct policy_subject *self)
{
    struct subject_memory *memory = self->context;
    return ask_file(&memory->cgroups, "/proc/self/cgroup");
}

/* Not `environ`, which the program changes: what it was started with. */
static struct policy_slice environment(const struct policy_subject *self)
{
    struct subject_memory *memory = self->context;
    return ask_file(&memory->environment, "/proc/self/environ");
}

static void end_file(struct subject_file *file)
{
    if (file->room)
        munmap(file->room, SUBJECT_FILE_BYTES);
    *file = (struct subject_file){.room = NULL};
}

void subject_end(struct subject_memory *memory)
{
    end_file(&memory->cgroups);
    end_file(&memory->environment);
}

/* The kernel's word for an executable that was replaced while it runs; the rules mean its name. */
static void forget_deletion(char *path, size_t length)
{
    static const char mark[] = " (deleted)";
    const size_t mark_length = sizeof mark - 1;
    if (length > mark_length && memcmp(path + length - mark_length, mark, mark_length) == 0)
        path[length - mark_length] = '\0';
}

const struct policy_subject *subject_of_process(struct subject_memory *memory)
{
    ssize_t length = readlink("/proc/self/exe", memory->executable, sizeof memory->executable - 1);
    memory->executable[length > 0 ? length : 0] = '\0';
    forget_deletion(memory->executable, length > 0 ? (size_t)length : 0);
    int count = getgroups(SUBJECT_GROUPS_MAX, memory->groups + 1);
    memory->groups[0] = getegid();
    memory->cgroups = memory->environment = (struct subject_file){.room = NULL};
    memory->subject = (struct policy_subject){
        .user = geteuid(),
        .groups = memory->groups,
        .group_count = (size_t)(count > 0 ? count : 0) + 1,
        .exe = memory->executable,
        .user_name = user_name,
        .group_name = group_name,
        .cgroups = cgroups,
        .environment = environment,
        .context = memory,
    };
    return &memory->subject;
}

static bool number_at(const char **cursor, unsigned long *number)
{
    const char *c = *cursor;
    while (*c == ' ' || *c == '\t' || *c == '\n')
        c++;
    if (*c < '0' || *c > '9')
        return false;
    for (*number = 0; *c >= '0' && *c <= '9'; c++)
        *number = *number * 10 + (unsigned long)(*c - '0');
    *cursor = c;
    return true;
}

bool subject_root_is_mapped(uid_t *overflow)
{
    char text[2048];
    struct stat status;
    unsigned long inside, outside, count;
    const char *cursor = text;
    *overflow = DEFAULT_OVERFLOW;
    long length = read_whole_file("/proc/sys/kernel/overflowuid", text, sizeof text - 1, &status);
    text[length > 0 ? length : 0] = '\0';
    if (number_at(&cursor, &inside))
        *overflow = (uid_t)inside;
    length = read_whole_file("/proc/self/uid_map", text, sizeof text - 1, &status);
    if (length <= 0)
        return true; /* no /proc or no namespaces: owner 0 is root */
    text[length] = '\0';
    cursor = text;
    while (number_at(&cursor, &inside) && number_at(&cursor, &outside) &&
           number_at(&cursor, &count)) {
        if (outside == 0 && count > 0)
            return true;
    }
    return false;
}
