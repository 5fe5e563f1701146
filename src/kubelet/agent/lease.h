/* SPDX-License-Identifier: Apache-2.0 */
/* The node's Lease in kube-node-lease, renewed every 10 s: masters see by it that the node lives. */
#pragma once

#include "client/client.h"

struct lease;
struct lease *lease_new(struct loop *l, struct api_client *c, const char *node_name);
struct lease *lease_free(struct lease *l);
