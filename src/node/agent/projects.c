/* SPDX-License-Identifier: Apache-2.0 */
#include "node/agent/projects.h"

#include "node/agent/egress.h"
#include "node/agent/network.h"
#include "node/agent/report.h"

#include <stdio.h>

LOG_MODULE("node");

/* How long a plug-in waits for VNIDs; after that, pods without one are isolated. */
#define PROJECTS_WAIT_MS 30000

static void forget_project(void *ctx, const char *key, const struct json *obj)
{
    struct agent *a = ctx;
    resolver_set_project(a->resolver, key, NULL);
}

int agent_find_vnids(void *ctx, const char *project, struct sdn_vnids *ret, struct err *e)
{
    struct agent *a = ctx;
    const struct json *obj = a->projects ? informer_get(a->projects, project) : NULL;
    if (!obj) {
        return err_set(e, -ENOENT, "project %s has no NetNamespace%s", project,
                       a->master_lost ? ", and the master cannot be reached" : " yet");
    }
    return objects_parse_net_namespace(obj, ret, e) < 0 ? err_prefix(e, "NetNamespace %s", project)
                                                        : 0;
}

static void project_changed(void *ctx, const char *key, const struct json *old,
                            const struct json *obj)
{
    struct agent *a = ctx;
    struct err e = {0};
    struct sdn_vnids vnids;
    if (objects_parse_net_namespace(obj, &vnids, &e) < 0) {
        log_warn("NetNamespace not used", "name=%s reason=\"%s\"", key, e.text);
        agent_report_unused(a, "NetNamespace", a->projects, key, e.text);
        resolver_set_project(a->resolver, key, NULL);
        agent_set_egress_project(a, key, NULL);
        return;
    }
    resolver_set_project(a->resolver, key, &vnids);
    agent_set_egress_project(a, key, &vnids);
    if (a->vnids_wanted_ms) {
        agent_settle_soon(a);
    }
    if (a->phase == AGENT_RUNNING) {
        pods_project_changed(a->pods, key);
    }
    services_project_changed(a->pod_services, key);
}

static void project_deleted(void *ctx, const char *key, const struct json *obj)
{
    struct agent *a = ctx;
    forget_project(a, key, obj);
    agent_set_egress_project(a, key, NULL);
    services_project_changed(a->pod_services, key);
}

static void projects_synced(void *ctx)
{
    struct agent *a = ctx;
    resolver_projects_known(a->resolver);
    if (a->vnids_wanted_ms) {
        agent_settle_soon(a);
    }
    if (a->phase == AGENT_RUNNING) {
        pods_all_projects_changed(a->pods);
    }
    services_project_changed(a->pod_services, NULL);
}

void agent_follow_projects(struct agent *a, enum sdn_plugin plugin)
{
    static const struct informer_ops ops = {
        .changed = project_changed, .deleted = project_deleted, .synced = projects_synced};
    if (sdn_plugin_has_vnids(plugin) && !a->projects) {
        a->projects =
            informer_new(a->client, a->loop, OBJECTS_NETWORK_API, "netnamespaces", NULL, &ops, a);
    } else if (!sdn_plugin_has_vnids(plugin) && a->projects) {
        informer_each(a->projects, forget_project, a);
        a->projects = informer_free(a->projects);
    }
}

bool agent_vnids_known(struct agent *a, enum sdn_plugin plugin)
{
    agent_follow_projects(a, plugin);
    if (!sdn_plugin_has_vnids(plugin)) {
        a->vnids_wanted_ms = 0;
        return true;
    }
    uint64_t now = loop_now_ms(a->loop);
    const char *project = NULL;
    if (informer_synced(a->projects) && !(project = pods_unknown_project(a->pods))) {
        a->vnids_wanted_ms = 0;
        return true;
    }
    a->vnids_wanted_ms = a->vnids_wanted_ms ? a->vnids_wanted_ms : now;
    if (project && !streq(a->wanted_project, project)) {
        snprintf(a->wanted_project, sizeof a->wanted_project, "%s", project);
        log_info("waiting for the VNIDs of projects", "plugin=%s first=%s", sdn_plugin_name(plugin),
                 project);
    }
    uint64_t end = a->vnids_wanted_ms + PROJECTS_WAIT_MS;
    if (!informer_synced(a->projects) && now >= end) {
        log_warn("NetNamespaces could not be listed yet", "plugin=%s", sdn_plugin_name(plugin));
        a->vnids_wanted_ms = now;
        end = now + PROJECTS_WAIT_MS;
    }
    if (now < end) {
        loop_timer_arm(a->look_again, end - now);
        return false;
    }
    a->vnids_wanted_ms = 0;
    return true;
}
