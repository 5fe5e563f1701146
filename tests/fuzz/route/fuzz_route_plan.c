/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz: the proxy's configuration of a route.  The bytes are a Route.  Whatever is in it, each line of
 * its backend begins with a keyword that the router writes, and no text that is sent as a command or
 * written to a map has a control character. */
#include "base/mem.h"
#include "route/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *s, bool spaces)
{
    for (; *s; s++) {
        if ((unsigned char) *s < 0x20 || *s == 0x7f || (!spaces && *s == ' ')) {
            __builtin_trap();
        }
    }
}

static void check_line(const char *line, size_t n)
{
    static const char *const keywords[] = {
        "mode ",           "balance ",         "hash-type ",     "cookie ",
        "dynamic-cookie-", "http-request ",    "http-response ", "http-after-response ",
        "timeout tunnel ", "acl allowed src ", "tcp-request ",   "stick-table ",
        "server "};
    if (n < 4 || memcmp(line, "    ", 4) != 0) {
        __builtin_trap();
    }
    for (size_t i = 0; i < ARRAY_SIZE(keywords); i++) {
        if (str_has_prefix(line + 4, keywords[i])) {
            return;
        }
    }
    __builtin_trap();
}

static void check_backend(const struct route_plan *p)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    route_plan_write_backend("be", p, p, &out);
    const char *line = strchr(strbuf_cstr(&out), '\n') + 1;
    for (const char *nl; *line; line = nl + 1) {
        nl = strchr(line, '\n');
        check_line(line, (size_t) (nl - line));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct route_plan_options o = {.dir = "/d",
                                                .tcp_balance = "source",
                                                .cookie_name = "c",
                                                .cookie_key = "k",
                                                .service_ca = "/ca"};
    static const struct route_plan_endpoint at[] = {{0x0a000001, 80}, {0x0a000002, 80}};
    CLEANUP(json_free) struct json *v = NULL;
    CLEANUP(route_free) struct route *r = NULL;
    CLEANUP(route_plan_free) struct route_plan *p = NULL;
    if (json_parse((const char *) data, size, &v, NULL) < 0 || route_parse(v, &r, NULL) < 0) {
        return 0;
    }
    CLEANUP_FREE struct route_plan_service *s = xcalloc(r->n_targets + 1, sizeof *s);
    for (size_t i = 0; i < r->n_targets; i++) {
        s[i] = (struct route_plan_service){.endpoints = at, .n = ARRAY_SIZE(at)};
    }
    if (route_plan_make(&o, r, s, NULL, &p, NULL) < 0) {
        return 0;
    }
    check_backend(p);
    for (size_t i = 0; i < p->n_entries; i++) {
        check_text(p->entries[i].key ? p->entries[i].key : "", false);
        check_text(p->entries[i].value ? p->entries[i].value : "", true);
    }
    return 0;
}
