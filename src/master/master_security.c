/* SPDX-License-Identifier: Apache-2.0 */
#include "master/master_security.h"

#include "apiserver/access/audit.h"
#include "base/mem.h"
#include "base/random.h"
#include "net/tls/jws.h"

#include <stdio.h>

#define TOKEN_BYTES 32

struct master_security {
    struct jws_keys *keys;
    struct audit_log *audit;
    char token[2 * TOKEN_BYTES + 1];
    struct apiserver_security api;
};

static int load_keys(struct master_security *s, const struct master_config *c, struct err *e)
{
    bool ours = master_config_tls(c) == MASTER_TLS_AUTO;
    CLEANUP_FREE char *own = xasprintf("%s/sa.key", master_tls_dir(c));
    const char *path = c->sa_private_key ? c->sa_private_key : ours ? own : NULL;
    if (!path) {
        return c->sa_public_keys
                   ? err_set(e, -EINVAL,
                             "serviceAccountConfig.publicKeyFiles: needs privateKeyFile")
                   : 0;
    }
    s->keys = jws_keys_new();
    int r = jws_keys_load_private(s->keys, path, !c->sa_private_key, e);
    for (size_t i = 0; r == 0 && c->sa_public_keys && c->sa_public_keys[i]; i++) {
        r = jws_keys_load_public(s->keys, c->sa_public_keys[i], e);
    }
    return r < 0 ? (err_prefix(e, "serviceAccountConfig"), r) : 0;
}

static int open_audit(struct master_security *s, struct loop *l, const struct master_config *c,
                      struct err *e)
{
    struct audit_config cfg = {.path = c->audit_path,
                               .policy_file = c->audit_policy,
                               .max_size = (uint64_t) c->audit_max_mb << 20,
                               .max_backups = (unsigned) c->audit_max_files};
    if (!c->audit_path) {
        return 0;
    }
    int r = audit_log_open(l, &cfg, &s->audit, e);
    return r < 0 ? (err_prefix(e, "auditConfig"), r) : 0;
}

int master_security_new(struct loop *l, const struct master_config *c, const struct master_tls *tls,
                        struct master_security **ret, struct err *e)
{
    if (!tls) {
        *ret = NULL;
        return 0;
    }
    struct master_security *s = NEW(struct master_security);
    random_hex(s->token, TOKEN_BYTES);
    int r = load_keys(s, c, e);
    if (r < 0 || (r = open_audit(s, l, c, e)) < 0) {
        master_security_free(s);
        return r;
    }
    s->api = (struct apiserver_security){.always_allow = master_config_always_allows(c),
                                         .anonymous = master_config_anonymous(c),
                                         .loopback_token = s->token,
                                         .keys = s->keys,
                                         .audit = s->audit};
    *ret = s;
    return 0;
}

struct master_security *master_security_free(struct master_security *s)
{
    if (s) {
        audit_log_close(s->audit);
        jws_keys_free(s->keys);
        explicit_bzero(s->token, sizeof s->token);
        free(s);
    }
    return NULL;
}

int master_security_reload(struct master_security *s, struct err *e)
{
    return s && s->audit ? audit_log_reload(s->audit, e) : 0;
}

const struct apiserver_security *master_security_of_api(const struct master_security *s)
{
    return s ? &s->api : NULL;
}

const char *master_security_token(const struct master_security *s)
{
    return s ? s->token : NULL;
}
