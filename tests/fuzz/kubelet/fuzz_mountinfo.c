/* SPDX-License-Identifier: Apache-2.0 */
/* A table that parses has as many mounts as lines, and no text that is missing. */
#include "base/mem.h"
#include "base/str.h"
#include "kubelet/volumes/mountinfo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) ((x) ? (void) 0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(mount_table_done) struct mount_table t = {0};
    struct err e = {0};
    size_t lines = size && data[size - 1] != '\n';
    if (mount_table_parse((const char *) data, size, &t, &e) < 0) {
        CHECK(e.code == -EINVAL && e.text[0] && !t.v);
        return 0;
    }
    for (size_t i = 0; i < size; i++) {
        lines += data[i] == '\n';
    }
    CHECK(t.n == lines);
    for (size_t i = 0; i < t.n; i++) {
        CHECK(t.v[i].path && *t.v[i].fs_type && t.v[i].source);
        CHECK(mount_path_is_below(t.v[i].path, t.v[i].path));
    }
    return 0;
}
