/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/login/switch.h"

#include "base/mem.h"
#include "client/kubeconfig_edit.h"

struct switching {
    const char *from, *project;
};

static int use_context(void *ctx, struct json *config, struct err *e)
{
    const char *name = ctx;
    if (!kubeconfig_entry(config, "contexts", "context", name)) {
        return err_set(e, -ENOENT, "the kubeconfig has no context \"%s\"", name);
    }
    json_set_string(config, "current-context", name);
    return 0;
}

int switch_context(const char *path, const char *name, struct err *e)
{
    return kubeconfig_change(path, use_context, (char *) name, e);
}

static int use_project(void *ctx, struct json *config, struct err *e)
{
    const struct switching *s = ctx;
    const char *current = s->from ? s->from : json_get_text(config, "current-context");
    const struct json *from = kubeconfig_entry(config, "contexts", "context", current);
    const struct json *cluster =
        kubeconfig_entry(config, "clusters", "cluster", json_get_text(from, "cluster"));
    if (!from || !cluster) {
        return err_set(e, -ENOENT, "the kubeconfig has no context \"%s\" with a cluster", current);
    }
    CLEANUP_FREE char *cluster_name = kubeconfig_cluster_name(json_get_text(cluster, "server"));
    CLEANUP_FREE char *name =
        kubeconfig_context_name(s->project, cluster_name, json_get_text(from, "user"));
    struct json *copy = json_clone(from);
    json_set_string(copy, "namespace", s->project);
    kubeconfig_set_entry(config, "contexts", "context", name, copy);
    json_set_string(config, "current-context", name);
    return 0;
}

int switch_project(const char *path, const char *from, const char *project, struct err *e)
{
    struct switching s = {from, project};
    return kubeconfig_change(path, use_project, &s, e);
}
