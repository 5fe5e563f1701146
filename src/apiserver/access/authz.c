/* SPDX-License-Identifier: Apache-2.0 */
/* Authorization: system:masters may do everything, a node may use the objects that concern it, and
 * all users have the rights that RBAC gives them. */
#include "apiserver/access/authz.h"

#include "apiserver/access/node_authz.h"

#include "base/map.h"

/* Health probes are allowed before roles are known. */
static bool is_probe(const struct attributes *a)
{
    return !a->is_resource && streq(a->verb, "get") &&
           (streq(a->path, "/healthz") || streq(a->path, "/livez") || streq(a->path, "/readyz"));
}

bool authz_allows(struct security *s, const struct user_info *u, const struct attributes *a,
                  struct strbuf *why)
{
    if (is_probe(a)) {
        return true;
    }
    if (!scopes_allow(s->rbac, u, a, why)) {
        return false;
    }
    if (s->always_allow || user_in_group(u, GROUP_MASTERS)) {
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

bool authz_each_rule(struct security *s, const struct user_info *u, const char *ns,
                     rbac_rule_fn *fn, void *ctx)
{
    if ((s->always_allow || user_in_group(u, GROUP_MASTERS)) && !scopes_of(u)) {
        char star[] = "*", *one[] = {star};
        struct rbac_list list = {one, 1};
        fn(ctx, &(struct rbac_rule){.verbs = list, .groups = list, .resources = list});
        fn(ctx, &(struct rbac_rule){.verbs = list, .urls = list});
        return true;
    }
    scopes_each_rule(s->rbac, u, ns, fn, ctx);
    return !user_node(u);
}
