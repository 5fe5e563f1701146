/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of OpenShift's router (haproxy_*), from HAProxy's "show stat", and the router's own.
 * Pure. */
#pragma once

#include "base/prom.h"
#include "router/driver.h"

struct router_facts {
    struct driver_state driver;
    uint64_t admitted, rejected;
};
extern const struct prom_table router_metrics;
/* Appends all; 'csv' NULL: HAProxy does not answer. */
void metrics_write(const struct router_facts *f, const struct driver *d, const char *csv,
                   size_t size, struct strbuf *out);
