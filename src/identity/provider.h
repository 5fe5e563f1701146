/* SPDX-License-Identifier: Apache-2.0 */
/* Identity providers: the parts that prove to the OAuth server who a person is.
 *
 * One 'struct identity_kind' describes a kind of provider ("LDAPPasswordIdentityProvider"); one
 * 'struct identity_provider' is a provider of the master's configuration
 * (oauthConfig.identityProviders[]).  A kind offers one or more ways: a name and a password, a
 * redirect to a page of the provider's own, or headers that a trusted proxy adds to a request.  A
 * way that a kind does not have is NULL.
 *
 * A provider knows nothing of users, sessions or the registry: the OAuth server maps an identity
 * to a User (oauthConfig.identityProviders[].mappingMethod).
 *
 * Everything runs on the loop's thread.  What blocks or takes long (hashes of passwords, the
 * resolution of names) runs on workers that the provider bounds, never on the loop.  A password is
 * erased from memory as soon as it is not needed. */
#pragma once

#include "base/err.h"
#include "net/loop/loop.h"
#include "net/tls/tls.h"
#include "wire/json.h"

/* A provider's knowledge of a person.  Texts are owned; NULL: the provider does not tell it. */
struct identity {
    char *user;      /* The provider's own name of the person, which does not change; never NULL. */
    char *preferred; /* The name that the person prefers as a user name. */
    char *name;      /* The full name. */
    char *email;
    char **groups; /* Names of groups, NULL at the end; NULL: the provider does not tell groups. */
};
void identity_done(struct identity *id);

enum identity_outcome {
    IDENTITY_PROVED,
    /* The name or the password is wrong, or the person is not admitted (of another organization). */
    IDENTITY_REFUSED,
    /* The provider did not decide: it is down, slow, or answers what it must not. */
    IDENTITY_FAILED,
};

/* An attempt under way.  It ends with exactly one call of 'fn', never from within the function
 * that began it, and is freed then; or with identity_attempt_cancel, after which there is no call.
 * 'id' is of IDENTITY_PROVED alone and belongs to the provider: the callback copies, or takes and
 * empties, its members.  'why' is of the other outcomes: a reason for the log, which names neither
 * passwords nor tokens and is not shown to the person. */
struct identity_attempt;
typedef void identity_fn(void *ctx, enum identity_outcome outcome, struct identity *id,
                         const struct err *why);
void identity_attempt_cancel(struct identity_attempt *a);

/* The secrets of one redirect to a provider, kept by the OAuth server in the browser's session
 * until the provider sends the browser back. */
struct identity_redirect {
    const char *callback; /* The URL of this server to which the provider sends the browser. */
    const char *state;    /* Passed through the provider, compared by the OAuth server. */
    const char *nonce;    /* 256 random bits or more, URL-safe: the nonce of an id_token. */
    const char *verifier; /* The same: PKCE's code_verifier (RFC 7636). */
};

/* The request whose query and headers a provider may see. */
struct http_exchange;

struct identity_provider {
    const struct identity_kind *kind;
    /* Kinds put their own state behind this struct. */
};

struct identity_kind {
    const char *name; /* "HTPasswdPasswordIdentityProvider": 'kind' in the configuration. */
    /* Checks the object 'provider' of the configuration without touching files or peers: an error
     * begins with the key ("url: ...").  Unknown keys are refused. */
    int (*check)(const struct json *provider, struct err *e);
    /* Makes a provider.  'config' has passed 'check' and is copied.  Files that it names are read:
     * one that is missing is an error, but a peer that is down is none. */
    int (*open)(struct loop *l, const struct json *config, struct identity_provider **ret,
                struct err *e);
    /* Cancels its attempts. */
    void (*close)(struct identity_provider *p);

    /* A name and a password, neither of them empty. */
    struct identity_attempt *(*password)(struct identity_provider *p, const char *user,
                                         const char *password, identity_fn *fn, void *ctx);
    /* Appends the URL to which the browser is sent.  -EAGAIN: what the provider publishes of
     * itself (its discovery document) was not read yet; the error says why. */
    int (*redirect)(struct identity_provider *p, const struct identity_redirect *r,
                    struct strbuf *url, struct err *e);
    /* The browser came back to the callback with the request 'x', whose state the OAuth server has
     * compared.  'x' is read during the call only. */
    struct identity_attempt *(*callback)(struct identity_provider *p,
                                         const struct identity_redirect *r,
                                         const struct http_exchange *x, identity_fn *fn, void *ctx);
    /* A person by the headers of a request: 0 with 'ret' filled; -ENOENT: the request has none of
     * the headers; -EACCES: it has, but does not come from a trusted proxy, or they contradict each
     * other; -ENODATA: it comes from a trusted proxy, which names nobody. */
    int (*headers)(struct identity_provider *p, const struct http_exchange *x, struct identity *ret,
                   struct err *e);
    /* For 'headers': the PEM text, borrowed, of the authority of proxies' certificates, for
     * tls_server_config.proxy_cas. */
    const char *(*client_ca)(const struct identity_provider *p);
    /* Where a browser, or a client that understands challenges, is sent instead of a page of this
     * server: 'url' is the whole URL of the request.  -ENOENT: nowhere. */
    int (*proxy_login)(struct identity_provider *p, const char *url, bool challenge,
                       struct strbuf *ret, struct err *e);
    /* For 'proxy_login': the keys of 'provider' that must be there with challenge and with login. */
    const char *challenge_key, *login_key;
};

/* The kind of that name; NULL: there is none. */
const struct identity_kind *identity_kind_find(const char *name);
/* All kinds, in the order of their names; NULL at the end. */
const struct identity_kind *const *identity_kinds(void);
