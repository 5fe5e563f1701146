/* SPDX-License-Identifier: Apache-2.0 */
/* tenet adm policy scc-subject-review and scc-review: which security context constraints would
 * allow the pods that files describe, by the reviews of security.openshift.io. */
#include "cli/admin/adm_policy_review.h"

#include "api/kinds/pod_restrictions.h"
#include "base/mem.h"
#include "cli/kubectl/print.h"
#include "pod/scc.h"

#include <stdio.h>

#define API SCC_GROUP "/v1"
#define NONE "<none>"

/* The pod that the object is, or of which it has the template; NULL: there is none. */
static const struct json *pod_of(const struct json *obj)
{
    const struct api_kind *k =
        api_kind_by_name(json_get_text(obj, "apiVersion"), json_get_text(obj, "kind"));
    const char *path = k ? pod_restrictions_path(k->group, k->plural) : NULL;
    return path ? pod_restrictions_find(obj, path) : NULL;
}

/* The pod's metadata and spec without what only a stored pod has. */
static struct json *template_of(const struct json *pod, const struct policy_review *r)
{
    struct json *o = json_object(), *spec = json_clone(json_get(pod, "spec"));
    const struct json *meta = json_get(pod, "metadata");
    static const char *const kept[] = {"labels", "annotations"};
    for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
        if (json_get(meta, kept[i])) {
            json_set(json_ensure_object(o, "metadata"), kept[i],
                     json_clone(json_get(meta, kept[i])));
        }
    }
    if (!r->accounts_only && json_count(r->accounts) && json_is(spec, JSON_OBJECT)) {
        json_set(spec, "serviceAccountName", json_clone(json_at(r->accounts, 0)));
    }
    json_set(o, "spec", spec);
    return o;
}

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
    json_set(spec, "template", template_of(pod, r));
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

static void print_rows(const struct json *rows)
{
    size_t columns = json_count(json_at(rows, 0)), n = 0;
    CLEANUP_FREE const char **cells = xcalloc(columns * json_count(rows) + 1, sizeof *cells);
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    const struct json *row;
    JSON_FOREACH (row, rows) {
        for (size_t i = 0; i < columns; i++) {
            cells[n++] = json_get_string(json_at(row, i));
        }
    }
    print_columns(cells, columns, json_count(rows), "", &out);
    fwrite(strbuf_cstr(&out), 1, out.size, stdout);
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
    const struct json *pod = pod_of(m->object);
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
    add_row(rows, "RESOURCE", r->accounts_only ? "SERVICE ACCOUNT" : NULL, "ALLOWED BY");
    for (size_t i = 0; i < r->m.n; i++) {
        int status = ask(s, &r->m.list[i], r, rows);
        if (status) {
            return status;
        }
    }
    print_rows(rows);
    return 0;
}
