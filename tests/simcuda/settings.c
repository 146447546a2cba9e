/* settings.c -- see settings.h. */
#include "settings.h"

#include "granule.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)

static const char default_gpus[] = "24GiB@geforce,80GiB@tesla,24GiB@geforce,80GiB@tesla";

static struct {
    char *gpus, *fail, *missing, *state;
    int driver, hide_processes;
    uint64_t context_bytes, module_bytes, graph_chunk_bytes, reserved_bytes;
} settings;
static pthread_once_t once = PTHREAD_ONCE_INIT;

void settings_die(const char *variable, const char *value)
{
    fprintf(stderr, "simcuda: %s: can't make sense of '%s'\n", variable, value);
    abort();
}

uint64_t settings_size(const char *variable, const char **text)
{
    static const struct {
        const char *name;
        unsigned int shift;
    } units[] = {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"K", 10}, {"M", 20}, {"G", 30}, {"", 0}};
    char *end = NULL;
    uint64_t number = strtoull(*text, &end, 10);

    if (end == *text)
        settings_die(variable, *text);
    for (size_t i = 0;; i++) {
        size_t length = strlen(units[i].name);
        if (strncmp(end, units[i].name, length) == 0) {
            *text = end + length;
            return number << units[i].shift;
        }
    }
}

static char *text_of(const char *variable, const char *otherwise)
{
    const char *value = getenv(variable);
    return strdup(value ? value : otherwise);
}

static uint64_t size_of(const char *variable, uint64_t otherwise)
{
    const char *value = getenv(variable);
    if (!value)
        return otherwise;
    uint64_t bytes = settings_size(variable, &value);
    if (*value)
        settings_die(variable, value);
    return bytes;
}

static void check_failures(const char *list)
{
    for (const char *item = list; *item;) {
        int code, consumed = 0;
        unsigned long n;
        if (sscanf(item, "%*[^:,]:%lu:%d%n", &n, &code, &consumed) != 2 ||
            (item[consumed] != ',' && item[consumed] != '\0'))
            settings_die("SIMCUDA_FAIL", item);
        item += consumed;
        item += *item == ',';
    }
}

static void read_environment(void)
{
    char state[64];

    snprintf(state, sizeof state, "/dev/shm/simcuda-%u", (unsigned int)getuid());
    settings.gpus = text_of("SIMCUDA_GPUS", default_gpus);
    settings.fail = text_of("SIMCUDA_FAIL", "");
    settings.missing = text_of("SIMCUDA_MISSING", "");
    settings.state = text_of("SIMCUDA_STATE", state);
    const char *processes = getenv("SIMCUDA_PROCESSES");
    if (processes && strcmp(processes, "hidden") != 0)
        settings_die("SIMCUDA_PROCESSES", processes);
    settings.hide_processes = processes != NULL;
    settings.context_bytes = size_of("SIMCUDA_CONTEXT", 300 * MIB);
    settings.module_bytes = size_of("SIMCUDA_MODULE", 0);
    settings.graph_chunk_bytes = size_of("SIMCUDA_GRAPH_CHUNK", GRANULE_POOL);
    settings.reserved_bytes = size_of("SIMCUDA_RESERVED", 0);
    settings.driver = (int)size_of("SIMCUDA_DRIVER", 0);
    check_failures(settings.fail);
}

const char *settings_gpus(void)
{
    pthread_once(&once, read_environment);
    return settings.gpus;
}

int settings_driver(void)
{
    pthread_once(&once, read_environment);
    return settings.driver;
}

uint64_t settings_context_bytes(void)
{
    pthread_once(&once, read_environment);
    return settings.context_bytes;
}

int settings_hide_processes(void)
{
    pthread_once(&once, read_environment);
    return settings.hide_processes;
}

uint64_t settings_module_bytes(void)
{
    pthread_once(&once, read_environment);
    return settings.module_bytes;
}

uint64_t settings_graph_chunk_bytes(void)
{
    pthread_once(&once, read_environment);
    return settings.graph_chunk_bytes;
}

uint64_t settings_reserved_bytes(void)
{
    pthread_once(&once, read_environment);
    return settings.reserved_bytes;
}

const char *settings_state_path(void)
{
    pthread_once(&once, read_environment);
    return settings.state;
}

/* The first item of a list that begins with `name` and ends or goes on with `next`; NULL if none.
 */
static const char *find_item(const char *list, const char *name, char next)
{
    size_t length = strlen(name);

    for (const char *item = list; item; item = strchr(item, ',')) {
        item += *item == ',';
        if (strncmp(item, name, length) == 0 &&
            (item[length] == next || (next == ',' && item[length] == '\0')))
            return item;
    }
    return NULL;
}

int settings_missing(const char *symbol)
{
    pthread_once(&once, read_environment);
    return find_item(settings.missing, symbol, ',') != NULL;
}

int settings_has_failures(void)
{
    pthread_once(&once, read_environment);
    return settings.fail[0] != '\0';
}

int settings_failure(const char *symbol, uint64_t n)
{
    size_t length = strlen(symbol);

    for (const char *item = find_item(settings.fail, symbol, ':'); item;
         item = find_item(item + length, symbol, ':')) {
        unsigned long which;
        int code;
        if (sscanf(item + length, ":%lu:%d", &which, &code) == 2 && which == n)
            return code;
    }
    return 0;
}
