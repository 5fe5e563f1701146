/* SPDX-License-Identifier: Apache-2.0 */
/* The controller of certificate requests: approves those of nodes, signs
 * approved ones, and removes old ones.
 *
 * A request for a node's client certificate is approved when its author has the right "create" on
 * certificatesigningrequests/nodeclient, or, for a node that renews its own certificate,
 * .../selfnodeclient.  A bootstrap token may be limited to one node, and to one use
 * (client/join_token.h): other requests by it are denied.  A request for a node's serving
 * certificate is approved when the node itself asks and it is for addresses alone that its Node
 * reports; the API server admits no address of another object there.  All others wait for an
 * administrator.  Requests are signed for the signers
 * kubernetes.io/kube-apiserver-client, .../kube-apiserver-client-kubelet and .../kubelet-serving,
 * each only with the subject and usages that it allows. */
#pragma once

#include "controller/controller.h"

struct pki_ca;
/* Its configuration is a pointer to the struct pki_ca that signs, which must outlive it. */
extern const struct controller certificates_controller;

/* Pure but for OpenSSL: whether the CertificateSigningRequest asks for
 * the client certificate of a node. */
bool certificates_is_node_client(const struct json *csr);
/* The same for the serving certificate of a node that asks for itself. */
bool certificates_is_node_server(const struct json *csr);
/* Whether all names in the request are addresses of the Node.  A name of DNS is none: one that the
 * node chooses could be a name of the API. */
bool certificates_fits_node(const struct json *csr, const struct json *node);
/* Whether the signer allows the request's subject and usages; -EINVAL says why not;
 * -ENOTSUP: the signer is not one of Tenet's. */
int certificates_check(const struct json *csr, struct err *e);
/* Pure but for OpenSSL: whether the bootstrap token in 'secret' allows the request for a node's
 * client certificate.  '*ret_use' (owned, untouched if there is none) is the text that the Secret
 * must get before the request is approved; the same node may ask again with the same key.  -EPERM
 * says which limit forbids it, -EINVAL what is wrong with the request. */
int certificates_check_token(const struct json *secret, const struct json *csr, char **ret_use,
                             struct err *e);
/* Pure: milliseconds until the request is removed; 0: it has expired.  A decided request is removed
 * an hour after its creation, any other a day after it. */
int64_t certificates_left_ms(const struct json *csr, int64_t now_ms);
