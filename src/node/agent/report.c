/* SPDX-License-Identifier: Apache-2.0 */
#include "node/agent/report.h"

/* 'uid' is NULL if it is not known. */
static void report(struct agent *a, enum recorder_type type, const char *api_version,
                   const char *kind, const char *ns, const char *name, const char *uid,
                   const char *reason, const char *text)
{
    if (!a->recorder || !name) {
        return;
    }
    CLEANUP(json_free) struct json *about = json_object();
    struct json *metadata = json_ensure_object(about, "metadata");
    json_set_string(metadata, "name", name);
    json_set_string(metadata, "namespace", ns);
    json_set_string(metadata, "uid", uid);
    recorder_event(a->recorder, api_version, kind, about, type, reason, text);
}

void agent_report_node(struct agent *a, enum recorder_type type, const char *reason,
                       const char *text)
{
    report(a, type, "v1", "Node", NULL, a->cfg->node_name, a->cfg->node_name, reason, text);
}

void agent_report_unused(struct agent *a, const char *kind, const struct informer *from,
                         const char *name, const char *text)
{
    const struct json *obj = informer_get(from, name);
    CLEANUP_FREE char *reason = xasprintf("%sNotUsed", kind);
    CLEANUP_FREE char *message = xasprintf("node %s: %s", a->cfg->node_name, text);
    report(a, EVENT_WARNING, OBJECTS_NETWORK_API, kind, NULL, name,
           json_path_string(obj, "metadata", "uid", NULL), reason, message);
}

void agent_report_pod(void *ctx, const char *project, const char *pod, const char *reason,
                      const char *text)
{
    struct agent *a = ctx;
    CLEANUP_FREE char *message = xasprintf("node %s: %s", a->cfg->node_name, text);
    report(a, EVENT_WARNING, "v1", "Pod", project, pod, NULL, reason, message);
    if (streq(reason, "NoFreeAddress")) {
        agent_report_node(a, EVENT_WARNING, reason, text);
    }
}
