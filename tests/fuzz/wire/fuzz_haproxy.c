/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz: answers of HAProxy's runtime API.  Words lie within the answer. */
#include "wire/haproxy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct haproxy_word *w, const char *p, const char *end)
{
    if (w->p < p || w->p + w->size > end || memchr(w->p, '\n', w->size)) {
        __builtin_trap();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *) data, *end = p + size, *at;
    size_t skip, n, used;
    struct haproxy_map_entry entry;
    struct haproxy_server server;
    struct haproxy_word word;
    struct haproxy_stat stat;
    if (haproxy_answer(p, size, &skip, &n, &used) == 0 && skip + n + 2 != used) {
        __builtin_trap();
    }
    for (at = p; haproxy_next_map_entry(&at, end, &entry);) {
        check(&entry.key, p, end);
        check(&entry.value, p, end);
    }
    for (at = p; haproxy_next_server(&at, end, &server);) {
        check(&server.backend, p, end);
        check(&server.name, p, end);
    }
    for (at = p; haproxy_next_certificate(&at, end, &word);) {
        check(&word, p, end);
    }
    for (at = p; haproxy_next_backend(&at, end, &word);) {
        check(&word, p, end);
    }
    for (at = p; haproxy_next_stat(&at, end, &stat);) {
        check(&stat.column[0], p, end);
    }
    return 0;
}
