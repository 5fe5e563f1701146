/* SPDX-License-Identifier: Apache-2.0 */
/* Authentication by the client certificate of the connection, else by a
 * bearer token, else as the anonymous user. */
#include "apiserver/access/authn.h"

#include "apiserver/access/token.h"
#include "base/base64.h"
#include "base/timeutil.h"

#include <strings.h>

int authn_bearer(const char *header, const char **ret)
{
    static const char scheme[] = "bearer";
    if (!header) {
        return -ENOENT;
    }
    header += strspn(header, " \t");
    if (strncasecmp(header, scheme, sizeof scheme - 1) != 0) {
        return -EINVAL;
    }
    header += sizeof scheme - 1;
    size_t blanks = strspn(header, " ");
    header += blanks;
    size_t n = strlen(header);
    /* RFC 6750: the header contains one token68 and nothing after it. */
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=";
    if (!blanks || !n || strspn(header, letters) != n) {
        return -EINVAL;
    }
    *ret = header;
    return 0;
}

/* The token of a WebSocket's protocol "base64url.bearer.authorization.k8s.io.TOKEN", by which
 * browsers send it (Kubernetes' pkg/authentication/request/websocket); '*b' gets it.  -ENOENT: none
 * is there; -EINVAL: it is no token, or there are several. */
static int websocket_token(const struct http_exchange *x, struct strbuf *b)
{
    static const char prefix[] = "base64url.bearer.authorization.k8s.io.";
    const char *upgrade = http_header(x, "upgrade"), *name, *value;
    bool found = false;
    if (!upgrade || strcasecmp(upgrade, "websocket") != 0) {
        return -ENOENT;
    }
    for (size_t i = 0; http_header_at(x, i, &name, &value); i++) {
        while (strcasecmp(name, "sec-websocket-protocol") == 0 && *value) {
            value += strspn(value, ", \t");
            size_t n = strcspn(value, ", \t");
            if (n >= sizeof prefix - 1 && strncmp(value, prefix, sizeof prefix - 1) == 0) {
                if (found ||
                    base64url_decode(value + sizeof prefix - 1, n - (sizeof prefix - 1), b) < 0) {
                    return -EINVAL;
                }
                found = true;
            }
            value += n;
        }
    }
    /* A token has no NUL; a shorter text must not stand for the whole. */
    return !found ? -ENOENT : !b->size || strlen(strbuf_cstr(b)) != b->size ? -EINVAL : 0;
}

bool secret_equal(const char *a, size_t a_size, const char *b, size_t b_size)
{
    volatile unsigned differ = a_size != b_size;
    for (size_t i = 0; i < a_size && b_size; i++) {
        differ |= (unsigned char) (a[i] ^ b[i % b_size]);
    }
    return !differ;
}

static int by_certificate(const struct security *s, const struct tls_identity *id,
                          struct user_info **ret, struct err *e)
{
    if (!*id->cn) {
        return err_set(e, -EPERM, "the client's certificate names no user");
    }
    struct user_info *u = user_new(id->cn);
    for (size_t i = 0; i < id->n_o; i++) {
        user_add_group(u, id->o[i]);
    }
    user_add_group(u, GROUP_AUTHENTICATED);
    members_add_groups(s->members, u);
    *ret = u;
    return 0;
}

int authn_request(struct security *s, const struct http_exchange *x, struct user_info **ret,
                  struct err *e)
{
    if (s->open) {
        *ret = user_ref(s->master);
        return 0;
    }
    const struct tls_identity *id = http_peer_cert(x);
    if (id) {
        return by_certificate(s, id, ret, e);
    }
    const char *token = NULL;
    int r = authn_bearer(http_header(x, "authorization"), &token);
    if (r == -EINVAL) {
        return err_set(e, -EPERM, "the Authorization header has no bearer token");
    }
    CLEANUP_STRBUF struct strbuf offered = STRBUF_INIT;
    if (!token && (r = websocket_token(x, &offered)) != -ENOENT) {
        if (r < 0) {
            return err_set(e, -EPERM, "the WebSocket's protocol has no bearer token");
        }
        token = strbuf_cstr(&offered);
    }
    if (!http_is_tls(x)) {
        if (!token || !s->loopback_token ||
            !secret_equal(token, strlen(token), s->loopback_token, strlen(s->loopback_token))) {
            return err_set(e, -EPERM, "not the master's own token");
        }
        *ret = user_ref(s->master);
        return 0;
    }
    /* OpenShift accepts this parameter from clients that cannot set headers. */
    token = token ? token : http_query(x, "access_token");
    if (token) {
        return s->cache->ready ? token_authenticate(s, token, NULL, time_wall_ms(), ret, NULL, e)
                               : err_set(e, -EAGAIN, "the registry is being loaded");
    }
    if (!s->anonymous) {
        return err_set(e, -EPERM, "no credential");
    }
    *ret = user_ref(s->nobody);
    return 0;
}
