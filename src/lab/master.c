/* SPDX-License-Identifier: Apache-2.0 */
/* The lab's master: "tenet master" in a namespace, and the kubeconfigs of its users and nodes. */
#include "base/mem.h"
#include "client/join_token.h"
#include "client/kubeconfig.h"
#include "lab/lab_internal.h"
#include "net/netns.h"
#include "net/sock.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#define ETCD_PORT 2379
#define ETCD_URL "http://127.0.0.1:2379"

struct daemon master_daemon(const struct lab *l, char **dir)
{
    *dir = lab_path(l, "master");
    return (struct daemon){*dir, "master", "the master"};
}

static struct daemon etcd_daemon(const char *dir)
{
    return (struct daemon){dir, "etcd", "etcd"};
}

static const char *config_text(const struct lab *l, const char *key)
{
    const char *s = json_path_string(l->config, key, NULL);
    return s ? s : "";
}

static int64_t config_int(const struct lab *l, const char *key)
{
    return json_get_int_or(json_get(l->config, key), 0);
}

bool lab_has_tls(const struct lab *l)
{
    return json_get_bool(json_get(l->config, "tls"), false);
}

/* The master's kubeconfig for its administrator, with the address that reaches it from this machine. */
static int write_admin(struct lab *l, struct err *e)
{
    CLEANUP_FREE char *made = lab_path(l, "master/pki/admin.kubeconfig");
    CLEANUP_FREE char *file = lab_path(l, "kubeconfig");
    __attribute__((cleanup(kubeconfig_done))) struct kubeconfig k = {0};
    int r = kubeconfig_load(made, &k, e);
    if (r < 0) {
        return r;
    }
    free(k.server);
    free(k.ns);
    k.server = xasprintf("https://127.0.0.1:%lld", (long long) config_int(l, "port"));
    k.ns = xstrdup("default");
    return kubeconfig_write(file, "admin", &k, e);
}

int master_write_join(struct lab *l, struct err *e)
{
    char token[JOIN_TOKEN_SIZE];
    CLEANUP_FREE char *admin = lab_path(l, "kubeconfig");
    CLEANUP_FREE char *file = lab_path(l, "bootstrap.kubeconfig");
    CLEANUP_FREE char *url = xasprintf("https://%s:%d", IP4_TEXT(MASTER_IP), MASTER_PORT);
    CLEANUP(json_free) struct json *secret = join_token_new("tenet lab", 0, token);
    __attribute__((cleanup(kubeconfig_done))) struct kubeconfig k = {0};
    int r =
        lab_call(l, "POST", "/api/v1/namespaces/" JOIN_TOKEN_NAMESPACE "/secrets", secret, NULL, e);
    if (r < 0 || (r = kubeconfig_load(admin, &k, e)) < 0) {
        return r;
    }
    struct kubeconfig w = {.server = url, .ca = k.ca, .token = token};
    return kubeconfig_write(file, "bootstrap", &w, e);
}

static int write_kubeconfig(struct lab *l, const char *file, const char *host, int64_t port,
                            struct err *e)
{
    CLEANUP_FREE char *text = xasprintf("apiVersion: v1\n"
                                        "kind: Config\n"
                                        "clusters:\n"
                                        "- name: %s\n"
                                        "  cluster:\n"
                                        "    server: http://%s:%lld\n"
                                        "users:\n"
                                        "- name: admin\n"
                                        "  user: {}\n"
                                        "contexts:\n"
                                        "- name: %s\n"
                                        "  context:\n"
                                        "    cluster: %s\n"
                                        "    user: admin\n"
                                        "    namespace: default\n"
                                        "current-context: %s\n",
                                        l->name, host, (long long) port, l->name, l->name, l->name);
    return lab_write(l, text, e, "%s", file);
}

static int write_config(struct lab *l, const char *dir, struct err *e)
{
    bool etcd = streq(config_text(l, "store"), "etcd");
    CLEANUP_FREE char *storage = etcd ? xstrdup("  backend: etcd\n"
                                                "  endpoints: " ETCD_URL "\n")
                                      : xasprintf("  backend: sqlite\n"
                                                  "  path: %s/registry.db\n",
                                                  dir);
    CLEANUP_FREE char *tls =
        lab_has_tls(l) ? xasprintf("  tls: auto\n  pkiDir: %s/pki\n", dir) : xstrdup("");
    CLEANUP_FREE char *text = xasprintf(
        "networkConfig:\n"
        "  networkPluginName: %s\n"
        "  clusterNetworks:\n"
        "  - cidr: %s\n"
        "    hostSubnetLength: %lld\n"
        "  vxlanPort: %lld\n"
        "  mtu: %lld\n"
        "servingInfo:\n"
        "  bindAddress: %s:%d\n"
        "%s"
        "storage:\n"
        "%s",
        config_text(l, "plugin"), config_text(l, "clusterNetwork"),
        (long long) config_int(l, "hostSubnetLength"), (long long) config_int(l, "vxlanPort"),
        (long long) config_int(l, "mtu"), IP4_TEXT(MASTER_IP), MASTER_PORT, tls, storage);
    return lab_write(l, text, e, "master/master-config.yaml");
}

int master_create(struct lab *l, struct err *e)
{
    CLEANUP_FREE char *dir = lab_path(l, "master");
    int r = dir_make(dir, 0755, e);
    if (r < 0 || (r = write_config(l, dir, e)) < 0) {
        return r;
    }
    /* With HTTPS the master makes them. */
    if (!lab_has_tls(l) &&
        ((r = write_kubeconfig(l, "kubeconfig", "127.0.0.1", config_int(l, "port"), e)) < 0 ||
         (r = write_kubeconfig(l, "node.kubeconfig", IP4_TEXT(MASTER_IP), MASTER_PORT, e)) < 0)) {
        return r;
    }
    return host_create(l, "master", MASTER_IP, false, e);
}

/* ---- etcd ---- */

static int etcd_answers(void *ctx)
{
    int *ns = ctx, back, fd = -1;
    if (netns_enter(*ns, &back, NULL) < 0) {
        return 0;
    }
    int r = sock_connect_tcp("127.0.0.1", ETCD_PORT, &fd, NULL);
    netns_leave(back);
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    bool ok = r == 0 && poll(&p, 1, 1000) > 0 && sock_connect_result(fd) == 0;
    fd_close(fd);
    return ok;
}

static int etcd_start(const char *dir, int ns, struct err *e)
{
    struct daemon d = etcd_daemon(dir);
    CLEANUP_FREE char *data = xasprintf("--data-dir=%s/etcd", dir);
    const char *argv[] = {"etcd",
                          "--name=lab",
                          data,
                          "--listen-client-urls=" ETCD_URL,
                          "--advertise-client-urls=" ETCD_URL,
                          "--listen-peer-urls=http://127.0.0.1:2380",
                          "--initial-advertise-peer-urls=http://127.0.0.1:2380",
                          "--initial-cluster=lab=http://127.0.0.1:2380",
                          "--logger=zap",
                          NULL};
    struct process_spec s = PROCESS_SPEC_INIT;
    s.argv = argv;
    s.netns_fd = ns;
    bool started;
    int r = daemon_start(&d, &s, &started, e);
    return r < 0 ? r : daemon_wait(&d, "answer", etcd_answers, &ns, e);
}

/* ---- master ---- */

struct readiness {
    struct lab *l;
    struct err err;
};

static int is_ready(void *ctx)
{
    struct readiness *rd = ctx;
    if (lab_has_tls(rd->l) && !rd->l->api && write_admin(rd->l, &rd->err) < 0) {
        return 0; /* The master has not made it yet. */
    }
    return lab_call(rd->l, "GET", "/readyz", NULL, NULL, &rd->err) == 0;
}

int master_start(struct lab *l, struct err *e)
{
    CLEANUP_FREE char *dir = NULL;
    CLEANUP_FREE char *tenet = NULL;
    CLEANUP(fd_close) int ns = -1;
    CLEANUP(fd_close) int listener = -1;
    struct daemon d = master_daemon(l, &dir);
    if (daemon_pid(&d)) {
        return 0;
    }
    int r = program_find("tenet", &tenet, e);
    if (r < 0 || (r = host_open(l, "master", &ns, e)) < 0 ||
        (streq(config_text(l, "store"), "etcd") && (r = etcd_start(dir, ns, e)) < 0)) {
        return r;
    }
    /* In the machine's own namespace, and so reachable from there; the master never leaves its own. */
    CLEANUP_FREE char *address = xasprintf("127.0.0.1:%lld", (long long) config_int(l, "port"));
    CLEANUP_FREE char *config = xasprintf("%s/master-config.yaml", dir);
    if ((r = sock_listen_tcp(address, &listener, e)) < 0) {
        return r;
    }
    const char *argv[] = {tenet, "master", "--config", config, NULL};
    struct process_spec s = PROCESS_SPEC_INIT;
    s.argv = argv;
    s.netns_fd = ns;
    s.pass_fds = &listener;
    s.n_pass_fds = 1;
    bool started;
    if ((r = daemon_start(&d, &s, &started, e)) < 0) {
        return r;
    }
    listener = fd_close(listener); /* When the master ends, connections are refused. */
    struct readiness rd = {.l = l};
    return daemon_wait(&d, "get ready", is_ready, &rd, e);
}

int lab_master(struct lab *l, enum lab_action action, struct err *e)
{
    CLEANUP_FREE char *dir = NULL;
    struct daemon d = master_daemon(l, &dir), etcd = etcd_daemon(dir);
    bool hard = action == LAB_KILL;
    int r = lab_load(l, e);
    if (r == 0 && action != LAB_START) {
        r = daemon_stop(&d, hard, e);
    }
    if (r == 0 && (action == LAB_STOP || action == LAB_KILL)) {
        r = daemon_stop(&etcd, hard, e);
    }
    if (r == 0 && (action == LAB_START || action == LAB_RESTART)) {
        r = master_start(l, e);
    }
    return r;
}

struct json *master_status(struct lab *l)
{
    CLEANUP_FREE char *dir = NULL;
    struct daemon d = master_daemon(l, &dir);
    struct json *v = json_object();
    json_set_string(v, "hostIP", IP4_TEXT(MASTER_IP));
    json_set_int(v, "pid", daemon_pid(&d));
    json_set(v, "config", json_stringf("%s/master-config.yaml", dir));
    json_set(v, "log", json_stringf("%s/master.log", dir));
    return v;
}
