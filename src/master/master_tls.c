/* SPDX-License-Identifier: Apache-2.0 */
#include "master/master_tls.h"

#include "base/ip.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "client/kubeconfig.h"
#include "net/kernel/rtnl.h"
#include "net/loop/process.h"
#include "net/tls/pki.h"

#include <stdio.h>
#include <unistd.h>

LOG_MODULE("master");

#define DEFAULT_DIR "/var/lib/tenet/pki"
#define HOUR_MS 3600000LL
#define SERVER_MS (365 * 24 * HOUR_MS)
#define CLIENT_MS (730 * 24 * HOUR_MS)
#define MAX_NAMES 64

struct master_tls {
    const struct master_config *config;
    int port;
    struct tls_context *context;
    struct pki_ca *ca; /* With tls: auto. */
};

/* ---- names ---- */

struct names {
    char *list[MAX_NAMES];
    size_t n;
};

static void names_done(struct names *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->list[i]);
    }
}

static void names_add(struct names *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++) {
        if (streq(s->list[i], name)) {
            return;
        }
    }
    if (s->n < MAX_NAMES && pki_name_is_valid(name)) {
        s->list[s->n++] = xstrdup(name);
    }
}

/* This host's addresses that others can connect to. */
static int add_own_addresses(struct names *s, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *rt = NULL;
    CLEANUP_FREE struct rtnl_addr *addrs = NULL;
    size_t n = 0;
    int r = rtnl_open(&rt, e);
    if (r < 0 || (r = rtnl_addr_list(rt, 0, &addrs, &n, e)) < 0) {
        return err_prefix(e, "this host's addresses"), r;
    }
    for (size_t i = 0; i < n; i++) {
        char text[IP4_TEXT_SIZE];
        if (addrs[i].addr.addr >> 24 != 127) {
            ip4_format(addrs[i].addr.addr, text);
            names_add(s, text);
        }
    }
    return 0;
}

/* All names by which clients know the master; the first is the one that kubeconfigs get. */
static int server_names(const struct master_config *c, struct names *s, struct err *e)
{
    static const char *const always[] = {"127.0.0.1",
                                         "localhost",
                                         "kubernetes",
                                         "kubernetes.default",
                                         "kubernetes.default.svc",
                                         "kubernetes.default.svc.cluster.local"};
    char text[256] = "";
    for (size_t i = 0; i < c->n_names; i++) {
        names_add(s, c->names[i]);
    }
    (void) snprintf(text, sizeof(text), "%.*s",
                    (int) (strrchr(c->bind_address, ':') - c->bind_address), c->bind_address);
    if (!streq(text, "0.0.0.0")) {
        names_add(s, text);
    } else {
        int r = add_own_addresses(s, e);
        if (r < 0) {
            return r;
        }
    }
    for (size_t i = 0; i < ARRAY_SIZE(always); i++) {
        names_add(s, always[i]);
    }
    ip4_format(c->network.service.addr + 1, text);
    names_add(s, text);
    if (gethostname(text, sizeof(text) - 1) == 0) {
        names_add(s, text);
    }
    return 0;
}

/* ---- certificates ---- */

const char *master_tls_dir(const struct master_config *c)
{
    return c->pki_dir ? c->pki_dir : DEFAULT_DIR;
}

/* The kubeconfig FILE of the directory, with a certificate for 'user' of 'group'. */
static int ensure_kubeconfig(const struct pki_ca *ca, const char *file, const char *user,
                             const char *group, const char *url, int64_t now, struct err *e)
{
    struct pki_request q = {
        .cn = user, .o = &group, .n_o = 1, .from_ms = now - HOUR_MS, .until_ms = now + CLIENT_MS};
    __attribute__((cleanup(kubeconfig_done))) struct kubeconfig k = {0};
    if (kubeconfig_load(file, &k, NULL) == 0) {
        struct pki_pair p = {k.cert, k.key};
        if (streq(k.server, url) && streq_null(k.ca, pki_ca_pem(ca)) && k.cert &&
            pki_is_good(ca, &q, &p, now)) {
            return 0;
        }
    }
    __attribute__((cleanup(pki_pair_done))) struct pki_pair made = {0};
    int r = pki_issue(ca, &q, &made, e);
    if (r < 0) {
        return r;
    }
    struct kubeconfig w = {
        .server = (char *) url, .ca = (char *) pki_ca_pem(ca), .cert = made.cert, .key = made.key};
    r = kubeconfig_write(file, user, &w, e);
    if (r == 0) {
        log_info("kubeconfig written", "file=%s user=%s group=%s", file, user, group);
    }
    return r;
}

/* All that "tls: auto" needs is in its directory. */
static int ensure_auto(struct master_tls *t, struct err *e)
{
    const char *dir = master_tls_dir(t->config);
    __attribute__((cleanup(names_done))) struct names names = {0};
    int64_t now = time_wall_ms();
    bool made = false;
    int r = dir_make(dir, 0700, e);
    if (r < 0 || (r = server_names(t->config, &names, e)) < 0 ||
        (!t->ca && (r = pki_ca_open(dir, now, &t->ca, e)) < 0)) {
        return r;
    }
    const struct pki_ca *ca = t->ca;
    CLEANUP_FREE char *cert = xasprintf("%s/server.crt", dir);
    CLEANUP_FREE char *key = xasprintf("%s/server.key", dir);
    CLEANUP_FREE char *admin = xasprintf("%s/admin.kubeconfig", dir);
    CLEANUP_FREE char *url = xasprintf("https://%s:%d", names.list[0], t->port);
    struct pki_request q = {.cn = "tenet-master",
                            .names = (const char *const *) names.list,
                            .n_names = names.n,
                            .from_ms = now - HOUR_MS,
                            .until_ms = now + SERVER_MS};
    r = pki_ensure_files(ca, &q, cert, key, now, &made, e);
    if (r < 0) {
        return r;
    }
    if (made) {
        log_info("server certificate made", "file=%s names=%zu", cert, names.n);
    }
    return ensure_kubeconfig(ca, admin, "system:admin", "system:masters", url, now, e);
}

/* Makes the context, or the one that is there anew. */
static int load(struct master_tls *t, struct err *e)
{
    const struct master_config *c = t->config;
    struct tls_server_config cfg = {c->cert_file, c->key_file, c->client_ca};
    CLEANUP_FREE char *cert = xasprintf("%s/server.crt", master_tls_dir(c));
    CLEANUP_FREE char *key = xasprintf("%s/server.key", master_tls_dir(c));
    CLEANUP_FREE char *ca = xasprintf("%s/ca.crt", master_tls_dir(c));
    if (master_config_tls(c) == MASTER_TLS_AUTO) {
        int r = ensure_auto(t, e);
        if (r < 0) {
            return err_prefix(e, "pkiDir"), r;
        }
        cfg = (struct tls_server_config){cert, key, ca};
    }
    return t->context ? tls_server_reload(t->context, &cfg, e)
                      : tls_server_new(&cfg, &t->context, e);
}

int master_tls_new(const struct master_config *c, int port, struct master_tls **ret, struct err *e)
{
    if (master_config_tls(c) == MASTER_TLS_OFF) {
        *ret = NULL;
        return 0;
    }
    struct master_tls *t = NEW(struct master_tls);
    t->config = c;
    t->port = port;
    int r = load(t, e);
    if (r < 0) {
        master_tls_free(t);
        return r;
    }
    *ret = t;
    return 0;
}

struct master_tls *master_tls_free(struct master_tls *t)
{
    if (t) {
        tls_context_free(t->context);
        pki_ca_free(t->ca);
        free(t);
    }
    return NULL;
}

struct tls_context *master_tls_context(const struct master_tls *t)
{
    return t->context;
}

int master_tls_reload(struct master_tls *t, struct err *e)
{
    return load(t, e);
}

const struct pki_ca *master_tls_ca(const struct master_tls *t)
{
    return t->ca;
}
