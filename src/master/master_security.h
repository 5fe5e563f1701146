/* SPDX-License-Identifier: Apache-2.0 */
/* What the master's configuration says about who may do what: keys of tokens, audit log, the controllers' way in.
 * Only with HTTPS; without it everyone who reaches the master is trusted. */
#pragma once

#include "apiserver/apiserver.h"
#include "master/master_tls.h"

struct master_security;
/* 'tls' and 'c' must live as long. */
int master_security_new(struct loop *l, const struct master_config *c, const struct master_tls *tls,
                        struct master_security **ret, struct err *e);
/* After the API server. */
struct master_security *master_security_free(struct master_security *s);
/* Reads the audit policy again. */
int master_security_reload(struct master_security *s, struct err *e);

const struct apiserver_security *master_security_of_api(const struct master_security *s);
/* The bearer token that lets the controllers in over the listener without TLS. */
const char *master_security_token(const struct master_security *s);
