/* SPDX-License-Identifier: Apache-2.0 */
/* Files of control groups and of /proc: amounts are -1 or not below zero, and a working set is not
 * more than the memory. */
#include "pod/usage.h"

#include "base/mem.h"
#include "base/str.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) ((x) ? (void) 0 : abort())

static void check(const struct pod_usage *u)
{
    CHECK(u->cpu_ns >= -1 && u->memory_bytes >= -1 && u->rss_bytes >= -1);
    CHECK(u->working_set_bytes >= -1 && u->working_set_bytes <= u->memory_bytes);
    CHECK(u->page_faults >= -1 && u->major_page_faults >= -1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *text = xstrndup((const char *) data, size);
    struct pod_usage_files f = {.cpu = text, .memory = text, .memory_stat = text};
    struct pod_usage u;
    struct pod_link links[4];
    CLEANUP_ARENA struct arena a = {0};
    pod_usage_read(&f, false, &u);
    check(&u);
    pod_usage_read(&f, true, &u);
    check(&u);
    pod_usage_read_host(text, text, 100, &u);
    check(&u);
    size_t n = pod_usage_links(text, links, 4);
    for (size_t i = 0; i < n; i++) {
        CHECK(*links[i].name && !streq(links[i].name, "lo") && links[i].rx_bytes >= 0 &&
              links[i].tx_dropped >= 0);
    }
    if (strlen(text) < 200) {
        CHECK(*pod_slice_path(text, &a) == '/');
    }
    return 0;
}
