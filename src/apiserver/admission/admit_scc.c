/* SPDX-License-Identifier: Apache-2.0 */
/* SecurityContextConstraint: a pod gets no more than the security context constraints allow that
 * its user or its service account may use, and what they fill in (scc_decide.h).
 *
 * Pods that an all-powerful controller makes are judged by their service account alone: a user
 * describes them, and the master's own controllers are members of system:masters.  A template is
 * not refused, as in OpenShift, because its pods are; a warning says what would happen to them.  An
 * update is judged when it changes a judged field, so that every user who may write pods can change
 * the labels of an administrator's pod; it fills nothing in.  The annotation that names the
 * constraints is the server's. */
#include "api/kinds/pod_restrictions.h"
#include "apiserver/access/authz.h"
#include "apiserver/admission/plugins.h"
#include "apiserver/admission/scc_decide.h"
#include "apiserver/request/respond.h"

/* ---- what is judged, and for whom ---- */

static bool is_master(const struct request *q)
{
    return user_in_group(q->user, GROUP_MASTERS);
}

/* Whether a controller has made the pod: it is its owner. */
static bool has_controller(const struct json *pod)
{
    const struct json *owner;
    JSON_FOREACH (owner, json_path(pod, "metadata", "ownerReferences", NULL)) {
        if (json_get_bool(json_get(owner, "controller"), false)) {
            return true;
        }
    }
    return false;
}

/* Nodes show the pods that they run already; NodeRestriction and ServiceAccount limit those.
 * Before the first constraints exist, members of system:masters make what they need. */
static bool is_exempt(const struct request *q, const struct json *pod)
{
    return q->server->security->always_allow || user_node(q->user) ||
           (is_master(q) && (admission_is_mirror(pod) ||
                             (!scc_set_count(q->server->sccs) && !has_controller(pod))));
}

/* Whether the user may use all constraints: such a controller makes pods that others describe. */
static bool may_use_all(const struct request *q)
{
    return authz_may(q->server->security, q->user, "use", SCC_GROUP, SCC_PLURAL, q->namespace,
                     NULL);
}

static const char *annotation_of(const struct json *obj, const char *key)
{
    return json_path_string(obj, "metadata", "annotations", key, NULL);
}

/* Asks about the pod 'obj' in place of 'old' (NULL: it is created). */
static void ask(struct request *q, const struct json *obj, const struct json *old,
                enum scc_mode mode, struct scc_answer *ret)
{
    CLEANUP(user_unref)
    struct user_info *account =
        scc_account(q->namespace, json_path_string(obj, "spec", "serviceAccountName", NULL));
    bool by_account = !old && has_controller(obj) && may_use_all(q);
    const struct scc_question question = {
        .security = q->server->security,
        .set = q->server->sccs,
        .ns = q->namespace,
        .project = admission_namespace(q),
        .user = by_account ? NULL : q->user,
        .account = account,
        .pod = obj,
        .path = "",
        .mode = mode,
        .first = mode == SCC_FILLS ? NULL : annotation_of(obj, SCC_ANNOTATION),
        .only = annotation_of(obj, SCC_REQUIRED_ANNOTATION),
    };
    scc_ask(&question, ret);
}

/* ---- refusals ---- */

/* Names what is to be done: the text of the refusal is the only thing that most users see. */
static void add_advice(struct strbuf *text, const struct request *q, const struct json *pod)
{
    const char *account = json_path_string(pod, "spec", "serviceAccountName", NULL);
    strbuf_addf(text,
                "; change the pod, or ask an administrator for constraints that allow it: "
                "tenet adm policy add-scc-to-user SCC -z %s -n %s",
                account && *account ? account : "default", q->namespace);
}

/* Refuses with a 403 that names every constraint and field, in OpenShift's words; -EACCES. */
static int refuse(const struct request *q, const struct json *obj, const char *what,
                  struct scc_answer *a, struct outcome *outcome)
{
    const char *name = json_path_string(obj, "metadata", "name", NULL);
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    strbuf_addf(&text,
                "%s \"%s\" is forbidden: %sunable to validate against any security context "
                "constraint: [%s]",
                RESOURCE_TEXT(q->kind), name ? name : "", what, strbuf_cstr(&a->text));
    if (!*what) {
        add_advice(&text, q, obj);
    }
    outcome_status(outcome, 403, "Forbidden", name, "%s", strbuf_cstr(&text));
    outcome_take_causes(outcome, &a->causes);
    return -EACCES;
}

/* ---- pods ---- */

static bool is_pod(const struct request *q)
{
    return streq(q->kind->group, "") && streq(q->kind->plural, "pods");
}

static bool is_judged(const struct request *q, const struct json *obj, const struct json *old)
{
    /* A scheduler chooses the node of an administrator's pod by pods/binding, and so only. */
    bool binds = streq(q->subresource, "binding");
    return is_pod(q) && q->kind->namespaced && !(old && pod_restrictions_same(obj, old, binds)) &&
           !is_exempt(q, obj);
}

/* Gives the annotation that names the constraints the value 'name' (NULL: none).  Returns whether
 * the pod was changed. */
static bool note(struct json *obj, const char *name)
{
    const char *has = annotation_of(obj, SCC_ANNOTATION);
    struct json *annotations = json_path(obj, "metadata", "annotations", NULL);
    bool wrong = annotations && !json_is(annotations, JSON_OBJECT) &&
                 !json_is(annotations, JSON_NULL); /* Validation refuses it. */
    if (wrong || (name ? streq_null(has, name) : !json_get(annotations, SCC_ANNOTATION))) {
        return false;
    }
    if (name) {
        json_set_string(json_ensure_object(json_ensure_object(obj, "metadata"), "annotations"),
                        SCC_ANNOTATION, name);
    } else {
        json_remove(annotations, SCC_ANNOTATION);
        if (!json_count(annotations)) {
            json_remove(json_get(obj, "metadata"), "annotations");
        }
    }
    return true;
}

static enum scc_mode mode_of(const struct request *q, const struct json *old)
{
    return !old                                           ? SCC_FILLS
           : streq(q->subresource, "ephemeralcontainers") ? SCC_FILLS_EPHEMERAL
                                                          : SCC_AS_IS;
}

int scc_admit(struct request *q, struct json *obj, const struct json *old, struct outcome *outcome)
{
    CLEANUP(scc_answer_done) struct scc_answer a = SCC_ANSWER_INIT;
    if (!is_pod(q) || q->server->security->always_allow) {
        return 0;
    }
    /* Whatever the client says: a new pod has none yet, and another one keeps it. */
    bool changed = note(obj, annotation_of(old, SCC_ANNOTATION));
    if (!is_judged(q, obj, old)) {
        return changed;
    }
    if (old &&
        !streq_null(annotation_of(obj, SCC_REQUIRED_ANNOTATION),
                    annotation_of(old, SCC_REQUIRED_ANNOTATION)) &&
        (annotation_of(obj, SCC_REQUIRED_ANNOTATION) ||
         annotation_of(old, SCC_REQUIRED_ANNOTATION))) {
        return admission_refuse_field(q, obj, "metadata.annotations[" SCC_REQUIRED_ANNOTATION "]",
                                      "may not be changed once the pod exists", outcome);
    }
    ask(q, obj, old, mode_of(q, old), &a);
    if (!a.by) {
        return refuse(q, obj, "", &a, outcome);
    }
    json_set(obj, "spec", TAKE(a.spec));
    (void) note(obj, scc_name(a.by));
    return 1;
}

/* ---- templates ---- */

/* Warns about a template whose pods would be refused. */
static void warn_of_pods(struct request *q, const struct json *obj, const struct json *old)
{
    const char *path = pod_restrictions_path(q->kind->group, q->kind->plural);
    const struct json *pod = path ? pod_restrictions_find(obj, path) : NULL;
    const char *name = json_path_string(pod, "spec", "serviceAccountName", NULL);
    if (!pod || !q->kind->namespaced || *q->subresource ||
        (old && pod_restrictions_same(pod, pod_restrictions_find(old, path), false))) {
        return;
    }
    CLEANUP(user_unref) struct user_info *account = scc_account(q->namespace, name);
    CLEANUP(scc_answer_done) struct scc_answer a = SCC_ANSWER_INIT;
    const struct scc_question question = {
        .security = q->server->security,
        .set = q->server->sccs,
        .ns = q->namespace,
        .project = admission_namespace(q),
        .account = account,
        .pod = pod,
        .path = path,
        .mode = SCC_FILLS,
        .only = annotation_of(pod, SCC_REQUIRED_ANNOTATION),
    };
    scc_ask(&question, &a);
    if (!a.by) {
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
        strbuf_addf(&text,
                    "pods of this template would be refused: unable to validate against any "
                    "security context constraint: [%s]",
                    strbuf_cstr(&a.text));
        add_advice(&text, q, pod);
        request_warn(q, "-", strbuf_cstr(&text));
    }
}

int scc_validate(struct request *q, const struct json *obj, const struct json *old,
                 struct outcome *outcome)
{
    CLEANUP(scc_answer_done) struct scc_answer a = SCC_ANSWER_INIT;
    if (q->server->security->always_allow) {
        return 0;
    }
    if (!is_pod(q)) {
        warn_of_pods(q, obj, old);
        return 0;
    }
    if (!is_judged(q, obj, old)) {
        return 0;
    }
    /* Later plug-ins may have changed the pod. */
    ask(q, obj, old, SCC_AS_IS, &a);
    return a.by ? 0 : refuse(q, obj, "", &a, outcome);
}

/* ---- entering containers: SCCExecRestrictions ---- */

int scc_enter(const struct request *q, const struct json *pod, struct outcome *outcome)
{
    struct security *s = q->server->security;
    CLEANUP(user_unref)
    struct user_info *account =
        scc_account(q->namespace, json_path_string(pod, "spec", "serviceAccountName", NULL));
    CLEANUP(scc_answer_done) struct scc_answer a = SCC_ANSWER_INIT;
    if (s->always_allow || (is_master(q) && !scc_set_count(q->server->sccs))) {
        return 0;
    }
    /* A user who may create pods could create this one with its account's rights. */
    bool creates = authz_may(s, q->user, "create", "", "pods", q->namespace, NULL);
    const struct scc_question question = {.security = s,
                                          .set = q->server->sccs,
                                          .ns = q->namespace,
                                          .project = admission_namespace(q),
                                          .user = q->user,
                                          .account = creates ? account : NULL,
                                          .pod = pod,
                                          .path = "",
                                          .mode = SCC_FILLS};
    scc_ask(&question, &a);
    if (a.by) {
        return 0;
    }
    CLEANUP_FREE char *what =
        xasprintf("%s operation is not allowed because the pod's security context exceeds your "
                  "permissions: ",
                  q->subresource);
    return refuse(q, pod, what, &a, outcome);
}
