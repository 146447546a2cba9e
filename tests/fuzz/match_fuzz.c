/* match_fuzz.c -- a glob, up to the first line end, against any bytes: as text, as
 * /proc/self/cgroup and as /proc/self/environ. Globs without sets are compared with the C
 * library's. */
#include "demand.h"
#include "glob.h"
#include "proc.h"
#include "slice.h"

#include <fnmatch.h>
#include <string.h>

enum { COMPARED_BYTES = 256 };

static bool is_plain(struct policy_slice slice)
{
    for (size_t i = 0; i < slice.length; i++) {
        if (slice.start[i] == '[' || slice.start[i] <= 0)
            return false;
    }
    return slice.length < COMPARED_BYTES;
}

static void check_glob(struct policy_slice glob, struct policy_slice text)
{
    char pattern[COMPARED_BYTES], string[COMPARED_BYTES];
    bool matches = policy_glob(glob, text);
    demand(policy_glob((struct policy_slice){"*", 1}, text));
    if (!is_plain(glob) || !is_plain(text))
        return;
    memcpy(pattern, glob.start, glob.length);
    pattern[glob.length] = '\0';
    memcpy(string, text.start, text.length);
    string[text.length] = '\0';
    demand(matches == (fnmatch(pattern, string, FNM_NOESCAPE) == 0));
}

/* A path is what stands on a line behind two colons, so a file of that line alone matches as the
 * path does. */
static void check_cgroup(struct policy_slice glob, struct policy_slice path)
{
    static char file[8192];
    static const char before[] = "1:a:x\n7:memory,cpu:/";
    const size_t length = sizeof before - 1;
    if (path.length > sizeof file - length || memchr(path.start, '\n', path.length))
        return;
    memcpy(file, before, length);
    memcpy(file + length, path.start, path.length);
    struct policy_slice whole = {file, length + path.length};
    struct policy_slice expected = policy_slice_after(whole, length - 1);
    static const char mark[] = " (deleted)";
    if (expected.length >= sizeof mark &&
        policy_slice_is(policy_slice_after(expected, expected.length - (sizeof mark - 1)), mark))
        expected.length -= sizeof mark - 1;
    demand(policy_cgroup_matches(whole, glob) == policy_glob(glob, expected));
}

static void check_variable(struct policy_slice glob, struct policy_slice value)
{
    static char file[8192] = "A=b";
    const struct policy_slice name = {"NAME", 4};
    if (value.length > sizeof file - 16 || memchr(value.start, '\0', value.length))
        return;
    memcpy(file + 4, "NAME=", 5);
    memcpy(file + 9, value.start, value.length);
    demand(policy_variable_matches((struct policy_slice){file, 9 + value.length}, name, glob) ==
           policy_glob(glob, value));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    const struct policy_slice input = {(const char *)bytes, length};
    struct policy_slice name, value;
    size_t end = policy_slice_find(input, '\n');
    if (end == length)
        return 0;
    const struct policy_slice glob = policy_slice_before(input, end);
    const struct policy_slice file = policy_slice_after(input, end + 1);
    (void)policy_glob_is_valid(glob);
    check_glob(glob, file);
    check_cgroup(glob, file);
    check_variable(glob, file);
    (void)policy_cgroup_matches(file, glob);
    if (policy_split_variable(glob, &name, &value))
        (void)policy_variable_matches(file, name, value);
    return 0;
}
