/* SPDX-License-Identifier: Apache-2.0 */
/* DNS of the master: the cluster's names for hosts that are no nodes, at port 53. */
#pragma once

#include "client/informer_set.h"
#include "dns/dns.h"
#include "master/master_config.h"

struct master_dns;

/* Checks the configuration; nothing is listened at yet.  '*ret' NULL: there is to be none.  The error names the key. */
int master_dns_new(struct loop *l, const struct master_config *c, struct master_dns **ret,
                   struct err *e);
/* Begins; services come through 'informers', which must outlive it.  A port that cannot be had is
 * said and tried again: the API is served all the same. */
void master_dns_begin(struct master_dns *d, struct informer_set *informers);
struct master_dns *master_dns_free(struct master_dns *d);
void master_dns_write_metrics(void *master_dns, struct strbuf *out);
