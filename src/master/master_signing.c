/* SPDX-License-Identifier: Apache-2.0 */
#include "master/master_signing.h"

#include "base/mem.h"
#include "base/timeutil.h"
#include "net/loop/process.h"
#include "net/tls/pki.h"

#define CLIENT_CA_MAX ((size_t) 1 << 20)

struct master_signing {
    struct pki_ca *loaded; /* NULL: the authority is borrowed, or there is none. */
    char *api_ca, *client_ca;
    struct controllers_security security;
};

int master_signing_new(const struct master_config *c, const struct pki_ca *ca, const char *api_ca,
                       struct master_signing **ret, struct err *e)
{
    static const char *const names[] = {"default", "builder", "deployer", NULL};
    struct master_signing *s = NEW(struct master_signing);
    if (!ca && c->signing_cert) {
        int r = pki_ca_load(c->signing_cert, c->signing_key, time_wall_ms(), &s->loaded, e);
        if (r < 0) {
            master_signing_free(s);
            return err_prefix(e, "controllerConfig");
        }
        ca = s->loaded;
    }
    if (ca && !s->loaded) {
        s->client_ca = xstrdup(pki_ca_pem(ca));
    } else if (c->client_ca) {
        CLEANUP_STRBUF struct strbuf pem = STRBUF_INIT;
        int r = file_read(c->client_ca, CLIENT_CA_MAX, &pem, e);
        if (r < 0) {
            master_signing_free(s);
            return err_prefix(e, "servingInfo.clientCA");
        }
        s->client_ca = strbuf_steal(&pem);
    }
    s->api_ca = api_ca ? xstrdup(api_ca) : NULL;
    s->security = (struct controllers_security){
        .ca = ca,
        .ca_pem = s->api_ca,
        .client_ca_pem = s->client_ca,
        .service_accounts =
            c->sa_managed_names ? (const char *const *) c->sa_managed_names : names};
    *ret = s;
    return 0;
}

struct master_signing *master_signing_free(struct master_signing *s)
{
    if (s) {
        pki_ca_free(s->loaded);
        free(s->api_ca);
        free(s->client_ca);
        free(s);
    }
    return NULL;
}

const struct controllers_security *master_signing_security(const struct master_signing *s)
{
    return s ? &s->security : NULL;
}
