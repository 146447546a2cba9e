/* same_test.c -- a transcript of every function asked oddly (calls.def), in every state a program
 * can be in: before cuInit, without a context, with one, in a thread that never had one, and in a
 * child of fork. same.sh holds the transcript of the bare driver against that of the shim.
 *
 * Knows: the states. Must not know: what the right answers are; the bare driver says them.
 */
#include "calls.h"
#include "script.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void ask_all(const char *where)
{
    printf("-- %s\n", where);
    for (int i = 0; i < ROWS; i++) {
        for (const char *odd = rows[i].odd; *odd; odd += *odd == ';') {
            script_call(rows[i].symbol, odd, stdout);
            odd += strcspn(odd, ";");
        }
    }
    fflush(stdout);
}

static void make(const char *script)
{
    const int result = script_run(script);
    if (result == 0)
        return;
    printf("%s: %d\n", script, result);
    exit(EXIT_FAILURE);
}

static void *in_thread(void *unused)
{
    ask_all("in a thread that never had a context");
    return unused;
}

/* True if the child came to its end. */
static int in_child(void)
{
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
        ask_all("in a child of fork");
        _exit(EXIT_SUCCESS);
    }
    return waitpid(child, &status, 0) == child && status == 0;
}

int main(void)
{
    pthread_t thread;
    alarm(60);
    ask_all("before cuInit");
    make("cuInit 0; nvmlInit_v2; nvmlDeviceGetHandleByIndex_v2 0 &gpu");
    ask_all("without a context");
    make("cuDevicePrimaryCtxRetain &ctx 0; cuCtxSetCurrent ctx");
    make("cuStreamCreate &stream 0; cuEventCreate &event 0; cuGraphCreate &graph 0");
    make("cuMemAlloc_v2 &mem 4K; cuMemAlloc_v2 &gone 4M; cuMemFree_v2 gone");
    make("cuMemPoolCreate &pool {1 1}; cuMemCreate &handle 2M {1 1} 0");
    make("cuMemAddressReserve &space 2M 0 0 0");
    ask_all("with a context");
    if (pthread_create(&thread, NULL, in_thread, NULL) != 0 || pthread_join(thread, NULL) != 0)
        return EXIT_FAILURE;
    return in_child() ? EXIT_SUCCESS : EXIT_FAILURE;
}
