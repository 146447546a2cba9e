/* list_test.c -- no door is forgotten: every function of the driver is in functions.def, and every
 * one that has to do with memory, or reaches across devices, is guarded by a hook or listed in
 * unhooked.def with the reason why not; never both.
 *
 *   list_test              the lists by themselves, and what the simulated driver exports
 *   list_test WHERE        besides, every name on standard input, one a line, is in functions.def;
 *                          WHERE says whose names they are
 *
 * Knows: the lists. Must not know: what any function does beyond its class.
 */
#include "hooks.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum memory { MEMORY_NONE, MEMORY_ALLOC, MEMORY_ALLOC_INDIRECT, MEMORY_FREE, MEMORY_MEMINFO };
enum cross { CROSS_NONE, CROSS_CROSS };
enum class { MEMORY, CROSS, CLASSES };
static const char *const class_names[CLASSES] = {"memory", "cross"};

struct function {
    const char *symbol;
    bool has[CLASSES];
    bool takes; /* device memory, by itself */
};
static const struct function functions[] = {
#define FUNCTION(symbol, memory, cross)                                                            \
    {#symbol,                                                                                      \
     {MEMORY_##memory != MEMORY_NONE, CROSS_##cross != CROSS_NONE},                                \
     MEMORY_##memory == MEMORY_ALLOC},
#include "functions.def"
#undef FUNCTION
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

enum reason {
#define REASON(reason, sentence) reason,
#define UNHOOKED(symbol, class, reason)
#define NOT_YET(symbol, class)
#include "unhooked.def"
#undef REASON
#undef UNHOOKED
#undef NOT_YET
    REASONS
};
struct unhooked {
    const char *symbol;
    enum class class;
};
static const struct unhooked unhooked[] = {
#define REASON(reason, sentence)
#define UNHOOKED(symbol, class, reason) {#symbol, class},
#define NOT_YET(symbol, class) {#symbol, class},
#include "unhooked.def"
#undef REASON
#undef UNHOOKED
#undef NOT_YET
};
enum { UNHOOKED_ROWS = sizeof unhooked / sizeof unhooked[0] };

static const struct hook {
    const char *symbol;
    unsigned int when;
} hooks[] = {
#define DRIVER_HOOK(symbol, base, version, stream, when, parameters, arguments) {#symbol, (when)},
#define NVML_HOOK(symbol, when, parameters, arguments)
#define RUNTIME_HOOK(symbol, parameters, arguments)
#define DRIVER_CALL(symbol, parameters)
#define NVML_CALL(symbol, parameters)
#include "hooks.def"
#undef DRIVER_HOOK
#undef NVML_HOOK
#undef RUNTIME_HOOK
};
enum { HOOKS = sizeof hooks / sizeof hooks[0] };

/* Which rules guard which class: every bit of enum hook_when is of one, or of none. */
static const unsigned int guards[CLASSES] = {
    [MEMORY] = WHEN_MEMORY | WHEN_OVERHEAD,
    [CROSS] = WHEN_PEER | WHEN_COPIES | WHEN_IPC,
};
static const unsigned int guards_neither =
    WHEN_ACTIVE | WHEN_VIEW | WHEN_MANAGED | WHEN_CONTEXTS | WHEN_NVML_VIEW | WHEN_NVML_MEMORY;

static int failures;

__attribute__((format(printf, 1, 2))) static void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    failures++;
}

static const struct function *find_function(const char *symbol)
{
    for (int i = 0; i < FUNCTIONS; i++)
        if (strcmp(functions[i].symbol, symbol) == 0)
            return &functions[i];
    return NULL;
}

static bool is_known(const char *symbol, const char *where)
{
    if (find_function(symbol))
        return true;
    fail("%s, of %s, is not in tests/doors/functions.def: add a row that says what it does to "
         "memory and across devices; if it does either, hook it (shim/hooks.def) or say in "
         "tests/doors/unhooked.def why that is not needed",
         symbol, where);
    return false;
}

static unsigned int when_of(const char *symbol)
{
    for (int i = 0; i < HOOKS; i++)
        if (strcmp(hooks[i].symbol, symbol) == 0)
            return hooks[i].when;
    return 0;
}

static int rows_of(const char *symbol, enum class class)
{
    int count = 0;
    for (int i = 0; i < UNHOOKED_ROWS; i++)
        count += unhooked[i].class == class && strcmp(unhooked[i].symbol, symbol) == 0;
    return count;
}

static void check_class(const struct function *function, enum class class)
{
    const bool hooked = when_of(function->symbol) & guards[class];
    const int rows = rows_of(function->symbol, class);
    if (rows > 1)
        fail("%s has %d rows of class %s in unhooked.def", function->symbol, rows,
             class_names[class]);
    if (hooked && rows)
        fail("%s is hooked for class %s: delete its row of that class in "
             "tests/doors/unhooked.def",
             function->symbol, class_names[class]);
    if (!hooked && !rows && function->has[class])
        fail("%s is of class %s and nothing guards it: hook it (shim/hooks.def), or say in "
             "tests/doors/unhooked.def why that is not needed",
             function->symbol, class_names[class]);
    if (!hooked && rows && !function->has[class])
        fail("%s is not of class %s, so that its row in unhooked.def explains nothing",
             function->symbol, class_names[class]);
}

static void check_lists(void)
{
    for (int i = 0; i < FUNCTIONS; i++) {
        if (find_function(functions[i].symbol) != &functions[i])
            fail("%s is in functions.def twice", functions[i].symbol);
        for (enum class class = 0; class < CLASSES; class ++)
            check_class(&functions[i], class);
    }
    for (int i = 0; i < UNHOOKED_ROWS; i++)
        is_known(unhooked[i].symbol, "unhooked.def");
    for (int i = 0; i < HOOKS; i++) {
        is_known(hooks[i].symbol, "hooks.def");
        if (hooks[i].when & ~(guards[MEMORY] | guards[CROSS] | guards_neither))
            fail("%s is hooked for a rule that list_test.c knows no class for: add its bit to "
                 "`guards` or `guards_neither`",
                 hooks[i].symbol);
    }
}

/* Each hook is asked oddly and made to fail (same_test.c, fault_test.c). */
static void check_calls(void)
{
    static const char *const called[] = {
#define CALL(symbol, odd, before, good, after) #symbol,
#include "calls.def"
#undef CALL
    };
    static const char *const all_hooks[] = {
#define DRIVER_HOOK(symbol, base, version, stream, when, parameters, arguments) #symbol,
#define NVML_HOOK(symbol, when, parameters, arguments) #symbol,
#define RUNTIME_HOOK(symbol, parameters, arguments) #symbol,
#include "hooks.def"
    };
    for (size_t i = 0; i < sizeof all_hooks / sizeof all_hooks[0]; i++) {
        bool found = false;
        for (size_t k = 0; k < sizeof called / sizeof called[0]; k++)
            found = found || strcmp(called[k], all_hooks[i]) == 0;
        if (!found)
            fail(
                "%s is hooked and has no row in tests/doors/calls.def: add one, with odd arguments "
                "and good ones",
                all_hooks[i]);
    }
}

/* What takes memory by itself is tried at the edge of the cap (edge_test.c). */
static void check_edges(void)
{
    static const char *const edges[] = {
#define EDGE(symbol, bytes, before, take, give) #symbol,
#include "edge.def"
#undef EDGE
    };
    for (int i = 0; i < FUNCTIONS; i++) {
        bool found = !functions[i].takes || !(when_of(functions[i].symbol) & WHEN_MEMORY);
        for (size_t k = 0; !found && k < sizeof edges / sizeof edges[0]; k++)
            found = strcmp(edges[k], functions[i].symbol) == 0;
        if (!found)
            fail("%s takes memory that is counted and has no row in tests/doors/edge.def: add one, "
                 "with a size and how to give it back",
                 functions[i].symbol);
    }
}

static void check_simulated(void)
{
    static const struct {
        const char *symbol;
        int version;
    } exports[] = {
#define API(base, version, stream, symbol, served, when, takes) {#symbol, version},
#define STUB(base, version, stream, symbol) {#symbol, version},
#include "api.def"
#undef API
#undef STUB
    };
    const int newest_release = 13000; /* the row beyond is of a driver of the future */
    for (size_t i = 0; i < sizeof exports / sizeof exports[0]; i++)
        if (exports[i].version <= newest_release)
            is_known(exports[i].symbol, "tests/simcuda/api.def");
}

static void check_names(const char *where)
{
    char name[256];
    int count = 0;
    for (; fgets(name, sizeof name, stdin); count++) {
        name[strcspn(name, "\n")] = '\0';
        is_known(name, where);
    }
    printf("%d names\n", count);
    if (count < 100) /* of a driver or a header whatever its release */
        fail("%s has hardly any names", where);
}

int main(int argc, char **argv)
{
    check_lists();
    check_calls();
    check_edges();
    check_simulated();
    if (argc > 1)
        check_names(argv[1]);
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
