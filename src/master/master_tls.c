/* SPDX-License-Identifier: Apache-2.0 */
#include "master/master_tls.h"

#include "base/mem.h"
#include "master/master_pki.h"
#include "net/loop/process.h"
#include "net/tls/pki.h"

#define MAX_PEM ((size_t) 1 << 20)
#define DEFAULT_DIR "/var/lib/tenet/pki"

struct master_tls {
    const struct master_config *config;
    int port;
    struct tls_context *context;
    struct pki_ca *ca; /* The authority of tls: auto. */
    char **proxy_cas;  /* NULL ends; NULL: none. */
};

const char *master_tls_dir(const struct master_config *c)
{
    return c->pki_dir ? c->pki_dir : DEFAULT_DIR;
}

/* The texts of a list, borrowed; the array is owned. */
static const char *const *names_of(const struct json *list)
{
    const char **names = xcalloc(json_count(list) + 1, sizeof *names);
    for (size_t i = 0; i < json_count(list); i++) {
        names[i] = json_get_string(json_at(list, i));
    }
    return (const char *const *) names;
}

/* Makes the TLS context, or replaces the existing one. */
static int load(struct master_tls *t, char *const *proxy_cas, struct err *e)
{
    const struct master_config *c = t->config;
    CLEANUP_FREE struct tls_named_cert *named =
        xcalloc(json_count(c->named_certs) + 1, sizeof *named);
    struct tls_server_config cfg = {.cert_file = c->cert_file,
                                    .key_file = c->key_file,
                                    .client_ca_file = c->client_ca,
                                    .proxy_cas = (const char *const *) proxy_cas,
                                    .named = named,
                                    .n_named = json_count(c->named_certs),
                                    .min_version = c->min_tls,
                                    .ciphers = (const char *const *) c->ciphers};
    for (size_t i = 0; i < cfg.n_named; i++) {
        const struct json *v = json_at(c->named_certs, i);
        named[i].cert_file = json_get_text(v, "certFile");
        named[i].key_file = json_get_text(v, "keyFile");
        named[i].names = names_of(json_get(v, "names"));
    }
    CLEANUP_FREE char *cert = xasprintf("%s/server.crt", master_tls_dir(c));
    CLEANUP_FREE char *key = xasprintf("%s/server.key", master_tls_dir(c));
    CLEANUP_FREE char *ca = xasprintf("%s/ca.crt", master_tls_dir(c));
    int r = 0;
    if (master_config_tls(c) == MASTER_TLS_AUTO) {
        r = master_pki_ensure(c, master_tls_dir(c), t->port, false, &t->ca, NULL, e);
        if (r < 0) {
            err_prefix(e, "pkiDir");
        }
        cfg.cert_file = cert;
        cfg.key_file = key;
        cfg.client_ca_file = ca;
    }
    r = r < 0        ? r
        : t->context ? tls_server_reload(t->context, &cfg, e)
                     : tls_server_new(&cfg, &t->context, e);
    for (size_t i = 0; i < cfg.n_named; i++) {
        free((void *) named[i].names);
    }
    return r;
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
    int r = load(t, NULL, e);
    if (r < 0) {
        master_tls_free(t);
        return r;
    }
    *ret = t;
    return 0;
}

static char **texts_free(char **list)
{
    for (char **p = list; p && *p; p++) {
        free(*p);
    }
    free(list);
    return NULL;
}

struct master_tls *master_tls_free(struct master_tls *t)
{
    if (t) {
        tls_context_free(t->context);
        pki_ca_free(t->ca);
        texts_free(t->proxy_cas);
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
    return load(t, t->proxy_cas, e);
}

int master_tls_set_proxies(struct master_tls *t, const char *const *cas, struct err *e)
{
    char **list = NULL;
    size_t n = 0;
    for (; cas[n]; n++) {
        list = xreallocarray(list, n + 2, sizeof *list);
        list[n] = xstrdup(cas[n]);
        list[n + 1] = NULL;
    }
    if (!list && !t->proxy_cas) {
        return 0;
    }
    int r = load(t, list, e);
    if (r < 0) {
        texts_free(list);
        return r;
    }
    texts_free(t->proxy_cas);
    t->proxy_cas = list;
    return 0;
}

static int read_pem(const char *file, const char **ret, struct err *e)
{
    struct strbuf b = STRBUF_INIT;
    int r = file_read(file, MAX_PEM, &b, e);
    if (r < 0) {
        strbuf_done(&b);
        return r;
    }
    *ret = strbuf_steal(&b);
    return 0;
}

int master_tls_kubelet_client(const struct master_tls *t, struct apiserver_kubelets *ret,
                              struct err *e)
{
    const struct master_config *c = t->config;
    CLEANUP_FREE char *cert = xasprintf("%s/kubelet-client.crt", master_tls_dir(c));
    CLEANUP_FREE char *key = xasprintf("%s/kubelet-client.key", master_tls_dir(c));
    CLEANUP_FREE char *ca = xasprintf("%s/ca.crt", master_tls_dir(c));
    const char *files[] = {ca, cert, key};
    if (c->kubelet_cert) {
        files[0] = c->kubelet_ca ? c->kubelet_ca : c->client_ca ? c->client_ca : ca;
        files[1] = c->kubelet_cert;
        files[2] = c->kubelet_key;
    } else if (master_config_tls(c) != MASTER_TLS_AUTO) {
        return 0;
    }
    struct apiserver_kubelets k = {0};
    int r = read_pem(files[0], &k.ca, e);
    if (r < 0 || (r = read_pem(files[1], &k.cert, e)) < 0 ||
        (r = read_pem(files[2], &k.key, e)) < 0) {
        apiserver_kubelets_done(&k);
        return err_prefix(e, "kubeletClientInfo");
    }
    *ret = k;
    return 0;
}

const struct pki_ca *master_tls_ca(const struct master_tls *t)
{
    return t->ca;
}
