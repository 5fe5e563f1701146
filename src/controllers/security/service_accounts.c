/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/security/service_accounts.h"

#include "base/base64.h"
#include "base/mem.h"
#include "controller/obj.h"

#define TOKEN_SECRETS "type=kubernetes.io/service-account-token"
#define ACCOUNT_NAME "kubernetes.io/service-account.name"
#define ACCOUNT_UID "kubernetes.io/service-account.uid"

/* Keys of the queue: "account/NS/NAME" (a managed account must exist),
 * "secret/NS/NAME" (a token Secret must be complete). */
struct service_accounts {
    struct service_accounts_config cfg;
    struct workqueue *queue;
    struct informer *namespaces, *accounts, *secrets;
};

/* Splits a key: returns the part behind the prefix, with '*ret_ns' owned. */
static const char *split(const char *key, char **ret_ns)
{
    const char *slash = strchr(key, '/');
    *ret_ns = slash ? xstrndup(key, (size_t) (slash - key)) : xstrdup("");
    return slash ? slash + 1 : key;
}

static void written(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    /* The namespace, or the account of the secret, may be in deletion: then
     * nothing remains to be done. */
    if (error < 0 && error != -EEXIST && error != -ENOENT && error != -EACCES) {
        work_retry(w, error, "write a service account or its token", text);
    } else {
        work_done(w);
    }
}

static void ensure_account(struct service_accounts *s, struct work *w, const char *key)
{
    CLEANUP_FREE char *ns = NULL;
    const char *name = split(key, &ns);
    const struct json *namespace = informer_get(s->namespaces, ns);
    if (!namespace || obj_is_terminating(namespace) || informer_get(s->accounts, key)) {
        work_done(w);
        return;
    }
    CLEANUP(json_free) struct json *o = obj_new("v1", "ServiceAccount", ns, name);
    CLEANUP_FREE char *path = api_path("v1", "serviceaccounts", ns, NULL, NULL);
    work_request(w, "POST", path, o, written);
}

/* ---- tokens ---- */

static void set_data(struct json *secret, const char *key, const char *value)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    base64_encode(value, strlen(value), &b);
    json_set_string(json_ensure_object(secret, "data"), key, strbuf_cstr(&b));
}

static bool has_data(const struct json *secret, const char *key)
{
    return json_string_size(json_path(secret, "data", key, NULL)) > 0;
}

static void ensure_token(struct service_accounts *s, struct work *w, const char *key)
{
    CLEANUP_FREE char *ns = NULL;
    const char *name = split(key, &ns);
    const struct json *secret = informer_get(s->secrets, key);
    const char *account = secret ? obj_annotation(secret, ACCOUNT_NAME) : NULL;
    if (!account || obj_is_terminating(secret)) {
        work_done(w);
        return;
    }
    CLEANUP_FREE char *account_key = xasprintf("%s/%s", ns, account);
    const struct json *sa = informer_get(s->accounts, account_key);
    const char *uid = obj_annotation(secret, ACCOUNT_UID);
    CLEANUP_FREE char *path = api_path("v1", "secrets", ns, name, NULL);
    if ((!sa && uid) || (sa && uid && !streq(uid, obj_uid(sa)))) {
        work_request(w, "DELETE", path, NULL, written); /* Its account is deleted. */
        return;
    }
    if (!sa || (uid && has_data(secret, "token") && has_data(secret, "namespace") &&
                (!s->cfg.ca || has_data(secret, "ca.crt")))) {
        work_done(w); /* The account may be created later. */
        return;
    }
    CLEANUP(json_free) struct json *o = json_clone(secret);
    json_set_string(o, "apiVersion", "v1");
    json_set_string(o, "kind", "Secret");
    set_data(o, "namespace", ns);
    if (s->cfg.ca) {
        set_data(o, "ca.crt", s->cfg.ca);
    }
    work_request(w, "PUT", path, o, written);
}

static void begin(void *ctx, struct work *w, const char *key)
{
    struct service_accounts *s = ctx;
    CLEANUP_FREE char *kind = NULL;
    const char *rest = split(key, &kind);
    if (streq(kind, "account")) {
        ensure_account(s, w, rest);
    } else {
        ensure_token(s, w, rest);
    }
}

/* ---- events ---- */

static void add(struct service_accounts *s, const char *kind, const char *key)
{
    CLEANUP_FREE char *full = xasprintf("%s/%s", kind, key);
    workqueue_add(s->queue, full);
}

static void namespace_changed(void *ctx, const char *key, const struct json *old,
                              const struct json *obj)
{
    struct service_accounts *s = ctx;
    for (size_t i = 0; !obj_is_terminating(obj) && s->cfg.names[i]; i++) {
        CLEANUP_FREE char *account = xasprintf("%s/%s", key, s->cfg.names[i]);
        add(s, "account", account);
    }
}

struct of_account {
    struct service_accounts *s;
    const struct json *sa;
};

static void add_secret_of(void *ctx, const char *key, const struct json *secret)
{
    struct of_account *a = ctx;
    if (streq(obj_namespace(secret), obj_namespace(a->sa)) &&
        streq_null(obj_annotation(secret, ACCOUNT_NAME), obj_name(a->sa))) {
        add(a->s, "secret", key);
    }
}

static void account_changed(void *ctx, const char *key, const struct json *old,
                            const struct json *obj)
{
    struct of_account a = {.s = ctx, .sa = obj};
    informer_each(a.s->secrets, add_secret_of, &a);
}

static void account_deleted(void *ctx, const char *key, const struct json *obj)
{
    struct service_accounts *s = ctx;
    account_changed(ctx, key, NULL, obj);
    for (size_t i = 0; s->cfg.names[i]; i++) {
        if (streq(obj_name(obj), s->cfg.names[i])) {
            add(s, "account", key); /* Managed accounts are created again. */
        }
    }
}

static void secret_changed(void *ctx, const char *key, const struct json *old,
                           const struct json *obj)
{
    add(ctx, "secret", key);
}

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    struct service_accounts *s = NEW(struct service_accounts);
    s->cfg = *(const struct service_accounts_config *) config;
    s->queue = env->queue;
    *ret = s;
    return 0;
}

static const struct controller_watch watches[] = {
    {.api_version = "v1",
     .plural = "secrets",
     .fields = TOKEN_SECRETS,
     .informer = CONTROLLER_INFORMER(struct service_accounts, secrets),
     .changed = secret_changed},
    {.api_version = "v1",
     .plural = "namespaces",
     .informer = CONTROLLER_INFORMER(struct service_accounts, namespaces),
     .changed = namespace_changed},
    {.api_version = "v1",
     .plural = "serviceaccounts",
     .informer = CONTROLLER_INFORMER(struct service_accounts, accounts),
     .changed = account_changed,
     .deleted = account_deleted},
};

const struct controller service_accounts_controller = {
    .name = "service_accounts",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 8,
    .start = start,
    .reconcile = begin,
    .stop = free,
};
