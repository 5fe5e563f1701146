/* SPDX-License-Identifier: Apache-2.0 */
/* An API server over a memory store on a loopback port, in the test's own loop, and
 * requests to it. */
#pragma once

#include "apiserver/apiserver.h"
#include "base/mem.h"
#include "net/tls/jws.h"
#include "net/tls/pki.h"
#include "wire/json.h"

/* The loopback token of a harness that harness_new_secure made. */
#define HARNESS_TOKEN "the-masters-own-token"

struct harness {
    struct loop *loop;
    struct store *store;
    struct apiserver *api;
    struct http_server *http;
    struct http_client *client;
    uint16_t port;
    char *token; /* The master's own; NULL: none is needed. */
    bool ready;
    struct jws_keys *keys;   /* Keys of service accounts' tokens; NULL without access control. */
    struct pki_ca *ca;       /* Authority of the HTTPS server and of its clients. */
    struct tls_context *tls; /* Context of the HTTPS listener. */
    uint16_t tls_port;       /* 0: HTTPS is not served. */
};

/* Starts one and waits until it is ready; 'cfg' and 'limits' may be NULL.  Namespace
 * "default" is there.  With cfg->security, which must have a loopback token, requests
 * are made by the master itself. */
struct harness *harness_new(const struct apiserver_config *cfg, const struct http_limits *limits);
void harness_free(struct harness *h);
/* Ends the server but not the store: what a master's restart is to its clients; and starts
 * it again on the same port with a new store, to which 'objects' ("store key", "text"
 * pairs, ending with NULL) are given. */
void harness_stop_listening(struct harness *h);
void harness_listen_again(struct harness *h);
char *harness_url(const struct harness *h);
/* Makes security context constraints for a server with access control: all authenticated users may
 * use those that allow nothing of the host, and any user ID; members of system:masters also those
 * that allow everything. */
void make_constraints(struct harness *h);
/* A server with access control as 'security' says, with HARNESS_TOKEN and keys of its
 * own, and with constraints.  h->client acts as the master. */
struct harness *harness_new_secure(struct apiserver_security security);
/* Adds an HTTPS listener that identifies clients by certificates of h->ca. */
void harness_listen_tls(struct harness *h);

struct answer {
    int status;
    char *content_type;
    char *text;
    struct json *body; /* NULL: not JSON. */
};
void answer_done(struct answer *a);
static inline UNUSED void answer_donep(struct answer *a)
{
    answer_done(a);
}
#define CLEANUP_ANSWER CLEANUP(answer_done)

/* A request and its answer; NULL arguments: absent.  The body's type defaults to
 * application/json. */
struct answer ask_full(struct harness *h, const char *method, const char *path, const char *accept,
                       const char *type, const char *body);
struct answer ask(struct harness *h, const char *method, const char *path, const char *body);
/* As ask, and fails the test unless the status is 'want'. */
struct answer ask_ok(struct harness *h, const char *method, const char *path, const char *body,
                     int want);
/* As ask, but the master impersonates the user and the groups of 'who' ("USER GROUP ...").  The
 * body is of 'type' (NULL: application/json), and each ' in it is sent as ". */
struct answer ask_as(struct harness *h, const char *who, const char *method, const char *path,
                     const char *type, const char *body);
/* The credentials of a request.  A member that is NULL or 0 is not sent. */
struct sender {
    bool tls;
    const char *cn, *o;         /* Names in a client certificate that h->ca issues. */
    bool foreign;               /* Another authority issues it. */
    const char *cert, *key;     /* A certificate to use instead, PEM. */
    const char *type;           /* Content type of the body; NULL: application/json. */
    const char *const *headers; /* Names and values in turn; NULL at the end. */
};
/* A client with these credentials; owned. */
struct http_client *harness_client(struct harness *h, const struct sender *by);
struct answer ask_by(struct harness *h, const struct sender *by, const char *method,
                     const char *path, const char *body);
/* As ask_by; a negative errno instead of an answer when the connection failed. */
int try_by(struct harness *h, const struct sender *by, const char *method, const char *path,
           const char *body, struct answer *ret);
/* Sends the bytes of 'text' and returns the server's answer up to the end of the
 * connection; owned. */
char *ask_raw(struct harness *h, const char *text);
/* A copy of 'text' with " in place of each '; owned. */
char *quoted(const char *text);
/* The JSON value of 'text', in which ' stands for "; owned. */
struct json *json_of(const char *text);
/* As ask_ok with a body in which ' stands for "; the answer is dropped. */
void put_in(struct harness *h, const char *method, const char *path, const char *body, int want);
/* Creates the object and returns its uid, owned. */
char *make_object(struct harness *h, const char *path, const char *body);
/* Makes a Role in 'ns' (NULL: a ClusterRole) with these PolicyRules, and binds it to the user;
 * both objects are named after the user. */
void give_rules(struct harness *h, const char *ns, const char *user, const char *rules);
/* Lets all users create SelfSubjectReviews. */
void give_self_reviews(struct harness *h);
/* The string at the dotted path of the body, "" when there is none. */
const char *at(const struct answer *a, const char *path);
/* Creates a namespace (where the server issues tokens, with the account "default") / a
 * NetNamespace; returns its resourceVersion (owned). */
char *make_namespace(struct harness *h, const char *name);
char *make_net(struct harness *h, const char *name, int netid, const char *labels);

/* A watch, whose events are collected. */
struct watcher {
    struct harness *h;
    struct http_call *call;
    struct strbuf text;
    struct json *events; /* Array. */
    bool opened, ended;
    int status;
    char *body; /* Of an answer that is no stream. */
};
struct watcher *watcher_new(struct harness *h, const char *path, const char *accept);
void watcher_free(struct watcher *w);
/* Waits until there are 'n' events, and fails the test if there are more. */
void watcher_expect(struct watcher *w, size_t n);
void watcher_expect_end(struct watcher *w);
/* "TYPE name@version ..." of all events, owned. */
char *watcher_summary(const struct watcher *w);
