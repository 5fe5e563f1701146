/* SPDX-License-Identifier: Apache-2.0 */
/* Single requests of a login, to addresses that a server names.
 *
 * Each request has its own connection, and no credentials but those of 'headers'.  Redirects are
 * not followed: the caller decides.  An answer has at most WEB_MAX_BODY bytes and comes within
 * WEB_TIMEOUT_MS.  Everything runs on the loop's thread. */
#pragma once

#include "net/loop/loop.h"
#include "net/tls/tls.h"
#include "wire/location.h"

#define WEB_MAX_BODY (1u << 20)
#define WEB_TIMEOUT_MS 60000

struct web {
    struct loop *loop;
    struct tls_client_config tls; /* Borrowed texts. */
};

/* Texts are owned; NULL: the header is not there.  Headers that come several times are joined by
 * line ends. */
struct web_answer {
    int status;
    char *location, *authenticate, *link, *warning, *content_type;
    char *body; /* Never NULL. */
    size_t size;
};
void web_answer_done(struct web_answer *a);
#define CLEANUP_WEB_ANSWER __attribute__((cleanup(web_answer_done)))

/* 'headers' are complete header lines.  -EKEYREJECTED: the server's certificate is not valid;
 * -EMSGSIZE: the answer is too large; -ETIMEDOUT. */
int web_ask(const struct web *w, const char *method, const struct location *at, const char *headers,
            const char *body, struct web_answer *ret, struct err *e);

/* ---- pure ---- */

/* An address with scheme and host.  -EINVAL: it is none. */
int web_parse(const char *text, struct location *ret, struct err *e);
/* Scheme, host and port are the same. */
bool web_same_origin(const struct location *a, const struct location *b);
/* "https://HOST:PORT", owned; the port is left out where it is the scheme's. */
char *web_origin(const struct location *l);
/* The host is this machine: plain HTTP to it crosses no network. */
bool web_is_loopback(const struct location *l);
