/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of settings that depend on each other, and the meaning of settings together. */
#include "master/master_config.h"

#include "api/kinds/oauth.h"
#include "apiserver/oauth/oauth.h"

#include "base/str.h"
#include "net/tls/tls.h"

#include <errno.h>

enum master_tls_mode master_config_tls(const struct master_config *c)
{
    if (streq_null(c->tls, "off")) {
        return MASTER_TLS_OFF;
    }
    return c->tls || c->pki_dir ? MASTER_TLS_AUTO
           : c->cert_file       ? MASTER_TLS_FILES
                                : MASTER_TLS_OFF;
}

bool master_config_always_allows(const struct master_config *c)
{
    return streq_null(c->authorization_mode, "AlwaysAllow") ||
           master_config_tls(c) == MASTER_TLS_OFF;
}

bool master_config_anonymous(const struct master_config *c)
{
    /* Anonymous users may do everything only if the configuration says so explicitly, as in
     * Kubernetes. */
    return c->anonymous_given ? c->anonymous : !streq_null(c->authorization_mode, "AlwaysAllow");
}

/* Without HTTPS every client is trusted: settings that require access control are an error. */
static int check_security(const struct master_config *c, struct err *e)
{
    const char *key = c->authorization_mode ? "authorization.mode"
                      : c->anonymous_given  ? "authorization.anonymous"
                      : c->sa_private_key   ? "serviceAccountConfig.privateKeyFile"
                      : c->sa_public_keys   ? "serviceAccountConfig.publicKeyFiles"
                      : c->sa_managed_names ? "serviceAccountConfig.managedNames"
                      : c->audit_path       ? "auditConfig.auditFilePath"
                                            : NULL;
    if (key && master_config_tls(c) == MASTER_TLS_OFF) {
        return err_set(e, -EINVAL, "%s: needs HTTPS (tls: auto, or certFile and keyFile)", key);
    }
    if (c->audit_policy && !c->audit_path) {
        return err_set(e, -EINVAL, "auditConfig.policyFile: needs auditFilePath");
    }
    return 0;
}

/* Cipher suites of TLS 1.2 alone leave nothing of the list when that version is not served. */
static int check_ciphers(const struct master_config *c, struct err *e)
{
    bool any = !c->ciphers || !*c->ciphers || !streq_null(c->min_tls, "VersionTLS13");
    for (char **name = c->ciphers; !any && *name; name++) {
        any = tls_cipher_is_13(*name);
    }
    return any ? 0
               : err_set(e, -EINVAL,
                         "servingInfo.cipherSuites: has none of TLS 1.3, the minTLSVersion");
}

static int check_tls(const struct master_config *c, struct err *e)
{
    enum master_tls_mode mode = master_config_tls(c);
    if (!c->cert_file != !c->key_file) {
        return err_set(e, -EINVAL, "servingInfo.%s: must be given with %s",
                       c->cert_file ? "keyFile" : "certFile",
                       c->cert_file ? "certFile" : "keyFile");
    }
    if (mode == MASTER_TLS_AUTO && (c->cert_file || c->client_ca)) {
        return err_set(e, -EINVAL, "servingInfo.%s: cannot be given beside %s",
                       c->cert_file ? "certFile" : "clientCA", c->tls ? "tls: auto" : "pkiDir");
    }
    if (c->client_ca && !c->cert_file) {
        return err_set(e, -EINVAL, "servingInfo.clientCA: must be given with certFile and keyFile");
    }
    const char *key = json_count(c->named_certs) ? "namedCertificates"
                      : c->min_tls               ? "minTLSVersion"
                      : c->ciphers               ? "cipherSuites"
                                                 : NULL;
    if (key && mode == MASTER_TLS_OFF) {
        return err_set(e, -EINVAL,
                       "servingInfo.%s: needs HTTPS (tls: auto, or certFile and keyFile)", key);
    }
    return check_ciphers(c, e);
}

static int check_kubelet_client(const struct master_config *c, struct err *e)
{
    if (!c->kubelet_cert != !c->kubelet_key) {
        return err_set(e, -EINVAL, "kubeletClientInfo.%s: must be given with %s",
                       c->kubelet_cert ? "certFile" : "keyFile",
                       c->kubelet_cert ? "keyFile" : "certFile");
    }
    if (c->kubelet_cert && !c->kubelet_ca && !c->client_ca) {
        return err_set(e, -EINVAL, "kubeletClientInfo.certFile: must be given with ca");
    }
    return 0;
}

static int check_etcd(const struct master_config *c, struct err *e)
{
    if (streq(c->storage_backend, "etcd") && !c->storage_endpoints) {
        return err_set(e, -EINVAL, "storage.endpoints: must be given for the backend etcd");
    }
    if (!c->etcd_cert != !c->etcd_key) {
        return err_set(e, -EINVAL, "etcdClientInfo.%s: must be given with %s",
                       c->etcd_cert ? "certFile" : "keyFile",
                       c->etcd_cert ? "keyFile" : "certFile");
    }
    return 0;
}

static int check_signing(const struct master_config *c, struct err *e)
{
    if (!c->signing_cert != !c->signing_key) {
        return err_set(e, -EINVAL, "controllerConfig.%s: must be given with %s",
                       c->signing_cert ? "clusterSigningKeyFile" : "clusterSigningCertFile",
                       c->signing_cert ? "clusterSigningCertFile" : "clusterSigningKeyFile");
    }
    return 0;
}

static int check_oauth(const struct master_config *c, struct err *e)
{
    int64_t inactivity = c->oauth.inactivity_s;
    if (inactivity && inactivity < OAUTH_INACTIVITY_MIN_S) {
        return err_set(e, -EINVAL,
                       "oauthConfig.tokenConfig.accessTokenInactivityTimeoutSeconds: must be 0, or "
                       "%d and more",
                       OAUTH_INACTIVITY_MIN_S);
    }
    if (json_count(c->oauth.providers) && master_config_tls(c) == MASTER_TLS_OFF) {
        return err_set(e, -EINVAL, "oauthConfig.identityProviders: need HTTPS (servingInfo.tls)");
    }
    int r = oauth_check_config(&c->oauth, e);
    return r < 0 ? (err_prefix(e, "oauthConfig"), r) : 0;
}

static int check_serving(const struct master_config *c, unsigned parts, struct err *e)
{
    int r = check_tls(c, e);
    if (r < 0 || (r = check_security(c, e)) < 0 || (r = check_kubelet_client(c, e)) < 0 ||
        (r = check_oauth(c, e)) < 0) {
        return r;
    }
    if (!(parts & MASTER_CONTROLLERS) && master_config_tls(c) == MASTER_TLS_AUTO) {
        return err_set(
            e, -EINVAL,
            "servingInfo.%s: the authority's key is not for this process: run \"tenet adm "
            "create-master-certs\" and give certFile, keyFile and clientCA",
            c->tls ? "tls" : "pkiDir");
    }
    return check_etcd(c, e);
}

int master_config_check(const struct master_config *c, unsigned parts, struct err *e)
{
    int r = netconf_check(&c->network, e);
    if (r == 0) {
        r = service_config_check(&c->services, &c->network, NULL, 0, e);
    }
    if (r < 0) {
        return err_prefix(e, "networkConfig"), r;
    }
    r = scc_blocks_check(&c->blocks, e);
    if (r < 0) {
        return err_prefix(e, "projectConfig.securityAllocator"), r;
    }
    r = admission_config_check(&c->admission, (const char *const *) c->disabled_admission,
                               (const char *const *) c->node_label_blacklist, e);
    r = r < 0 ? r : check_signing(c, e);
    return r < 0 || !(parts & (MASTER_API | MASTER_STORE)) ? r : check_serving(c, parts, e);
}
