/* SPDX-License-Identifier: Apache-2.0 */
/* The access control that the master's configuration describes: keys of tokens, the audit log, and
 * the token of the controllers.  Used only with HTTPS; without it every client is trusted. */
#pragma once

#include "apiserver/apiserver.h"
#include "master/master_tls.h"

struct master_security;
/* 'tls' and 'c' must outlive it. */
int master_security_new(struct loop *l, const struct master_config *c, const struct master_tls *tls,
                        struct master_security **ret, struct err *e);
/* Call it after the API server was freed. */
struct master_security *master_security_free(struct master_security *s);
/* Reads the audit policy again. */
int master_security_reload(struct master_security *s, struct err *e);

const struct apiserver_security *master_security_of_api(const struct master_security *s);
/* The bearer token with which the controllers use the listener without TLS. */
const char *master_security_token(const struct master_security *s);
