/* SPDX-License-Identifier: Apache-2.0 */
/* DNS of the master: resolves the cluster's names for hosts that are not nodes, on port 53. */
#pragma once

#include "client/informer_set.h"
#include "dns/dns.h"
#include "master/master_config.h"

struct master_dns;

/* Checks the configuration; opens no socket yet.  '*ret' NULL: DNS is
 * disabled.  The error names the key. */
int master_dns_new(struct loop *l, const struct master_config *c, struct master_dns **ret,
                   struct err *e);
/* Starts; services come from 'informers', which must outlive it.  If the port cannot be opened,
 * that is logged and tried again, while the API is served. */
void master_dns_begin(struct master_dns *d, struct informer_set *informers);
struct master_dns *master_dns_free(struct master_dns *d);
void master_dns_write_metrics(void *master_dns, struct strbuf *out);
