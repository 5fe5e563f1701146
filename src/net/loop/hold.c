/* SPDX-License-Identifier: Apache-2.0 */
#include "net/loop/hold.h"

#include "base/macro.h"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/filter.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_SIZE 32768

enum use { USE_NONE, USE_CONNECTION, USE_LISTEN };

struct search {
    uint8_t protocol;
    uint32_t ip;
    uint16_t port;
    enum use found;
    uint32_t found_ip;
};

/* An IPv4 address that the socket is bound to; false: it is IPv6 only. */
static bool local_address(const struct inet_diag_msg *m, uint32_t *ret)
{
    const uint32_t *w = m->id.idiag_src;
    if (m->idiag_family == AF_INET) {
        *ret = ntohl(w[0]);
        return true;
    }
    bool any = !w[0] && !w[1] && !w[2] && !w[3];
    bool mapped = !w[0] && !w[1] && ntohl(w[2]) == 0xffff;
    *ret = mapped ? ntohl(w[3]) : 0;
    return any || mapped;
}

/* State of TCP sockets that are bound and do not listen, from Linux 6.8 on. */
#define BOUND_INACTIVE 13

static bool listens(uint8_t protocol, uint8_t state)
{
    return state == TCP_CLOSE ||
           (protocol == IPPROTO_TCP && (state == TCP_LISTEN || state == BOUND_INACTIVE));
}

static int on_socket(const struct nlmsghdr *h, void *data)
{
    struct search *s = data;
    const struct inet_diag_msg *m = mnl_nlmsg_get_payload(h);
    uint32_t ip;
    if (mnl_nlmsg_get_payload_len(h) < sizeof *m || ntohs(m->id.idiag_sport) != s->port ||
        !local_address(m, &ip) || (s->ip && ip && s->ip != ip)) {
        return MNL_CB_OK;
    }
    if (listens(s->protocol, m->idiag_state)) {
        s->found = USE_LISTEN;
        s->found_ip = ip;
    } else if (s->found == USE_NONE) {
        s->found = USE_CONNECTION;
    }
    return MNL_CB_OK;
}

static int ask(struct mnl_socket *socket, uint8_t family, struct search *s)
{
    _Alignas(struct nlmsghdr) char buf[ANSWER_SIZE];
    struct nlmsghdr *h = mnl_nlmsg_put_header(buf);
    h->nlmsg_type = SOCK_DIAG_BY_FAMILY;
    h->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    h->nlmsg_seq = family;
    struct inet_diag_req_v2 *q = mnl_nlmsg_put_extra_header(h, sizeof *q);
    q->sdiag_family = family;
    q->sdiag_protocol = s->protocol;
    q->idiag_states = UINT32_MAX;
    q->id.idiag_sport = htons(s->port);
    if (mnl_socket_sendto(socket, h, h->nlmsg_len) < 0) {
        return -errno;
    }
    for (int more = 1; more > 0;) {
        ssize_t n = mnl_socket_recvfrom(socket, buf, sizeof buf);
        more = n < 0 ? -1
                     : mnl_cb_run(buf, (size_t) n, family, mnl_socket_get_portid(socket), on_socket,
                                  s);
        if (more < 0) {
            return -errno;
        }
    }
    return 0;
}

/* Finds the user of the port at 'ip' (0: at any address), as far as the kernel reports it. */
static int find_use(struct search *s, struct err *e)
{
    static const uint8_t families[] = {AF_INET, AF_INET6};
    struct mnl_socket *socket = mnl_socket_open2(NETLINK_SOCK_DIAG, SOCK_CLOEXEC);
    int r = !socket || mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0 ? -errno : 0;
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(families); i++) {
        r = ask(socket, families[i], s);
        r = families[i] == AF_INET6 && r == -ENOENT ? 0 : r; /* A kernel without IPv6. */
    }
    if (socket) {
        mnl_socket_close(socket);
    }
    return r < 0 ? err_sys(e, r, "ask the kernel who has port %u", s->port) : 0;
}

/* Creating an SCTP socket would load the module. */
static bool has_protocol(uint8_t protocol)
{
    return protocol != IPPROTO_SCTP || access("/proc/net/sctp", F_OK) == 0;
}

static int socket_of(uint8_t protocol)
{
    int type = protocol == IPPROTO_UDP ? SOCK_DGRAM : SOCK_STREAM;
    int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
    if (fd < 0) {
        return -errno;
    }
    /* Drops all received datagrams. */
    struct sock_filter none = {.code = BPF_RET | BPF_K, .k = 0};
    struct sock_fprog drop = {1, &none};
    int one = 1;
    bool bad = setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &one, sizeof one) < 0 ||
               (protocol == IPPROTO_UDP &&
                setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &drop, sizeof drop) < 0);
    int r = bad ? -errno : fd;
    if (bad) {
        close(fd);
    }
    return r;
}

/* Finds why the port cannot be bound. Not every kernel reports a socket that is bound and does
 * not listen: an unknown user counts as one. */
static int explain(uint8_t protocol, uint32_t ip, uint16_t port, enum hold_result *ret,
                   uint32_t *ret_ip, struct err *e)
{
    struct search s = {.protocol = protocol, .ip = ip, .port = port};
    int r = protocol == IPPROTO_SCTP ? 0 : find_use(&s, e);
    if (r == 0) {
        *ret = s.found == USE_CONNECTION ? HOLD_CONNECTION : HOLD_LISTENS;
        *ret_ip = s.found_ip;
    }
    return r;
}

int hold_port(uint8_t protocol, uint32_t ip, uint16_t port, enum hold_result *ret, int *ret_fd,
              uint32_t *ret_ip, struct err *e)
{
    *ret_fd = -1;
    *ret_ip = 0;
    if (!has_protocol(protocol)) {
        *ret = HOLD_NO_NEED;
        return 0;
    }
    int fd = socket_of(protocol);
    if (fd < 0) {
        return err_sys(e, fd, "make a socket that holds port %u", port);
    }
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(ip)};
    int r = bind(fd, (struct sockaddr *) &at, sizeof at) < 0 ? -errno : 0;
    if (r == 0) {
        *ret = HOLD_OK;
        *ret_fd = fd;
        return 0;
    }
    close(fd);
    return r == -EADDRINUSE ? explain(protocol, ip, port, ret, ret_ip, e)
                            : err_sys(e, r, "hold port %u", port);
}
