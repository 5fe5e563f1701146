/* SPDX-License-Identifier: Apache-2.0 */
#include "route/host.h"

#include "base/mem.h"
#include "base/str.h"

char *route_host_generate(const char *name, const char *namespace, const char *subdomain)
{
    CLEANUP_FREE char *label = xstrdup(name);
    for (char *p = label; *p; p++) {
        *p = *p == '.' ? '-' : *p;
    }
    return xasprintf("%s-%s.%s", label, namespace, subdomain);
}

/* Passes "${name}" or "${namespace}" at '*p' and appends its value. */
static bool expand_key(const char **p, const char *name, const char *namespace, struct strbuf *b)
{
    static const char keys[][16] = {"${name}", "${namespace}"};
    const char *const values[] = {name, namespace};
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        if (str_has_prefix(*p, keys[i])) {
            strbuf_adds(b, values[i]);
            *p += strlen(keys[i]);
            return true;
        }
    }
    return false;
}

char *route_host_expand(const char *template, const char *name, const char *namespace)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    size_t n = strlen(template);
    const char *p = template, *end = template + n;
    if (n >= 2 && strchr("\"'", *p) && end[-1] == *p) {
        p++;
        end--;
    }
    while (p < end) {
        if (!str_has_prefix(p, "${")) {
            strbuf_addc(&b, *p++);
        } else if (!expand_key(&p, name, namespace, &b)) {
            return NULL;
        }
    }
    return strbuf_steal(&b);
}
