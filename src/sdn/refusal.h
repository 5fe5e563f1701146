/* SPDX-License-Identifier: Apache-2.0 */
/* ICMP errors for packets of pods that lead nowhere, whoever else is in the cluster.  Pure.
 *
 * The switch drops such a packet and hands its first bytes to the agent, so many a second in all (a meter).
 * Here is decided whether its sender may hear of it, how often, and with what: ICMP destination unreachable
 * (RFC 792) by the rules of RFC 1122 3.2.2 and RFC 1812 4.3.2.  What depends on other pods is never
 * answered: that no pod has an address, and that it is forbidden, look the same. */
#pragma once

#include "sdn/model.h"

#define REFUSALS_PER_S 10 /* For one pod, after a burst of as many. */
#define REFUSAL_SIZE_MAX 128

/* Zeroed: nothing was sent yet. */
struct refusal_bucket {
    uint64_t since_ms; /* From this moment on the bucket fills; it is full after a second. */
};
/* Whether one more may be sent now, and if so counts it. */
bool refusal_allowed(struct refusal_bucket *b, uint64_t now_ms);

/* Code of "destination unreachable" for packets of this cause; -1: they are dropped in silence. */
int refusal_code(enum model_cause cause);

struct refusal_sender {
    uint32_t ip;
    struct mac mac;
    uint32_t gateway; /* Of its node, which the error comes from. */
};
/* Makes the frame that answers 'frame' (of which 'size' bytes are known) of the pod 's' in 'out'; returns its
 * size, or 0 when it must not be answered: not the pod's own, no IPv4, cut short, an ICMP error itself, a
 * later fragment, or not from or to a single host. */
size_t refusal_make(const struct refusal_sender *s, int code, const uint8_t *frame, size_t size,
                    uint8_t out[REFUSAL_SIZE_MAX]);
