/* plugin.c -- a library opened at run time with RTLD_LOCAL: it has a function of a driver's name of
 * its own, and asks for names from where it stands. Built for scope_test.c. */
#include <dlfcn.h>

int cuMemAlloc_v2(void);
int only_here(void);
void *plugin_next(const char *name);
void *plugin_default(const char *name);

int cuMemAlloc_v2(void) { return 4711; }

int only_here(void) { return 42; }

void *plugin_next(const char *name) { return dlsym(RTLD_NEXT, name); }

void *plugin_default(const char *name) { return dlsym(RTLD_DEFAULT, name); }
