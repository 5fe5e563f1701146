/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/verbs/openshift_review.h"

#include "api/legacy.h"
#include "apiserver/access/authz.h"
#include "apiserver/request/filter.h"
#include "apiserver/request/respond.h"
#include "base/map.h"

#define GROUP "authorization.openshift.io"

bool openshift_review_is_asked(const struct request *q)
{
    return q->kind->create_only && streq(q->kind->group, GROUP);
}

/* ---- the user ---- */

static bool is_self(const struct json *question)
{
    return !*json_get_text(question, "user") && !json_count(json_get(question, "groups"));
}

/* Gives the user these scopes; null: those that the user has. */
static void set_scopes(struct user_info *u, const struct json *scopes)
{
    const struct json *item;
    if (!json_is(scopes, JSON_ARRAY)) {
        return;
    }
    if (u->extra) {
        json_remove(u->extra, SCOPES_EXTRA);
    }
    JSON_FOREACH (item, scopes) {
        user_add_extra(u, SCOPES_EXTRA, json_get_string(item));
    }
}

/* The user whom the review is about; one without user and groups is about the asking user. */
static struct user_info *user_of(const struct request *q, const struct json *question)
{
    const struct json *item;
    bool self = is_self(question);
    struct user_info *u = user_new(self ? q->user->name : json_get_text(question, "user"));
    for (size_t i = 0; self && i < q->user->n_groups; i++) {
        user_add_group(u, q->user->groups[i]);
    }
    if (self && q->user->extra) {
        u->extra = json_clone(q->user->extra);
    }
    JSON_FOREACH (item, json_get(question, "groups")) {
        user_add_group(u, json_get_string(item));
    }
    set_scopes(u, json_get(question, "scopes"));
    return u;
}

/* ---- the action ---- */

/* The texts of the attributes, which belong to it, and the namespace in the answer. */
struct action {
    struct attributes a;
    char *resource;
};

static void action_donep(struct action *c)
{
    free(c->resource);
}

/* A resource without group is what it is at /oapi/v1, as older clients mean it. */
static const char *group_of(const struct json *question, const char *resource)
{
    const char *group = json_get_text(question, "resourceAPIGroup");
    const char *own = api_legacy_group(resource);
    own = own ? own : api_legacy_core_group(resource);
    return !*group && own && !api_kind_find("", "v1", resource) ? own : group;
}

static void read_action(const struct request *q, const struct json *question, struct action *ret)
{
    bool path = json_get_bool(json_get(question, "isNonResourceURL"), false);
    char *resource = xstrdup(json_get_text(question, "resource")), *slash = strchr(resource, '/');
    if (slash) {
        *slash = '\0';
    }
    *ret = (struct action){
        .resource = resource,
        .a = {.is_resource = !path,
              .verb = json_get_text(question, "verb"),
              .path = json_get_text(question, "path"),
              .group = path ? "" : group_of(question, resource),
              .version = json_get_text(question, "resourceAPIVersion"),
              .resource = path ? "" : resource,
              .subresource = slash && !path ? slash + 1 : "",
              .namespace = q->namespace ? q->namespace : json_get_text(question, "namespace"),
              .name = json_get_text(question, "resourceName"),
              .node = ""}};
}

/* Refuses a review in a namespace that asks about another one.  Negative: the outcome is filled. */
static int check_namespace(const struct request *q, const struct json *question,
                           struct outcome *outcome)
{
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    const char *asked = json_get_text(question, "namespace");
    if (!q->namespace || !*asked || streq(asked, q->namespace)) {
        return 0;
    }
    api_invalid(&causes, "namespace", json_get(question, "namespace"), "namespace must be: %s",
                q->namespace);
    outcome_invalid(outcome, q->kind, "", &causes);
    return -EINVAL;
}

/* ---- answers ---- */

static struct json *answer_new(const struct request *q, const char *kind)
{
    struct json *o = json_object();
    CLEANUP_FREE char *version = request_api_version(q);
    json_set_string(o, "kind", kind);
    json_set_string(o, "apiVersion", version);
    return o;
}

static struct json *access_answer(const struct request *q, const struct json *question)
{
    CLEANUP(user_unref) struct user_info *u = user_of(q, question);
    CLEANUP(action_done) struct action c;
    CLEANUP_STRBUF struct strbuf why = STRBUF_INIT;
    struct json *o = answer_new(q, "SubjectAccessReviewResponse");
    read_action(q, question, &c);
    json_set_string(o, "namespace", c.a.namespace);
    json_set_bool(o, "allowed", authz_allows(q->server->security, u, &c.a, &why));
    if (why.size) {
        json_set(o, "reason", json_stringf("RBAC: %s", why.data));
    }
    return o;
}

struct subjects {
    struct smap users, groups;
};

static void add_subject(void *ctx, const char *name, bool is_group)
{
    struct subjects *s = ctx;
    smap_set(is_group ? &s->groups : &s->users, name, s);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* The names in the order of the alphabet. */
static struct json *names_of(struct smap *m)
{
    CLEANUP_FREE const char **names = xcalloc(smap_size(m) + 1, sizeof *names);
    struct json *list = json_array();
    const struct smap_entry *e;
    size_t n = 0;
    SMAP_FOREACH (e, m) {
        names[n++] = e->key;
    }
    qsort(names, n, sizeof *names, compare);
    for (size_t i = 0; i < n; i++) {
        json_append(list, json_string(names[i]));
    }
    return list;
}

static struct json *subjects_answer(const struct request *q, const struct json *question)
{
    CLEANUP(action_done) struct action c;
    CLEANUP_STRBUF struct strbuf missing = STRBUF_INIT;
    struct subjects s;
    struct json *o = answer_new(q, "ResourceAccessReviewResponse");
    read_action(q, question, &c);
    smap_init(&s.users, NULL);
    smap_init(&s.groups, NULL);
    rbac_each_subject(q->server->security->rbac, &c.a, add_subject, &s, &missing);
    add_subject(&s, GROUP_MASTERS, true); /* They need no binding. */
    json_set_string(o, "namespace", c.a.namespace);
    json_set(o, "users", names_of(&s.users));
    json_set(o, "groups", names_of(&s.groups));
    json_set_string(o, "evalutionError", strbuf_cstr(&missing)); /* The API's spelling. */
    smap_done(&s.users);
    smap_done(&s.groups);
    return o;
}

static void add_rule(void *ctx, const struct rbac_rule *rule)
{
    struct json *o = rbac_rule_object(rule);
    /* They are there in OpenShift's form, even empty. */
    json_ensure_array(o, "apiGroups");
    json_ensure_array(o, "resources");
    json_append(ctx, o);
}

static struct json *rules_answer(const struct request *q, const struct json *body,
                                 const struct user_info *u)
{
    struct json *o = json_clone(body), *st = json_object();
    struct json *rules = json_ensure_array(st, "rules");
    if (!authz_each_rule(q->server->security, u, q->namespace, add_rule, rules)) {
        json_set_string(st, "evaluationError",
                        "the rights of a node over its own objects are no rules");
    }
    json_set(o, "status", st);
    return o;
}

/* Whether the review asks what another user may do.  The filter has let through each user who may
 * ask about themselves, because it does not know the body. */
static bool asks_about_other(const struct request *q, const struct json *body)
{
    const char *kind = q->kind->kind;
    return (streq(kind, "SubjectAccessReview") || streq(kind, "LocalSubjectAccessReview")) &&
           !is_self(body);
}

int openshift_review_body(struct request *q, struct json **body, struct outcome *outcome)
{
    const char *kind = q->kind->kind;
    struct json *answer;
    int r = asks_about_other(q, *body) ? filter_may_create(q, outcome) : 0;
    r = r < 0 ? r : check_namespace(q, *body, outcome);
    if (r < 0) {
        return r;
    }
    if (streq(kind, "SelfSubjectRulesReview") || streq(kind, "SubjectRulesReview")) {
        CLEANUP(user_unref) struct user_info *u = user_of(q, json_get(*body, "spec"));
        answer = rules_answer(q, *body, u);
    } else if (streq(kind, "ResourceAccessReview") || streq(kind, "LocalResourceAccessReview")) {
        answer = subjects_answer(q, *body);
    } else {
        answer = access_answer(q, *body);
    }
    json_free(*body);
    *body = answer;
    return 0;
}
