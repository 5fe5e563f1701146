/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ovs/ovs.h"

#include "base/log.h"

LOG_MODULE("ovs");

void refuse_packet(struct ovs_dp *o, const struct of_packet_in *p)
{
    int code = refusal_code(pipeline_cause(p->table, p->cookie));
    struct refusal_bucket *bucket = NULL;
    const struct dp_pod *pod = pods_by_port(o, p->in_port, &bucket);
    if (code < 0 || !pod) {
        return;
    }
    struct refusal_sender s = {pod->ip, pod->mac, sdn_gateway(&o->net)};
    /* The packet is sent with the unused rest of the buffer as padding.  Open vSwitch's own tracker
     * (3.1), when it translates the packet quoted in an ICMP error, writes to the place of the
     * checksum of a complete TCP header, even beyond the end of the packet. */
    uint8_t frame[REFUSAL_SIZE_MAX] = {0};
    size_t size = refusal_make(&s, code, p->data, p->size, frame);
    if (!size) {
        return;
    }
    if (!refusal_allowed(bucket, ovs_now(o))) {
        o->refusals_suppressed++;
        return;
    }
    of_packet_to(o->of, p->in_port, frame, sizeof frame);
    o->refusals_sent++;
    log_debug("packet refused", "pod=%s/%s cause=%s", pod->pod_namespace, pod->pod_name,
              model_cause_name(pipeline_cause(p->table, p->cookie)));
}
