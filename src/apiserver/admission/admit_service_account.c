/* SPDX-License-Identifier: Apache-2.0 */
/* ServiceAccount: a pod gets its service account, the account's pull secrets, and the volume with
 * the account's token (kubernetes/plugin/pkg/admission/serviceaccount).
 *
 * The plug-in works where the server issues tokens, which is where it has access control. */
#include "apiserver/admission/plugins.h"

#include "apiserver/access/security.h"
#include "apiserver/cache/object.h"
#include "pod/reference.h"

#define DEFAULT_ACCOUNT "default"
#define ENFORCE "kubernetes.io/enforce-mountable-secrets"
#define VOLUME_PREFIX "kube-api-access-"
#define TOKEN_PATH "/var/run/secrets/kubernetes.io/serviceaccount"
/* An hour, and some seconds by which kubelets know the tokens of this volume. */
#define TOKEN_S 3607
#define FILE_MODE 0644
#define ROOT_CA "kube-root-ca.crt"

/* The name in 'spec', or NULL; the old name of the field counts when the new one is empty. */
static const char *named_account(const struct json *spec)
{
    const char *name = json_path_string(spec, "serviceAccountName", NULL);
    const char *old = json_path_string(spec, "serviceAccount", NULL);
    return name && *name ? name : old && *old ? old : NULL;
}

static const char *account_name(const struct json *spec)
{
    const char *name = named_account(spec);
    return name ? name : DEFAULT_ACCOUNT;
}

/* The account of the request's namespace, owned; NULL: there is none. */
static struct json *find_account(const struct request *q, const char *name)
{
    return security_live_object(q->server->security, "serviceaccounts", q->namespace, name, NULL);
}

bool service_account_awaits(const struct request *q, const struct json *obj)
{
    const struct json *spec = json_get(obj, "spec");
    if (!q->server->security->keys || admission_is_mirror(obj) ||
        !streq(account_name(spec), DEFAULT_ACCOUNT)) {
        return false;
    }
    CLEANUP(json_free) struct json *account = find_account(q, DEFAULT_ACCOUNT);
    CLEANUP(json_free)
    struct json *namespace =
        security_live_object(q->server->security, "namespaces", NULL, q->namespace, NULL);
    return namespace && !account;
}

/* ---- the volume ---- */

static bool mounts_token(const struct json *spec, const struct json *account)
{
    const struct json *of_pod = json_get(spec, "automountServiceAccountToken");
    const struct json *of_account = json_get(account, "automountServiceAccountToken");
    return json_get_bool(of_pod, json_get_bool(of_account, true));
}

static const char *find_token_volume(const struct json *spec)
{
    const struct json *v;
    JSON_FOREACH (v, json_get(spec, "volumes")) {
        const char *name = json_path_string(v, "name", NULL);
        if (name && str_has_prefix(name, VOLUME_PREFIX)) {
            return name;
        }
    }
    return NULL;
}

static bool has_mount(const struct json *container)
{
    const struct json *m;
    JSON_FOREACH (m, json_get(container, "volumeMounts")) {
        if (streq_null(json_path_string(m, "mountPath", NULL), TOKEN_PATH)) {
            return true;
        }
    }
    return false;
}

/* Mounts the volume in each container that has no other volume there; whether one got it. */
static bool add_mounts(struct json *containers, const char *volume)
{
    struct json *ct;
    bool added = false;
    JSON_FOREACH (ct, containers) {
        if (!json_is(ct, JSON_OBJECT) || has_mount(ct)) {
            continue;
        }
        struct json *m = json_append(json_ensure_array(ct, "volumeMounts"), json_object());
        json_set_string(m, "name", volume);
        json_set_bool(m, "readOnly", true);
        json_set_string(m, "mountPath", TOKEN_PATH);
        added = true;
    }
    return added;
}

/* Adds an item for the file 'path' of a projected source, and returns it. */
static struct json *add_item(struct json *source, const char *path)
{
    struct json *item = json_append(json_ensure_array(source, "items"), json_object());
    json_set_string(item, "path", path);
    return item;
}

static void add_volume(struct json *spec, const char *name)
{
    struct json *v = json_append(json_ensure_array(spec, "volumes"), json_object());
    json_set_string(v, "name", name);
    struct json *projected = json_ensure_object(v, "projected");
    json_set_int(projected, "defaultMode", FILE_MODE);
    struct json *sources = json_ensure_array(projected, "sources");
    struct json *token =
        json_ensure_object(json_append(sources, json_object()), "serviceAccountToken");
    json_set_int(token, "expirationSeconds", TOKEN_S);
    json_set_string(token, "path", "token");
    struct json *ca = json_ensure_object(json_append(sources, json_object()), "configMap");
    json_set_string(ca, "name", ROOT_CA);
    json_set_string(add_item(ca, "ca.crt"), "key", "ca.crt");
    struct json *fields = json_ensure_object(json_append(sources, json_object()), "downwardAPI");
    struct json *field = json_ensure_object(add_item(fields, "namespace"), "fieldRef");
    json_set_string(field, "apiVersion", "v1");
    json_set_string(field, "fieldPath", "metadata.namespace");
}

static void mount_token(struct json *spec)
{
    char suffix[OBJECT_SUFFIX_SIZE];
    const char *found = find_token_volume(spec);
    object_random_suffix(suffix);
    CLEANUP_FREE char *name = found ? xstrdup(found) : xasprintf(VOLUME_PREFIX "%s", suffix);
    bool in_init = add_mounts(json_get(spec, "initContainers"), name);
    bool in_others = add_mounts(json_get(spec, "containers"), name);
    if (!found && (in_init || in_others)) {
        add_volume(spec, name);
    }
}

static void add_pull_secrets(struct json *spec, const struct json *account)
{
    const struct json *ref, *secrets = json_get(account, "imagePullSecrets");
    if (!json_count(json_get(spec, "imagePullSecrets")) && json_count(secrets)) {
        struct json *list = json_set(spec, "imagePullSecrets", json_array());
        JSON_FOREACH (ref, secrets) {
            const char *name = json_path_string(ref, "name", NULL);
            json_set_string(json_append(list, json_object()), "name", name ? name : "");
        }
    }
}

/* ---- mirror pods ---- */

/* A mirror pod is a node's picture of a pod that runs without the API: what it refers to was never
 * authorized.  Only a node makes one, and administrators may restore one. */
static int check_mirror(struct request *q, const struct json *obj, struct outcome *outcome)
{
    const struct json *spec = json_get(obj, "spec"), *v, *source;
    const struct security *s = q->server->security;
    if (!s->always_allow && !user_node(q->user) && !user_in_group(q->user, GROUP_MASTERS)) {
        return admission_refuse(q, obj, "only a node may create a mirror pod", outcome);
    }
    if (named_account(spec)) {
        return admission_refuse(q, obj, "a mirror pod may not reference service accounts", outcome);
    }
    if (pod_refers_to(spec, POD_SECRET, NULL)) {
        return admission_refuse(q, obj, "a mirror pod may not reference secrets", outcome);
    }
    JSON_FOREACH (v, json_get(spec, "volumes")) {
        JSON_FOREACH (source, json_path(v, "projected", "sources", NULL)) {
            if (json_get(source, "serviceAccountToken")) {
                return admission_refuse(
                    q, obj, "a mirror pod may not use ServiceAccountToken volume projections",
                    outcome);
            }
        }
    }
    return 0;
}

/* ---- the account's Secrets ---- */

static bool is_listed(const struct json *account, const char *list, const char *name)
{
    const struct json *ref;
    JSON_FOREACH (ref, json_get(account, list)) {
        if (streq_null(json_path_string(ref, "name", NULL), name)) {
            return true;
        }
    }
    return false;
}

struct enforcement {
    const struct json *account;
    char *why; /* Owned; NULL: all Secrets are allowed. */
};

static int check_reference(void *ctx, const struct pod_reference *r)
{
    struct enforcement *f = ctx;
    const char *account = json_path_string(f->account, "metadata", "name", NULL);
    bool pulls = r->place == POD_REFERENCE_PULL;
    if (is_listed(f->account, pulls ? "imagePullSecrets" : "secrets", r->name)) {
        return 0;
    }
    switch (r->place) {
    case POD_REFERENCE_VOLUME:
        f->why = xasprintf("volume with secret.secretName=\"%s\" is not allowed because service "
                           "account %s does not reference that secret",
                           r->name, account);
        break;
    case POD_REFERENCE_ENV:
        f->why = xasprintf("%s %s with envVar %s referencing secret.secretName=\"%s\" is not "
                           "allowed because service account %s does not reference that secret",
                           r->list, r->container, r->variable, r->name, account);
        break;
    case POD_REFERENCE_ENV_FROM:
        f->why = xasprintf("%s %s with envFrom referencing secret.secretName=\"%s\" is not allowed "
                           "because service account %s does not reference that secret",
                           r->list, r->container, r->name, account);
        break;
    case POD_REFERENCE_PULL:
        f->why = xasprintf("imagePullSecrets[%zu].name=\"%s\" is not allowed because service "
                           "account %s does not reference that imagePullSecret",
                           r->index, r->name, account);
        break;
    }
    return 1;
}

/* Whether the pods of the account may refer to its own Secrets only. */
static bool enforces_secrets(const struct request *q, const struct json *account)
{
    static const char *const yes[] = {"1", "t", "T", "true", "TRUE", "True"};
    const char *text =
        json_get_string(json_path(account, "metadata", "annotations", ENFORCE, NULL));
    bool found = q->server->cfg.limit_secret_references;
    for (size_t i = 0; text && i < ARRAY_SIZE(yes); i++) {
        found |= streq(text, yes[i]);
    }
    return found;
}

/* ---- the plug-in ---- */

/* The account of the pod, owned; NULL: there is none, and the outcome is filled. */
static struct json *require_account(struct request *q, const struct json *obj,
                                    struct outcome *outcome)
{
    const char *name = account_name(json_get(obj, "spec"));
    struct json *account = find_account(q, name);
    if (!account) {
        CLEANUP_FREE char *why =
            xasprintf("error looking up service account %s/%s: serviceaccount \"%s\" not found",
                      q->namespace, name, name);
        (void) admission_refuse(q, obj, why, outcome);
    }
    return account;
}

int service_account_admit(struct request *q, struct json *obj, const struct json *old,
                          struct outcome *outcome)
{
    struct json *spec = json_get(obj, "spec");
    if (!q->server->security->keys || admission_is_mirror(obj) || !json_is(spec, JSON_OBJECT)) {
        return 0;
    }
    CLEANUP(json_free) struct json *account = require_account(q, obj, outcome);
    if (!account) {
        return -EACCES;
    }
    CLEANUP_FREE char *name = xstrdup(account_name(spec));
    json_set_string(spec, "serviceAccountName", name);
    json_set_string(spec, "serviceAccount", name);
    if (mounts_token(spec, account)) {
        mount_token(spec);
    }
    add_pull_secrets(spec, account);
    return 1;
}

int service_account_validate(struct request *q, const struct json *obj, const struct json *old,
                             struct outcome *outcome)
{
    if (admission_is_mirror(obj)) {
        return check_mirror(q, obj, outcome);
    }
    if (!q->server->security->keys) {
        return 0;
    }
    CLEANUP(json_free) struct json *account = require_account(q, obj, outcome);
    if (!account) {
        return -EACCES;
    }
    struct enforcement f = {.account = account};
    if (enforces_secrets(q, account)) {
        (void) pod_reference_each(json_get(obj, "spec"), POD_SECRET, check_reference, &f);
    }
    CLEANUP_FREE char *why = f.why;
    return why ? admission_refuse(q, obj, why, outcome) : 0;
}
