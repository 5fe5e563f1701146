/* SPDX-License-Identifier: Apache-2.0 */
/* Pods of the lab: the work of kubelet and a container runtime, with a namespace in place of a
 * container. */
#include "api/condition.h"
#include "api/kind.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/timeutil.h"
#include "lab/images.h"
#include "lab/lab_internal.h"
#include "net/kernel/netns.h"
#include "sdn/network.h"

#include <libgen.h>
#include <stdio.h>
#include <unistd.h>

#define CONTAINER_ID "tenet.io/container-id"
#define ID_BYTES 32
#define NAME_SIZE_MAX 128 /* Limited by the size of a namespace's name, which has more parts. */
#define CNI_TIMEOUT_MS 90000
#define STATUS_TRIES 8

static int check_names(const char *project, const char *name, struct err *e)
{
    const char *why = api_check_dns_label(project);
    if (why) {
        return err_set(e, -EINVAL, "project \"%s\": %s", project, why);
    }
    if ((why = api_check_dns_subdomain(name)) != NULL || strlen(name) > NAME_SIZE_MAX) {
        return err_set(e, -EINVAL, "pod \"%s\": %s", name, why ? why : "is too long for the lab");
    }
    return 0;
}

/* ---- CNI ---- */

struct cni_call {
    const char *node, *project, *name, *id, *netns; /* 'netns': path. */
};

/* Texts of a CNI error object, which the plug-in prints to standard output. */
static int cni_failed(const struct cni_call *c, const char *command, int status,
                      const struct strbuf *out, const struct strbuf *errout, struct err *e)
{
    CLEANUP(json_free) struct json *v = NULL;
    json_parse(strbuf_cstr(out), out->size, &v, NULL);
    const char *msg = json_path_string(v, "msg", NULL);
    const char *details = json_path_string(v, "details", NULL);
    return msg ? err_set(e, -EIO, "CNI %s of %s/%s on %s: %s%s%s", command, c->project, c->name,
                         c->node, msg, details && *details ? ": " : "", details ? details : "")
               : err_set(e, -EIO, "CNI %s of %s/%s on %s: exit status %d: %.200s", command,
                         c->project, c->name, c->node, status, strbuf_cstr(errout));
}

/* Executes the plug-in that the node's configuration names, on the node. '*ret' (may be NULL) is
 * its output. */
static int cni_run(struct lab *l, const struct cni_call *c, const char *command, struct json **ret,
                   struct err *e)
{
    CLEANUP_FREE char *conf = NULL;
    CLEANUP_FREE char *plugin = NULL;
    CLEANUP(json_free) struct json *v = NULL;
    CLEANUP(fd_close) int ns = -1;
    int r = node_cni_config(l, c->node, &conf, e);
    if (r < 0 || (r = json_parse(conf, strlen(conf), &v, e)) < 0 ||
        (r = host_open(l, c->node, &ns, e)) < 0) {
        return r;
    }
    const char *type = json_path_string(v, "type", NULL);
    if ((r = program_find(type ? type : "tenet-cni", &plugin, e)) < 0) {
        return r;
    }
    CLEANUP_FREE char *dir_of = xstrdup(plugin);
    CLEANUP_FREE char *env_command = xasprintf("CNI_COMMAND=%s", command);
    CLEANUP_FREE char *env_id = xasprintf("CNI_CONTAINERID=%s", c->id);
    CLEANUP_FREE char *env_netns = xasprintf("CNI_NETNS=%s", c->netns);
    CLEANUP_FREE char *env_path = xasprintf("CNI_PATH=%s", dirname(dir_of));
    CLEANUP_FREE char *env_args =
        xasprintf("CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=%s;K8S_POD_NAME=%s;"
                  "K8S_POD_INFRA_CONTAINER_ID=%s",
                  c->project, c->name, c->id);
    const char *env[] = {env_command, env_id,   env_netns, "CNI_IFNAME=eth0",
                         env_path,    env_args, NULL};
    const char *argv[] = {plugin, NULL};
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    CLEANUP_STRBUF struct strbuf errout = STRBUF_INIT;
    struct process_spec s = PROCESS_SPEC_INIT;
    s.argv = argv;
    s.env = env;
    s.netns_fd = ns;
    s.stdin_text = conf;
    int status = 0;
    if ((r = process_run(&s, CNI_TIMEOUT_MS, &out, &errout, &status, e)) < 0) {
        return r;
    }
    if (status != 0) {
        return cni_failed(c, command, status, &out, &errout, e);
    }
    if (ret && (r = json_parse(strbuf_cstr(&out), out.size, ret, e)) < 0) {
        return err_prefix(e, "result of CNI %s", command);
    }
    return 0;
}

/* ---- objects ---- */

static int check_project(struct lab *l, const char *project, struct err *e)
{
    int r = lab_get(l, "v1", "namespaces", NULL, project, NULL, e);
    return r == -ENOENT
               ? err_set(
                     e, r,
                     "project %s does not exist; \"tenet lab --name %s project add %s\" makes it",
                     project, l->name, project)
               : r;
}

/* Owned name of the ready node with the fewest pods. */
static int choose_node(struct lab *l, char **ret, struct err *e)
{
    CLEANUP(json_free) struct json *pods = NULL;
    CLEANUP(json_free) struct json *names = node_names(l);
    struct json *name, *pod;
    size_t best = SIZE_MAX;
    const char *chosen = NULL;
    int r = lab_get(l, "v1", "pods", NULL, NULL, &pods, e);
    if (r < 0) {
        return r;
    }
    JSON_FOREACH (name, names) {
        size_t n = 0;
        JSON_FOREACH (pod, json_get(pods, "items")) {
            n += streq_null(json_path_string(pod, "spec", "nodeName", NULL), json_get_string(name));
        }
        if (n < best && node_pid(l, json_get_string(name))) {
            best = n;
            chosen = json_get_string(name);
        }
    }
    if (!chosen) {
        return err_set(e, -ENOENT, "lab %s has no node whose agent runs", l->name);
    }
    *ret = xstrdup(chosen);
    return 0;
}

static struct json *pod_object(const char *project, const char *name, const char *node,
                               const char *id, const struct json *labels, const struct json *ports)
{
    struct json *pod = json_object(), *meta = json_object(), *spec = json_object();
    json_set_string(pod, "apiVersion", "v1");
    json_set_string(pod, "kind", "Pod");
    json_set_string(meta, "name", name);
    json_set_string(meta, "namespace", project);
    json_set_string(json_ensure_object(meta, "annotations"), CONTAINER_ID, id);
    json_set(meta, "labels", json_clone(labels));
    json_set(pod, "metadata", meta);
    json_set_string(spec, "nodeName", node);
    struct json *container = json_append(json_ensure_array(spec, "containers"), json_object());
    json_set_string(container, "name", "sandbox");
    json_set_string(container, "image", "none");
    json_set(container, "ports", json_clone(ports));
    json_set(pod, "spec", spec);
    return pod;
}

static void set_running(struct json *pod, const char *ip, const char *host_ip, const char *id)
{
    char now[TIME_TEXT_SIZE];
    int64_t now_ms = time_wall_ms();
    time_format_s(now_ms, now);
    struct json *status = json_set(pod, "status", json_object()), *cs = json_object();
    json_set_string(status, "phase", "Running");
    json_set_string(status, "hostIP", host_ip);
    json_set_string(status, "podIP", ip);
    json_set_string(json_append(json_ensure_array(status, "podIPs"), json_object()), "ip", ip);
    json_set_string(status, "startTime", now);
    condition_set(pod, "Ready", "True", NULL, NULL, now_ms);
    json_set_string(cs, "name", "sandbox");
    json_set_string(cs, "image", "none");
    json_set_string(cs, "imageID", "");
    json_set(cs, "containerID", json_stringf("netns://%s", id));
    json_set_bool(cs, "ready", true);
    json_set_int(cs, "restartCount", 0);
    json_set_string(json_ensure_object(json_ensure_object(cs, "state"), "running"), "startedAt",
                    now);
    json_append(json_ensure_array(status, "containerStatuses"), cs);
}

/* Writes it, again on the newest version after a conflict. */
static int put_status(struct lab *l, const struct cni_call *c, const char *ip, const char *host_ip,
                      struct err *e)
{
    CLEANUP_FREE char *path = api_path("v1", "pods", c->project, c->name, "status");
    int r = -ESTALE;
    for (int i = 0; i < STATUS_TRIES && r == -ESTALE; i++) {
        CLEANUP(json_free) struct json *pod = NULL;
        if ((r = lab_get(l, "v1", "pods", c->project, c->name, &pod, e)) < 0) {
            return r;
        }
        set_running(pod, ip, host_ip, c->id);
        r = lab_call(l, "PUT", path, pod, NULL, e);
    }
    return r;
}

/* The project's VNID; 0 for a plug-in without VNIDs. */
static int project_vnid(struct lab *l, const char *project, int64_t *ret, struct err *e)
{
    CLEANUP(json_free) struct json *net = NULL;
    int r = lab_get(l, NETWORK_API, "netnamespaces", NULL, project, &net, e);
    if (r < 0 && r != -ENOENT) {
        return r;
    }
    *ret = json_get_int_or(json_get(net, "netid"), 0);
    return 0;
}

/* ---- DNS ---- */

/* Appends a line with the texts of a list, if there are any. */
static void add_line(struct strbuf *out, const char *keyword, const struct json *list)
{
    const struct json *item;
    strbuf_adds(out, json_count(list) ? keyword : "");
    JSON_FOREACH (item, list) {
        const char *s = json_get_string(item);
        strbuf_addf(out, " %s", s ? s : "");
    }
    strbuf_adds(out, json_count(list) ? "\n" : "");
}

/* The pod's /etc/resolv.conf from "dns" of the result, as a runtime makes it. */
static int write_resolv_conf(const char *netns, const struct json *dns, struct err *e)
{
    CLEANUP_FREE char *dir = xasprintf("%s%s", NETNS_ETC, strrchr(netns, '/'));
    CLEANUP_FREE char *path = xasprintf("%s/resolv.conf", dir);
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    const struct json *server;
    JSON_FOREACH (server, json_get(dns, "nameservers")) {
        const char *s = json_get_string(server);
        strbuf_addf(&text, "nameserver %s\n", s ? s : "");
    }
    add_line(&text, "search", json_get(dns, "search"));
    add_line(&text, "options", json_get(dns, "options"));
    int r = text.size ? dir_make(dir, 0755, e) : 0;
    return r < 0 || !text.size ? r : file_write_atomic(path, text.data, text.size, 0644, e);
}

/* ---- adding ---- */

/* Attaches, updates the API object, and adds the results to 'v'. */
static int attach(struct lab *l, const struct cni_call *c, struct json *v, struct err *e)
{
    CLEANUP(json_free) struct json *result = NULL;
    uint32_t host_ip = 0;
    int64_t vnid = 0;
    struct ip4_prefix addr;
    int r = cni_run(l, c, "ADD", &result, e);
    if (r < 0 || (r = node_address(l, c->node, &host_ip, e)) < 0) {
        return r;
    }
    const char *text = json_path_string(json_at(json_get(result, "ips"), 0), "address", NULL);
    if (!text || prefix_parse_host(text, &addr, NULL) < 0) {
        return err_set(e, -EIO, "result of CNI ADD: ips[0].address: \"%s\"", text ? text : "");
    }
    json_set_string(v, "podIP", IP4_TEXT(addr.addr));
    if ((r = write_resolv_conf(c->netns, json_get(result, "dns"), e)) < 0 ||
        (r = project_vnid(l, c->project, &vnid, e)) < 0) {
        return r;
    }
    json_set_int(v, "vnid", vnid);
    return put_status(l, c, IP4_TEXT(addr.addr), IP4_TEXT(host_ip), e);
}

static int create(struct lab *l, const struct cni_call *c, const char *ns, struct json *pod,
                  struct json *v, struct err *e)
{
    CLEANUP_FREE char *path = api_path("v1", "pods", c->project, NULL, NULL);
    int r = lab_call(l, "POST", path, pod, NULL, e);
    if (r == -EEXIST) {
        return err_set(e, r, "pod %s/%s exists already", c->project, c->name);
    }
    if (r < 0) {
        return r;
    }
    /* We own the object now, and so the namespace of its name, if one was left behind. */
    netns_kill_processes(ns, NULL);
    bool links = json_get_bool(json_path(pod, "spec", "enableServiceLinks", NULL), true);
    if ((r = lab_netns_delete(ns, e)) == 0 && (r = netns_create(ns, e)) == 0 &&
        (r = pod_write_environment(l, c->project, ns, links, e)) == 0 &&
        (r = attach(l, c, v, e)) == 0) {
        return 0;
    }
    cni_run(l, c, "DEL", NULL, NULL);
    netns_kill_processes(ns, NULL);
    lab_netns_delete(ns, NULL);
    lab_delete(l, "v1", "pods", c->project, c->name, NULL);
    return r;
}

/* A kubelet would run the pod, too. */
static int check_no_kubelet(struct lab *l, struct err *e)
{
    return lab_has_containers(l)
               ? err_set(e, -EOPNOTSUPP,
                         "the nodes of lab %s run containers: make pods through the API "
                         "(KUBECONFIG=%s/kubeconfig kubectl run NAME --image=" LAB_IMAGE_BUSYBOX
                         " -- sleep 1000), or make the lab with --no-containers",
                         l->name, l->dir)
               : 0;
}

int lab_pod_add(struct lab *l, const char *project, const char *name, const char *node,
                const struct json *labels, const struct json *ports, bool links, struct json **ret,
                struct err *e)
{
    CLEANUP_FREE char *chosen = NULL;
    char id[2 * ID_BYTES + 1];
    int r = check_names(project, name, e);
    if (r < 0 || (r = lab_load(l, e)) < 0 || (node && (r = node_check(l, node, e)) < 0) ||
        (r = check_no_kubelet(l, e)) < 0 || (r = check_project(l, project, e)) < 0 ||
        (!node && (r = choose_node(l, &chosen, e)) < 0)) {
        return r;
    }
    random_hex(id, ID_BYTES);
    CLEANUP_FREE char *ns = lab_pod_ns(l, project, name);
    CLEANUP_FREE char *netns = xasprintf("%s/%s", NETNS_DIR, ns);
    struct cni_call c = {node ? node : chosen, project, name, id, netns};
    CLEANUP(json_free) struct json *pod = pod_object(project, name, c.node, id, labels, ports);
    CLEANUP(json_free) struct json *v = json_object();
    json_set_bool(json_get(pod, "spec"), "enableServiceLinks", links);
    json_set_string(v, "project", project);
    json_set_string(v, "name", name);
    if ((r = create(l, &c, ns, pod, v, e)) < 0) {
        return r;
    }
    json_set_string(v, "node", c.node);
    json_set_string(v, "netns", netns);
    json_set_string(v, "containerID", id);
    *ret = TAKE(v);
    return 0;
}

/* ---- deleting ---- */

int pod_remove(struct lab *l, const struct json *pod, bool gone, struct err *e)
{
    const char *project = json_path_string(pod, "metadata", "namespace", NULL);
    const char *name = json_path_string(pod, "metadata", "name", NULL);
    const char *node = json_path_string(pod, "spec", "nodeName", NULL);
    const char *id = json_path_string(pod, "metadata", "annotations", CONTAINER_ID, NULL);
    int r;
    if (id && node && project && name) { /* Otherwise the namespace does not belong to the lab. */
        CLEANUP_FREE char *ns = lab_pod_ns(l, project, name);
        CLEANUP_FREE char *netns = xasprintf("%s/%s", NETNS_DIR, ns);
        struct cni_call c = {node, project, name, id, netns};
        if (!gone && node_check(l, node, NULL) == 0 && (r = cni_run(l, &c, "DEL", NULL, e)) < 0) {
            return r;
        }
        netns_kill_processes(ns, NULL);
        if ((r = lab_netns_delete(ns, e)) < 0) {
            return r;
        }
    }
    return lab_delete(l, "v1", "pods", project, name, e);
}

int lab_pod_delete(struct lab *l, const char *project, const char *name, struct err *e)
{
    CLEANUP(json_free) struct json *pod = NULL;
    int r = check_names(project, name, e);
    if (r < 0 || (r = lab_load(l, e)) < 0) {
        return r;
    }
    r = lab_get(l, "v1", "pods", project, name, &pod, e);
    if (r == -ENOENT) {
        return err_set(e, r, "pod %s/%s does not exist in lab %s", project, name, l->name);
    }
    return r < 0 ? r : pod_remove(l, pod, false, e);
}

/* ---- projects ---- */

struct vnid_wait {
    struct lab *l;
    const char *project;
    struct err err;
};

static int has_vnid(void *ctx)
{
    struct vnid_wait *w = ctx;
    int r = lab_get(w->l, NETWORK_API, "netnamespaces", NULL, w->project, NULL, &w->err);
    return r == 0 ? 1 : r == -ENOENT ? 0 : r;
}

int lab_project_add(struct lab *l, const char *project, struct err *e)
{
    const char *why = api_check_dns_label(project);
    int r = lab_load(l, e);
    if (r < 0) {
        return r;
    }
    if (why) {
        return err_set(e, -EINVAL, "project \"%s\": %s", project, why);
    }
    CLEANUP(json_free) struct json *ns = json_object();
    json_set_string(ns, "apiVersion", "v1");
    json_set_string(ns, "kind", "Namespace");
    json_set_string(json_ensure_object(ns, "metadata"), "name", project);
    r = lab_call(l, "POST", "/api/v1/namespaces", ns, NULL, e);
    if (r == -EEXIST) {
        return err_set(e, r, "project %s exists already", project);
    }
    enum sdn_plugin plugin = SDN_SUBNET;
    r = r < 0 ? r : sdn_plugin_parse(json_path_string(l->config, "plugin", NULL), &plugin, e);
    if (r < 0 || !sdn_plugin_has_vnids(plugin)) {
        return r;
    }
    struct vnid_wait w = {.l = l, .project = project};
    r = lab_wait(has_vnid, &w, START_TIMEOUT_MS);
    if (r == -ETIMEDOUT) {
        return err_set(e, r, "project %s has no VNID after %d s; see %s/master/master.log", project,
                       START_TIMEOUT_MS / 1000, l->dir);
    }
    return r < 0 ? err_set(e, r, "%s", w.err.text) : 0;
}

int lab_project_delete(struct lab *l, const char *project, struct err *e)
{
    CLEANUP(json_free) struct json *pods = NULL;
    struct json *pod;
    int r = lab_load(l, e);
    if (r < 0 || (r = check_project(l, project, e)) < 0 ||
        (r = lab_get(l, "v1", "pods", project, NULL, &pods, e)) < 0) {
        return r;
    }
    JSON_FOREACH (pod, json_get(pods, "items")) {
        if ((r = pod_remove(l, pod, false, e)) < 0) {
            return r;
        }
    }
    if ((r = lab_delete(l, "v1", "namespaces", NULL, project, e)) < 0 ||
        (r = lab_wait_absent(l, "v1", "namespaces", project, e)) < 0) {
        return r;
    }
    return lab_wait_absent(l, NETWORK_API, "netnamespaces", project, e);
}
