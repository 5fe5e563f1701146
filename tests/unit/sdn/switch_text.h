/* SPDX-License-Identifier: Apache-2.0 */
/* What a trace of Open vSwitch (ofproto/trace) comes to, in the words of test_model_trace.c. */
#pragma once

#include "base/str.h"
#include "sdn/model.h"

/* "drop in TABLE: CAUSE", or "OUTPUTS eth SRC>DST" and the fields of IP or ARP with which it leaves. */
void switch_text(const char *trace, const struct model_packet *p, struct strbuf *ret);
/* The endpoint of a service that the switch chose becomes the packet's destination; false: none, or one that the
 * model does not allow. */
bool switch_translates(const char *trace, const struct model_node *n, const struct model_verdict *v,
                       struct model_packet *p);
