/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of the controllers for certificates and service accounts: the authority that
 * signs certificates, and the names of the service accounts that each namespace gets.
 *
 * The authority is that of "tls: auto", or the one of clusterSigningCertFile and
 * clusterSigningKeyFile.  Only the process that runs the controllers reads that key: the API server
 * never has it. */
#pragma once

#include "controllers/controllers.h"
#include "master/master_config.h"

struct pki_ca;
struct master_signing;
/* 'ca' is borrowed, and signs the clients' certificates, too; NULL: the authorities of the
 * configuration's files, or none.  'api_ca' (copied; NULL:
 * unknown) is the authority of the API server's certificate, in PEM form, which Secrets with tokens
 * get.  'c' must outlive it.  Errors name the key. */
int master_signing_new(const struct master_config *c, const struct pki_ca *ca, const char *api_ca,
                       struct master_signing **ret, struct err *e);
struct master_signing *master_signing_free(struct master_signing *s);
/* The member 'security' of the controllers' configuration; valid until 's' is freed.  Returns NULL,
 * which turns those controllers off, if 's' is NULL. */
const struct controllers_security *master_signing_security(const struct master_signing *s);
