/* SPDX-License-Identifier: Apache-2.0 */
/* Admission of roles and bindings: a user can grant only rights that the user has. */
#include "apiserver/admission/plugins.h"

#include "apiserver/access/authz.h"

/* Absent and empty are the same. */
static bool same(const struct json *a, const struct json *b)
{
    return (!json_count(a) && !json_count(b)) || (a && b && json_equal(a, b));
}

static void add_groups(struct strbuf *b, const struct user_info *u)
{
    strbuf_addc(b, '[');
    for (size_t i = 0; i < u->n_groups; i++) {
        strbuf_adds(b, i ? " " : "");
        json_write_string(u->groups[i], strlen(u->groups[i]), b);
    }
    strbuf_addc(b, ']');
}

/* Whether the request's user has all of 'rules' in 'ns'. */
static int check_covers(struct request *q, const struct json *obj, const char *ns,
                        const struct rbac_rules *rules, struct outcome *outcome)
{
    CLEANUP_STRBUF struct strbuf missing = STRBUF_INIT;
    CLEANUP_STRBUF struct strbuf why = STRBUF_INIT;
    if (rbac_covers(q->server->security->rbac, q->user, ns, rules, &missing)) {
        return 0;
    }
    strbuf_adds(&why, "user ");
    json_write_string(q->user->name, strlen(q->user->name), &why);
    strbuf_adds(&why, " (groups=");
    add_groups(&why, q->user);
    strbuf_addf(&why, ") is attempting to grant RBAC permissions not currently held:%s",
                strbuf_cstr(&missing));
    return admission_refuse(q, obj, why.data, outcome);
}

/* An aggregated ClusterRole can collect any rules by labels, so writing one needs all rights. */
static int check_aggregation(struct request *q, const struct json *obj, const struct json *old,
                             struct outcome *outcome)
{
    static const char all[] = "[{\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],\"resources\":[\"*\"]},"
                              "{\"verbs\":[\"*\"],\"nonResourceURLs\":[\"*\"]}]";
    const struct json *rule = json_get(obj, "aggregationRule");
    const struct json *before = json_get(old, "aggregationRule");
    if (!rule || json_is(rule, JSON_NULL) || (before && json_equal(rule, before))) {
        return 0;
    }
    CLEANUP(json_free) struct json *v = NULL;
    struct rbac_rules rules;
    json_parse(all, sizeof all - 1, &v, NULL);
    rbac_rules_parse(v, &rules);
    int r = check_covers(q, obj, NULL, &rules, outcome);
    rbac_rules_done(&rules);
    return r;
}

static int check_role(struct request *q, const struct json *obj, const struct json *old,
                      struct outcome *outcome)
{
    const struct json *rules = json_get(obj, "rules"), *before = json_get(old, "rules");
    const struct json *labels = json_path(obj, "metadata", "labels", NULL);
    const char *name = json_path_string(obj, "metadata", "name", NULL);
    int r = check_aggregation(q, obj, old, outcome);
    /* The labels count, because a role may become part of other roles by them. */
    bool unchanged = before && rules && json_equal(rules, before) &&
                     same(labels, json_path(old, "metadata", "labels", NULL));
    if (r < 0 || !rules || unchanged ||
        authz_may(q->server->security, q->user, "escalate", "rbac.authorization.k8s.io",
                  q->kind->plural, q->namespace, name)) {
        return r;
    }
    struct rbac_rules wanted;
    rbac_rules_parse(rules, &wanted);
    r = check_covers(q, obj, q->namespace, &wanted, outcome);
    rbac_rules_done(&wanted);
    return r;
}

static int check_binding(struct request *q, const struct json *obj, const struct json *old,
                         struct outcome *outcome)
{
    struct security *s = q->server->security;
    const char *kind = json_path_string(obj, "roleRef", "kind", NULL);
    const char *name = json_path_string(obj, "roleRef", "name", NULL);
    const struct json *subjects = json_get(obj, "subjects"), *before = json_get(old, "subjects");
    if (!kind || !name) {
        return 0; /* Validation refuses it. */
    }
    if ((before && subjects && json_equal(subjects, before) &&
         json_equal(json_get(obj, "roleRef"), json_get(old, "roleRef"))) ||
        authz_may(s, q->user, "bind", "rbac.authorization.k8s.io",
                  streq(kind, "ClusterRole") ? "clusterroles" : "roles", q->namespace, name)) {
        return 0;
    }
    const struct rbac_rules *rules = rbac_role(s->rbac, q->namespace, kind, name);
    if (!rules) {
        outcome_status(outcome, 404, "NotFound", name,
                       "%s.rbac.authorization.k8s.io \"%s\" not found",
                       streq(kind, "ClusterRole") ? "clusterroles" : "roles", name);
        outcome->kind = xstrdup("roles");
        return -EACCES;
    }
    return check_covers(q, obj, q->namespace, rules, outcome);
}

int rbac_validate(struct request *q, const struct json *obj, const struct json *old,
                  struct outcome *outcome)
{
    bool role = streq(q->kind->plural, "roles") || streq(q->kind->plural, "clusterroles");
    return role ? check_role(q, obj, old, outcome) : check_binding(q, obj, old, outcome);
}
