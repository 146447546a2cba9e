/* copies_test.c -- cross_device_copy = deny at every door by which bytes go from one GPU to
 * another: the table of copy_doors.def, against hooks.def, so that a hook without a door fails.
 *
 *   deny    under the rule, with devices = 3,1: copies between GPUs answer 800, and nothing else
 *   allow   without the shim, or under other rules: all copies are made, and where the shim is
 *           there the doors are the driver's own functions
 *
 * Each door is tried by a process of its own (argv[2]), since refusals are explained once and at
 * most 32 times a process. The referees are the bytes at the destination and the simulated driver's
 * own count of calls.
 */
#include "copy_ends.h"

#include <dlfcn.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BEFORE = 0x22, SENT = 0x5a };

static const char *self;
static int denied;

/* --- one door --- */

static const struct door *door;

/* Does the copy and says what became of it. */
static void try(const char *what, const struct end *to, const struct end *from, CUresult expected)
{
    const int bytes = !(door->traits & MANAGED), refused = expected == CUDA_ERROR_NOT_PERMITTED;
    const int to_array = (door->traits & TO_ARRAY) != 0,
              from_array = (door->traits & FROM_ARRAY) != 0;
    const uint64_t calls = cuda.calls(door->symbol);
    if (bytes) {
        end_fill(from, from_array, SENT);
        end_fill(to, to_array, BEFORE);
    }
    const uint64_t more = cuda.calls(door->symbol) - calls; /* of this test's own */
    CUresult rc = door->go(to, from);
    if (rc != expected)
        fail_msg("%s, %s: answers %d, not %d", door->symbol, what, (int)rc, (int)expected);
    if (cuda.calls(door->symbol) - calls - more != (uint64_t)!refused)
        fail_msg("%s, %s: reaches the driver %s", door->symbol, what, refused ? "" : "not once");
    if (bytes) {
        int holds = end_holds(to, to_array);
        if (holds != (rc == CUDA_SUCCESS ? SENT : BEFORE))
            fail_msg("%s, %s: leaves %#x", door->symbol, what, (unsigned int)holds);
    }
}

static void test_door(void **state)
{
    const CUresult made = door->traits & OLD ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
    const CUresult crossing = denied ? CUDA_ERROR_NOT_PERMITTED : made;
    (void)state;
    try("from 0 to 1", &gpus[1], &gpus[0], crossing);
    try("from 0 to 1 again", &gpus[1], &gpus[0], crossing);
    try("within 1", &neighbour, &gpus[1], made);
    if (!(door->traits & (NAMES_CONTEXTS | TO_ARRAY)))
        try("from 0 to the host", &host, &gpus[0], made);
    if (!(door->traits & (NAMES_CONTEXTS | FROM_ARRAY | MANAGED)))
        try("from the host to 1", &gpus[1], &host, made);
}

static int run_door(const char *symbol)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_door)};
    door = door_of(symbol);
    return door ? cmocka_run_group_tests(tests, ends_start, NULL) : 2;
}

/* --- all doors --- */

struct row {
    const char *symbol, *base;
    unsigned int when;
    int version, stream;
};
static const struct row rows[] = {
#define DRIVER_HOOK(symbol, base, version, stream, when, parameters, arguments)                    \
    {#symbol, #base, when, version, stream},
#define NVML_HOOK(symbol, when, parameters, arguments)
#define RUNTIME_HOOK(symbol, parameters, arguments)
#define DRIVER_CALL(symbol, parameters)
#define NVML_CALL(symbol, parameters)
#include "hooks.def"
#undef DRIVER_HOOK
};
enum { ROW_COUNT = sizeof rows / sizeof rows[0], DOORS = 91 };

/* What makes and destroys arrays is looked at only to know where they are. */
static int is_door(const struct row *row)
{
    return row->when & WHEN_COPIES && strncmp(row->symbol, "cuArray", 7) != 0 &&
           strncmp(row->symbol, "cuMipmappedArray", 16) != 0;
}

/* Runs this program for one door; what it said goes to `said`. Its exit status. */
static int run_child(const char *symbol, char *said, size_t room)
{
    const char *arguments[] = {self, denied ? "deny" : "allow", symbol, NULL};
    posix_spawn_file_actions_t actions;
    FILE *file = tmpfile();
    pid_t pid;
    int status;
    assert_non_null(file);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fileno(file), STDERR_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", 1, 0);
    assert_int_equal(
        posix_spawn(&pid, self, &actions, NULL, (char **)(uintptr_t)arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    ssize_t length = pread(fileno(file), said, room - 1, 0);
    said[length > 0 ? length : 0] = '\0';
    fclose(file);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Of the shim's; the test's own framework speaks on standard error too. */
static void keep_lines_of_shim(const char *said, char *lines)
{
    *lines = '\0';
    for (const char *end; (end = strchr(said, '\n')); said = end + 1)
        if (strncmp(said, "gpushim: ", 9) == 0)
            strncat(lines, said, (size_t)(end + 1 - said));
}

/* One line a door, for the first of two refused copies. */
static void test_every_door(void **state)
{
    char said[4096], lines[4096], right[512] = "";
    int doors = 0;
    (void)state;
    for (int i = 0; i < ROW_COUNT; i++) {
        if (!is_door(&rows[i]))
            continue;
        if (!door_of(rows[i].symbol))
            fail_msg("%s has no row in copy_doors.def", rows[i].symbol);
        if (denied)
            snprintf(right, sizeof right,
                     "gpushim: %s from CUDA device 0 (GPU 3) to CUDA device 1 (GPU 1) refused: "
                     "[default] of "
                     "GPUSHIM_POLICY:2 says cross_device_copy = deny; copy to host memory, and "
                     "from there\n",
                     rows[i].base);
        int status = run_child(rows[i].symbol, said, sizeof said);
        keep_lines_of_shim(said, lines);
        if (status != 0 || strcmp(lines, right) != 0)
            fail_msg("%s: exit status %d, said:\n%s--- not:\n%s", rows[i].symbol, status, said,
                     right);
        doors++;
    }
    assert_int_equal(doors, DOORS);
}

static const char *home_of(const void *address)
{
    Dl_info info;
    if (!address || !dladdr(address, &info))
        return "nothing";
    const char *slash = strrchr(info.dli_fname, '/');
    return slash ? slash + 1 : info.dli_fname;
}

/* Where no rule looks at copies, none is slowed down: by each way of looking it up, the driver's
 * own function. Under the rule, ours; and the peers' doors stay the driver's. */
static void test_whose_function(void **state)
{
    (void)state;
    for (int i = 0; i < ROW_COUNT; i++) {
        void *found = dlsym(cuda.library, rows[i].symbol), *told = NULL;
        const char *home = denied ? "libgpushim.so" : "libcuda.so.1";
        if (!is_door(&rows[i]) && rows[i].when != WHEN_PEER)
            continue;
        if (rows[i].when == WHEN_PEER)
            home = "libcuda.so.1";
        else if (!denied && rows[i].when != WHEN_COPIES)
            continue; /* another rule may look at it */
        if (rows[i].when == WHEN_PEER && !denied)
            continue; /* likewise */
        if (strcmp(home_of(found), home) != 0)
            fail_msg("%s is of %s, not of %s", rows[i].symbol, home_of(found), home);
        ok(cuda.cuGetProcAddress_v2(rows[i].base, &told, rows[i].version,
                                    (cuuint64_t)rows[i].stream, NULL));
        assert_ptr_equal(told, found);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_door),
        cmocka_unit_test(test_whose_function),
    };
    if (argc < 2)
        return 2;
    self = argv[0];
    denied = strcmp(argv[1], "deny") == 0;
    return argc > 2 ? run_door(argv[2]) : cmocka_run_group_tests(tests, ends_start, NULL);
}
