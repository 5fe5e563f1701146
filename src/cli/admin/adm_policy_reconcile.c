/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/admin/adm_policy_reconcile.h"

#include "base/mem.h"
#include "cli/kubectl/print.h"
#include "controllers/security/default_roles.h"
#include "controllers/security/default_sccs.h"
#include "pod/scc.h"

#include <stdio.h>

#define RBAC_GROUP "rbac.authorization.k8s.io"
#define MAX_ATTEMPTS 10

static const struct {
    const char *api, *plural, *label;
    struct json *(*reconciled)(const struct json *want, const struct json *have);
} kinds[] = {
    [POLICY_CLUSTER_ROLES] = {RBAC_GROUP "/v1", "clusterroles", "clusterrole." RBAC_GROUP,
                              default_reconciled},
    [POLICY_CLUSTER_ROLE_BINDINGS] = {RBAC_GROUP "/v1", "clusterrolebindings",
                                      "clusterrolebinding." RBAC_GROUP, default_reconciled},
    [POLICY_SCCS] = {SCC_GROUP "/v1", SCC_PLURAL, "securitycontextconstraints." SCC_GROUP,
                     policy_reconciled_scc},
};

static const char *name_of(const struct json *o)
{
    return json_get_text(json_get(o, "metadata"), "name");
}

/* ---- constraints ---- */

static bool has(const struct json *list, const struct json *wanted)
{
    const struct json *item;
    JSON_FOREACH (item, list) {
        if (json_equal(item, wanted)) {
            return true;
        }
    }
    return false;
}

static bool is_empty(const struct json *v)
{
    return !v || json_is(v, JSON_NULL) || (json_is(v, JSON_ARRAY) && !json_count(v));
}

/* Whether both say the same: the server leaves out or nulls what is empty, and sorts lists. */
static bool same(const struct json *a, const struct json *b)
{
    bool all = json_is(a, JSON_ARRAY) && json_is(b, JSON_ARRAY) && json_count(a) == json_count(b);
    for (size_t i = 0; all && i < json_count(a); i++) {
        all = has(b, json_at(a, i));
    }
    return all || (is_empty(a) && is_empty(b)) || json_equal(a, b);
}

/* Adds what the list lacks. */
static void add_missing(struct json *o, const char *key, const struct json *wanted)
{
    const struct json *item;
    JSON_FOREACH (item, wanted) {
        if (!has(json_get(o, key), item)) {
            json_append(json_ensure_array(o, key), json_clone(item));
        }
    }
}

/* Sets the labels or annotations of the default. */
static void add_texts(struct json *o, const char *key, const struct json *wanted)
{
    struct json *meta = json_ensure_object(o, "metadata");
    for (size_t i = 0; i < json_count(wanted); i++) {
        json_set(json_ensure_object(meta, key), json_key_at(wanted, i),
                 json_clone(json_at(wanted, i)));
    }
}

struct json *policy_reconciled_scc(const struct json *want, const struct json *have)
{
    struct json *o = json_clone(have);
    const struct json *meta = json_get(want, "metadata");
    for (size_t i = 0; i < json_count(want); i++) {
        const char *key = json_key_at(want, i);
        if (streq(key, "users") || streq(key, "groups")) {
            add_missing(o, key, json_at(want, i));
        } else if (streq(key, "priority")
                       ? !json_is(json_get(o, key), JSON_NUMBER)
                       : !streq(key, "metadata") && !same(json_get(o, key), json_at(want, i))) {
            json_set(o, key, json_clone(json_at(want, i)));
        }
    }
    add_texts(o, "labels", json_get(meta, "labels"));
    add_texts(o, "annotations", json_get(meta, "annotations"));
    return json_equal(o, have) ? json_free(o) : o;
}

/* ---- requests ---- */

static struct json *wanted(struct session *s, enum policy_defaults what)
{
    if (what == POLICY_CLUSTER_ROLES) {
        return default_cluster_roles();
    }
    if (what == POLICY_SCCS) {
        return default_sccs();
    }
    /* One binding depends on the network plug-in, which the cluster's network names. */
    CLEANUP_FREE char *path =
        api_path("network.openshift.io/v1", "clusternetworks", NULL, "default", NULL);
    CLEANUP(json_free) struct json *network = NULL;
    enum sdn_plugin plugin = SDN_SUBNET;
    struct err unused = {0};
    if (api_request_sync(s->client, "GET", path, NULL, NULL, NULL, &network, &unused) == 0) {
        (void) sdn_plugin_parse(json_get_text(network, "pluginName"), &plugin, &unused);
    }
    return default_cluster_role_bindings(plugin);
}

static int show(struct json *changed)
{
    CLEANUP(json_free) struct json *list = json_object();
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    if (json_count(changed)) {
        json_set_string(list, "apiVersion", "v1");
        json_set_string(list, "kind", "List");
        json_set(list, "items", json_clone(changed));
        print_yaml(json_count(changed) == 1 ? json_at(changed, 0) : list, &out);
        fwrite(strbuf_cstr(&out), 1, out.size, stdout);
    }
    return 0;
}

/* Reads the object anew, and writes what it lacks, unless another client changed it meanwhile. */
static int write_one(struct session *s, enum policy_defaults what, const struct json *want,
                     struct err *e)
{
    CLEANUP_FREE char *all = api_path(kinds[what].api, kinds[what].plural, NULL, NULL, NULL);
    CLEANUP_FREE char *path =
        api_path(kinds[what].api, kinds[what].plural, NULL, name_of(want), NULL);
    int r = -ESTALE;
    for (int i = 0; (r == -ESTALE || r == -EEXIST) && i < MAX_ATTEMPTS; i++) {
        CLEANUP(json_free) struct json *have = NULL, *o = NULL;
        *e = (struct err){0};
        r = api_request_sync(s->client, "GET", path, NULL, NULL, NULL, &have, e);
        if (r == -ENOENT) {
            *e = (struct err){0};
            r = api_request_sync(s->client, "POST", all, NULL, NULL, want, NULL, e);
        } else if (r == 0 && (o = kinds[what].reconciled(want, have))) {
            r = api_request_sync(s->client, "PUT", path, NULL, NULL, o, NULL, e);
        }
    }
    return r;
}

static struct json *find(const struct json *list, const char *name)
{
    struct json *item;
    JSON_FOREACH (item, list) {
        if (streq(name_of(item), name)) {
            return item;
        }
    }
    return NULL;
}

static bool is_asked(char *const *names, const char *name)
{
    bool asked = !names[0];
    for (size_t i = 0; names[i]; i++) {
        asked |= streq(names[i], name);
    }
    return asked;
}

int policy_reconcile_run(struct session *s, enum policy_defaults what, char *const *names,
                         bool confirm)
{
    CLEANUP_FREE char *path = api_path(kinds[what].api, kinds[what].plural, NULL, NULL, NULL);
    CLEANUP(json_free) struct json *want = wanted(s, what), *have = NULL, *changed = json_array();
    const struct json *item;
    struct err e = {0};
    int status = 0;
    for (size_t i = 0; names[i]; i++) {
        if (!find(want, names[i])) {
            return session_error("\"%s\" is none of the default %s", names[i], kinds[what].plural);
        }
    }
    if (api_request_sync(s->client, "GET", path, NULL, NULL, NULL, &have, &e) < 0) {
        return session_fail(s, &e, NULL);
    }
    JSON_FOREACH (item, want) {
        struct json *old = find(json_get(have, "items"), name_of(item));
        if (old) {
            /* Items of a list have neither. */
            json_set_string(old, "kind", json_get_text(item, "kind"));
            json_set_string(old, "apiVersion", kinds[what].api);
        }
        struct json *o = old ? kinds[what].reconciled(item, old) : json_clone(item);
        if (!o || !is_asked(names, name_of(item))) {
            json_free(o);
            continue;
        }
        json_append(changed, o);
        if (confirm && write_one(s, what, item, &e) < 0) {
            status = session_fail(s, &e, name_of(item));
        } else if (confirm) {
            printf("%s/%s\n", kinds[what].label, name_of(item));
        }
    }
    return confirm ? status : show(changed);
}
