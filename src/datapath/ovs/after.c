/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ovs/ovs.h"

#include "base/mem.h"

#include <string.h>

/* The switch goes through all its connections for each deletion, so beyond this many it deletes all
 * UDP connections at once. */
#define MAX_WAITING 1024
/* Twice the longest interval of ovs-vswitchd's revalidators (max-revalidator). */
#define AGAIN_MS 1000

static struct after *add(struct ovs_dp *o, size_t size)
{
    struct after *a = xcalloc(1, sizeof *a + size);
    a->generation = o->flows.building;
    list_push_back(&o->after, &a->link);
    o->n_after++;
    loop_task_queue(&o->pump);
    return a;
}

static void end(struct ovs_dp *o, struct after *a)
{
    list_remove(&a->link);
    o->n_after--;
    free(a);
}

void after_forget(struct ovs_dp *o, const struct of_connection *c)
{
    if (o->n_after < MAX_WAITING) {
        add(o, 0)->forget = *c;
        return;
    }
    struct after *a;
    LIST_FOREACH (a, struct after, link, &o->after) {
        if (!a->port) {
            end(o, a);
        }
    }
    LIST_FOREACH (a, struct after, link, &o->again) {
        end(o, a);
    }
    add(o, 0)->forget = (struct of_connection){.proto = c->proto};
}

static bool same(const struct of_connection *a, const struct of_connection *b)
{
    return a->proto == b->proto && a->dst == b->dst && a->dst_port == b->dst_port &&
           a->reply_src == b->reply_src && a->reply_src_port == b->reply_src_port;
}

void after_keep(struct ovs_dp *o, const struct of_connection *c)
{
    struct after *a;
    LIST_FOREACH (a, struct after, link, &o->again) {
        if (same(&a->forget, c)) {
            end(o, a);
        }
    }
}

void after_send(struct ovs_dp *o, uint32_t port, const uint8_t *frame, size_t size)
{
    struct after *a = add(o, size);
    a->port = port;
    a->size = size;
    memcpy(a->frame, frame, size);
}

void after_step(struct ovs_dp *o)
{
    struct after *a;
    LIST_FOREACH (a, struct after, link, &o->after) {
        if (!o->of || !flow_table_in_place(&o->flows, a->generation)) {
            break;
        }
        if (a->port) {
            of_packet_from(o->of, a->port, a->frame, a->size);
            end(o, a);
        } else {
            of_forget(o->of, &a->forget);
            a->at_ms = ovs_now(o) + AGAIN_MS;
            list_remove(&a->link);
            list_push_back(&o->again, &a->link);
        }
    }
    LIST_FOREACH (a, struct after, link, &o->again) {
        if (!o->of) {
            break;
        }
        if (ovs_now(o) < a->at_ms) {
            ovs_wake_at(o, a->at_ms);
            break;
        }
        of_forget(o->of, &a->forget);
        end(o, a);
    }
}

void after_done(struct ovs_dp *o)
{
    struct after *a;
    LIST_FOREACH (a, struct after, link, &o->after) {
        end(o, a);
    }
    LIST_FOREACH (a, struct after, link, &o->again) {
        end(o, a);
    }
}
