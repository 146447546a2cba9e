/* script.c -- see script.h. */
#include "script.h"

#include "cuda_abi.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 8, NAME = 64, VARIABLES = 32, STRUCT_WORDS = 32, STRUCTS = 5, ARGUMENTS = 14 };
enum { FIRST_ON_STACK = 6 }; /* of x86-64, where a structure by value lies */

struct variable {
    char name[NAME];
    uint64_t words[WORDS];
};
static struct variable variables[VARIABLES];

/* Storage that a call is given, as it was before. */
struct passed {
    uint64_t *words, before[STRUCT_WORDS];
    int count;
};
struct call {
    uint64_t arguments[ARGUMENTS];
    int count;
    uint64_t structs[STRUCTS][STRUCT_WORDS];
    int structs_used;
    struct passed passed[ARGUMENTS];
    int passed_count;
};

static _Noreturn void die(const char *what, const char *text)
{
    printf("script: %s: '%s'\n", what, text);
    fflush(stdout);
    _Exit(2);
}

static struct variable *variable(const char *name)
{
    for (int i = 0; i < VARIABLES; i++) {
        if (!variables[i].name[0])
            memcpy(variables[i].name, name, strlen(name) + 1); /* read_name() keeps it short */
        if (strcmp(variables[i].name, name) == 0)
            return &variables[i];
    }
    die("too many variables", name);
}

void script_set(const char *name, uint64_t value) { variable(name)->words[0] = value; }
uint64_t script_get(const char *name, int word) { return variable(name)->words[word]; }

static const char *skip(const char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    return text;
}

static const char *read_name(const char *text, char name[NAME])
{
    size_t length = 0;
    while (isalnum((unsigned char)text[length]) || text[length] == '_')
        length++;
    if (length == 0 || length >= NAME)
        die("a name is wanted", text);
    memcpy(name, text, length);
    name[length] = '\0';
    return text + length;
}

static const char *read_number(const char *text, uint64_t *value)
{
    char *end;
    *value = strtoull(text, &end, 0);
    const char *unit = *end ? strchr("KMG", *end) : NULL;
    if (end == text)
        die("a number is wanted", text);
    if (unit)
        *value <<= 10 * (unit - "KMG" + 1), end++;
    return end;
}

/* A number, or what a variable holds. */
static const char *read_half(const char *text, uint64_t *value)
{
    char name[NAME];
    if (isdigit((unsigned char)*text) || *text == '-')
        return read_number(text, value);
    text = read_name(text, name);
    if (strcmp(name, "null") == 0)
        *value = 0;
    else if (strcmp(name, "max") == 0)
        *value = UINT64_MAX;
    else
        *value = variable(name)->words[0];
    return text;
}

static const char *read_word(const char *text, uint64_t *value)
{
    uint64_t high;
    text = read_half(text, value);
    if (*text != '|')
        return text;
    text = read_half(text + 1, &high);
    *value = (*value & UINT32_MAX) | high << 32;
    return text;
}

uint64_t script_word(const char *text)
{
    uint64_t value;
    read_word(text, &value);
    return value;
}

static uint64_t pass(struct call *call, uint64_t *words, int count)
{
    struct passed *passed = &call->passed[call->passed_count++];
    passed->words = words;
    passed->count = count;
    memcpy(passed->before, words, (size_t)count * sizeof *words);
    return (uint64_t)(uintptr_t)words;
}

static const char *read_struct(struct call *call, const char *text, uint64_t *value)
{
    int count = 0;
    if (call->structs_used == STRUCTS)
        die("too many structures", text);
    uint64_t *words = call->structs[call->structs_used++];
    for (text = skip(text); *text != '}'; text = skip(text)) {
        if (count == STRUCT_WORDS)
            die("too large a structure", text);
        if (*text == '{')
            text = read_struct(call, text + 1, &words[count++]);
        else
            text = read_word(text, &words[count++]);
    }
    *value = pass(call, words, STRUCT_WORDS);
    return text + 1;
}

static const char *read_string(struct call *call, const char *text, uint64_t *value)
{
    const size_t length = strcspn(text, "'");
    if (call->structs_used == STRUCTS || length >= sizeof call->structs[0])
        die("too many structures, or too long a string", text);
    char *string = (char *)call->structs[call->structs_used++];
    memcpy(string, text, length);
    *value = (uint64_t)(uintptr_t)string;
    return text + length + 1;
}

static const char *read_by_value(struct call *call, const char *text, uint64_t *value)
{
    char name[NAME];
    text = read_name(text, name);
    uint64_t *words = variable(name)->words;
    *value = (uint64_t)(uintptr_t)words; /* aarch64: by reference to a copy */
#ifdef __x86_64__
    memcpy(&call->arguments[FIRST_ON_STACK], words, sizeof variables[0].words);
    call->count--;
#else
    (void)call;
#endif
    return text + 1;
}

static const char *read_argument(struct call *call, const char *text)
{
    uint64_t value = 0;
    char name[NAME];
    if (call->count == ARGUMENTS)
        die("too many arguments", text);
    const int at = call->count++;
    switch (*text) {
    case '&':
        text = read_name(text + 1, name);
        memset(variable(name)->words, 0x5a, sizeof variables[0].words);
        value = pass(call, variable(name)->words, WORDS);
        break;
    case '{':
        text = read_struct(call, text + 1, &value);
        break;
    case '\'':
        text = read_string(call, text + 1, &value);
        break;
    case '[':
        text = read_by_value(call, text + 1, &value);
        break;
    default:
        text = read_word(text, &value);
    }
    if (call->count > at)
        call->arguments[at] = value;
    return text;
}

static void report_words(FILE *report, const struct passed *passed)
{
    const uint64_t addresses_from = (uint64_t)1 << 42;
    for (int i = 0; i < passed->count; i++) {
        if (passed->words[i] == passed->before[i])
            fputs(" .", report);
        else if (passed->words[i] < addresses_from)
            fprintf(report, " %llu", (unsigned long long)passed->words[i]);
        else if ((passed->words[i] ^ passed->before[i]) >> 32 == 0) /* the low half alone */
            fprintf(report, " %u", (unsigned int)passed->words[i]);
        else
            fputs(" x", report);
    }
}

#define RUNTIME_HOOK(symbol, parameters, arguments) cudaError_t symbol parameters;
#define DRIVER_HOOK(symbol, base, version, stream, when, parameters, arguments)
#define NVML_HOOK(symbol, when, parameters, arguments)
#define DRIVER_CALL(symbol, parameters)
#define NVML_CALL(symbol, parameters)
#include "hooks.def"
#undef RUNTIME_HOOK

typedef void function(void);
static function *find(const char *symbol)
{
    static const struct {
        const char *symbol;
        function *function;
    } linked[] = {
#define RUNTIME_HOOK(symbol, parameters, arguments) {#symbol, (function *)symbol},
#include "hooks.def"
    };
    static void *driver, *nvml;
    for (size_t i = 0; i < sizeof linked / sizeof linked[0]; i++)
        if (strcmp(linked[i].symbol, symbol) == 0)
            return linked[i].function;
    if (!driver) {
        driver = dlopen("libcuda.so.1", RTLD_NOW);
        nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    }
    function *found;
    void *address = dlsym(strncmp(symbol, "nvml", 4) == 0 ? nvml : driver, symbol);
    memcpy(&found, &address, sizeof found);
    if (!found)
        die("no such function", symbol);
    return found;
}

typedef uint64_t any(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                     uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

int script_call(const char *symbol, const char *text, FILE *report)
{
    struct call call = {.count = 0};
    const char *start = text = skip(text);
    while (*text && *text != ';')
        text = skip(read_argument(&call, text));
    any *real = (any *)find(symbol);
    const uint64_t *a = call.arguments;
    int result = (int)real(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11],
                           a[12], a[13]);
    if (!report)
        return result;
    fprintf(report, "%s %.*s: %d", symbol, (int)(text - start), start, result);
    for (int i = 0; i < call.passed_count; i++)
        fputs(i ? "," : "", report), report_words(report, &call.passed[i]);
    fputc('\n', report);
    return result;
}

/* Makes the first call; returns what is behind it. */
static const char *run_first(const char *script, int *result)
{
    char symbol[NAME];
    const char *arguments = read_name(script, symbol);
    *result = script_call(symbol, arguments, NULL);
    script = arguments + strcspn(arguments, ";");
    return skip(script + (*script == ';'));
}

int script_run(const char *script)
{
    int result = 0;
    for (script = skip(script); *script && result == 0;)
        script = run_first(script, &result);
    return result;
}

void script_try(const char *script)
{
    int result;
    for (script = skip(script); *script;)
        script = run_first(script, &result);
}
