/* SPDX-License-Identifier: Apache-2.0 */
/* tenet adm policy scc-subject-review and scc-review: which security context constraints would
 * allow the pods that files describe, by the reviews of security.openshift.io. */
#include "cli/admin/adm_policy_review.h"

#include "base/mem.h"
#include "cli/explain/scc_question.h"
#include "cli/kubectl/print.h"
#include "pod/scc.h"

#include <stdio.h>

#define API SCC_GROUP "/v1"
#define NONE "<none>"

static struct json *question(const struct json *pod, const struct policy_review *r,
                             const char **ret_plural)
{
    struct json *o = json_object(), *spec;
    bool subject = r->user || json_count(r->groups) || json_count(r->accounts);
    const char *kind = r->accounts_only ? "PodSecurityPolicyReview"
                       : subject        ? "PodSecurityPolicySubjectReview"
                                        : "PodSecurityPolicySelfSubjectReview";
    *ret_plural = r->accounts_only ? "podsecuritypolicyreviews"
                  : subject        ? "podsecuritypolicysubjectreviews"
                                   : "podsecuritypolicyselfsubjectreviews";
    json_set_string(o, "kind", kind);
    json_set_string(o, "apiVersion", API);
    spec = json_ensure_object(o, "spec");
    const struct json *account = r->accounts_only ? NULL : json_at(r->accounts, 0);
    json_set(spec, "template", scc_question_template(pod, json_get_string(account)));
    if (r->accounts_only) {
        json_set(spec, "serviceAccountNames", json_clone(r->accounts));
    } else if (subject) {
        json_set_string(spec, "user", r->user);
        json_set(spec, "groups", json_clone(r->groups));
    }
    return o;
}

/* ---- the table ---- */

static void add_row(struct json *rows, const char *resource, const char *account, const char *by)
{
    struct json *row = json_append(rows, json_array());
    json_append(row, json_string(resource));
    if (account) {
        json_append(row, json_string(account));
    }
    json_append(row, json_string(by));
}

static const char *allowed_by(const struct json *status)
{
    const char *name = json_path_string(status, "allowedBy", "name", NULL);
    return name ? name : NONE;
}

static void add_answer(struct json *rows, const char *resource, const struct json *status,
                       const struct policy_review *r)
{
    const struct json *list = json_get(status, "allowedServiceAccounts"), *item;
    if (!r->accounts_only) {
        add_row(rows, resource, NULL, allowed_by(status));
        return;
    }
    JSON_FOREACH (item, list) {
        add_row(rows, resource, json_get_text(item, "name"), allowed_by(item));
    }
    if (!json_count(list)) {
        add_row(rows, resource, NONE, NONE);
    }
}

static int ask(struct session *s, const struct manifest *m, const struct policy_review *r,
               struct json *rows)
{
    const struct json *pod = scc_question_pod(m->object);
    const char *plural;
    struct err e = {0};
    CLEANUP_FREE char *resource = xasprintf("%s/%s", json_get_text(m->object, "kind"),
                                            json_get_text(json_get(m->object, "metadata"), "name"));
    if (!pod) {
        return session_error("%s of %s is no pod and has no template of pods", resource, m->source);
    }
    CLEANUP(json_free) struct json *body = question(pod, r, &plural);
    CLEANUP(json_free) struct json *answer = NULL;
    CLEANUP_FREE char *path = api_path(API, plural, s->ns, NULL, NULL);
    if (api_request_sync(s->client, "POST", path, NULL, NULL, body, &answer, &e) < 0) {
        return session_fail(s, &e, resource);
    }
    add_answer(rows, resource, json_get(answer, "status"), r);
    return 0;
}

int policy_review_run(struct session *s, const struct policy_review *r)
{
    CLEANUP(json_free) struct json *rows = json_array();
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    add_row(rows, "RESOURCE", r->accounts_only ? "SERVICE ACCOUNT" : NULL, "ALLOWED BY");
    for (size_t i = 0; i < r->m.n; i++) {
        int status = ask(s, &r->m.list[i], r, rows);
        if (status) {
            return status;
        }
    }
    print_rows(rows, &out);
    fwrite(strbuf_cstr(&out), 1, out.size, stdout);
    return 0;
}
