/* state.c -- see state.h.
 *
 * Each process writes only its own slot. A robust mutex in the file makes claiming and
 * check-and-add one step; a holder that is killed leaves nothing half done, since every store is of
 * one word. The mutex is made under flock, so that concurrent starts can't meet it unfinished.
 */
#include "state.h"

#include "machine.h"
#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SLOTS = 1024, LAYOUT = 0x53494d33 };

struct slot {
    atomic_int pid; /* 0: free */
    int unused;
    _Atomic uint64_t started;
    _Atomic uint64_t bytes[USE_KINDS][MACHINE_MAX_GPUS];
    atomic_uint contexts[MACHINE_MAX_GPUS];
};

struct state_file {
    atomic_uint layout;
    atomic_int used; /* slots from here on were never claimed */
    pthread_mutex_t lock;
    struct slot slots[SLOTS];
};

static struct state_file *state;
static struct slot *mine;
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

/* The start time of a process in clock ticks since boot; 0 where it is gone or a zombie. */
static uint64_t start_time(int pid)
{
    char path[32], line[512];

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t length = read(fd, line, sizeof line - 1);
    close(fd);
    line[length < 0 ? 0 : length] = '\0';
    const char *rest = strrchr(line, ')');
    unsigned long long started = 0;
    char status = 'Z';
    if (!rest || sscanf(rest,
                        ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                        "%*s %*s %llu",
                        &status, &started) != 2)
        return 0;
    return status == 'Z' || status == 'X' ? 0 : started;
}

static int slot_alive(struct slot *slot)
{
    int pid = atomic_load(&slot->pid);

    return pid && (slot == mine ? pid == getpid() : start_time(pid) == atomic_load(&slot->started));
}

static void make_lock(struct state_file *file)
{
    pthread_mutexattr_t attributes;

    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&file->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

static struct state_file *map_file(int fd)
{
    struct state_file *file = MAP_FAILED;

    if (flock(fd, LOCK_EX) == 0 && ftruncate(fd, sizeof *file) == 0)
        file = mmap(NULL, sizeof *file, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (file == MAP_FAILED)
        return NULL;
    if (atomic_load(&file->layout) != LAYOUT) {
        memset(file, 0, sizeof *file); /* new, or of another build */
        make_lock(file);
        atomic_store(&file->layout, LAYOUT);
    }
    flock(fd, LOCK_UN); /* closing would not do: the mapping holds the open file */
    return file;
}

static void make_opening(void) { pthread_mutex_init(&opening, NULL); }

/* Another thread may be opening it at a fork. */
__attribute__((constructor)) static void prepare(void) { pthread_atfork(NULL, NULL, make_opening); }

static int open_state(void)
{
    pthread_mutex_lock(&opening);
    if (!state) {
        int fd = open(settings_state_path(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd >= 0) {
            state = map_file(fd);
            close(fd);
        }
        if (!state)
            fprintf(stderr, "simcuda: %s: %s\n", settings_state_path(), strerror(errno));
    }
    pthread_mutex_unlock(&opening);
    return state ? 0 : -1;
}

static void lock_state(void)
{
    if (pthread_mutex_lock(&state->lock) == EOWNERDEAD)
        pthread_mutex_consistent(&state->lock);
}

static void unlock_state(void) { pthread_mutex_unlock(&state->lock); }

static void empty_slot(struct slot *slot)
{
    for (int use = 0; use < USE_KINDS; use++)
        for (int gpu = 0; gpu < MACHINE_MAX_GPUS; gpu++)
            atomic_store(&slot->bytes[use][gpu], 0);
    for (int gpu = 0; gpu < MACHINE_MAX_GPUS; gpu++)
        atomic_store(&slot->contexts[gpu], 0);
}

int state_join(void)
{
    struct slot *unused = NULL;
    int pid = getpid();

    if (open_state() != 0)
        return -1;
    lock_state();
    for (int i = 0; i < SLOTS; i++) {
        struct slot *slot = &state->slots[i];
        if (atomic_load(&slot->pid) == pid || !slot_alive(slot)) {
            /* one's own: this process used the cards before an exec */
            atomic_store(&slot->pid, 0);
            unused = unused ? unused : slot;
        }
    }
    if (unused) {
        empty_slot(unused);
        atomic_store(&unused->started, start_time(pid));
        atomic_store(&unused->pid, pid);
        mine = unused;
        if (unused - state->slots >= atomic_load(&state->used))
            atomic_store(&state->used, (int)(unused - state->slots) + 1);
    }
    unlock_state();
    return unused ? 0 : -1;
}

/* Looking for dead owners costs a file each, so it is only done where the answer depends on it. */
static uint64_t sum(int gpu, int pid, int from, int to, int only_living)
{
    uint64_t bytes = 0;

    for (int i = 0; i < atomic_load(&state->used); i++) {
        struct slot *slot = &state->slots[i];
        int owner = atomic_load(&slot->pid);
        uint64_t here = 0;
        if (!owner || (pid && owner != pid))
            continue;
        for (int use = from; use < to; use++)
            here += atomic_load(&slot->bytes[use][gpu]);
        if (here && (!only_living || slot_alive(slot)))
            bytes += here;
    }
    return bytes;
}

int state_take(int gpu, uint64_t bytes, enum state_use use)
{
    uint64_t capacity = machine_gpu(gpu)->bytes;
    int fits;

    lock_state();
    fits = bytes <= capacity && (sum(gpu, 0, 0, USE_KINDS, 0) <= capacity - bytes ||
                                 sum(gpu, 0, 0, USE_KINDS, 1) <= capacity - bytes);
    if (fits)
        atomic_fetch_add(&mine->bytes[use][gpu], bytes);
    unlock_state();
    return fits ? 0 : -1;
}

void state_give(int gpu, uint64_t bytes, enum state_use use)
{
    atomic_fetch_sub(&mine->bytes[use][gpu], bytes);
}

void state_enter_context(int gpu) { atomic_fetch_add(&mine->contexts[gpu], 1); }

void state_leave_context(int gpu) { atomic_fetch_sub(&mine->contexts[gpu], 1); }

uint64_t state_bytes(int gpu, int pid, enum state_use use)
{
    if (!machine_gpu(gpu) || open_state() != 0)
        return 0;
    return sum(gpu, pid, (int)use, (int)use + 1, 1);
}

uint64_t state_free_bytes(int gpu)
{
    if (!machine_gpu(gpu) || open_state() != 0)
        return 0;
    uint64_t used = sum(gpu, 0, 0, USE_KINDS, 1), capacity = machine_gpu(gpu)->bytes;
    return used < capacity ? capacity - used : 0;
}

unsigned int state_processes(int gpu, struct state_process out[], unsigned int max)
{
    unsigned int count = 0;

    if (!machine_gpu(gpu) || open_state() != 0)
        return 0;
    for (int i = 0; i < atomic_load(&state->used); i++) {
        struct slot *slot = &state->slots[i];
        int pid = atomic_load(&slot->pid);
        uint64_t bytes = pid ? sum(gpu, pid, 0, USE_KINDS, 1) : 0;
        if (bytes == 0 && !(pid && atomic_load(&slot->contexts[gpu]) && slot_alive(slot)))
            continue;
        if (count < max)
            out[count] = (struct state_process){pid, bytes};
        count++;
    }
    return count;
}
