/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/access/visible.h"

#include "apiserver/access/authz.h"
#include "apiserver/access/scopes.h"

struct visible {
    unsigned refs;
    struct security *security;
    struct user_info *user;   /* Without scopes, and with the groups of 'generation'. */
    struct user_info *scoped; /* The user whose scopes limit the answers. */
    const struct api_kind *kind;
    char *key;           /* Its key in security->visible. */
    uint64_t generation; /* The generation of rights to which 'names' belong. */
    struct smap names;   /* The cached answers: &yes or &no. */
};

static char yes, no;

/* Names are quoted, so that a name with separators cannot collide with another name and its
 * groups.  Groups of objects follow from the name: they change while a watch goes on. */
static char *key_of(const struct user_info *u, const struct api_kind *k)
{
    struct strbuf b = STRBUF_INIT;
    strbuf_addf(&b, "%s/%s", k->group, k->plural);
    json_write_string(u->name, strlen(u->name), &b);
    strbuf_adds(&b, u->joins ? "+" : "");
    for (size_t i = 0; i < (u->joins ? u->n_own : u->n_groups); i++) {
        json_write_string(u->groups[i], strlen(u->groups[i]), &b);
    }
    const struct json *item;
    JSON_FOREACH (item, scopes_of(u)) {
        const char *scope = json_get_string(item);
        strbuf_addc(&b, '/');
        json_write_string(scope, strlen(scope), &b);
    }
    return strbuf_steal(&b);
}

/* An owned copy of 'u' without scopes. */
static struct user_info *without_scopes(const struct security *s, const struct user_info *u)
{
    struct user_info *own = user_own(u);
    if (own->extra) {
        json_remove(own->extra, SCOPES_EXTRA);
    }
    if (u->joins) {
        members_add_groups(s->members, own);
    }
    return own;
}

struct visible *visible_ref(struct security *s, struct user_info *u, const struct api_kind *k)
{
    CLEANUP_FREE char *key = key_of(u, k);
    struct visible *v = smap_get(&s->visible, key);
    if (!v) {
        v = NEW(struct visible);
        *v = (struct visible){.security = s,
                              .user = scopes_of(u) ? without_scopes(s, u) : user_ref(u),
                              .scoped = user_ref(u),
                              .kind = k,
                              .key = TAKE(key)};
        smap_init(&v->names, NULL);
        smap_set(&s->visible, v->key, v);
    }
    v->refs++;
    return v;
}

struct visible *visible_unref(struct visible *v)
{
    if (v && --v->refs == 0) {
        smap_remove(&v->security->visible, v->key);
        smap_done(&v->names);
        user_unref(v->user);
        user_unref(v->scoped);
        free(v->key);
        free(v);
    }
    return NULL;
}

static bool decide(const struct visible *v, const char *name)
{
    const struct api_kind *k = v->kind;
    const char *ns = api_kind_is_namespace(k) ? name : NULL;
    /* Scopes let a project be seen by "get namespaces", as in OpenShift. */
    const struct attributes a = {.is_resource = true,
                                 .verb = "get",
                                 .path = "",
                                 .group = ns ? "" : k->group,
                                 .version = "v1",
                                 .resource = ns ? "namespaces" : k->plural,
                                 .subresource = "",
                                 .namespace = ns ? ns : "",
                                 .name = name,
                                 .node = ""};
    return scopes_allow(v->security->rbac, v->scoped, &a, NULL) &&
           authz_may(v->security, v->user, "get", k->group, k->plural, ns, name);
}

bool visible_has(struct visible *v, const char *name)
{
    if (v->generation != v->security->generation) {
        struct user_info *now = members_renew(v->security->members, v->user);
        user_unref(v->user);
        v->user = now;
        smap_clear(&v->names);
        v->generation = v->security->generation;
    }
    if (user_node(v->user)) {
        /* Not cached: the rights of a node depend on objects, not on roles alone. */
        return decide(v, name);
    }
    const char *answer = smap_get(&v->names, name);
    if (!answer) {
        answer = decide(v, name) ? &yes : &no;
        smap_set(&v->names, name, (void *) answer);
    }
    return answer == &yes;
}
