/* SPDX-License-Identifier: Apache-2.0 */
/* Authorization: system:masters may do everything, a node what concerns it, everyone what RBAC gives them. */
#include "apiserver/access/security.h"

#include "base/map.h"

/* Probes come before anything else is known. */
static bool is_probe(const struct attributes *a)
{
    return !a->is_resource && streq(a->verb, "get") &&
           (streq(a->path, "/healthz") || streq(a->path, "/livez") || streq(a->path, "/readyz"));
}

bool authz_allows(struct security *s, const struct user_info *u, const struct attributes *a,
                  struct strbuf *why)
{
    if (s->always_allow || user_in_group(u, GROUP_MASTERS) || is_probe(a)) {
        return true;
    }
    const char *node = user_node(u);
    return (node && node_allows(s, node, a)) || rbac_allows(s->rbac, u, a, why);
}

bool authz_may(struct security *s, const struct user_info *u, const char *verb, const char *group,
               const char *resource, const char *ns, const char *name)
{
    const char *slash = strchr(resource, '/');
    CLEANUP_FREE char *bare = xstrndup(resource, strcspn(resource, "/"));
    const struct attributes a = {.is_resource = true,
                                 .verb = verb,
                                 .path = "",
                                 .group = group ? group : "",
                                 .version = "v1",
                                 .resource = bare,
                                 .subresource = slash ? slash + 1 : "",
                                 .namespace = ns ? ns : "",
                                 .name = name ? name : "",
                                 .node = ""};
    return authz_allows(s, u, &a, NULL);
}

/* ---- objects ---- */

struct json *security_object(const struct security *s, const char *group, const char *plural,
                             const char *ns, const char *name)
{
    const struct api_kind *k = api_kind_find(group, "v1", plural);
    const struct cache_kind *ck = k ? cache_find(&s->server->cache, k) : NULL;
    CLEANUP_FREE char *key = cache_key(ns, name);
    const struct object *o = ck ? keyset_get(&ck->objects, key) : NULL;
    return o ? object_parse(o) : NULL;
}

struct json *security_live_object(const struct security *s, const char *plural, const char *ns,
                                  const char *name, const char *uid)
{
    CLEANUP(json_free) struct json *o = security_object(s, "", plural, ns, name);
    const char *has = json_path_string(o, "metadata", "uid", NULL);
    if (!o || json_path(o, "metadata", "deletionTimestamp", NULL) ||
        (uid && *uid && !streq_null(has, uid))) {
        return NULL;
    }
    return TAKE(o);
}

/* ---- the evaluator's food ---- */

static void feed(struct security *s, const struct cache_kind *ck, const struct object *o, bool gone)
{
    bool role = ck == s->roles || ck == s->cluster_roles;
    const char *slash = ck->kind->namespaced ? strchr(o->key, '/') : NULL;
    CLEANUP_FREE char *ns = slash ? xstrndup(o->key, (size_t) (slash - o->key)) : NULL;
    CLEANUP(json_free) struct json *obj = gone ? NULL : object_parse(o);
    (role ? rbac_set_role : rbac_set_binding)(s->rbac, ns, slash ? slash + 1 : o->key, obj);
}

static void feed_all(struct security *s, const struct cache_kind *ck)
{
    struct keyset_pos pos = keyset_seek(&ck->objects, "");
    const struct object *o;
    while ((o = keyset_next(&ck->objects, &pos))) {
        feed(s, ck, o, false);
    }
}

void security_changed(struct security *s, const struct cache_kind *ck, const struct cache_event *ev)
{
    if (!ck) {
        rbac_free(s->rbac);
        s->rbac = rbac_new();
        feed_all(s, s->roles);
        feed_all(s, s->cluster_roles);
        feed_all(s, s->role_bindings);
        feed_all(s, s->cluster_role_bindings);
    } else if (ck == s->roles || ck == s->cluster_roles || ck == s->role_bindings ||
               ck == s->cluster_role_bindings) {
        feed(s, ck, ev->new ? ev->new : ev->old, !ev->new);
    }
}

/* ---- refusing ---- */

/* As Kubernetes does it, for browsers. */
static void escape(struct strbuf *out, const char *s)
{
    for (; *s; s++) {
        switch (*s) {
        case '&':
            strbuf_adds(out, "&amp;");
            break;
        case '<':
            strbuf_adds(out, "&lt;");
            break;
        case '>':
            strbuf_adds(out, "&gt;");
            break;
        default:
            strbuf_addc(out, *s);
        }
    }
}

static void quote(struct strbuf *out, const char *s)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    json_write_string(s, strlen(s), &b);
    escape(out, strbuf_cstr(&b));
}

static void describe(struct strbuf *out, const struct user_info *u, const struct attributes *a)
{
    CLEANUP_FREE char *resource = attributes_resource_text(a);
    strbuf_adds(out, "User ");
    quote(out, u->name);
    strbuf_adds(out, " cannot ");
    escape(out, a->verb);
    if (!a->is_resource) {
        strbuf_adds(out, " path ");
        quote(out, a->path);
        return;
    }
    strbuf_adds(out, " resource ");
    quote(out, resource);
    strbuf_adds(out, " in API group ");
    quote(out, a->group);
    if (*a->namespace) {
        strbuf_adds(out, " in the namespace ");
        quote(out, a->namespace);
    } else {
        strbuf_adds(out, " at the cluster scope");
    }
}

void outcome_forbidden(struct outcome *outcome, const struct user_info *u,
                       const struct attributes *a, const char *why)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    if (a->is_resource) {
        strbuf_addf(&b, "%s%s%s ", a->resource, *a->group ? "." : "", a->group);
        if (*a->name) {
            json_write_string(a->name, strlen(a->name), &b);
            strbuf_addc(&b, ' ');
        }
        strbuf_adds(&b, "is ");
    }
    strbuf_adds(&b, "forbidden: ");
    describe(&b, u, a);
    if (why && *why) {
        strbuf_addf(&b, ": %s", why);
    }
    outcome_status(outcome, 403, "Forbidden", *a->name ? a->name : NULL, "%s", strbuf_cstr(&b));
    if (a->is_resource) {
        outcome->kind = xstrdup(a->resource);
        outcome->group = xstrdup(a->group);
    }
}
