/* SPDX-License-Identifier: Apache-2.0 */
#include "route/domains.h"

#include "base/mem.h"
#include "base/str.h"

void route_domains_init(struct route_domains *d, const char *text)
{
    static const char blanks[] = " \t\r\n";
    /* Any value that is not NULL: only the keys count. */
    static char present;
    smap_init(&d->names, NULL);
    while (true) {
        size_t n = strcspn(text, ",");
        const char *first = text + strspn(text, blanks), *end = text + n;
        while (end > first && strchr(blanks, end[-1])) {
            end--;
        }
        if (end > first) {
            CLEANUP_FREE char *name = xstrndup(first, (size_t) (end - first));
            smap_set(&d->names, name, &present);
        }
        if (!text[n]) {
            return;
        }
        text += n + 1;
    }
}

void route_domains_done(struct route_domains *d)
{
    smap_done(&d->names);
}

bool route_domains_is_empty(const struct route_domains *d)
{
    return smap_size(&d->names) == 0;
}

bool route_domains_has(const struct route_domains *d, const char *host)
{
    for (const char *s = host; s; s = strchr(s, '.') ? strchr(s, '.') + 1 : NULL) {
        if (smap_get(&d->names, s)) {
            return true;
        }
    }
    return false;
}
