/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over every file of the folders given (absent folders are fine): the corpus and the
 * inputs that once crashed it are regression tests with any compiler. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        return -1;
    }
    static uint8_t buf[1 << 20];
    size_t n = fread(buf, 1, sizeof buf, f);
    fclose(f);
    /* An exact allocation, so that ASan sees one byte too far. */
    uint8_t *exact = malloc(n ? n : 1);
    if (!exact) {
        return -1;
    }
    for (size_t i = 0; i < n; i++) {
        exact[i] = buf[i];
    }
    LLVMFuzzerTestOneInput(exact, n);
    free(exact);
    return 0;
}

int main(int argc, char **argv)
{
    unsigned n = 0;
    for (int i = 1; i < argc; i++) {
        DIR *d = opendir(argv[i]);
        for (struct dirent *e; d && (e = readdir(d));) {
            char path[4096];
            if (e->d_name[0] == '.') {
                continue;
            }
            snprintf(path, sizeof path, "%s/%s", argv[i], e->d_name);
            if (run_file(path) < 0) {
                return 1;
            }
            n++;
        }
        if (d) {
            closedir(d);
        }
    }
    printf("%u inputs\n", n);
    return n ? 0 : 1;
}
