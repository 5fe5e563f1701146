/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates on request: grants nodes theirs, signs what is granted, and removes requests that are over.
 *
 * A request for a node's client certificate is granted when whoever asks may "create"
 * certificatesigningrequests/nodeclient, or, for a node that asks for its own again, .../selfnodeclient; all
 * others wait for an administrator.  Signed are those of the signers
 * kubernetes.io/kube-apiserver-client, .../kube-apiserver-client-kubelet and .../kubelet-serving, each only
 * with the subject and usages that it is for. */
#pragma once

#include "controller/controller.h"

struct pki_ca;
/* Its configuration is a pointer to the struct pki_ca that signs, which must outlive it. */
extern const struct controller certificates_controller;

/* Pure but for OpenSSL: whether the CertificateSigningRequest is one of a node for its client certificate. */
bool certificates_is_node_client(const struct json *csr);
/* Whether its signer may sign what it asks for; -EINVAL says why not; -ENOTSUP: not one of our signers. */
int certificates_check(const struct json *csr, struct err *e);
/* Pure: milliseconds until the request is removed; 0: it has expired.  A decided request is removed an hour after its
 * creation, any other a day after it. */
int64_t certificates_left_ms(const struct json *csr, int64_t now_ms);
