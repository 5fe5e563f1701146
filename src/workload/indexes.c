/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/indexes.h"

#include "base/mem.h"

void indexes_parse(const char *text, size_t n, struct indexes *ret)
{
    n = MIN(n, INDEXES_MAX);
    *ret = (struct indexes){.has = xcalloc(n + 1, 1), .n = n};
    for (const char *p = text ? text : ""; *p;) {
        size_t size = strcspn(p, ",");
        CLEANUP_FREE char *part = xstrndup(p, size);
        char *dash = strchr(part, '-');
        uint64_t first, last;
        if (dash) {
            *dash = '\0';
        }
        bool ok = str_to_u64(part, INT32_MAX, &first) == 0;
        last = first;
        ok = ok && (!dash || str_to_u64(dash + 1, INT32_MAX, &last) == 0);
        for (uint64_t i = first; ok && i <= last && i < n; i++) {
            ret->has[i] = 1;
        }
        p += size + (p[size] == ',');
    }
}

void indexes_done(struct indexes *s)
{
    free(TAKE(s->has));
}

size_t indexes_count(const struct indexes *s)
{
    size_t count = 0;
    for (size_t i = 0; i < s->n; i++) {
        count += s->has[i];
    }
    return count;
}

void indexes_write(const struct indexes *s, struct strbuf *out)
{
    for (size_t i = 0; i < s->n; i++) {
        size_t first = i;
        if (!s->has[i]) {
            continue;
        }
        while (i + 1 < s->n && s->has[i + 1]) {
            i++;
        }
        const char *comma = out->size ? "," : "";
        if (i == first) {
            strbuf_addf(out, "%s%zu", comma, first);
        } else if (i == first + 1) {
            strbuf_addf(out, "%s%zu,%zu", comma, first, i);
        } else {
            strbuf_addf(out, "%s%zu-%zu", comma, first, i);
        }
    }
}
