/* SPDX-License-Identifier: Apache-2.0 */
/* VNIDs of projects: changes for attached pods, and for requests that wait for a VNID. */
#include "node/cni/pods_priv.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"

LOG_MODULE("pods");

static bool has_vnids(const struct dp_pod *pod, const struct sdn_vnids *v)
{
    return pod->vnid == v->id && pod->has_also_vnid == v->moving &&
           (!v->moving || pod->also_vnid == v->also);
}

/* Sends the project's VNIDs to the switch if some of its pods have others. */
static void update_vnids(struct pods *p, const char *project)
{
    struct sdn_vnids v;
    if (!sdn_plugin_has_vnids(p->net.plugin) || p->ops->vnids(p->ctx, project, &v, NULL) < 0) {
        return;
    }
    size_t n;
    const struct dp_pod *const *pods = datapath_pods(p->datapath, &n);
    for (size_t i = 0; i < n; i++) {
        if (streq_null(pods[i]->pod_namespace, project) && !has_vnids(pods[i], &v)) {
            log_info("project has another VNID", "project=%s from=%u to=%u moving=%s", project,
                     pods[i]->vnid, v.id, v.moving ? "yes" : "no");
            datapath_set_vnids(p->datapath, project, &v);
            return;
        }
    }
}

const char *pods_unknown_project(struct pods *p)
{
    struct sdn_vnids v;
    size_t n;
    const struct dp_pod *const *pods = datapath_pods(p->datapath, &n);
    for (size_t i = 0; i < n; i++) {
        if (pods[i]->vnid == SDN_VNID_GLOBAL && pods[i]->pod_namespace &&
            p->ops->vnids(p->ctx, pods[i]->pod_namespace, &v, NULL) < 0) {
            return pods[i]->pod_namespace;
        }
    }
    return NULL;
}

void pods_isolate_unknown(struct pods *p)
{
    static const struct sdn_vnids nobody = {.id = SDN_VNID_NOBODY};
    size_t n;
    const struct dp_pod *const *pods = datapath_pods(p->datapath, &n);
    for (size_t i = 0; i < n; i++) {
        const struct dp_pod *pod = pods[i];
        struct sdn_vnids v;
        if (pod->vnid == SDN_VNID_GLOBAL && pod->pod_namespace &&
            p->ops->vnids(p->ctx, pod->pod_namespace, &v, NULL) < 0) {
            log_warn("pod is kept apart: its project has no VNID", "pod=%s/%s ip=%s",
                     pod->pod_namespace, pod->pod_name, IP4_TEXT(pod->ip));
            datapath_set_vnids(p->datapath, pod->pod_namespace, &nobody);
            pods = datapath_pods(p->datapath, &n);
        }
    }
}

void pods_project_changed(struct pods *p, const char *project)
{
    if (!p->ipam) {
        return;
    }
    update_vnids(p, project);
    pods_wake(p, project);
}

void pods_wake(struct pods *p, const char *project)
{
    struct op *op;
    LIST_FOREACH (op, struct op, node, &p->requests) {
        if (op->wait && streq(op->req.pod_namespace, project)) {
            loop_task_queue(&op->run);
        }
    }
}

void pods_all_projects_changed(struct pods *p)
{
    struct smap projects;
    size_t n;
    smap_init(&projects, NULL);
    const struct dp_pod *const *pods = datapath_pods(p->datapath, &n);
    for (size_t i = 0; i < n; i++) {
        if (pods[i]->pod_namespace) {
            smap_set(&projects, pods[i]->pod_namespace, NULL);
        }
    }
    struct smap_entry *entry;
    SMAP_FOREACH (entry, &projects) {
        update_vnids(p, entry->key);
    }
    smap_done(&projects);
}
