/* visible.c -- what CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER leave of the default machine
 * (driver.md, F2). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "machine.h"
#include "visible.h"

#include <stdio.h>
#include <string.h>

#define UUID_0 "GPU-0051c0da-51c0-4da0-8000-000000000000"
#define UUID_3 "GPU-0351c0da-51c0-4da0-8000-000000000003"

static const struct {
    const char *devices, *order, *cards; /* cards of the PCI order, in CUDA's */
} cases[] = {
    {NULL, NULL, "1302"},
    {NULL, "FASTEST_FIRST", "1302"},
    {NULL, "PCI_BUS_ID", "0123"},
    {NULL, "nonsense", "1302"},
    {"", NULL, ""},
    {"0", NULL, "1"},
    {"0", "PCI_BUS_ID", "0"},
    {"3,0", NULL, "21"},
    {"3,0", "PCI_BUS_ID", "30"},
    {"0,2,-1,1", "PCI_BUS_ID", "02"},
    {"-1", NULL, ""},
    {"4", NULL, ""},
    {"1,4,2", "PCI_BUS_ID", "1"},
    {"1gpu2", "PCI_BUS_ID", "1"},
    {" 1, 2", "PCI_BUS_ID", "12"},
    {"1,1", NULL, ""},
    {"0,1,0", NULL, ""},
    {"none", NULL, ""},
    {"0,none,1", "PCI_BUS_ID", "0"},
    {"1,,2", "PCI_BUS_ID", "1"},
    {UUID_3, NULL, "3"},
    {UUID_3 "," UUID_0, NULL, "30"},
    {"GPU-03", NULL, "3"},
    {"GPU-0", NULL, ""}, /* ambiguous */
    {"GPU-00,GPU-0", NULL, "0"},
    {"gpu-03", NULL, ""},    /* case matters */
    {"GPU-03,1", NULL, "3"}, /* another kind ends the list */
    {"1,GPU-03", "PCI_BUS_ID", "1"},
    {"GPU-03,GPU-0351", NULL, ""}, /* one card twice */
    {UUID_3 "0", NULL, ""},
    {"MIG-03", NULL, ""},
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int gpus[MACHINE_MAX_GPUS];
        char text[MACHINE_MAX_GPUS + 1] = "";
        int count = visible_gpus(cases[i].devices, cases[i].order, gpus);
        for (int k = 0; k < count; k++)
            snprintf(text + k, 2, "%d", gpus[k]);
        if (strcmp(text, cases[i].cards) != 0)
            print_error("CUDA_VISIBLE_DEVICES=%s CUDA_DEVICE_ORDER=%s\n", cases[i].devices,
                        cases[i].order);
        assert_string_equal(text, cases[i].cards);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
