/* SPDX-License-Identifier: Apache-2.0 */
/* The certificate of the kubelet's server, where the configuration names none.
 *
 * It is requested from the cluster (a CertificateSigningRequest of kubernetes.io/kubelet-serving, for
 * the node's addresses), kept in a folder, and renewed when a third of its time is left or
 * the addresses change.  Until the first one is issued a self-signed one is used, which the API server
 * does not accept: the server is there for others that do not verify it.
 *
 * Everything runs on the loop's thread. */
#pragma once

#include "client/client.h"

struct serving_cert_config {
    struct api_client *api;       /* As the node; borrowed. */
    const char *node;             /* The node's name. */
    const char *dir;              /* For kubelet-server.crt and .key; exists. */
    const char *const *addresses; /* IPv4 addresses of the node, at least one; copied. */
    size_t n_addresses;
    loop_fn *changed; /* The files have changed. */
    void *ctx;
};

struct serving_cert;
/* The files exist when it returns. */
int serving_cert_new(struct loop *l, const struct serving_cert_config *cfg,
                     struct serving_cert **ret, struct err *e);
struct serving_cert *serving_cert_free(struct serving_cert *s);
const char *serving_cert_file(const struct serving_cert *s);
const char *serving_cert_key_file(const struct serving_cert *s);
/* Whether the cluster has issued the certificate in the files. */
bool serving_cert_is_issued(const struct serving_cert *s);
