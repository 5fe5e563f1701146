/* SPDX-License-Identifier: Apache-2.0 */
/* What a host needs to join a cluster: a bootstrap token, and the pin of the authority that signs
 * the master's certificate.
 *
 * The text is "abcdef.0123456789abcdef:sha256:HEX", HEX being the pin (net/tls/pki.h), as in
 * kubeadm's --discovery-token-ca-cert-hash.  A host that has it needs no other secret and no file:
 * it takes the authority's certificate from the master's TLS handshake, compares the pin, and sends
 * the token only over a connection that this authority vouches for.  So no neighbour can pose as
 * the master.  Calls block; any thread. */
#pragma once

#include "client/join_token.h"
#include "net/tls/pki.h"

struct join {
    char token[JOIN_TOKEN_SIZE];
    char pin[PKI_PIN_SIZE];
};
/* Overwrites the token. */
void join_done(struct join *j);

/* Reads the text; blanks and line ends around it are skipped.  -EINVAL says which part is wrong,
 * and never contains the token.  Pure. */
int join_read(const char *text, struct join *ret, struct err *e);
/* The text, owned.  Pure. */
char *join_text(const char *token, const char *pin);

/* Asks the server at 'host' (an IPv4 address or a name) and 'port' for the certificates of its TLS
 * handshake; sends nothing else.  '*ret_pem' gets the certificate (owned) of the authority that has
 * the pin; whether it signed the server's is for the next connection to verify.  -EKEYREJECTED: the
 * server presented no such authority. */
int join_find_authority(const char *host, uint16_t port, const char *pin, uint64_t timeout_ms,
                        char **ret_pem, struct err *e);
