/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/csi/call.h"

#include "base/mem.h"
#include "net/grpc/rpc.h"

#include <ctype.h>
#include <stdio.h>
#include <sys/un.h>

/* The loop ends a little later than the call, which says more. */
#define GRACE_MS 1000

struct call {
    const struct csi_method *method;
    const void *request;
    uint64_t timeout_ms;
    struct rpc *rpc;
    struct pb_store *store;
    void *answer;
    bool done;
    int error;
    struct err *e;
};

int csi_errno(int grpc_status)
{
    switch (grpc_status) {
    case GRPC_OK:
        return 0;
    case GRPC_NOT_FOUND:
        return -ENOENT;
    case GRPC_ALREADY_EXISTS:
        return -EEXIST;
    case GRPC_UNAVAILABLE:
    case GRPC_CANCELLED:
    case GRPC_ABORTED: /* Another call for the volume is under way. */
        return -EAGAIN;
    case GRPC_DEADLINE_EXCEEDED:
        return -ETIMEDOUT;
    case GRPC_UNIMPLEMENTED:
        return -EOPNOTSUPP;
    case GRPC_RESOURCE_EXHAUSTED:
        return -ENOSPC;
    case GRPC_PERMISSION_DENIED:
    case GRPC_UNAUTHENTICATED:
        return -EACCES;
    case GRPC_INVALID_ARGUMENT:
    case GRPC_OUT_OF_RANGE:
        return -EINVAL;
    default:
        return -EIO;
    }
}

static const char *name_of(const struct call *c)
{
    return strrchr(c->method->path, '/') + 1;
}

/* Ends the call with an error, whose text is the driver's. */
static void fail(struct call *c, int error, const char *text)
{
    CLEANUP_FREE char *plain = xstrndup(text, RPC_TEXT_MAX);
    for (char *p = plain; *p; p++) {
        *p = isprint((unsigned char) *p) ? *p : '?';
    }
    c->error = err_set(c->e, error, "%s: %s", name_of(c), plain);
    c->done = true;
}

static void ended(void *ctx, const struct rpc_result *r)
{
    struct call *c = ctx;
    if (r->status != GRPC_OK) {
        CLEANUP_FREE char *text =
            xasprintf("rpc error: code = %s desc = %s", grpc_status_name(r->status), r->text);
        fail(c, csi_errno(r->status), text);
        return;
    }
    if (c->answer) {
        int error = pb_parse(c->store, c->method->response, r->message, r->size, c->answer);
        if (error < 0) {
            fail(c, error == -EMSGSIZE ? error : -EIO, "the answer is not as CSI has it");
            return;
        }
    }
    c->done = true;
}

static void up(void *ctx)
{
    struct call *c = ctx;
    struct strbuf body = STRBUF_INIT;
    pb_format(&body, c->method->request, c->request);
    rpc_begin(c->rpc, c->method->path, &body, c->timeout_ms, CSI_MESSAGE_MAX, ended, c);
}

static void down(void *ctx, const char *reason)
{
    fail(ctx, -EAGAIN, reason);
}

int csi_call(const char *path, enum csi_method_id method, const void *request, uint64_t timeout_ms,
             struct pb_store *store, void *answer, struct err *e)
{
    static const struct h2_ops ops = {up, down};
    struct call c = {.method = &csi_methods[method],
                     .request = request,
                     .timeout_ms = timeout_ms,
                     .store = store,
                     .answer = answer,
                     .e = e};
    struct h2_address address = {.path = path, .name = "localhost"};
    if (*path != '/' || strlen(path) >= sizeof((struct sockaddr_un *) NULL)->sun_path) {
        return err_set(e, -EINVAL, "%.128s is not the path of a socket", path);
    }
    CLEANUP(loop_free) struct loop *loop = loop_new();
    struct err connect = {0};
    int r = rpc_connect(loop, &address, &ops, &c, &c.rpc, &connect);
    if (r < 0) {
        return err_set(e, -EAGAIN, "%s: %s", name_of(&c), connect.text);
    }
    if (loop_run_until(loop, &c.done, timeout_ms + GRACE_MS) < 0) {
        fail(&c, -ETIMEDOUT, "no answer in time");
    }
    rpc_free(c.rpc);
    return c.error;
}
