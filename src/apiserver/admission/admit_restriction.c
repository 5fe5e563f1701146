/* SPDX-License-Identifier: Apache-2.0 */
/* RestrictSubjectBindings: the subjects that role bindings of a namespace may name, as its
 * RoleBindingRestrictions say (authorization.openshift.io/v1). */
#include "apiserver/admission/plugins.h"

#include "api/label_selector.h"
#include "apiserver/access/security.h"
#include "apiserver/request/server_priv.h"

#define USER_GROUP "user.openshift.io"

/* A subject of a binding: kind, name, and of a service account the namespace. */
struct subject {
    const char *kind, *name, *namespace;
};

static struct subject read_subject(const struct json *v)
{
    return (struct subject){json_get_text(v, "kind"), json_get_text(v, "name"),
                            json_get_text(v, "namespace")};
}

static bool same_subject(struct subject a, struct subject b)
{
    return streq(a.kind, b.kind) && streq(a.name, b.name) && streq(a.namespace, b.namespace);
}

static bool is_in(const struct json *list, const char *s)
{
    const struct json *item;
    JSON_FOREACH (item, list) {
        if (streq_null(json_get_string(item), s)) {
            return true;
        }
    }
    return false;
}

/* Whether the labels of the object match one of the selectors; an object that does not exist
 * matches none. */
static bool labels_match(const struct request *q, const struct json *selectors, const char *plural,
                         const char *name)
{
    CLEANUP(json_free)
    struct json *obj = json_count(selectors) && *name
                           ? security_object(q->server->security, USER_GROUP, plural, NULL, name)
                           : NULL;
    const struct json *item;
    JSON_FOREACH (item, obj ? selectors : NULL) {
        if (label_selector_matches(item, json_path(obj, "metadata", "labels", NULL))) {
            return true;
        }
    }
    return false;
}

static bool user_matches(const struct request *q, const struct json *r, struct subject s)
{
    const struct json *group;
    if (is_in(json_get(r, "users"), s.name) ||
        labels_match(q, json_get(r, "labels"), "users", s.name)) {
        return true;
    }
    JSON_FOREACH (group, json_get(r, "groups")) {
        const char *name = json_get_string(group);
        CLEANUP(json_free)
        struct json *obj =
            name ? security_object(q->server->security, USER_GROUP, "groups", NULL, name) : NULL;
        if (is_in(json_get(obj, "users"), s.name)) {
            return true;
        }
    }
    return false;
}

static bool account_matches(const struct json *r, struct subject s, const char *own)
{
    const struct json *item;
    if (is_in(json_get(r, "namespaces"), s.namespace)) {
        return true;
    }
    JSON_FOREACH (item, json_get(r, "serviceaccounts")) {
        const char *ns = json_get_text(item, "namespace");
        if (streq(json_get_text(item, "name"), s.name) && streq(*ns ? ns : own, s.namespace)) {
            return true;
        }
    }
    return false;
}

static bool matches(const struct request *q, const struct json *restriction, struct subject s)
{
    const struct json *spec = json_get(restriction, "spec");
    if (streq(s.kind, "User")) {
        return user_matches(q, json_get(spec, "userrestriction"), s);
    }
    if (streq(s.kind, "Group")) {
        const struct json *r = json_get(spec, "grouprestriction");
        return is_in(json_get(r, "groups"), s.name) ||
               labels_match(q, json_get(r, "labels"), "groups", s.name);
    }
    return streq(s.kind, "ServiceAccount") &&
           account_matches(json_get(spec, "serviceaccountrestriction"), s, q->namespace);
}

/* Whether the namespace has no restrictions, or one of them allows the subject. */
static bool is_allowed(const struct request *q, struct subject s)
{
    const struct cache_kind *ck =
        cache_find(&q->server->cache,
                   api_kind_find("authorization.openshift.io", "v1", "rolebindingrestrictions"));
    CLEANUP_FREE char *first = xasprintf("%s/", q->namespace);
    struct keyset_pos pos = keyset_seek(&ck->objects, first);
    bool any = false;
    struct object *o;
    while ((o = keyset_next(&ck->objects, &pos)) && str_has_prefix(o->key, first)) {
        any = true;
        CLEANUP(json_free) struct json *restriction = object_parse(o);
        if (matches(q, restriction, s)) {
            return true;
        }
    }
    return !any;
}

/* Whether the binding had the subject already. */
static bool was_there(const struct json *old, struct subject s)
{
    const struct json *item;
    JSON_FOREACH (item, json_get(old, "subjects")) {
        if (same_subject(read_subject(item), s)) {
            return true;
        }
    }
    return false;
}

int restriction_validate(struct request *q, const struct json *obj, const struct json *old,
                         struct outcome *outcome)
{
    const struct json *item;
    JSON_FOREACH (item, json_get(obj, "subjects")) {
        struct subject s = read_subject(item);
        if (!was_there(old, s) && !is_allowed(q, s)) {
            CLEANUP_STRBUF struct strbuf why = STRBUF_INIT;
            strbuf_addf(&why, "rolebindings to %.40s ", s.kind);
            json_write_string(s.name, strlen(s.name), &why);
            strbuf_adds(&why, " are not allowed in project ");
            json_write_string(q->namespace, strlen(q->namespace), &why);
            return admission_refuse(q, obj, strbuf_cstr(&why), outcome);
        }
    }
    return 0;
}
