/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ebpf/watch.h"

#include "base/mem.h"
#include "datapath/ebpf/encode.h"
#include "datapath/ebpf/trace.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>

enum {
    LOOK_MS = 100,
    LOOKS_A_SECOND = 10,
    AGAIN_SECONDS = 30, /* Seconds after which flows that still have packets are reported again. */
    BATCH = 128,
    RECENT = 4096, /* Remembered tags: a flow that changes its CPU is reported once. */
};

struct watch {
    struct watch_config c;
    struct loop_timer *timer;
    struct ring_buffer *ring;
    uint32_t number, looks;
    uint64_t lost; /* The map's counter. */
    uint32_t recent[RECENT];
    struct dp_event batch[BATCH];
    size_t n;
};

/* ---- events ---- */

struct dp_event watch_event(const struct ebpf_event *e)
{
    static const enum model_entry entries[] = {[EBPF_FROM_POD] = MODEL_FROM_PORT,
                                               [EBPF_FROM_TUNNEL] = MODEL_FROM_TUNNEL,
                                               [EBPF_FROM_HOST] = MODEL_FROM_HOST};
    return (struct dp_event){.entry = e->entry < ARRAY_SIZE(entries) ? entries[e->entry]
                                                                     : MODEL_FROM_PORT,
                             .port = e->port,
                             .outer_src = e->outer_src,
                             .vnid = e->tunnel_id,
                             .eth_type = ntohs(e->eth_type),
                             .src = ntohl(e->src),
                             .dst = ntohl(e->dst),
                             .proto = e->protocol,
                             .src_port = ntohs(e->src_port),
                             .dst_port = ntohs(e->dst_port),
                             .asked = ntohl(e->asked),
                             .asked_port = ntohs(e->asked_port),
                             .size = e->size,
                             .action = encode_action(e->verdict),
                             .cause = encode_cause(e->cause),
                             .remote = e->verdict == EBPF_TUNNEL ? e->target : 0};
}

static void flush(struct watch *w, uint64_t lost)
{
    if (w->n || lost) {
        w->c.fn(w->c.fn_ctx, w->batch, w->n, lost);
        w->n = 0;
    }
}

static int on_event(void *ctx, void *data, size_t size)
{
    struct watch *w = ctx;
    const struct ebpf_event *e = data;
    if (size < sizeof *e || w->recent[e->tag % RECENT] == e->tag) {
        return 0;
    }
    w->recent[e->tag % RECENT] = e->tag;
    w->batch[w->n++] = watch_event(e);
    if (w->n == BATCH) {
        flush(w, 0);
    }
    return 0;
}

static uint64_t read_lost(const struct watch *w)
{
    int cpus = libbpf_num_possible_cpus();
    CLEANUP_FREE struct ebpf_watched *all = xcalloc((size_t) MAX(cpus, 1), sizeof *all);
    uint32_t zero = 0;
    uint64_t lost = 0;
    if (cpus > 0 && bpf_map_lookup_elem(w->c.program->watched, &zero, all) == 0) {
        for (int i = 0; i < cpus; i++) {
            lost += all[i].lost;
        }
    }
    return lost;
}

static void on_look(void *ctx)
{
    struct watch *w = ctx;
    uint64_t lost = 0;
    loop_timer_arm(w->timer, LOOK_MS);
    ring_buffer__consume(w->ring);
    if (++w->looks % LOOKS_A_SECOND == 0) {
        uint64_t now = read_lost(w);
        lost = now - w->lost;
        w->lost = now;
        w->number += w->looks % (AGAIN_SECONDS * LOOKS_A_SECOND) == 0;
        w->c.changed(w->c.ctx);
    }
    flush(w, lost);
}

/* ---- the watch ---- */

int watch_new(const struct watch_config *c, struct watch **ret, struct err *e)
{
    if (c->program->events < 0) {
        return err_set(e, -EOPNOTSUPP,
                       "there are no BPF ring buffers (Linux 5.8), or they are denied by "
                       "ebpf.without: the eBPF programs cannot report packets");
    }
    struct watch *w = NEW(struct watch);
    w->c = *c;
    w->number = c->number;
    w->ring = ring_buffer__new(c->program->events, on_event, w, NULL);
    if (!w->ring) {
        int r = -errno;
        free(w);
        return err_sys(e, r, "map the ring buffer of events");
    }
    w->lost = read_lost(w);
    w->timer = loop_timer_new(c->loop, on_look, w);
    loop_timer_arm(w->timer, LOOK_MS);
    *ret = w;
    return 0;
}

void watch_again(struct watch *w)
{
    w->number++;
}

uint32_t watch_free(struct watch *w)
{
    uint32_t number = w ? w->number : 0;
    if (w) {
        loop_timer_free(w->timer);
        ring_buffer__free(w->ring);
        free(w);
    }
    return number;
}

void watch_settings(const struct watch *w, struct ebpf_settings *s)
{
    s->watch = w ? w->number : 0;
    s->watch_second = w ? w->looks / LOOKS_A_SECOND : 0;
}
