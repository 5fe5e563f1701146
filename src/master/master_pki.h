/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a cluster's authority: what "tls: auto" and "tenet adm create-master-certs" make.
 *
 *     ca.crt, ca.key              the authority
 *     server.crt, server.key      of the API server, for all its names
 *     admin.kubeconfig            system:admin of system:masters
 * and, where the API server and the controllers are processes apart,
 *     controllers.kubeconfig      system:tenet-controllers of system:masters
 *     sa.key                      signs the tokens of service accounts
 *
 * Keys have mode 0600.  Calls block for file access. */
#pragma once

#include "master/master_config.h"

struct pki_ca;
/* Makes in 'dir' what is missing, does not fit the configuration any more, or has less than a third of its time left; the
 * authority and sa.key never change.  'port' is that of the API, for kubeconfigs.  '*ca' NULL: the authority is read, or
 * made, and the caller owns it; else it is used.  '*ret_made' (NULL: not wanted) is whether anything was made. */
int master_pki_ensure(const struct master_config *c, const char *dir, int port, bool apart,
                      struct pki_ca **ca, bool *ret_made, struct err *e);
