/* trouble_plugin.c -- a library whose constructor takes its time, in dlopen and so under the
 * linker's lock, and then looks up a driver's function. Built for trouble_test.c. */
#include <dlfcn.h>
#include <unistd.h>

__attribute__((constructor)) static void slow_start(void)
{
    usleep(300000);
    if (!dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuInit"))
        _exit(3);
}
