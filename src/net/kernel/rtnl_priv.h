/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to rtnl: requests and their answers, for the files with requests of their own. */
#pragma once

#include "net/kernel/rtnl.h"

#include <libmnl/libmnl.h>

#define RTNL_REQUEST_SIZE 1024
#define RTNL_REPLY_SIZE 32768 /* The maximum size of a dump message of the kernel. */

struct rtnl {
    struct mnl_socket *nl;
    unsigned port;
    uint32_t seq;
    size_t queued; /* Bytes of 'request' that wait to be sent together. */
    char why[200]; /* Extended ack of the last refused request, or "". */
    _Alignas(struct nlmsghdr) char request[RTNL_REQUEST_SIZE];
    _Alignas(struct nlmsghdr) char reply[RTNL_REPLY_SIZE];
};

/* Begins a request, in place of the previous one (or after those that are queued). */
struct nlmsghdr *rtnl_request(struct rtnl *r, uint16_t type, uint16_t flags);

typedef int rtnl_reply_fn(void *ctx, const struct nlmsghdr *h);
/* Executes 'req'; each message of the answer goes to 'fn' (may be NULL). */
int rtnl_get(struct rtnl *r, struct nlmsghdr *req, rtnl_reply_fn *fn, void *ctx);
int rtnl_change(struct rtnl *r, struct nlmsghdr *req);
/* Queues a request, to be sent together with others: the next one is written after it. */
void rtnl_enqueue(struct rtnl *r, struct nlmsghdr *req);
/* Sends the 'n' queued requests, which the kernel executes in this order, independent of each
 * other's results. Returns the first failure's code, and in 'ret_which' its number; the code
 * 'ignored' (0: none) of the first request is no failure. All answers go to 'fn'. */
int rtnl_flush(struct rtnl *r, unsigned n, int ignored, unsigned *ret_which, rtnl_reply_fn *fn,
               void *ctx);
/* Sets '*e' to the text, the meaning of 'code', and the kernel's message. */
int rtnl_fail(struct rtnl *r, int code, struct err *e, const char *fmt, ...) PRINTF_LIKE(4, 5);

/* Sorts the attributes of message 'h' after its first 'header' bytes into 'tb', of 'max' + 1;
 * types above are skipped. */
int rtnl_attrs_parse(const struct nlmsghdr *h, size_t header, const struct nlattr **tb,
                     unsigned max);
/* Attributes within 'nest', which may be absent. */
int rtnl_attrs_nested(const struct nlattr *nest, const struct nlattr **tb, unsigned max);
