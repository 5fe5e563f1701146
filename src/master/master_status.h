/* SPDX-License-Identifier: Apache-2.0 */
/* Serves the health and metrics of controllers that run apart from their API
 * server, over plain HTTP: /healthz and /livez (the process answers), /readyz
 * (it leads, or follows a leader), /metrics.
 *
 * It reveals nothing about the cluster's objects.  Configure an address to which only the host or
 * its monitoring can connect.  Everything runs on the loop's thread. */
#pragma once

#include "base/str.h"
#include "net/loop/loop.h"

struct master_status_config {
    const char *address; /* "127.0.0.1:8444" */
    bool (*ready)(void *ctx);
    void (*metrics)(void *ctx, struct strbuf *out);
    void *ctx;
};
struct master_status;
int master_status_new(struct loop *l, const struct master_status_config *cfg,
                      struct master_status **ret, struct err *e);
struct master_status *master_status_free(struct master_status *s);
