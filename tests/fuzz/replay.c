/* replay.c -- a main for fuzzing targets where there is no libFuzzer: runs the target once for
 * every file of the folders that are named, and for every beginning of it. */
#include "demand.h"

#include <dirent.h>
#include <string.h>

static unsigned int replayed;

static void replay(const char *folder, const char *file)
{
    static uint8_t bytes[1 << 17];
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *stream = fopen(path, "rb");
    demand(stream);
    size_t length = fread(bytes, 1, sizeof bytes, stream);
    (void)fclose(stream);
    for (size_t part = 0; part <= length; part++) {
        uint8_t *exactly = malloc(part ? part : 1); /* so that a sanitizer sees who reads on */
        demand(exactly);
        memcpy(exactly, bytes, part);
        LLVMFuzzerTestOneInput(exactly, part);
        free(exactly);
    }
    replayed++;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        DIR *files = opendir(argv[i]);
        demand(files);
        for (struct dirent *entry; (entry = readdir(files));) {
            if (entry->d_name[0] != '.')
                replay(argv[i], entry->d_name);
        }
        (void)closedir(files);
    }
    printf("%u files\n", replayed);
    return replayed == 0;
}
