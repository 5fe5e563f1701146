/* SPDX-License-Identifier: Apache-2.0 */
/* An API server over a memory store on a loopback port, in the test's own loop, and requests to it. */
#pragma once

#include "apiserver/apiserver.h"
#include "base/mem.h"
#include "net/jws.h"
#include "net/pki.h"
#include "wire/json.h"

/* The master's own token at a harness with access control. */
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
    /* With access control only: */
    struct jws_keys *keys;   /* They sign the tokens of service accounts. */
    struct pki_ca *ca;       /* Of the server and of its clients at 'tls_port'. */
    struct tls_context *tls; /* Of the listener at 'tls_port'. */
    uint16_t tls_port;       /* 0: HTTPS is not served. */
};

/* Starts one and waits until it is ready; 'cfg' and 'limits' may be NULL.  Namespace "default" is there.  With
 * cfg->security, which must have a loopback token, requests are made by the master itself. */
struct harness *harness_new(const struct apiserver_config *cfg, const struct http_limits *limits);
void harness_free(struct harness *h);
/* Ends the server but not the store: what a master's restart is to its clients; and starts it again on
 * the same port with a new store, to which 'objects' ("store key", "text" pairs, ending with NULL) are given. */
void harness_stop_listening(struct harness *h);
void harness_listen_again(struct harness *h);
char *harness_url(const struct harness *h);
/* A server with access control as 'security' says; its token and keys are the harness's.  h->client is the master. */
struct harness *harness_new_secure(struct apiserver_security security);
/* Serves HTTPS, too, and knows clients by certificates of h->ca. */
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

/* A request and its answer; NULL arguments: absent.  The body's type defaults to application/json. */
struct answer ask_full(struct harness *h, const char *method, const char *path, const char *accept,
                       const char *type, const char *body);
struct answer ask(struct harness *h, const char *method, const char *path, const char *body);
/* As ask, and fails the test unless the status is 'want'. */
struct answer ask_ok(struct harness *h, const char *method, const char *path, const char *body,
                     int want);
/* As ask, as the user and the groups of 'who' ("USER GROUP ..."), for whom the master acts; the body, in which a ' stands
 * for a ", is of 'type' (NULL: application/json). */
struct answer ask_as(struct harness *h, const char *who, const char *method, const char *path,
                     const char *type, const char *body);
/* How a request says who makes it.  Members that are NULL or 0 say nothing. */
struct sender {
    bool tls;
    const char *cn, *o;         /* A certificate of the client, with these names. */
    bool foreign;               /* By another authority. */
    const char *cert, *key;     /* This certificate instead, PEM. */
    const char *type;           /* Of the body; NULL: application/json. */
    const char *const *headers; /* Names and values in turn; NULL at the end. */
};
struct answer ask_by(struct harness *h, const struct sender *by, const char *method,
                     const char *path, const char *body);
/* As ask_by; a negative errno instead of an answer when the connection failed. */
int try_by(struct harness *h, const struct sender *by, const char *method, const char *path,
           const char *body, struct answer *ret);
/* The bytes that the server answers to the bytes 'text', until it closes the connection; owned. */
char *ask_raw(struct harness *h, const char *text);
/* Owned text in which each ' became a ". */
char *quoted(const char *text);
/* The master's request with such a body, which must be answered with 'want'. */
void put_in(struct harness *h, const char *method, const char *path, const char *body, int want);
/* The string at the dotted path of the body, "" when there is none. */
const char *at(const struct answer *a, const char *path);
/* Creates a namespace / a NetNamespace; returns its resourceVersion (owned). */
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
