/* SPDX-License-Identifier: Apache-2.0 */
/* Connections in the map of the eBPF programs, from the frames of a test: another
 * reading of docs/ebpf.md, "Policy". */
#pragma once

#include "datapath/ebpf/bpf/maps.h"
#include "datapath/ebpf/program.h"
#include "sdn/model.h"

#include <stddef.h>

/* The connection of an Ethernet frame with IPv4; '*ret_from': which of the key's ends the source
 * is.  False: it is of none that could be known. */
bool tracked_key_of(const unsigned char *frame, size_t size, struct ebpf_tracked_key *ret,
                    unsigned *ret_from);
/* Whether the frame can be the first of one. */
bool tracked_may_begin(const unsigned char *frame, size_t size);
/* No connections and no fragments are known. */
void tracked_clear(const struct program *p);
/* One alone is, whose packet the frame is in this direction (MODEL_ORIGINAL, MODEL_REPLY).  False:
 * it can be of none. */
bool tracked_put(const struct program *p, const unsigned char *frame, size_t size,
                 enum model_connection dir, bool denied);
/* Likewise the one of the packet that the frame, an ICMP error, quotes.  False: its
 * receiver sent no such packet. */
bool tracked_put_quoted(const struct program *p, const unsigned char *frame, size_t size,
                        bool denied);
