/* SPDX-License-Identifier: Apache-2.0 */
/* Flow events from the programs while there is a watcher (EBPF_EVENTS).
 *
 * The switch is in the settings, so that events cost nothing without a watcher; the agent polls
 * the ring buffer ten times a second, and no packet wakes it. On the loop's thread. */
#pragma once

#include "datapath/datapath.h"
#include "datapath/ebpf/bpf/maps.h"
#include "datapath/ebpf/program.h"

struct watch;
struct watch_config {
    struct loop *loop;
    const struct program *program; /* Lives as long. */
    uint32_t number;               /* Differs from the number of the watch before. */
    void (*changed)(void *ctx);    /* watch_settings would return others now. */
    void *ctx;
    datapath_events_fn *fn;
    void *fn_ctx;
};
int watch_new(const struct watch_config *c, struct watch **ret, struct err *e);
/* All flows are reported again. */
void watch_again(struct watch *w);
/* Returns the last number that it used; 'w' may be NULL (0). Not from within 'fn'. */
uint32_t watch_free(struct watch *w);
/* Sets the fields of a watch; NULL: no watch. */
void watch_settings(const struct watch *w, struct ebpf_settings *s);

/* Pure: the reported form of an event. */
struct dp_event watch_event(const struct ebpf_event *e);
