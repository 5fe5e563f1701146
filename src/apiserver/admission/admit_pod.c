/* SPDX-License-Identifier: Apache-2.0 */
/* Admission of pods, and of the templates that controllers make pods from: without a
 * special right, a pod may use only what the security context constraint
 * `restricted` allows (api/kinds/pod_restrictions.h).
 *
 * That right is the verb "use" on securitycontextconstraints/privileged, in the pod's
 * namespace: granted to the user who writes the pod, or to the service account that the
 * pod runs as, because controllers make pods on behalf of that account.  An update is
 * checked only when it changes a checked field, so that every user who may write pods can
 * change the labels of an administrator's pod. */
#include "apiserver/admission/plugins.h"

#include "api/kinds/pod_restrictions.h"
#include "apiserver/access/authz.h"

#define SCC_GROUP "security.openshift.io"
#define SCC_PLURAL "securitycontextconstraints"

static bool may_use_privileged(const struct request *q, const struct user_info *u)
{
    return authz_may(q->server->security, u, "use", SCC_GROUP, SCC_PLURAL, q->namespace,
                     "privileged");
}

static bool is_exempt(const struct request *q, const struct json *pod)
{
    const char *name = json_path_string(pod, "spec", "serviceAccountName", NULL);
    /* A node creates only mirrors of pods that it runs already (NodeRestriction). */
    if (user_node(q->user) || may_use_privileged(q, q->user)) {
        return true;
    }
    CLEANUP(user_unref)
    struct user_info *account =
        user_service_account(q->namespace, name && *name ? name : "default", NULL);
    user_add_group(account, GROUP_AUTHENTICATED);
    return may_use_privileged(q, account);
}

/* Refuses with a 403 that names every field, in OpenShift's words;
 * -EACCES.  The causes are taken over. */
static int refuse(const struct request *q, const struct json *obj, const char *what,
                  struct api_causes *causes, struct outcome *outcome)
{
    const char *name = json_path_string(obj, "metadata", "name", NULL);
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    strbuf_addf(&text,
                "%s \"%s\" is forbidden: %sunable to validate against any security context "
                "constraint: [",
                RESOURCE_TEXT(q->kind), name ? name : "", what);
    for (size_t i = 0; i < causes->n; i++) {
        strbuf_addf(&text, "provider restricted: %s: %s, ", causes->list[i].field,
                    causes->list[i].message);
    }
    strbuf_adds(&text, "provider privileged: Forbidden: not usable by user or serviceaccount]");
    outcome_status(outcome, 403, "Forbidden", name, "%s", strbuf_cstr(&text));
    outcome_take_causes(outcome, causes);
    return -EACCES;
}

/* The pod in 'obj' that is to be checked, and its path; NULL: there is
 * none, or its writer may do everything. */
static struct json *judged_pod(const struct request *q, const struct json *obj,
                               const struct json *old, const char **ret_path)
{
    const struct api_kind *k = q->kind;
    const char *path = *ret_path = pod_restrictions_path(k->group, k->plural);
    struct json *pod = path ? pod_restrictions_find(obj, path) : NULL;
    /* A scheduler chooses the node of an administrator's pod by pods/binding, and so only. */
    bool binds = streq(q->subresource, "binding");
    bool judged = pod && k->namespaced &&
                  !(old && pod_restrictions_same(pod, pod_restrictions_find(old, path), binds)) &&
                  !is_exempt(q, pod);
    return judged ? pod : NULL;
}

int pod_validate(struct request *q, const struct json *obj, const struct json *old,
                 struct outcome *outcome)
{
    const char *path;
    const struct json *pod = judged_pod(q, obj, old, &path);
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    if (pod) {
        pod_restrictions_check(pod, path, &causes);
    }
    return causes.n ? refuse(q, obj, "", &causes, outcome) : 0;
}

int admission_check_entry(const struct request *q, const struct json *pod, struct outcome *outcome)
{
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    if (!may_use_privileged(q, q->user)) {
        pod_restrictions_check(pod, pod_restrictions_path(q->kind->group, q->kind->plural),
                               &causes);
    }
    return causes.n ? refuse(q, pod,
                             "the operation is not allowed because the pod's security context "
                             "exceeds your permissions: ",
                             &causes, outcome)
                    : 0;
}

int pod_admit(struct request *q, struct json *obj, const struct json *old, struct outcome *outcome)
{
    const char *path;
    struct json *pod = judged_pod(q, obj, old, &path);
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    if (!pod) {
        return 0;
    }
    pod_restrictions_check(pod, path, &causes);
    if (causes.n) {
        /* Defaults are filled in only after the checks have passed. */
        return refuse(q, obj, "", &causes, outcome);
    }
    pod_restrictions_fill(pod);
    return 1;
}
