/* SPDX-License-Identifier: Apache-2.0 */
#include "master/master_pki.h"

#include "base/ip.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "client/kubeconfig.h"
#include "net/kernel/rtnl.h"
#include "net/loop/process.h"
#include "net/tls/jws.h"
#include "net/tls/pki.h"

#include <stdio.h>
#include <unistd.h>

LOG_MODULE("master");

#define HOUR_MS 3600000LL
#define SERVER_MS (365 * 24 * HOUR_MS)
#define CLIENT_MS (730 * 24 * HOUR_MS)
#define MAX_NAMES 64

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

/* Adds the addresses of this host to which other hosts can connect. */
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

/* All names by which clients know the master; kubeconfigs contain the first one. */
static int server_names(const struct master_config *c, struct names *s, struct err *e)
{
    static const char *const always[] = {"127.0.0.1",
                                         "localhost",
                                         "kubernetes",
                                         "kubernetes.default",
                                         "kubernetes.default.svc",
                                         "kubernetes.default.svc.cluster.local"};
    char text[256] = "";
    for (size_t i = 0; c->names && c->names[i]; i++) {
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

/* ---- files ---- */

/* Makes the kubeconfig 'file', with a certificate for 'user' of 'group'. */
static int ensure_kubeconfig(const struct pki_ca *ca, const char *file, const char *user,
                             const char *group, const char *url, int64_t now, bool *made,
                             struct err *e)
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
    __attribute__((cleanup(pki_pair_done))) struct pki_pair pair = {0};
    int r = pki_issue(ca, &q, &pair, e);
    if (r < 0) {
        return r;
    }
    struct kubeconfig w = {
        .server = (char *) url, .ca = (char *) pki_ca_pem(ca), .cert = pair.cert, .key = pair.key};
    r = kubeconfig_write(file, user, &w, e);
    if (r == 0) {
        *made = true;
        log_info("kubeconfig written", "file=%s user=%s group=%s", file, user, group);
    }
    return r;
}

static int ensure_server(const struct pki_ca *ca, const char *dir, const struct names *names,
                         int64_t now, bool *any, struct err *e)
{
    CLEANUP_FREE char *cert = xasprintf("%s/server.crt", dir);
    CLEANUP_FREE char *key = xasprintf("%s/server.key", dir);
    bool made = false;
    struct pki_request q = {.cn = "tenet-master",
                            .names = (const char *const *) names->list,
                            .n_names = names->n,
                            .from_ms = now - HOUR_MS,
                            .until_ms = now + SERVER_MS};
    int r = pki_ensure_files(ca, &q, cert, key, now, &made, e);
    if (made) {
        *any = true;
        log_info("server certificate made", "file=%s names=%zu", cert, names->n);
    }
    return r;
}

/* The user is the one that nodes let begin processes in containers. */
static int ensure_kubelet_client(const struct pki_ca *ca, const char *dir, int64_t now, bool *any,
                                 struct err *e)
{
    static const char *const groups[] = {"system:node-admins"};
    CLEANUP_FREE char *cert = xasprintf("%s/kubelet-client.crt", dir);
    CLEANUP_FREE char *key = xasprintf("%s/kubelet-client.key", dir);
    bool made = false;
    struct pki_request q = {.cn = "system:openshift-node-admin",
                            .o = groups,
                            .n_o = ARRAY_SIZE(groups),
                            .from_ms = now - HOUR_MS,
                            .until_ms = now + CLIENT_MS};
    int r = pki_ensure_files(ca, &q, cert, key, now, &made, e);
    *any |= made;
    return r;
}

static int ensure_token_key(const char *dir, struct err *e)
{
    CLEANUP_FREE char *path = xasprintf("%s/sa.key", dir);
    struct jws_keys *keys = jws_keys_new();
    int r = jws_keys_load_private(keys, path, true, e);
    jws_keys_free(keys);
    return r;
}

/* Makes the files that only separate processes need. */
static int ensure_apart(const struct pki_ca *ca, const char *dir, const char *url, int64_t now,
                        bool *made, struct err *e)
{
    CLEANUP_FREE char *file = xasprintf("%s/controllers.kubeconfig", dir);
    int r = ensure_kubeconfig(ca, file, "system:tenet-controllers", "system:masters", url, now,
                              made, e);
    return r < 0 ? r : ensure_token_key(dir, e);
}

int master_pki_ensure(const struct master_config *c, const char *dir, int port, bool apart,
                      struct pki_ca **ca, bool *ret_made, struct err *e)
{
    __attribute__((cleanup(names_done))) struct names names = {0};
    bool made = false;
    int64_t now = time_wall_ms();
    int r = dir_make(dir, 0700, e);
    if (r < 0 || (r = server_names(c, &names, e)) < 0 ||
        (!*ca && (r = pki_ca_open(dir, now, ca, e)) < 0) ||
        (r = ensure_server(*ca, dir, &names, now, &made, e)) < 0 ||
        (r = ensure_kubelet_client(*ca, dir, now, &made, e)) < 0) {
        return r;
    }
    CLEANUP_FREE char *admin = xasprintf("%s/admin.kubeconfig", dir);
    CLEANUP_FREE char *url = xasprintf("https://%s:%d", names.list[0], port);
    r = ensure_kubeconfig(*ca, admin, "system:admin", "system:masters", url, now, &made, e);
    if (r == 0 && apart) {
        r = ensure_apart(*ca, dir, url, now, &made, e);
    }
    if (r == 0 && ret_made) {
        *ret_made = made;
    }
    return r;
}
