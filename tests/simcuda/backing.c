/* backing.c -- see backing.h.
 *
 * From 1 MiB on each piece is a mapping of its own. Smaller pieces come from chunks of one power of
 * two, so that a million of them need few mappings; what is given back is handed out again first,
 * as the driver does.
 */
#include "backing.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LARGE_FROM ((size_t)1 << 20)
#define CHUNK ((size_t)2 << 20)
#define REGION ((size_t)64 << 20)
#define PAGE ((size_t)4096)

enum { SMALLEST_SHIFT = 9, CLASSES = 12 };

struct stack { /* of pieces that were given back */
    void **pieces;
    size_t used, room;
};

struct shared { /* memory that is a file by now */
    char *base;
    size_t length;
    int fd;
    struct shared *next;
};

static struct stack stacks[CLASSES];
static char *region;
static size_t region_left;
static struct shared *shared_list;

static int class_of(size_t bytes)
{
    int class = 0;

    while (((size_t)1 << (class + SMALLEST_SHIFT)) < bytes)
        class ++;
    return class;
}

static void *map_anonymous(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static int is_low(const void *memory) { return (uintptr_t)memory <= UINT32_MAX; }

void *backing_take_low(size_t bytes)
{
    const uintptr_t first = (uintptr_t)1 << 28, end = (uintptr_t)1 << 31, step = (uintptr_t)1 << 21;

    for (uintptr_t at = first; at + bytes <= end; at += step) {
        void *hint = (void *)at;
        void *memory =
            mmap(hint, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (memory == hint)
            return memory;
        if (memory != MAP_FAILED) /* a kernel that takes it for a mere hint */
            munmap(memory, bytes);
    }
    return NULL;
}

/* Chunks are aligned to their size, so that a piece's chunk follows from its address. */
static char *new_chunk(void)
{
    if (!region_left) {
        char *memory = map_anonymous(REGION + CHUNK);
        if (!memory)
            return NULL;
        region = memory + (CHUNK - (uintptr_t)memory % CHUNK) % CHUNK;
        region_left = REGION;
    }
    char *chunk = region;
    region += CHUNK;
    region_left -= CHUNK;
    return chunk;
}

static void push(struct stack *stack, void *piece)
{
    if (stack->used == stack->room) {
        stack->room = stack->room ? 2 * stack->room : 256;
        stack->pieces = realloc(stack->pieces, stack->room * sizeof *stack->pieces);
        if (!stack->pieces)
            abort();
    }
    stack->pieces[stack->used++] = piece;
}

void *backing_take(size_t bytes)
{
    if (bytes >= LARGE_FROM)
        return map_anonymous(bytes);
    int class = class_of(bytes);
    struct stack *stack = &stacks[class];
    if (stack->used == 0) {
        size_t piece = (size_t)1 << (class + SMALLEST_SHIFT);
        char *chunk = new_chunk();
        if (!chunk)
            return NULL;
        for (size_t end = CHUNK; end; end -= piece)
            push(stack, chunk + end - piece);
    }
    return stack->pieces[--stack->used];
}

/* The link to the shared file that stands for an address, or to the end of the list. */
static struct shared **find_shared(const char *memory)
{
    struct shared **link = &shared_list;

    while (*link && (memory < (*link)->base || memory >= (*link)->base + (*link)->length))
        link = &(*link)->next;
    return link;
}

void backing_give(void *memory, size_t bytes)
{
    if (bytes < LARGE_FROM && !is_low(memory)) {
        push(&stacks[class_of(bytes)], memory);
        return;
    }
    struct shared **link = find_shared(memory), *shared = *link;
    if (shared) {
        *link = shared->next;
        close(shared->fd);
        free(shared);
    }
    munmap(memory, bytes);
}

/* Copies the touched pages into a file and maps that in place. */
static struct shared *make_shared(char *base, size_t length)
{
    struct shared *shared = calloc(1, sizeof *shared);
    int fd = memfd_create("simcuda", MFD_CLOEXEC);

    if (!shared || fd < 0 || ftruncate(fd, (off_t)length) != 0)
        goto fail;
    for (size_t at = 0; at < length; at += PAGE) {
        unsigned char resident = 0;
        size_t part = length - at < PAGE ? length - at : PAGE;
        if (mincore(base + at, part, &resident) == 0 && (resident & 1) &&
            pwrite(fd, base + at, part, (off_t)at) != (ssize_t)part)
            goto fail;
    }
    if (mmap(base, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0) ==
        MAP_FAILED)
        goto fail;
    *shared = (struct shared){base, length, fd, shared_list};
    return shared_list = shared;
fail:
    if (fd >= 0)
        close(fd);
    free(shared);
    return NULL;
}

int backing_share(void *memory, size_t bytes, struct backing_share *share)
{
    struct shared *shared = *find_shared(memory);
    char *base = memory;

    if (bytes < LARGE_FROM && !is_low(memory)) {
        base -= (uintptr_t)memory % CHUNK;
        bytes = CHUNK;
    }
    if (!shared)
        shared = make_shared(base, bytes);
    if (!shared)
        return -1;
    *share =
        (struct backing_share){shared->fd, shared->length, (size_t)((char *)memory - shared->base)};
    return 0;
}

void backing_zero(void *memory, size_t bytes)
{
    char *start = memory, *end = start + bytes;
    char *first = start + (PAGE - (uintptr_t)start % PAGE) % PAGE;
    char *last = end - (uintptr_t)end % PAGE;

    if (first >= last || bytes < LARGE_FROM) {
        memset(memory, 0, bytes);
        return;
    }
    memset(start, 0, (size_t)(first - start));
    memset(last, 0, (size_t)(end - last));
    /* a private mapping forgets its pages; a file's are cut out of it */
    if (madvise(first, (size_t)(last - first), MADV_REMOVE) != 0 &&
        madvise(first, (size_t)(last - first), MADV_DONTNEED) != 0)
        memset(first, 0, (size_t)(last - first));
}
