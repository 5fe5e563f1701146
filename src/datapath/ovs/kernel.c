/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ovs/ovs.h"

#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <string.h>

/* The list of datapath types in the database names "system" whether the kernel has it
 * or not; the kernel itself knows: the module registers this generic netlink family,
 * and asking for it loads the module. */
bool kernel_has_datapath(void)
{
    struct mnl_socket *s = mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC);
    if (!s) {
        return false;
    }
    char buf[1024];
    memset(buf, 0, sizeof buf);
    struct nlmsghdr *h = mnl_nlmsg_put_header(buf);
    h->nlmsg_type = GENL_ID_CTRL;
    h->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
    struct genlmsghdr *g = mnl_nlmsg_put_extra_header(h, sizeof *g);
    g->cmd = CTRL_CMD_GETFAMILY;
    g->version = 1;
    mnl_attr_put_strz(h, CTRL_ATTR_FAMILY_NAME, "ovs_datapath");
    bool found = false;
    if (mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID) == 0 &&
        mnl_socket_sendto(s, h, h->nlmsg_len) >= 0) {
        /* The answer is the family, or an error; the acknowledgement after it is dropped with the
         * socket. */
        char answer[8192];
        ssize_t n = mnl_socket_recvfrom(s, answer, sizeof answer);
        const struct nlmsghdr *a = (const struct nlmsghdr *) (void *) answer;
        found = n > 0 && mnl_nlmsg_ok(a, (int) n) && a->nlmsg_type == GENL_ID_CTRL;
    }
    mnl_socket_close(s);
    return found;
}
