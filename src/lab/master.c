/* SPDX-License-Identifier: Apache-2.0 */
/* The lab's master: "tenet master" in a namespace, and the kubeconfigs of its users and nodes. */
#include "base/mem.h"
#include "client/join_token.h"
#include "client/kubeconfig.h"
#include "lab/images.h"
#include "lab/lab_internal.h"
#include "net/kernel/netns.h"
#include "net/loop/sock.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#define ETCD_PORT 2379
#define ETCD_URL "http://127.0.0.1:2379"

static struct daemon etcd_daemon(const char *dir)
{
    return (struct daemon){dir, "etcd", "etcd"};
}

static int64_t config_int(const struct lab *l, const char *key)
{
    return json_get_int_or(json_get(l->config, key), 0);
}

bool lab_has_tls(const struct lab *l)
{
    return json_get_bool(json_get(l->config, "tls"), false);
}

bool lab_has_oauth(const struct lab *l)
{
    return json_get_bool(json_get(l->config, "oauth"), false);
}

unsigned master_count(const struct lab *l)
{
    return (unsigned) json_count(json_get(l->config, "ports"));
}

static struct daemon master_daemon(const char *dir)
{
    return (struct daemon){dir, "master", "the master"};
}

/* Port of its socket on the machine's own 127.0.0.1. */
static int64_t master_port(const struct lab *l, unsigned i)
{
    return json_get_int_or(json_at(json_get(l->config, "ports"), i), 0);
}

/* Owned folder of master 'i', from 0. */
static char *master_dir(const struct lab *l, unsigned i)
{
    return i ? lab_path(l, "master%u", i + 1) : lab_path(l, "master");
}

/* Owned file for users of master 'i', with its address on the machine itself. */
static char *kubeconfig_path(const struct lab *l, unsigned i)
{
    CLEANUP_FREE char *dir = i ? master_dir(l, i) : NULL;
    return i ? xasprintf("%s/kubeconfig", dir) : lab_path(l, "kubeconfig");
}

/* With HTTPS: made from the file that the masters made for their administrator. */
static int write_admin(struct lab *l, unsigned i, struct err *e)
{
    CLEANUP_FREE char *made = lab_path(l, "master/pki/admin.kubeconfig");
    CLEANUP_FREE char *file = kubeconfig_path(l, i);
    __attribute__((cleanup(kubeconfig_done))) struct kubeconfig k = {0};
    int r = kubeconfig_load(made, &k, e);
    if (r < 0) {
        return r;
    }
    free(k.server);
    free(k.ns);
    k.server = xasprintf("https://127.0.0.1:%lld", (long long) master_port(l, i));
    k.ns = xstrdup("default");
    return kubeconfig_write(file, "admin", &k, e);
}

int master_write_join(struct lab *l, struct err *e)
{
    char token[JOIN_TOKEN_SIZE];
    CLEANUP_FREE char *admin = lab_path(l, "kubeconfig");
    CLEANUP_FREE char *file = lab_path(l, "bootstrap.kubeconfig");
    CLEANUP_FREE char *url = xasprintf("https://%s:%d", IP4_TEXT(MASTER_IP), MASTER_PORT);
    CLEANUP(json_free)
    struct json *secret =
        join_token_new(&(struct join_token_spec){.description = "tenet lab"}, token);
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

bool master_runs(const struct lab *l)
{
    for (unsigned i = 0; i < master_count(l); i++) {
        CLEANUP_FREE char *dir = master_dir(l, i);
        struct daemon d = master_daemon(dir);
        if (daemon_pid(&d)) {
            return true;
        }
    }
    return false;
}

char *master_more_servers(const struct lab *l, bool from_nodes)
{
    struct strbuf b = STRBUF_INIT;
    for (unsigned i = 1; i < master_count(l); i++) {
        strbuf_addf(&b, "%s%s://%s:%lld", i > 1 ? "," : "", lab_has_tls(l) ? "https" : "http",
                    from_nodes ? IP4_TEXT(MASTER_IP) : "127.0.0.1",
                    (long long) (from_nodes ? (int64_t) MASTER_PORT + i : master_port(l, i)));
    }
    return b.size ? strbuf_steal(&b) : NULL;
}

static int write_config(struct lab *l, unsigned i, struct err *e)
{
    bool etcd = streq(json_get_text(l->config, "store"), "etcd");
    CLEANUP_FREE char *dir = master_dir(l, i);
    CLEANUP_FREE char *storage = etcd ? xstrdup("  backend: etcd\n"
                                                "  endpoints: " ETCD_URL "\n")
                                      : xasprintf("  backend: sqlite\n"
                                                  "  path: %s/registry.db\n"
                                                  "  reserveMB: 0\n",
                                                  dir);
    /* One authority for all of them; one certificate suffices, too, as only their ports differ. */
    CLEANUP_FREE char *pki = lab_path(l, "master/pki");
    CLEANUP_FREE char *tls =
        lab_has_tls(l) ? xasprintf("  tls: auto\n  pkiDir: %s\n", pki) : xstrdup("");
    /* One OAuth server, whichever master a request comes to; its users are on the machine. */
    CLEANUP_FREE char *oauth = lab_has_oauth(l)
                                   ? xasprintf("oauthConfig:\n"
                                               "  masterPublicURL: https://127.0.0.1:%lld\n"
                                               "  identityProviders:\n"
                                               "  - name: lab\n"
                                               "    challenge: true\n"
                                               "    login: true\n"
                                               "    mappingMethod: claim\n"
                                               "    provider:\n"
                                               "      apiVersion: v1\n"
                                               "      kind: AllowAllPasswordIdentityProvider\n",
                                               (long long) master_port(l, 0))
                                   : xstrdup("");
    CLEANUP_FREE char *text = xasprintf(
        "networkConfig:\n"
        "  networkPluginName: %s\n"
        "  clusterNetworks:\n"
        "  - cidr: %s\n"
        "    hostSubnetLength: %lld\n"
        "  vxlanPort: %lld\n"
        "  mtu: %lld\n"
        "  externalIPNetworkCIDRs: [192.0.2.0/24]\n" /* A range for tests: RFC 5737. */
        "kubernetesMasterConfig:\n"
        "  %s\n"
        "  localStorageClass: true\n"
        "servingInfo:\n"
        "  bindAddress: %s:%u\n"
        "%s"
        "%s"
        "storage:\n"
        "%s",
        json_get_text(l->config, "plugin"), json_get_text(l->config, "clusterNetwork"),
        (long long) config_int(l, "hostSubnetLength"), (long long) config_int(l, "vxlanPort"),
        (long long) config_int(l, "mtu"),
        /* Without containers there is nothing that deployer pods could run in. */
        lab_has_containers(l) ? "deployerImage: " LAB_IMAGE_DEPLOYER : "deployInProcess: true",
        IP4_TEXT(MASTER_IP), MASTER_PORT + i, tls, oauth, storage);
    int r = dir_make(dir, 0755, e);
    return r < 0 ? r : lab_write(l, text, e, "%s/master-config.yaml", strrchr(dir, '/') + 1);
}

int master_create(struct lab *l, struct err *e)
{
    int r = 0;
    for (unsigned i = 0; i < master_count(l) && r == 0; i++) {
        CLEANUP_FREE char *dir = master_dir(l, i);
        CLEANUP_FREE char *file = i ? xasprintf("%s/kubeconfig", strrchr(dir, '/') + 1) : NULL;
        r = write_config(l, i, e);
        if (r == 0 && !lab_has_tls(l)) { /* With HTTPS the master creates them. */
            r = write_kubeconfig(l, file ? file : "kubeconfig", "127.0.0.1", master_port(l, i), e);
        }
    }
    if (r == 0 && !lab_has_tls(l)) {
        r = write_kubeconfig(l, "node.kubeconfig", IP4_TEXT(MASTER_IP), MASTER_PORT, e);
    }
    if (r < 0) {
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
    unsigned number;           /* Number of the master, from 0. */
    struct api_client *client; /* NULL: there is none yet. */
    struct err err;
};

static int connect_to(struct readiness *rd)
{
    struct lab *l = rd->l;
    CLEANUP_FREE char *file = kubeconfig_path(l, rd->number);
    int r = lab_has_tls(l) ? write_admin(l, rd->number, &rd->err) : 0;
    return r < 0 ? r
                 : api_client_from_kubeconfig(l->loop, file, "tenet-lab/" TENET_VERSION,
                                              &rd->client, &rd->err);
}

static int is_ready(void *ctx)
{
    struct readiness *rd = ctx;
    if (!rd->client && connect_to(rd) < 0) {
        return 0; /* With HTTPS the master first has to create its certificates. */
    }
    return api_request_sync(rd->client, "GET", "/readyz", NULL, NULL, NULL, NULL, &rd->err) == 0;
}

static int wait_ready(struct lab *l, const struct daemon *d, unsigned i, struct err *e)
{
    if (!l->loop) {
        l->loop = loop_new();
    }
    struct readiness rd = {.l = l, .number = i};
    int r = daemon_wait(d, "get ready", is_ready, &rd, e);
    api_client_free(rd.client);
    return r;
}

static int start_one(struct lab *l, unsigned i, int ns, struct err *e)
{
    CLEANUP_FREE char *dir = master_dir(l, i);
    CLEANUP_FREE char *tenet = NULL;
    CLEANUP(fd_close) int listener = -1;
    struct daemon d = master_daemon(dir);
    int r = 0;
    if (daemon_pid(&d) || (r = program_find("tenet", &tenet, e)) < 0) {
        return r;
    }
    /* In the machine's own namespace, and so reachable from there; the master stays in its own. */
    CLEANUP_FREE char *address = xasprintf("127.0.0.1:%lld", (long long) master_port(l, i));
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
    return wait_ready(l, &d, i, e);
}

/* Starts the masters from 'first' up to, but not including, 'end'. */
static int start_some(struct lab *l, unsigned first, unsigned end, struct err *e)
{
    CLEANUP_FREE char *dir = lab_path(l, "master");
    CLEANUP(fd_close) int ns = -1;
    int r = host_open(l, "master", &ns, e);
    if (r == 0 && streq(json_get_text(l->config, "store"), "etcd")) {
        r = etcd_start(dir, ns, e);
    }
    for (unsigned i = first; i < end && r == 0; i++) {
        r = start_one(l, i, ns, e);
    }
    return r;
}

int master_start(struct lab *l, struct err *e)
{
    return start_some(l, 0, master_count(l), e);
}

int lab_master(struct lab *l, unsigned number, enum lab_action action, struct err *e)
{
    CLEANUP_FREE char *etcd_dir = lab_path(l, "master");
    struct daemon etcd = etcd_daemon(etcd_dir);
    bool hard = action == LAB_KILL;
    int r = lab_load(l, e);
    if (r < 0) {
        return r;
    }
    if (number > master_count(l)) {
        return err_set(e, -ENOENT, "lab %s has no master %u, it has %u", l->name, number,
                       master_count(l));
    }
    unsigned first = number ? number - 1 : 0, end = number ? number : master_count(l);
    for (unsigned i = first; i < end && r == 0 && action != LAB_START; i++) {
        CLEANUP_FREE char *dir = master_dir(l, i);
        struct daemon d = master_daemon(dir);
        r = daemon_stop(&d, hard, e);
    }
    if (r == 0 && !number && (action == LAB_STOP || action == LAB_KILL)) {
        r = daemon_stop(&etcd, hard, e);
    }
    if (r == 0 && (action == LAB_START || action == LAB_RESTART)) {
        r = start_some(l, first, end, e);
    }
    return r;
}

static struct json *status_of(const struct lab *l, unsigned i)
{
    CLEANUP_FREE char *dir = master_dir(l, i);
    struct daemon d = master_daemon(dir);
    struct json *v = json_object();
    json_set_string(v, "hostIP", IP4_TEXT(MASTER_IP));
    json_set_int(v, "pid", daemon_pid(&d));
    json_set(v, "server",
             json_stringf("%s://127.0.0.1:%lld", lab_has_tls(l) ? "https" : "http",
                          (long long) master_port(l, i)));
    json_set(v, "config", json_stringf("%s/master-config.yaml", dir));
    json_set(v, "log", json_stringf("%s/master.log", dir));
    return v;
}

struct json *master_login(const struct lab *l)
{
    struct json *v = json_object();
    if (lab_has_oauth(l)) {
        json_set(v, "server",
                 json_stringf("https://127.0.0.1:%lld", (long long) master_port(l, 0)));
        json_set(v, "certificateAuthority", json_stringf("%s/master/pki/ca.crt", l->dir));
    }
    return v;
}

struct json *master_status(struct lab *l)
{
    struct json *list = json_array();
    for (unsigned i = 0; i < master_count(l); i++) {
        json_append(list, status_of(l, i));
    }
    return list;
}
