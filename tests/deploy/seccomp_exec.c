/* seccomp_exec.c -- runs a program under a filter that kills whatever asks the kernel for more than
 * ld.so itself does, as the tightest of sandboxes have it. Linked statically, so that the filter is
 * for the program alone. */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALLOW(call)                                                                                \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1),                                         \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

#ifndef SYS_rseq
#define SYS_rseq 334
#endif

/* What `strace /bin/true` shows, with glibc 2.36; readlink where ld.so has $LIB in a path to
 * replace (booted.sh is about a filter without it). */
static struct sock_filter filter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    ALLOW(execve),
    ALLOW(brk),
    ALLOW(mmap),
    ALLOW(munmap),
    ALLOW(mprotect),
    ALLOW(access),
    ALLOW(readlink),
    ALLOW(openat),
    ALLOW(newfstatat),
    ALLOW(read),
    ALLOW(pread64),
    ALLOW(close),
    ALLOW(arch_prctl),
    ALLOW(set_tid_address),
    ALLOW(set_robust_list),
    ALLOW(rseq),
    ALLOW(prlimit64),
    ALLOW(getrandom),
    ALLOW(exit_group),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

int main(int argc, char **argv)
{
    const struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    if (argc < 2)
        return 2;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("seccomp_exec");
        return 3;
    }
    syscall(SYS_execve, argv[1], argv + 1, NULL);
    return 4;
}
