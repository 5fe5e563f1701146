/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ebpf/upcall.h"

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

#define SOON_MS 1000 /* When no change of services follows: the maps have the endpoints already. */

/* A frame that may continue. */
struct released {
    struct list link;
    size_t size;
    uint8_t frame[];
};

struct upcalls {
    struct upcall_config c;
    struct ring_buffer *ring;
    struct loop_fd *watch;
    struct loop_timer *soon;
    struct list released;
};

static int on_frame(void *ctx, void *data, size_t size)
{
    struct upcalls *u = ctx;
    const struct ebpf_upcall *f = data;
    if (size >= offsetof(struct ebpf_upcall, frame) &&
        f->size <= size - offsetof(struct ebpf_upcall, frame)) {
        u->c.fn(u->c.ctx, f->port, f->frame, f->size);
    }
    return 0;
}

static void on_ready(void *ctx, unsigned events)
{
    struct upcalls *u = ctx;
    (void) events;
    ring_buffer__consume(u->ring);
}

static void on_soon(void *ctx)
{
    upcall_flush(ctx);
}

int upcall_new(const struct upcall_config *c, struct upcalls **ret, struct err *e)
{
    struct upcalls *u = NEW(struct upcalls);
    u->c = *c;
    list_init(&u->released);
    if (c->ring >= 0) {
        u->ring = ring_buffer__new(c->ring, on_frame, u, NULL);
        if (!u->ring) {
            int r = -errno;
            free(u);
            return err_sys(e, r, "map the ring buffer of packets that wait");
        }
        u->watch = loop_fd_new(c->loop, ring_buffer__epoll_fd(u->ring), LOOP_READ, on_ready, u);
    }
    u->soon = loop_timer_new(c->loop, on_soon, u);
    *ret = u;
    return 0;
}

struct upcalls *upcall_free(struct upcalls *u)
{
    struct released *w;
    if (!u) {
        return NULL;
    }
    LIST_FOREACH (w, struct released, link, &u->released) {
        list_remove(&w->link);
        free(w);
    }
    loop_fd_free(u->watch);
    loop_timer_free(u->soon);
    ring_buffer__free(u->ring);
    free(u);
    return NULL;
}

void upcall_reinject(struct upcalls *u, const uint8_t *frame, size_t size)
{
    struct released *w = xmalloc(sizeof *w + size);
    w->size = size;
    memcpy(w->frame, frame, size);
    /* The pod's kernel left the checksum to its device, which this frame does not pass any more. */
    service_frame_sum(w->frame, size);
    list_push_back(&u->released, &w->link);
    if (!loop_timer_armed(u->soon)) {
        loop_timer_arm(u->soon, SOON_MS);
    }
}

static int open_socket(void)
{
    static const uint32_t mark = EBPF_REINJECT_MARK;
    CLEANUP(fd_close) int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd < 0 || setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof mark) < 0 ? -errno
                                                                                 : fd_take(&fd);
}

void upcall_flush(struct upcalls *u)
{
    static struct log_limit limit;
    struct sockaddr_ll to = {.sll_family = AF_PACKET,
                             .sll_protocol = htons(ETH_P_IP),
                             .sll_ifindex = u->c.devices->tun,
                             .sll_halen = ETH_ALEN};
    struct released *w;
    loop_timer_disarm(u->soon);
    if (list_is_empty(&u->released)) {
        return;
    }
    CLEANUP(fd_close) int fd = open_socket();
    int error = fd < 0 ? fd : 0;
    LIST_FOREACH (w, struct released, link, &u->released) {
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
