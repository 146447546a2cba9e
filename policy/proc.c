/* proc.c -- see proc.h. */
#include "proc.h"
#include "glob.h"
#include "slice.h"

/* Takes what lies before the next `end` out of `rest`. False: nothing is left. */
static bool take_until(struct policy_slice *rest, char end, struct policy_slice *taken)
{
    if (rest->length == 0)
        return false;
    size_t at = policy_slice_find(*rest, end);
    *taken = policy_slice_before(*rest, at);
    *rest = policy_slice_after(*rest, at < rest->length ? at + 1 : at);
    return true;
}

/* The kernel's word for a cgroup that was removed while a process is in it; the rules mean its
 * name. */
static struct policy_slice without_deletion(struct policy_slice path)
{
    static const char mark[] = " (deleted)";
    const size_t length = sizeof mark - 1;
    if (path.length > length &&
        policy_slice_is(policy_slice_after(path, path.length - length), mark))
        path.length -= length;
    return path;
}

bool policy_cgroup_matches(struct policy_slice file, struct policy_slice glob)
{
    struct policy_slice line, number, controllers;
    while (take_until(&file, '\n', &line)) {
        /* Paths have colons too; the first two are the kernel's. */
        if (take_until(&line, ':', &number) && take_until(&line, ':', &controllers) &&
            line.length > 0 && line.start[0] == '/' && policy_glob(glob, without_deletion(line)))
            return true;
    }
    return false;
}

bool policy_variable_matches(struct policy_slice environment, struct policy_slice name,
                             struct policy_slice glob)
{
    struct policy_slice string;
    while (take_until(&environment, '\0', &string)) {
        size_t equals = policy_slice_find(string, '=');
        if (equals < string.length && policy_slice_same(policy_slice_before(string, equals), name))
            return policy_glob(glob, policy_slice_after(string, equals + 1));
    }
    return false;
}

bool policy_split_variable(struct policy_slice entry, struct policy_slice *name,
                           struct policy_slice *glob)
{
    size_t equals = policy_slice_find(entry, '=');
    if (equals == entry.length)
        return false;
    *name = policy_slice_trim(policy_slice_before(entry, equals));
    *glob = policy_slice_trim(policy_slice_after(entry, equals + 1));
    return name->length > 0;
}
