/* SPDX-License-Identifier: Apache-2.0 */
#include "master/master_tls.h"

#include "base/mem.h"
#include "master/master_pki.h"
#include "net/tls/pki.h"

#define DEFAULT_DIR "/var/lib/tenet/pki"

struct master_tls {
    const struct master_config *config;
    int port;
    struct tls_context *context;
    struct pki_ca *ca; /* The authority of tls: auto. */
};

const char *master_tls_dir(const struct master_config *c)
{
    return c->pki_dir ? c->pki_dir : DEFAULT_DIR;
}

/* Makes the TLS context, or replaces the existing one. */
static int load(struct master_tls *t, struct err *e)
{
    const struct master_config *c = t->config;
    struct tls_server_config cfg = {c->cert_file, c->key_file, c->client_ca};
    CLEANUP_FREE char *cert = xasprintf("%s/server.crt", master_tls_dir(c));
    CLEANUP_FREE char *key = xasprintf("%s/server.key", master_tls_dir(c));
    CLEANUP_FREE char *ca = xasprintf("%s/ca.crt", master_tls_dir(c));
    if (master_config_tls(c) == MASTER_TLS_AUTO) {
        int r = master_pki_ensure(c, master_tls_dir(c), t->port, false, &t->ca, NULL, e);
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
