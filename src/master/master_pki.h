/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the files of a cluster's authority, for "tls: auto" and "tenet adm create-master-certs".
 *
 *     ca.crt, ca.key              the authority
 *     server.crt, server.key      of the API server, for all its names
 *     kubelet-client.crt, .key    of the API server, as a client of nodes
 *     admin.kubeconfig            system:admin of system:masters
 * and, where the API server and the controllers are processes apart,
 *     controllers.kubeconfig      system:tenet-controllers of system:masters
 *     sa.key                      signs the tokens of service accounts
 *
 * Keys have mode 0600.  Calls block for file access. */
#pragma once

#include "master/master_config.h"

struct pki_ca;
/* Makes the files in 'dir' that are missing, no longer fit the configuration, or have less than a
 * third of their validity left; the authority and sa.key never change.  'port' is that of the API,
 * for kubeconfigs.  '*ca' NULL: the authority is read, or made, and the caller owns it; otherwise
 * the given one is used.  '*ret_made' (NULL: not wanted) is whether a file was made. */
int master_pki_ensure(const struct master_config *c, const char *dir, int port, bool apart,
                      struct pki_ca **ca, bool *ret_made, struct err *e);
