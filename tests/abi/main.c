/* main.c -- are our header and the official one of one mind? Prints each difference; exit status 1
 * if any. */
#include "abi.h"

#include <stdio.h>
#include <string.h>

int main(void)
{
    int differences = 0, rows = 0;
    for (; abi_ours[rows].name && abi_official[rows].name; rows++) {
        if (strcmp(abi_ours[rows].name, abi_official[rows].name) != 0 ||
            abi_ours[rows].value != abi_official[rows].value) {
            printf("%s: ours %lld, official %lld\n", abi_ours[rows].name, abi_ours[rows].value,
                   abi_official[rows].value);
            differences++;
        }
    }
    printf("%d rows compared, %d differ\n", rows, differences);
    return differences || abi_ours[rows].name || abi_official[rows].name || rows == 0;
}
