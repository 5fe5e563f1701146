/* SPDX-License-Identifier: Apache-2.0 */
/* Frames that pods send to services: which service port one is for, and its checksum.  For packets
 * that wait until an idle service has endpoints.  Pure. */
#pragma once

#include "sdn/service.h"

/* Where a frame that a pod sent to a service is for. */
struct service_target {
    uint32_t dst;
    uint8_t proto;
    uint16_t port;
};
/* -EINVAL: not the beginning of a TCP or UDP packet over IPv4 (RFC 791). */
int service_target_parse(const uint8_t *frame, size_t size, struct service_target *ret);
/* Makes the checksum of such a packet right, where it is whole and has one (RFC 768, RFC 9293):
 * senders leave that to their devices. */
void service_frame_sum(uint8_t *frame, size_t size);
/* The port of the service that 't' means; NULL: none. */
const struct sdn_service_port *service_target_port(const struct sdn_service *s,
                                                   const struct service_target *t);
