/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/admin/adm_policy_who.h"

#include "apiserver/access/rbac.h"
#include "base/mem.h"
#include "cli/kubectl/print.h"
#include "cli/shown.h"

#include <stdio.h>

#define RBAC_API "rbac.authorization.k8s.io/v1"
#define COLUMNS 4

struct table {
    char **cells;
    size_t n, cap;
};

static void add_cell(struct table *t, char *text)
{
    t->cells = grow(t->cells, &t->cap, t->n + 1, sizeof *t->cells);
    t->cells[t->n++] = text;
}

static void table_done(struct table *t)
{
    for (size_t i = 0; i < t->n; i++) {
        free(t->cells[i]);
    }
    free(t->cells);
}

bool policy_role_allows(const struct json *role, const struct policy_question *q)
{
    const struct attributes a = {.is_resource = !q->url,
                                 .verb = q->verb,
                                 .path = q->url ? q->url : "",
                                 .group = q->group,
                                 .version = "",
                                 .resource = q->resource,
                                 .subresource = q->subresource,
                                 .namespace = "",
                                 .name = q->name,
                                 .node = "",
                                 .rest = ""};
    struct rbac_rules rules = {0};
    bool allowed = false;
    rbac_rules_parse(json_get(role, "rules"), &rules);
    for (size_t i = 0; i < rules.n && !allowed; i++) {
        allowed = rbac_rule_allows(&rules.at[i], &a);
    }
    rbac_rules_done(&rules);
    return allowed;
}

static const struct json *find(const struct json *list, const char *name)
{
    const struct json *item;
    JSON_FOREACH (item, json_get(list, "items")) {
        if (streq(json_get_text(json_get(item, "metadata"), "name"), name)) {
            return item;
        }
    }
    return NULL;
}

/* Adds a row for each subject of the binding.  The table is sorted by the server: bindings come in
 * the order of their names. */
static void add_subjects(struct table *t, const struct json *binding, const char *kind)
{
    const struct json *ref = json_get(binding, "roleRef"), *item;
    JSON_FOREACH (item, json_get(binding, "subjects")) {
        CLEANUP_FREE char *name = shown(json_get_text(item, "name"));
        CLEANUP_FREE char *ns = shown(json_get_text(item, "namespace"));
        CLEANUP_FREE char *by = shown(json_get_text(json_get(binding, "metadata"), "name"));
        CLEANUP_FREE char *role = shown(json_get_text(ref, "name"));
        bool account = streq(json_get_text(item, "kind"), "ServiceAccount");
        add_cell(t, shown(json_get_text(item, "kind")));
        add_cell(t, account ? xasprintf("%s/%s", ns, name) : xstrdup(name));
        add_cell(t, xasprintf("%s/%s", kind, by));
        add_cell(t, xasprintf("%s/%s", json_get_text(ref, "kind"), role));
    }
}

/* Adds the subjects of the bindings whose role allows it. */
static void add_bindings(struct table *t, const struct json *bindings, const char *kind,
                         const struct json *cluster_roles, const struct json *roles,
                         const struct policy_question *q)
{
    const struct json *item;
    JSON_FOREACH (item, json_get(bindings, "items")) {
        const struct json *ref = json_get(item, "roleRef");
        bool local = streq(json_get_text(ref, "kind"), "Role");
        const struct json *role = find(local ? roles : cluster_roles, json_get_text(ref, "name"));
        if (role && policy_role_allows(role, q)) {
            add_subjects(t, item, kind);
        }
    }
}

static int list(struct session *s, const char *plural, const char *ns, struct json **ret)
{
    CLEANUP_FREE char *path = api_path(RBAC_API, plural, ns, NULL, NULL);
    struct err e = {0};
    return api_request_sync(s->client, "GET", path, NULL, NULL, NULL, ret, &e) < 0
               ? session_fail(s, &e, NULL)
               : 0;
}

static void print(const struct table *t, const struct policy_question *q, const char *ns)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    const char *slash = *q->subresource ? "/" : "", *dot = *q->group ? "." : "";
    if (!q->url) {
        printf("Namespace: %s\n", ns ? ns : "<all>");
    }
    printf("Verb:      %s\n", q->verb);
    if (q->url) {
        printf("Path:      %s\n\n", q->url);
    } else {
        printf("Resource:  %s%s%s%s%s\n", q->resource, slash, q->subresource, dot, q->group);
        printf("%s%s%s\n", *q->name ? "Name:      " : "", q->name, *q->name ? "\n" : "");
    }
    print_columns((const char *const *) t->cells, COLUMNS, t->n / COLUMNS, "", &out);
    fwrite(strbuf_cstr(&out), 1, out.size, stdout);
    puts("\nMembers of the group system:masters may do everything, without a binding.");
}

int policy_who_run(struct session *s, const struct policy_question *q, const char *ns)
{
    static const char *const head[COLUMNS] = {"KIND", "SUBJECT", "BINDING", "ROLE"};
    CLEANUP(json_free) struct json *cluster_roles = NULL, *cluster_bindings = NULL;
    CLEANUP(json_free) struct json *roles = NULL, *bindings = NULL;
    __attribute__((cleanup(table_done))) struct table t = {0};
    int status = list(s, "clusterroles", NULL, &cluster_roles);
    status = status ? status : list(s, "clusterrolebindings", NULL, &cluster_bindings);
    if (ns && !q->url) {
        status = status ? status : list(s, "roles", ns, &roles);
        status = status ? status : list(s, "rolebindings", ns, &bindings);
    }
    if (status) {
        return status;
    }
    for (size_t i = 0; i < COLUMNS; i++) {
        add_cell(&t, xstrdup(head[i]));
    }
    add_bindings(&t, bindings, "RoleBinding", cluster_roles, roles, q);
    add_bindings(&t, cluster_bindings, "ClusterRoleBinding", cluster_roles, NULL, q);
    print(&t, q, ns);
    return 0;
}
