/* SPDX-License-Identifier: Apache-2.0 */
#include "node/registry/names.h"

#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "dns/addresses.h"

#include <string.h>

LOG_MODULE("egress");

struct name {
    struct names *all;
    char *text;
    struct loop_timer *timer;
    char *failure; /* The reported reason; NULL: the last look-up succeeded. */
};

struct names {
    struct loop *loop;
    struct dns *dns;
    const struct names_ops *ops;
    void *ctx;
    struct smap names;
};

static void fail(struct name *n, const char *why)
{
    loop_timer_arm(n->timer, NAMES_RETRY_MS);
    if (streq_null(n->failure, why)) {
        return;
    }
    log_warn("name in an egress firewall cannot be looked up; it keeps its addresses",
             "name=%s error=\"%s\"", n->text, why);
    free(n->failure);
    n->failure = xstrdup(why);
    n->all->ops->failed(n->all->ctx, n->text, why);
}

static void use(struct name *n, const struct dns_cached *answer)
{
    struct dns_addresses a;
    struct err e = {0};
    const struct blob *m = answer->message;
    if (dns_addresses_read((const uint8_t *) m->data, m->size, &a, &e) < 0) {
        fail(n, e.text);
        return;
    }
    uint32_t left = a.ttl_s > answer->age_s ? a.ttl_s - answer->age_s : 0;
    uint32_t refresh = MIN(dns_addresses_refresh_s(a.ttl_s), MAX(left, 1));
    loop_timer_arm(n->timer, (uint64_t) refresh * 1000);
    if (n->failure) {
        free(TAKE(n->failure));
        n->all->ops->failed(n->all->ctx, n->text, NULL);
    }
    n->all->ops->resolved(n->all->ctx, n->text, a.ip, a.n);
}

static void answered(void *ctx, const struct dns_cached *answer)
{
    struct name *n = ctx;
    if (!answer || answer->stale) {
        fail(n, "no name server answers");
    } else {
        use(n, answer);
    }
}

static void look_up(void *ctx)
{
    struct name *n = ctx;
    struct dns_cached known;
    if (dns_known(n->all->dns, n->text, &known)) {
        use(n, &known);
        blob_unref(known.message);
        return;
    }
    int r = dns_ask(n->all->dns, n->text, answered, n);
    if (r == -EBUSY) {
        loop_timer_arm(n->timer, 1000); /* Other names are being looked up. */
    } else if (r < 0) {
        fail(n, r == -EINVAL ? "it is not a name" : "there is no name server");
    }
}

static void free_name(void *p)
{
    struct name *n = p;
    dns_forget(n->all->dns, n);
    loop_timer_free(n->timer);
    free(n->text);
    free(n->failure);
    free(n);
}

void names_want(struct names *n, const char *name, bool wanted)
{
    struct name *x = smap_get(&n->names, name);
    if (!wanted) {
        smap_remove(&n->names, name);
    } else if (!x) {
        x = NEW(struct name);
        x->all = n;
        x->text = xstrdup(name);
        x->timer = loop_timer_new(n->loop, look_up, x);
        smap_set(&n->names, name, x);
        loop_timer_arm(x->timer, 0);
    }
}

struct names *names_new(struct loop *l, struct dns *dns, const struct names_ops *ops, void *ctx)
{
    struct names *n = NEW(struct names);
    n->loop = l;
    n->dns = dns;
    n->ops = ops;
    n->ctx = ctx;
    smap_init(&n->names, free_name);
    return n;
}

struct names *names_free(struct names *n)
{
    if (n) {
        smap_done(&n->names);
        free(n);
    }
    return NULL;
}
