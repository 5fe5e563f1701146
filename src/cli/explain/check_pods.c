/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/explain/check.h"

#include "base/random.h"
#include "lab/lab.h"
#include "net/kernel/netns.h"
#include "net/loop/process.h"

#include <libgen.h>
#include <stdio.h>
#include <unistd.h>

#define PREFIX "tenet-check-"
#define NETNS_PREFIX "tenetcheck-"
#define CNI_TIMEOUT_MS 60000
#define MAX_CONF 65536

/* ---- projects ---- */

static int project_call(const struct agents *a, const char *method, const char *name,
                        const struct json *body, struct err *e)
{
    CLEANUP_FREE char *path = api_path("v1", "namespaces", NULL, name, NULL);
    return api_request_sync(a->registry, method, path, NULL, NULL, body, NULL, e);
}

static int make_project(struct check_set *s, unsigned i, struct err *e)
{
    CLEANUP(json_free) struct json *ns = json_object();
    s->projects[i] = xasprintf(PREFIX "%c-%d", 'a' + i, (int) getpid());
    json_set_string(ns, "apiVersion", "v1");
    json_set_string(ns, "kind", "Namespace");
    json_set_string(json_ensure_object(ns, "metadata"), "name", s->projects[i]);
    s->made[i] = true;
    int r = project_call(s->agents, "POST", NULL, ns, e);
    return r < 0 ? err_prefix(e, "make project %s", s->projects[i]) : 0;
}

/* Removes the projects of checks that were killed. */
static void remove_old_projects(const struct agents *a)
{
    CLEANUP(json_free) struct json *list = NULL;
    struct json *item;
    if (agents_registry_get(a, "v1", "namespaces", NULL, NULL, &list, NULL) < 0) {
        return;
    }
    JSON_FOREACH (item, json_get(list, "items")) {
        const char *name = json_path_string(item, "metadata", "name", NULL);
        uint64_t pid;
        if (name && str_has_prefix(name, PREFIX) && strlen(name) > strlen(PREFIX) + 2 &&
            str_to_u64(name + strlen(PREFIX) + 2, INT32_MAX, &pid) == 0 && pid > 1 &&
            kill((pid_t) pid, 0) < 0 && errno == ESRCH) {
            project_call(a, "DELETE", name, NULL, NULL);
        }
    }
}

/* ---- CNI ---- */

static int cni_failed(const char *command, const char *node, int status, const struct strbuf *out,
                      const struct strbuf *errout, struct err *e)
{
    CLEANUP(json_free) struct json *v = NULL;
    json_parse(strbuf_cstr(out), out->size, &v, NULL);
    const char *msg = json_path_string(v, "msg", NULL);
    const char *details = json_path_string(v, "details", NULL);
    return msg ? err_set(e, -EIO, "CNI %s on %s: %s: %s", command, node, msg,
                         details ? details : "")
               : err_set(e, -EIO, "CNI %s on %s: exit status %d: %.200s", command, node, status,
                         strbuf_cstr(errout));
}

static int cni_run(const struct check_set *s, const struct check_pod *p, const char *command,
                   struct json **ret, struct err *e)
{
    CLEANUP_STRBUF struct strbuf conf = STRBUF_INIT;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    CLEANUP_STRBUF struct strbuf errout = STRBUF_INIT;
    CLEANUP_FREE char *plugin = NULL;
    const char *path = json_path_string(p->agent->state, "cniConfig", NULL);
    int status = 0, r = file_read(path ? path : "", MAX_CONF, &conf, e);
    if (r < 0) {
        return err_prefix(e, "the CNI configuration of node %s", p->agent->name);
    }
    if ((r = program_find("tenet-cni", &plugin, e)) < 0) {
        return r;
    }
    CLEANUP_FREE char *dir_of = xstrdup(plugin);
    CLEANUP_FREE char *env_command = xasprintf("CNI_COMMAND=%s", command);
    CLEANUP_FREE char *env_id = xasprintf("CNI_CONTAINERID=%s", p->container);
    CLEANUP_FREE char *env_netns = xasprintf("CNI_NETNS=%s/%s", NETNS_DIR, p->netns);
    CLEANUP_FREE char *env_path = xasprintf("CNI_PATH=%s", dirname(dir_of));
    CLEANUP_FREE char *env_args =
        xasprintf("CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=%s;K8S_POD_NAME=probe-%s",
                  s->projects[p->project], p->agent->name);
    const char *env[] = {env_command,       env_id, env_netns, env_path, env_args,
                         "CNI_IFNAME=eth0", NULL};
    const char *argv[] = {plugin, NULL};
    struct process_spec spec = PROCESS_SPEC_INIT;
    spec.argv = argv;
    spec.env = env;
    spec.stdin_text = strbuf_cstr(&conf);
    if ((r = process_run(&spec, CNI_TIMEOUT_MS, &out, &errout, &status, e)) < 0) {
        return r;
    }
    if (status) {
        return cni_failed(command, p->agent->name, status, &out, &errout, e);
    }
    return ret ? json_parse(strbuf_cstr(&out), out.size, ret, e) : 0;
}

static int attach(const struct check_set *s, struct check_pod *p, struct err *e)
{
    CLEANUP(json_free) struct json *result = NULL;
    struct ip4_prefix addr;
    int r = netns_create(p->netns, e);
    if (r < 0) {
        return r;
    }
    p->made = true;
    p->attached = true; /* The pod may be attached in part: DEL removes that, too. */
    if ((r = cni_run(s, p, "ADD", &result, e)) < 0) {
        return r;
    }
    const char *text = json_path_string(json_at(json_get(result, "ips"), 0), "address", NULL);
    const char *gateway = json_path_string(p->agent->state, "gateway", NULL);
    if (!text || prefix_parse_host(text, &addr, NULL) < 0 || !gateway ||
        ip4_parse(gateway, &p->gateway) < 0) {
        return err_set(e, -EBADMSG, "CNI ADD on %s: a result without an address", p->agent->name);
    }
    p->ip = addr.addr;
    const char *dns = json_get_string(json_at(json_path(result, "dns", "nameservers", NULL), 0));
    p->dns = 0;
    if (dns) {
        (void) ip4_parse(dns, &p->dns);
    }
    p->mtu = (uint32_t) json_get_int_or(json_get(p->agent->state, "mtu"), 0);
    return 0;
}

/* ---- the whole ---- */

static void plan(struct check_set *s)
{
    const struct agents *a = s->agents;
    s->pods = xcalloc(a->n * CHECK_PROJECTS + 1, sizeof *s->pods);
    for (size_t i = 0; i < a->n; i++) {
        for (unsigned k = 0; k < CHECK_PROJECTS; k++) {
            struct check_pod *p = &s->pods[s->n++];
            p->agent = &a->items[i];
            p->project = k;
            p->netns =
                xasprintf(NETNS_PREFIX "%d-%s-%c", (int) getpid(), a->items[i].name, 'a' + k);
            random_hex(p->container, 16);
        }
    }
}

int check_attach(struct check_set *s, struct err *e)
{
    for (size_t i = 0; i < s->agents->n; i++) {
        const struct agent_ref *a = &s->agents->items[i];
        if (!a->state || !json_get_bool(json_get(a->state, "ready"), false)) {
            const char *why = json_path_string(a->state, "reason", NULL);
            return err_set(e, -EAGAIN, "node %s cannot attach pods: %s", a->name ? a->name : "?",
                           why && *why ? why : a->error.text);
        }
    }
    if (!s->agents->registry) {
        return err_set(e, -ENOTCONN, "there is no kubeconfig for the master: probes need projects");
    }
    remove_old_projects(s->agents);
    int r = 0;
    for (unsigned i = 0; r == 0 && i < CHECK_PROJECTS; i++) {
        r = make_project(s, i, e);
    }
    if (r < 0) {
        return r;
    }
    plan(s);
    for (size_t i = 0; r == 0 && i < s->n; i++) {
        r = *s->stop ? err_set(e, -EINTR, "interrupted") : attach(s, &s->pods[i], e);
    }
    return r;
}

int check_detach(struct check_set *s, struct err *e)
{
    int first = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct check_pod *p = &s->pods[i];
        struct err why = {0};
        int r = p->attached ? cni_run(s, p, "DEL", NULL, &why) : 0;
        if (p->made && netns_delete(p->netns, r == 0 ? &why : NULL) < 0 && r == 0) {
            r = why.code;
        }
        if (r < 0 && first == 0) {
            first = err_set(e, r, "%s", why.text);
        }
        free(p->netns);
    }
    free(s->pods);
    for (unsigned i = 0; i < CHECK_PROJECTS; i++) {
        struct err why = {0};
        int r = s->made[i] ? project_call(s->agents, "DELETE", s->projects[i], NULL, &why) : 0;
        if (r < 0 && r != -ENOENT && first == 0) {
            first = err_set(e, r, "remove project %s: %s", s->projects[i], why.text);
        }
        free(s->projects[i]);
    }
    s->pods = NULL;
    s->n = 0;
    return first;
}
