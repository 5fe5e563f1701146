/* SPDX-License-Identifier: Apache-2.0 */
/* The node's own certificate: requested with a bootstrap token when there is none, and renewed
 * before it expires.
 *
 * Its key never leaves the node.  The certificate (system:node:NAME of system:nodes) and
 * the key are kept in the kubeconfig that the agent works with, written whole or not at
 * all, mode 0600.  On the loop's thread. */
#pragma once

#include "client/client.h"

struct identity_config {
    struct loop *loop;
    const char *node_name;
    const char *kubeconfig; /* The file with certificate and key. */
    const char *bootstrap;  /* A kubeconfig with a token that may request a certificate. */
    /* identity_ensure: where the key of the request is kept, mode 0600, until the certificate has
     * come, so that a later call goes on with the same key; NULL: in memory only. */
    const char *key_file;
    uint64_t give_up_ms; /* identity_ensure: how long it waits; 0: without limit. */
};

/* Makes sure that the kubeconfig has a certificate that is valid; waits with the loop running.
 * Without a limit it returns an error only if waiting cannot solve it.  With one it also returns
 * the server's refusal (-EPERM, -EACCES), or at the end -ETIMEDOUT with the last failure. */
int identity_ensure(const struct identity_config *cfg, struct err *e);

/* When a certificate is renewed: between 70 and 90 percent of its time, by 'seed', so that not all
 * nodes renew at the same time. Pure. */
int64_t identity_renew_at(int64_t from_ms, int64_t until_ms, uint32_t seed);

/* Renews the certificate when it is time, over 'client', which then uses the new one. */
struct identity;
struct identity *identity_new(const struct identity_config *cfg, struct api_client *client);
struct identity *identity_free(struct identity *i);
