/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ebpf/held.h"

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "sdn/service_target.h"

#include <arpa/inet.h>
#include <bpf/libbpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

LOG_MODULE("ebpf");

#define SOON_MS 1000 /* Used when no change of services follows: they were in place already. */

struct waiting {
    struct list link;
    size_t size;
    uint8_t frame[];
};

struct held {
    struct held_config c;
    struct ring_buffer *ring;
    struct loop_fd *watch;
    struct loop_timer *soon;
    struct list waiting;
};

static int on_frame(void *ctx, void *data, size_t size)
{
    struct held *h = ctx;
    const struct ebpf_held *f = data;
    if (size >= offsetof(struct ebpf_held, frame) &&
        f->size <= size - offsetof(struct ebpf_held, frame)) {
        h->c.fn(h->c.ctx, f->port, f->frame, f->size);
    }
    return 0;
}

static void on_ready(void *ctx, unsigned events)
{
    struct held *h = ctx;
    (void) events;
    ring_buffer__consume(h->ring);
}

static void on_soon(void *ctx)
{
    held_flush(ctx);
}

int held_new(const struct held_config *c, struct held **ret, struct err *e)
{
    struct held *h = NEW(struct held);
    h->c = *c;
    list_init(&h->waiting);
    if (c->ring >= 0) {
        h->ring = ring_buffer__new(c->ring, on_frame, h, NULL);
        if (!h->ring) {
            int r = -errno;
            free(h);
            return err_sys(e, r, "map the ring buffer of packets that wait");
        }
        h->watch = loop_fd_new(c->loop, ring_buffer__epoll_fd(h->ring), LOOP_READ, on_ready, h);
    }
    h->soon = loop_timer_new(c->loop, on_soon, h);
    *ret = h;
    return 0;
}

struct held *held_free(struct held *h)
{
    struct waiting *w;
    if (!h) {
        return NULL;
    }
    LIST_FOREACH (w, struct waiting, link, &h->waiting) {
        list_remove(&w->link);
        free(w);
    }
    loop_fd_free(h->watch);
    loop_timer_free(h->soon);
    ring_buffer__free(h->ring);
    free(h);
    return NULL;
}

void held_send(struct held *h, const uint8_t *frame, size_t size)
{
    struct waiting *w = xmalloc(sizeof *w + size);
    w->size = size;
    memcpy(w->frame, frame, size);
    /* The pod's kernel left the checksum to its device, which this frame does not pass any more. */
    service_frame_sum(w->frame, size);
    list_push_back(&h->waiting, &w->link);
    if (!loop_timer_armed(h->soon)) {
        loop_timer_arm(h->soon, SOON_MS);
    }
}

static int open_socket(void)
{
    static const uint32_t mark = EBPF_HELD_MARK;
    CLEANUP(fd_close) int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd < 0 || setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof mark) < 0 ? -errno
                                                                                 : fd_take(&fd);
}

void held_flush(struct held *h)
{
    static struct log_limit limit;
    struct sockaddr_ll to = {.sll_family = AF_PACKET,
                             .sll_protocol = htons(ETH_P_IP),
                             .sll_ifindex = h->c.devices->tun,
                             .sll_halen = ETH_ALEN};
    struct waiting *w;
    loop_timer_disarm(h->soon);
    if (list_is_empty(&h->waiting)) {
        return;
    }
    CLEANUP(fd_close) int fd = open_socket();
    int error = fd < 0 ? fd : 0;
    LIST_FOREACH (w, struct waiting, link, &h->waiting) {
        memcpy(to.sll_addr, w->frame, MIN(w->size, (size_t) ETH_ALEN));
        if (error == 0 &&
            sendto(fd, w->frame, w->size, 0, (const struct sockaddr *) &to, sizeof to) < 0) {
            error = -errno;
        }
        list_remove(&w->link);
        free(w);
    }
    if (error < 0) {
        log_limited(&limit, LOG_WARN, "packets that waited for a service are lost", "error=\"%s\"",
                    strerror(-error));
    }
}
