/* subject.c -- see subject.h. */
#include "subject.h"
#include "system_policy.h"

#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

enum {
    GROUPS_MAX = 4096, /* a process in more is matched by its first ones and by none it lacks */
    NAME_BYTES = 16 * 1024, /* a passwd or group entry; a group may list many members */
    DEFAULT_OVERFLOW = 65534,
};

static char executable[PATH_MAX];
static gid_t groups[GROUPS_MAX + 1];
static char entry_bytes[NAME_BYTES];

static const char *user_name(const struct policy_subject *self, uid_t user)
{
    struct passwd entry, *found = NULL;
    (void)self;
    if (getpwuid_r(user, &entry, entry_bytes, sizeof entry_bytes, &found) != 0 || !found)
        return NULL;
    return found->pw_name;
}

static const char *group_name(const struct policy_subject *self, gid_t group)
{
    struct group entry, *found = NULL;
    (void)self;
    if (getgrgid_r(group, &entry, entry_bytes, sizeof entry_bytes, &found) != 0 || !found)
        return NULL;
    return found->gr_name;
}

const struct policy_subject *subject_of_process(void)
{
    static struct policy_subject subject;
    ssize_t length = readlink("/proc/self/exe", executable, sizeof executable - 1);
    executable[length > 0 ? length : 0] = '\0';
    int count = getgroups(GROUPS_MAX, groups + 1);
    groups[0] = getegid();
    subject = (struct policy_subject){
        .user = geteuid(),
        .groups = groups,
        .group_count = (size_t)(count > 0 ? count : 0) + 1,
        .exe = executable,
        .user_name = user_name,
        .group_name = group_name,
    };
    return &subject;
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
    static char text[4096];
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
