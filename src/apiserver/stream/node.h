/* SPDX-License-Identifier: Apache-2.0 */
/* The way from the API server to a node's HTTPS server.
 *
 * A node says in its Node where its server is, so a node is not believed: the address must be one
 * that a node of this name can have, and belong to no other object; the server must present a
 * certificate by the authority of nodes, for that address, with the node's own name
 * ("system:node:NAME").  So a node cannot make the master talk to another host, and nobody gets
 * what is meant for another node.
 *
 * Everything runs on the loop's thread. */
#pragma once

#include "apiserver/request/request.h"

/* Bounds of what a node may do; 0: those of a stream (10 s), and of the HTTP client. */
struct stream_node_limits {
    uint64_t connect_ms, response_ms;
    size_t max_body;
};
/* Connects to the server of the node 'name', and to no other.  Every request is by the API server's
 * own certificate.  'limits' may be NULL.  On failure the outcome is filled. */
int stream_node_client(struct apiserver *a, const char *name,
                       const struct stream_node_limits *limits, struct http_client **ret,
                       struct outcome *outcome);
