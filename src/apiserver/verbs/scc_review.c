/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/verbs/scc_review.h"

#include "apiserver/admission/admission.h"
#include "apiserver/admission/scc_decide.h"

/* Writes into 'st' what allows the pod to the subjects (NULL: is not considered), in the words of
 * the original; 'lists': also which constraints do not.  Returns whether something allows it. */
static bool review(struct request *q, const struct json *pod, const struct user_info *user,
                   const struct user_info *account, bool lists, struct json *st)
{
    const struct scc_question question = {
        .security = q->server->security,
        .set = q->server->sccs,
        .ns = q->namespace,
        .project = admission_namespace(q),
        .user = user,
        .account = account,
        .pod = pod,
        .path = "spec.template.",
        .mode = SCC_FILLS,
        .only = json_path_string(pod, "metadata", "annotations", SCC_REQUIRED_ANNOTATION, NULL),
        .lists = lists};
    CLEANUP(scc_answer_done) struct scc_answer a = SCC_ANSWER_INIT;
    scc_ask(&question, &a);
    if (json_count(a.refusals)) {
        json_set(st, "refusedBy", TAKE(a.refusals));
    }
    if (!a.by) {
        json_set_string(st, "reason", "CantAssignSecurityContextConstraintProvider");
        return false;
    }
    const struct json *meta = json_get(scc_object(a.by), "metadata");
    struct json *ref = json_ensure_object(st, "allowedBy");
    json_set_string(ref, "kind", "SecurityContextConstraints");
    json_set_string(ref, "name", scc_name(a.by));
    json_set_string(ref, "uid", json_path_string(meta, "uid", NULL));
    json_set_string(ref, "apiVersion", SCC_GROUP "/v1");
    json_set_string(ref, "resourceVersion", json_path_string(meta, "resourceVersion", NULL));
    struct json *filled = json_set(st, "template", json_clone(pod));
    json_set(filled, "spec", TAKE(a.spec));
    return true;
}

/* The account that the pod names; NULL: it names none. */
static struct user_info *named_account(const struct request *q, const struct json *pod)
{
    const char *name = json_path_string(pod, "spec", "serviceAccountName", NULL);
    return name && *name ? scc_account(q->namespace, name) : NULL;
}

static struct json *subject_status(struct request *q, const struct json *spec,
                                   const struct user_info *user)
{
    const struct json *pod = json_get(spec, "template");
    CLEANUP(user_unref) struct user_info *account = named_account(q, pod);
    struct json *st = json_object();
    (void) review(q, pod, user, account, true, st);
    return st;
}

/* The user of the review; NULL: it names neither a user nor groups. */
static struct user_info *asked_user(const struct json *spec)
{
    const char *name = json_get_text(spec, "user");
    const struct json *groups = json_get(spec, "groups"), *item;
    if (!*name && !json_count(groups)) {
        return NULL;
    }
    struct user_info *u = user_new(name);
    JSON_FOREACH (item, groups) {
        user_add_group(u, json_get_string(item));
    }
    return u;
}

static void add_account(struct request *q, const struct json *pod, const char *name,
                        struct json *list)
{
    CLEANUP(user_unref) struct user_info *account = scc_account(q->namespace, name);
    CLEANUP(json_free) struct json *st = json_object();
    if (review(q, pod, NULL, account, false, st)) {
        json_set_string(st, "name", name);
        json_append(list, TAKE(st));
    }
}

static struct json *accounts_status(struct request *q, const struct json *spec)
{
    const struct json *pod = json_get(spec, "template"), *item;
    const struct json *names = json_get(spec, "serviceAccountNames");
    const char *own = json_path_string(pod, "spec", "serviceAccountName", NULL);
    struct json *st = json_object(), *list = json_ensure_array(st, "allowedServiceAccounts");
    JSON_FOREACH (item, names) {
        add_account(q, pod, json_get_string(item), list);
    }
    if (!json_count(names)) {
        add_account(q, pod, own && *own ? own : "default", list);
    }
    return st;
}

struct json *scc_review_status(struct request *q, const struct json *spec)
{
    const char *kind = q->kind->kind;
    if (streq(kind, "PodSecurityPolicyReview")) {
        return accounts_status(q, spec);
    }
    if (streq(kind, "PodSecurityPolicySelfSubjectReview")) {
        return subject_status(q, spec, q->user);
    }
    CLEANUP(user_unref) struct user_info *user = asked_user(spec);
    return subject_status(q, spec, user);
}
