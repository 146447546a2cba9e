/* musl.c -- a program of another C library, which obeys LD_PRELOAD: it prints, looks a name up and
 * starts a thread. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *in_thread(void *nothing)
{
    (void)nothing;
    return malloc(1);
}

int main(void)
{
    pthread_t thread;
    void *memory = NULL;
    if (pthread_create(&thread, NULL, in_thread, NULL) != 0 || pthread_join(thread, &memory) != 0)
        return 3;
    free(memory);
    printf("%s %s\n", dlsym(RTLD_DEFAULT, "printf") ? "found" : "lost",
           dlsym(RTLD_DEFAULT, "not_there") ? "found" : "lost");
    return memory ? 0 : 4;
}
