/* SPDX-License-Identifier: Apache-2.0 */
/* /healthz, /livez and /readyz, as kube-apiserver has them: all checks of an endpoint, or one by
 * its name. */
#include "apiserver/verbs/health.h"

#include "apiserver/admission/integrity.h"
#include "apiserver/request/probe.h"

enum { HEALTHZ = 1, LIVEZ = 2, READYZ = 4 };
/* The check has its name in Kubernetes, for every type of store. */
#define STORE_CHECK "etcd"
static const char *const endpoints[] = {"healthz", "livez", "readyz"};

struct health_check {
    const char *name;
    unsigned in; /* The endpoints that include the check. */
    apiserver_check_fn *fn;
    void *ctx;
};

static const char *check_ping(void *server)
{
    return NULL;
}

static const char *check_store(void *server)
{
    return probe_error(((struct apiserver *) server)->probe);
}

static const char *check_registry(void *server)
{
    return ((struct apiserver *) server)->cache.ready ? NULL : "the registry is being loaded";
}

static const char *check_integrity(void *server)
{
    return integrity_error(server);
}

static const char *check_shutdown(void *server)
{
    const struct apiserver *a = server;
    return a->stopping || a->unready ? "the server is shutting down" : NULL;
}

static void add(struct apiserver *a, struct health_check c)
{
    a->checks = grow(a->checks, &a->checks_cap, a->n_checks + 1, sizeof *a->checks);
    a->checks[a->n_checks++] = c;
}

void health_init(struct apiserver *a)
{
    add(a, (struct health_check){"ping", HEALTHZ | LIVEZ | READYZ, check_ping, a});
    add(a, (struct health_check){STORE_CHECK, HEALTHZ | READYZ, check_store, a});
    add(a, (struct health_check){"registry", HEALTHZ | READYZ, check_registry, a});
    add(a, (struct health_check){"integrity", READYZ, check_integrity, a});
    add(a, (struct health_check){"shutdown", READYZ, check_shutdown, a});
}

void apiserver_add_check(struct apiserver *a, const char *name, apiserver_check_fn *fn, void *ctx)
{
    add(a, (struct health_check){name, READYZ, fn, ctx});
}

/* Whether ?exclude= names the check; the parameter may be repeated. */
static bool is_excluded(const struct request *q, const char *name)
{
    const char *s = http_query_raw(q->x);
    size_t n = strlen(name);
    while (s && *s) {
        if (str_has_prefix(s, "exclude=") && strncmp(s + 8, name, n) == 0 &&
            (!s[8 + n] || s[8 + n] == '&')) {
            return true;
        }
        s = strchr(s, '&');
        s = s ? s + 1 : NULL;
    }
    return false;
}

static void fill_one(const struct health_check *c, struct outcome *outcome)
{
    const char *wrong = c->fn(c->ctx);
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    strbuf_addf(&text, "%s%s", wrong ? "internal server error: " : "ok", wrong ? wrong : "");
    outcome_text(outcome, wrong ? 503 : 200, "text/plain; charset=utf-8", &text);
}

static void fill_all(struct request *q, const char *name, unsigned in, struct outcome *outcome)
{
    const struct apiserver *a = q->server;
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    bool failed = false;
    for (size_t i = 0; i < a->n_checks; i++) {
        const struct health_check *c = &a->checks[i];
        if (!(c->in & in)) {
            continue;
        }
        if (is_excluded(q, c->name)) {
            strbuf_addf(&text, "[+]%s excluded: ok\n", c->name);
            continue;
        }
        const char *wrong = c->fn(c->ctx);
        failed |= wrong != NULL;
        if (wrong) {
            strbuf_addf(&text, "[-]%s failed: %s\n", c->name, wrong);
        } else {
            strbuf_addf(&text, "[+]%s ok\n", c->name);
        }
    }
    if (failed || request_flag(q, "verbose")) {
        strbuf_addf(&text, "%s check %s\n", name, failed ? "failed" : "passed");
    } else {
        strbuf_reset(&text);
        strbuf_adds(&text, "ok");
    }
    outcome_text(outcome, failed ? 503 : 200, "text/plain; charset=utf-8", &text);
}

/* The endpoint that 'path' begins with; '*ret_name' is the rest: "" or the name of a check. */
static unsigned endpoint_of(const char *path, const char **ret_name, const char **ret_check)
{
    for (size_t e = 0; e < ARRAY_SIZE(endpoints); e++) {
        size_t n = strlen(endpoints[e]);
        if (strncmp(path + 1, endpoints[e], n) == 0 && (!path[1 + n] || path[1 + n] == '/')) {
            *ret_name = endpoints[e];
            *ret_check = path + 1 + n + (path[1 + n] == '/');
            return path[1 + n] && !**ret_check ? 0 : 1u << e;
        }
    }
    return 0;
}

static const struct health_check *find_check(const struct apiserver *a, unsigned in,
                                             const char *name)
{
    for (size_t i = 0; i < a->n_checks; i++) {
        if (a->checks[i].in & in && streq(a->checks[i].name, name)) {
            return &a->checks[i];
        }
    }
    return NULL;
}

static void fill(struct request *q, const char *path, struct outcome *outcome)
{
    const char *endpoint, *name;
    unsigned in = endpoint_of(path, &endpoint, &name);
    if (*name) {
        fill_one(find_check(q->server, in, name), outcome);
    } else {
        fill_all(q, endpoint, in, outcome);
    }
}

bool handle_health(struct request *q, const char *path, struct outcome *outcome)
{
    const char *endpoint, *name;
    unsigned in = endpoint_of(path, &endpoint, &name);
    if (!in || (*name && !find_check(q->server, in, name))) {
        return false;
    }
    bool all = !*name && !is_excluded(q, STORE_CHECK);
    if (find_check(q->server, in, STORE_CHECK) && (all || streq(name, STORE_CHECK))) {
        probe_then(q->server->probe, q, path, fill, outcome);
    } else {
        fill(q, path, outcome);
    }
    return true;
}
