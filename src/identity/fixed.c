/* SPDX-License-Identifier: Apache-2.0 */
/* AllowAllPasswordIdentityProvider and DenyAllPasswordIdentityProvider: every user with any
 * password, and none.  The first is for labs, the second is what an installation begins with. */
#include "identity/attempt.h"
#include "identity/kinds.h"

#include "base/list.h"
#include "base/mem.h"

struct fixed {
    struct identity_provider base;
    struct loop *loop;
    bool allows;
    struct list attempts;
};

struct attempt {
    struct identity_attempt base;
    struct list node;
    struct loop_task task; /* The answer comes later than the question, as for other kinds. */
    struct fixed *provider;
    char *user;
    identity_fn *fn;
    void *ctx;
};

static void attempt_free(struct attempt *a)
{
    loop_task_cancel(&a->task);
    list_remove(&a->node);
    free(a->user);
    free(a);
}

static void cancel(struct identity_attempt *base)
{
    attempt_free(CONTAINER_OF(base, struct attempt, base));
}

static void answer(void *ctx)
{
    struct attempt *a = ctx;
    struct identity id = {0};
    struct err why = {0};
    identity_fn *fn = a->fn;
    void *fn_ctx = a->ctx;
    bool allows = a->provider->allows && a->user;
    if (allows) {
        id.user = xstrdup(a->user);
    } else {
        err_set(&why, -EACCES, "the provider admits nobody");
    }
    attempt_free(a);
    fn(fn_ctx, allows ? IDENTITY_PROVED : IDENTITY_REFUSED, &id, &why);
    identity_done(&id);
}

/* The name without blanks around it; NULL: nothing is left. */
static char *trimmed(const char *s)
{
    s += strspn(s, " \t");
    size_t n = strlen(s);
    while (n && (s[n - 1] == ' ' || s[n - 1] == '\t')) {
        n--;
    }
    return n ? xstrndup(s, n) : NULL;
}

static struct identity_attempt *password(struct identity_provider *base, const char *user,
                                         const char *text, identity_fn *fn, void *ctx)
{
    struct fixed *p = CONTAINER_OF(base, struct fixed, base);
    struct attempt *a = NEW(struct attempt);
    *a = (struct attempt){
        .base.cancel = cancel, .provider = p, .user = trimmed(user), .fn = fn, .ctx = ctx};
    if (!*text) {
        free(TAKE(a->user));
    }
    list_push_back(&p->attempts, &a->node);
    loop_task_init(&a->task, p->loop, answer, a);
    loop_task_queue(&a->task);
    return &a->base;
}

static int check(const struct json *provider, struct err *e)
{
    return identity_check_keys(provider, "", e);
}

static int open_fixed(struct loop *l, bool allows, const struct identity_kind *kind,
                      struct identity_provider **ret)
{
    struct fixed *p = NEW(struct fixed);
    p->base.kind = kind;
    p->loop = l;
    p->allows = allows;
    list_init(&p->attempts);
    *ret = &p->base;
    return 0;
}

static int open_allow(struct loop *l, const struct json *config, struct identity_provider **ret,
                      struct err *e)
{
    return open_fixed(l, true, &identity_allow_all, ret);
}

static int open_deny(struct loop *l, const struct json *config, struct identity_provider **ret,
                     struct err *e)
{
    return open_fixed(l, false, &identity_deny_all, ret);
}

static void close_fixed(struct identity_provider *base)
{
    struct fixed *p = CONTAINER_OF(base, struct fixed, base);
    struct attempt *a;
    LIST_FOREACH (a, struct attempt, node, &p->attempts) {
        attempt_free(a);
    }
    free(p);
}

const struct identity_kind identity_allow_all = {.name = "AllowAllPasswordIdentityProvider",
                                                 .check = check,
                                                 .open = open_allow,
                                                 .close = close_fixed,
                                                 .password = password};
const struct identity_kind identity_deny_all = {.name = "DenyAllPasswordIdentityProvider",
                                                .check = check,
                                                .open = open_deny,
                                                .close = close_fixed,
                                                .password = password};
