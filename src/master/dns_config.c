/* SPDX-License-Identifier: Apache-2.0 */
#include "master/dns_config.h"

#include "base/mem.h"

#define SECTION "dnsConfig"

void dns_config_done(struct dns_config *c)
{
    free(c->bind_address);
    free(c->domain);
    free(c->nameservers);
    *c = (struct dns_config){0};
}

static int read_text(const char *key, const struct json *v, char **to, struct err *e)
{
    const char *s = json_get_string(v);
    if (!s || !*s) {
        return err_set(e, -EINVAL, SECTION ".%s: must be a string", key);
    }
    free(*to);
    *to = xstrdup(s);
    return 0;
}

static int read_nameservers(struct dns_config *c, const struct json *v, struct err *e)
{
    CLEANUP_STRBUF struct strbuf list = STRBUF_INIT;
    for (size_t i = 0; i < json_count(v); i++) {
        const char *s = json_get_string(json_at(v, i));
        if (!s) {
            return err_set(e, -EINVAL, SECTION ".nameservers[%zu]: must be a string", i);
        }
        strbuf_addf(&list, "%s%s", i ? "," : "", s);
    }
    if (!json_is(v, JSON_ARRAY)) {
        return err_set(e, -EINVAL, SECTION ".nameservers: must be a list of addresses");
    }
    free(c->nameservers);
    c->nameservers = list.size ? strbuf_steal(&list) : NULL;
    return 0;
}

static int read_network(const struct json *v, struct err *e)
{
    const char *s = json_get_string(v);
    return s && streq(s, "tcp4") ? 0 : err_set(e, -EINVAL, SECTION ".bindNetwork: must be tcp4");
}

static int read_bool(const char *key, const struct json *v, bool *to, struct err *e)
{
    if (!json_is(v, JSON_BOOL)) {
        return err_set(e, -EINVAL, SECTION ".%s: must be true or false", key);
    }
    *to = json_get_bool(v, false);
    return 0;
}

int dns_config_read(struct dns_config *c, const struct json *v, struct err *e)
{
    if (json_is(v, JSON_NULL)) {
        return 0;
    }
    if (!json_is(v, JSON_OBJECT)) {
        return err_set(e, -EINVAL, SECTION ": must be a mapping of keys to values");
    }
    for (size_t i = 0; i < json_count(v); i++) {
        const char *key = json_key_at(v, i);
        const struct json *member = json_at(v, i);
        int r = json_is(member, JSON_NULL)            ? 0
                : streq(key, "bindAddress")           ? read_text(key, member, &c->bind_address, e)
                : streq(key, "bindNetwork")           ? read_network(member, e)
                : streq(key, "domain")                ? read_text(key, member, &c->domain, e)
                : streq(key, "nameservers")           ? read_nameservers(c, member, e)
                : streq(key, "allowRecursiveQueries") ? read_bool(key, member, &c->recursive, e)
                : streq(key, "isolateProjects")
                    ? read_bool(key, member, &c->isolate, e)
                    : err_set(e, -EINVAL, SECTION ".%.80s: unknown key", key);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}
