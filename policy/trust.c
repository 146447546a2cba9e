/* trust.c -- policy_distrust(): whose system policy is believed. */
#include "policy.h"

#include <sys/stat.h>

const char *policy_distrust(uid_t owner, mode_t mode, bool root_is_mapped, uid_t overflow)
{
    if (!S_ISREG(mode))
        return "is not a regular file";
    if (owner != (root_is_mapped ? 0 : overflow))
        return "is not owned by root; chown root it, or remove it";
    if (mode & (S_IWGRP | S_IWOTH))
        return "can be written by others than root; chmod go-w it";
    return NULL;
}
