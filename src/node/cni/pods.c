/* SPDX-License-Identifier: Apache-2.0 */
/* A request is a 'struct op' that goes through the steps below, each named after what it does next.
 *
 *     ADD    add_begin -> add_await (objects of the registry) -> add_compare (attached already?)
 *                      -> add_make -> attach to the switch || make and wire the link -> add_finish
 *                      -> host ports || limits -> add_answer
 *     DEL    del_begin -> detach from the switch || delete the link -> del_finish
 *     CHECK  check_begin -> look at the link -> check_finish
 *     GC     gc_begin -> a DEL for each pod that is not valid -> gc_finish
 *     STATUS status_begin
 *
 * A failed ADD goes back the same way: undo_begin -> detach || delete -> undo_finish. */
#include "node/cni/pods_priv.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "net/kernel/rtnl.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

LOG_MODULE("pods");

#define MAX_NAME_ATTEMPTS 8

static void add_begin(struct op *op);
static void add_make(struct op *op);
static void del_begin(struct op *op);
static void check_begin(struct op *op);
static void gc_begin(struct op *op);
static void status_begin(struct op *op);
static void undo_begin(struct op *op);

/* ---- requests ---- */

static bool same_key(const struct op *a, const struct op *b)
{
    return streq(a->req.container_id, b->req.container_id) && streq(a->req.ifname, b->req.ifname);
}

static op_step *first_step(enum cni_command c)
{
    switch (c) {
    case CNI_ADD:
        return add_begin;
    case CNI_DEL:
        return del_begin;
    case CNI_GC:
        return gc_begin;
    case CNI_STATUS:
        return status_begin;
    default:
        return check_begin;
    }
}

static void op_run(void *ctx)
{
    struct op *op = ctx;
    op->step(op);
}

/* Starts 'op' unless one before it has the same key. */
static void op_start(struct op *op)
{
    struct op *other;
    LIST_FOREACH (other, struct op, node, &op->pods->requests) {
        if (other == op) {
            break;
        }
        if (same_key(op, other)) {
            return;
        }
    }
    op->running = true;
    op->step = first_step(op->req.command);
    loop_task_queue(&op->run);
}

static void op_free(struct op *op)
{
    runtime_settle(op);
    loop_task_cancel(&op->run);
    loop_timer_free(op->wait);
    cni_request_done(&op->req);
    fd_close(op->netns_fd);
    dp_pod_free(op->pod);
    cni_runtime_done(&op->runtime);
    free(op->known);
    free(op);
}

/* Sends the answer and ends 'op'; 'body' is the text that tenet-cni prints. */
static void op_answer(struct op *op, int status, const struct strbuf *body)
{
    CLEANUP_STRBUF struct strbuf line = STRBUF_INIT;
    strbuf_addf(&line, "%d ", status);
    strbuf_add(&line, body->data, body->size);
    strbuf_addc(&line, '\n');
    op->reply(op->reply_ctx, line.data, line.size);

    struct pods *p = op->pods;
    if (op->req.command < PODS_COMMANDS) {
        (status ? p->stats.failed : p->stats.ok)[op->req.command]++;
        prom_histogram_add(&p->stats.duration[op->req.command], time_mono_ns() - op->started_ns);
    }
    list_remove(&op->node);
    struct op *next;
    LIST_FOREACH (next, struct op, node, &p->requests) {
        if (!next->running && same_key(op, next)) {
            op_start(next);
            break;
        }
    }
    op_free(op);
}

static const char *pod_text(const struct op *op, char buf[600])
{
    const char *ns = op->req.pod_namespace, *name = op->req.pod_name;
    if (op->pod && op->pod->pod_name) {
        ns = op->pod->pod_namespace;
        name = op->pod->pod_name;
    }
    if (!name) {
        snprintf(buf, 600, "container %.12s", op->req.container_id);
    } else {
        snprintf(buf, 600, "%s/%s", ns ? ns : "", name);
    }
    return buf;
}

/* The reason of the Event on the pod; NULL for an error that is the runtime's mistake, or that the
 * node's condition already shows. */
static const char *trouble_reason(enum cni_code code)
{
    switch (code) {
    case CNI_NO_VNID:
        return "NoVNID";
    case CNI_NO_ADDRESS:
        return "NoFreeAddress";
    case CNI_ATTACH_FAILED:
        return "AttachFailed";
    case CNI_DETACH_FAILED:
        return "DetachFailed";
    case CNI_PORT_TAKEN:
        return "HostPortTaken";
    case CNI_INVALID_POD:
        return "InvalidPod";
    default:
        return NULL;
    }
}

static void op_answer_error(struct op *op)
{
    static struct log_limit limit;
    char pod[600];
    log_limited(&limit, LOG_WARN, "request failed", "command=%s pod=%s code=%d text=\"%s: %s\"",
                cni_command_name(op->req.command), pod_text(op, pod), (int) op->error.code,
                op->error.msg, op->error.details);
    const struct pods *p = op->pods;
    const char *reason = trouble_reason(op->error.code);
    if (reason && op->req.pod_namespace && op->req.pod_name) {
        CLEANUP_FREE char *text = xasprintf("%s: %s", op->error.msg, op->error.details);
        p->ops->trouble(p->ctx, op->req.pod_namespace, op->req.pod_name, reason, text);
    }
    CLEANUP_STRBUF struct strbuf body = STRBUF_INIT;
    cni_error_write(&op->error, &body);
    op_answer(op, 1, &body);
}

static void op_answer_ok(struct op *op)
{
    op_answer(op, 0, &(struct strbuf){.data = (char[]){""}});
}

void op_fail(struct op *op, enum cni_code code, const char *msg, const char *fmt, ...)
{
    if (op->failed) {
        return;
    }
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    op->failed = true;
    op->error.version = op->req.config.version;
    cni_fail(&op->error, code, msg, "%s", text);
}

bool op_fail_not_ready(struct op *op)
{
    const char *why = op->pods->ops->not_ready(op->pods->ctx);
    if (why) {
        op_fail(op, CNI_TRY_AGAIN, "the pod network is not available now", "%s", why);
    }
    return why;
}

/* ---- parallel parts ---- */

void op_part_ended(struct op *op)
{
    if (--op->parts == 0) {
        op->joined(op);
    }
}

static void work_run(void *ctx)
{
    struct op *op = ctx;
    op->work_result = op->work(&op->link, &op->work_error);
}

static void work_done(void *ctx)
{
    struct op *op = ctx;
    op->work_then(op);
}

void op_work(struct op *op, int (*work)(const struct pod_link *, struct err *), op_step *then)
{
    op->work = work;
    op->work_then = then;
    err_clear(&op->work_error);
    loop_work(op->pods->loop, work_run, work_done, op);
}

static int delete_abandoned_link(const struct pod_link *l, struct err *e)
{
    int r = *l->host_if ? pod_link_delete_abandoned(l->host_if, e) : 0;
    return r < 0 ? r : pod_link_delete_stray(l, e);
}

void op_fill_link(struct op *op)
{
    const struct pods *p = op->pods;
    op->link = (struct pod_link){
        .host_ns_fd = p->own_netns_fd,
        .netns_fd = op->netns_fd,
        .netns = op->pod->netns,
        .datapath = p->datapath,
        .host_mac = pod_link_host_mac(op->pod->ip),
        .mac = op->pod->mac,
        .address = {op->pod->ip, p->net.local.len},
        .gateway = sdn_gateway(&p->net),
        .mtu = p->net.mtu,
        .userspace_switch = p->userspace_switch,
    };
    if (op->pod->bandwidth) {
        cni_bandwidth_parse(op->pod->bandwidth, &op->link.limits);
    }
    snprintf(op->link.host_if, sizeof op->link.host_if, "%s", op->pod->host_if);
    snprintf(op->link.port, sizeof op->link.port, "%s", op->pod->port);
    snprintf(op->link.ifname, sizeof op->link.ifname, "%s", op->req.ifname);
}

static void answer_result(struct op *op)
{
    const struct pods *p = op->pods;
    CLEANUP(json_free)
    struct json *dns = p->ops->dns ? p->ops->dns(p->ctx, op->pod->pod_namespace) : NULL;
    bool pair = datapath_end(p->datapath, op->pod->port, op->pod->host_if) < 0;
    struct cni_result r = {.host_if = pair ? op->pod->host_if : op->pod->port,
                           .host_mac = pair ? &op->link.host_mac : NULL,
                           .ifname = op->req.ifname,
                           .netns = op->req.netns,
                           .mac = op->pod->mac,
                           .address = op->link.address,
                           .gateway = op->link.gateway,
                           .mtu = op->link.mtu,
                           .dns = op->req.config.dns ? op->req.config.dns : dns};
    CLEANUP_STRBUF struct strbuf body = STRBUF_INIT;
    cni_result_write(&r, op->req.config.version, &body);
    op_answer(op, 0, &body);
}

/* ---- ADD ---- */

/* Whether the open namespace is the host's own: ADD would then connect the host to a project. */
static bool is_own_netns(const struct op *op)
{
    struct stat st;
    return fstat(op->netns_fd, &st) == 0 && st.st_dev == op->pods->own_netns.st_dev &&
           st.st_ino == op->pods->own_netns.st_ino;
}

static int find_vnids(struct op *op, struct sdn_vnids *ret, struct err *e)
{
    struct pods *p = op->pods;
    if (!sdn_plugin_has_vnids(p->net.plugin)) {
        *ret = (struct sdn_vnids){.id = SDN_VNID_GLOBAL};
        return 0;
    }
    return p->ops->vnids(p->ctx, op->req.pod_namespace, ret, e);
}

/* Finds what ADD needs from the registry; when an object is missing, the request's failure names
 * it. */
static int find_objects(struct op *op, struct sdn_vnids *ret, bool give_up)
{
    struct pods *p = op->pods;
    struct err e = {0};
    int r = find_vnids(op, ret, &e);
    if (r < 0 && give_up) {
        op_fail(op, CNI_NO_VNID, "the pod's project has no VNID", "%s", e.text);
    }
    if (r == 0) {
        r = p->ops->known(p->ctx, op->req.pod_namespace, op->req.pod_name, &e);
        if (r < 0 && give_up) {
            op_fail(op, CNI_TRY_AGAIN, "the pod's network policies are not known", "%s", e.text);
        }
    }
    return r;
}

static void add_verified(struct op *op)
{
    if (op->work_result == 0) {
        log_debug("pod attached already", "container=%s", op->req.container_id);
        answer_result(op);
        return;
    }
    log_info("pod attached anew", "pod=%s/%s reason=\"%s\"", op->req.pod_namespace,
             op->req.pod_name, op->work_error.text);
    op->undone = add_make;
    undo_begin(op);
}

/* Compares the request with the pod that is attached by its name, if there is one. */
static void add_compare(struct op *op)
{
    struct pods *p = op->pods;
    if (op_fail_not_ready(op)) {
        op_answer_error(op);
        return;
    }
    const struct dp_pod *there = datapath_find(p->datapath, op->req.container_id, op->req.ifname);
    if (!there) {
        add_make(op);
        return;
    }
    op->pod = dp_pod_clone(there);
    op->in_switch = op->made_link = op->holds_ip = true;
    op_fill_link(op);
    bool same = there->ready && ipam_is_used(p->ipam, there->ip) &&
                streq_null(there->pod_namespace, op->req.pod_namespace) &&
                streq_null(there->pod_name, op->req.pod_name) &&
                streq_null(there->netns, op->req.netns) &&
                runtime_is_same(&op->req.config.runtime, there);
    if (same) {
        op_work(op, pod_link_check, add_verified);
        return;
    }
    op->undone = add_make;
    undo_begin(op);
}

static void add_awaited(struct op *op)
{
    op->wait = loop_timer_free(op->wait);
    add_compare(op);
}

static void add_await_over(void *ctx)
{
    struct op *op = ctx;
    struct sdn_vnids vnids;
    if (find_objects(op, &vnids, true) == 0) {
        add_awaited(op);
    } else {
        op_answer_error(op);
    }
}

/* Waits for objects of the registry; each that becomes known runs this step again (pods_wake). */
static void add_await(struct op *op)
{
    struct pods *p = op->pods;
    struct sdn_vnids vnids;
    if (find_objects(op, &vnids, false) == 0) {
        add_awaited(op);
        return;
    }
    if (!op->wait) {
        op->step = add_await;
        op->wait = loop_timer_new(p->loop, add_await_over, op);
        loop_timer_arm(op->wait, p->vnid_wait_ms);
        log_debug("waiting for the registry", "pod=%s/%s", op->req.pod_namespace, op->req.pod_name);
    }
}

static void add_begin(struct op *op)
{
    if (op_fail_not_ready(op)) {
        op_answer_error(op);
        return;
    }
    if (op->netns_fd < 0 || is_own_netns(op)) {
        op_fail(op, CNI_INVALID_ENVIRONMENT, "invalid environment variable", "CNI_NETNS: %s %s",
                op->req.netns,
                op->netns_fd < 0 ? "was not handed over" : "is the host's own network namespace");
        op_answer_error(op);
        return;
    }
    add_await(op);
}

static void add_answer(struct op *op)
{
    if (op->failed) {
        op->undone = op_answer_error;
        undo_begin(op);
        return;
    }
    struct pods *p = op->pods;
    CLEANUP(dp_pod_free) struct dp_pod *pod = dp_pod_clone(op->pod);
    uint64_t ms = time_mono_ms() - op->started_ms;
    answer_result(op); /* Before the first step that can wait. */
    log_info("pod attached", "pod=%s/%s ip=%s vnid=%u port=%s link=%s ms=%llu", pod->pod_namespace,
             pod->pod_name, IP4_TEXT(pod->ip), pod->vnid, pod->port, pod->host_if,
             (unsigned long long) ms);
    /* Its VNID may have changed while the port was made. */
    pods_project_changed(p, pod->pod_namespace);
}

/* Port and link exist, or one of them failed. */
static void add_finish(struct op *op)
{
    if (op->failed && op->taken && op->attempt < MAX_NAME_ATTEMPTS) {
        op->failed = op->taken = false;
        op->undone = add_make; /* Tries again with another name for the link, and another port. */
        undo_begin(op);
        return;
    }
    if (op->failed) {
        op->undone = op_answer_error;
        undo_begin(op);
        return;
    }
    if (runtime_needs_pair(op)) {
        op->undone = add_make;
        undo_begin(op);
        return;
    }
    runtime_apply(op, add_answer);
}

/* An agent that was killed during an ADD may have left a link or port that is in the way. */
static int clear_and_create(const struct pod_link *l, struct err *e)
{
    int r = pod_link_delete_stray(l, e);
    return r < 0 ? r : pod_link_create(l, e);
}

static void add_linked(struct op *op)
{
    if (op->work_result == -EBUSY && !op->cleared) {
        op->cleared = true;
        op_note_links(op);
        op_work(op, clear_and_create, add_linked);
        return;
    }
    op->taken = op->work_result == -EEXIST || op->work_result == -EADDRINUSE;
    op->made_link = !op->taken && op->work_result != -EBUSY;
    if (op->work_result < 0) {
        op_fail(op, CNI_ATTACH_FAILED, "cannot make the container's interface", "%s",
                op->work_error.text);
    }
    op_part_ended(op);
}

static void add_has_port(void *ctx, const char *port, const char *host_if)
{
    struct op *op = ctx;
    snprintf(op->pod->host_if, sizeof op->pod->host_if, "%s", host_if);
    snprintf(op->pod->port, sizeof op->pod->port, "%s", port);
    op_fill_link(op);
    op->parts++;
    op_work(op, pod_link_create, add_linked);
}

static void add_attached(void *ctx, int error, const char *text)
{
    struct op *op = ctx;
    op->in_switch = error == 0;
    if (error < 0 && !op_fail_not_ready(op)) {
        op_fail(op, CNI_ATTACH_FAILED, "cannot attach the pod to the switch", "%s", text);
    }
    op_part_ended(op);
}

static bool name_is_used(struct pods *p, const char *host_if)
{
    size_t n;
    const struct dp_pod *const *pods = datapath_pods(p->datapath, &n);
    for (size_t i = 0; i < n; i++) {
        if (streq(pods[i]->host_if, host_if)) {
            return true;
        }
    }
    struct op *op;
    LIST_FOREACH (op, struct op, node, &p->requests) {
        if (op->running && op->pod && streq(op->pod->host_if, host_if)) {
            return true;
        }
    }
    return false;
}

void op_note_links(struct op *op)
{
    struct pods *p = op->pods;
    CLEANUP_STRBUF struct strbuf names = STRBUF_INIT;
    size_t n;
    const struct dp_pod *const *pods = datapath_pods(p->datapath, &n);
    strbuf_addc(&names, ' ');
    for (size_t i = 0; i < n; i++) {
        strbuf_addf(&names, "%s ", pods[i]->host_if);
    }
    struct op *other;
    LIST_FOREACH (other, struct op, node, &p->requests) {
        if (other != op && other->pod) {
            strbuf_addf(&names, "%s ", other->pod->host_if);
        }
    }
    free(op->known);
    op->known = strbuf_steal(&names);
    op->link.known = op->known;
}

static void attach(struct op *op)
{
    char name[IF_NAMESIZE];
    do {
        pod_link_name(op->req.container_id, op->req.ifname, op->attempt++, name);
    } while (op->attempt < MAX_NAME_ATTEMPTS && name_is_used(op->pods, name));
    snprintf(op->pod->host_if, sizeof op->pod->host_if, "%s", name);
    op->parts = 1;
    op->joined = add_finish;
    op->pair = op->pair || runtime_wants_pair(op);
    op->pod->pair = op->pair;
    struct listening *l;
    LIST_FOREACH (l, struct listening, link, &op->pods->listeners) {
        l->listener->attaching(l->ctx, op->pod);
    }
    datapath_attach(op->pods->datapath, op->pod, add_has_port, add_attached, op);
    runtime_find(op); /* Started last: the worker, which takes longest, begins first. */
}

static void add_make(struct op *op)
{
    struct pods *p = op->pods;
    struct err e = {0};
    struct sdn_vnids vnids;
    uint32_t ip;
    if (op->failed) { /* The link or port from before could not be removed. */
        op_answer_error(op);
        return;
    }
    if (find_objects(op, &vnids, true) < 0) {
        op_answer_error(op);
        return;
    }
    if (ipam_alloc(p->ipam, &ip, &e) < 0) {
        op_fail(op, CNI_NO_ADDRESS, "no free address on this node", "%s", e.text);
        op_answer_error(op);
        return;
    }
    dp_pod_free(op->pod);
    op->pod = NEW(struct dp_pod);
    op->pod->container_id = xstrdup(op->req.container_id);
    op->pod->ifname = xstrdup(op->req.ifname);
    op->pod->pod_namespace = xstrdup(op->req.pod_namespace);
    op->pod->pod_name = xstrdup(op->req.pod_name);
    op->pod->netns = xstrdup(op->req.netns);
    op->pod->ip = ip;
    op->pod->mac = mac_from_ip4(ip);
    op->pod->vnid = vnids.id;
    op->pod->has_also_vnid = vnids.moving;
    op->pod->also_vnid = vnids.also;
    op->holds_ip = true;
    attach(op);
}

/* ---- removing ---- */

/* The address becomes free when no flow matches it any more. */
static void release(struct op *op)
{
    if (op->holds_ip && !op->in_switch) {
        struct listening *l;
        LIST_FOREACH (l, struct listening, link, &op->pods->listeners) {
            l->listener->detached(l->ctx, op->pod);
        }
        ipam_release(op->pods->ipam, op->pod->ip);
        op->holds_ip = false;
    }
}

static void removed_from_switch(void *ctx, int error, const char *text)
{
    struct op *op = ctx;
    op->in_switch = error < 0;
    if (error < 0 && !op_fail_not_ready(op)) {
        op_fail(op, CNI_DETACH_FAILED, "cannot detach the pod from the switch", "%s", text);
    }
    op_part_ended(op);
}

static void removed_link(void *ctx, int error, const char *text)
{
    struct op *op = ctx;
    op->made_link = error < 0;
    if (error < 0) {
        op_fail(op, CNI_DETACH_FAILED, "cannot remove the pod's interface", "%s", text);
    }
    op_part_ended(op);
}

static void leave_switch(struct op *op)
{
    datapath_detach(op->pods->datapath, op->req.container_id, op->req.ifname, removed_from_switch,
                    op);
}

static void remove_joined(struct op *op)
{
    runtime_end(op, op->removed);
}

/* Removes port and link in parallel, then host ports, then runs 'removed'. */
static void remove_pod(struct op *op, op_step *removed)
{
    op->removed = removed;
    op->joined = remove_joined;
    op->parts = 1u + op->in_switch + op->made_link;
    if (op->made_link) {
        link_remover_delete(op->pods->link_remover, &op->link, removed_link, op);
    }
    if (op->in_switch) {
        runtime_unlimit(op, leave_switch);
    }
    op_part_ended(op);
}

static void undo_finish(struct op *op)
{
    release(op);
    op->undone(op);
}

/* Removes what was made of the pod; runs 'undone' next. */
static void undo_begin(struct op *op)
{
    remove_pod(op, undo_finish);
}

/* ---- DEL ---- */

static void del_finish(struct op *op)
{
    release(op);
    if (op->failed) {
        op_answer_error(op);
        return;
    }
    char pod[600];
    log_info("pod detached", "pod=%s ip=%s port=%s link=%s ms=%llu", pod_text(op, pod),
             IP4_TEXT(op->pod->ip), op->pod->port, op->pod->host_if,
             (unsigned long long) (time_mono_ms() - op->started_ms));
    op_answer_ok(op);
}

static void del_absent(struct op *op)
{
    if (op->work_result < 0) {
        op_fail(op, CNI_DETACH_FAILED, "cannot remove the pod's interface", "%s",
                op->work_error.text);
        op_answer_error(op);
        return;
    }
    op_answer_ok(op);
}

static void del_begin(struct op *op)
{
    struct pods *p = op->pods;
    if (op_fail_not_ready(op)) {
        op_answer_error(op);
        return;
    }
    const struct dp_pod *there = datapath_find(p->datapath, op->req.container_id, op->req.ifname);
    if (!there) {
        /* There is no such pod.  Remove only a link that an agent left that was killed during an
         * ADD. */
        pod_link_name(op->req.container_id, op->req.ifname, 0, op->link.host_if);
        if (name_is_used(p, op->link.host_if)) {
            op->link.host_if[0] = '\0';
        }
        op->link.datapath = p->datapath;
        op->link.host_ns_fd = p->own_netns_fd;
        op->link.netns_fd = op->netns_fd;
        snprintf(op->link.ifname, sizeof op->link.ifname, "%s", op->req.ifname);
        op_note_links(op);
        op_work(op, delete_abandoned_link, del_absent);
        return;
    }
    op->pod = dp_pod_clone(there);
    op->in_switch = op->made_link = op->holds_ip = true;
    op_fill_link(op);
    remove_pod(op, del_finish);
}

/* ---- CHECK ---- */

static void check_finish(struct op *op)
{
    if (op->work_result < 0) {
        op_fail(op, CNI_CHECK_FAILED, "the pod's interface is not as it should be", "%s",
                op->work_error.text);
        op_answer_error(op);
        return;
    }
    op_answer_ok(op);
}

static void check_begin(struct op *op)
{
    struct pods *p = op->pods;
    const struct dp_pod *there = datapath_find(p->datapath, op->req.container_id, op->req.ifname);
    if (op_fail_not_ready(op)) {
        op_answer_error(op);
        return;
    }
    if (!there) {
        op_fail(op, CNI_CHECK_FAILED, "the pod is not attached",
                "br0 has no port of container %s, interface %s", op->req.container_id,
                op->req.ifname);
    } else if (!there->ready) {
        op_fail(op, CNI_CHECK_FAILED, "the pod's port does not work",
                "port %s of interface %s is not ready in the switch", there->host_if,
                op->req.ifname);
    } else if (op->netns_fd < 0) {
        op_fail(op, CNI_INVALID_ENVIRONMENT, "invalid environment variable",
                "CNI_NETNS: %s was not handed over", op->req.netns);
    }
    if (op->failed) {
        op_answer_error(op);
        return;
    }
    op->pod = dp_pod_clone(there);
    op_fill_link(op);
    struct cni_result r = {.ifname = op->req.ifname,
                           .netns = op->req.netns,
                           .mac = op->pod->mac,
                           .address = op->link.address};
    op->error.version = op->req.config.version;
    if (cni_result_check(&r, op->req.config.prev_result, &op->error) < 0) {
        op->failed = true;
        op_answer_error(op);
        return;
    }
    op_work(op, pod_link_check, check_finish);
}

/* ---- GC and STATUS ---- */

static bool has_request(const struct pods *p, const struct dp_pod *pod)
{
    struct op *op;
    LIST_FOREACH (op, struct op, node, &p->requests) {
        if (streq(op->req.container_id, pod->container_id) && streq(op->req.ifname, pod->ifname)) {
            return true;
        }
    }
    return false;
}

static void no_reply(void *ctx, const char *text, size_t size)
{
}

/* Detaches a pod for which the runtime will not send a DEL. */
static void detach_stale(struct pods *p, const struct dp_pod *pod, const char *reason,
                         pods_reply_fn *reply, void *ctx)
{
    log_warn("detaching a stale pod", "pod=%s/%s ip=%s port=%s reason=\"%s\"", pod->pod_namespace,
             pod->pod_name, IP4_TEXT(pod->ip), pod->port, reason);
    struct cni_request r = {.command = CNI_DEL,
                            .container_id = xstrdup(pod->container_id),
                            .ifname = xstrdup(pod->ifname)};
    pods_request(p, &r, -1, reply, ctx);
}

static void gc_finish(struct op *op)
{
    if (op->failed) {
        op_answer_error(op);
    } else {
        op_answer_ok(op);
    }
}

static void gc_detached(void *ctx, const char *text, size_t size)
{
    struct op *op = ctx;
    if (text[0] != '0') {
        op_fail(op, CNI_DETACH_FAILED, "a pod that is gone could not be detached", "%.*s",
                (int) MIN(size, 400), text);
    }
    op_part_ended(op);
}

/* The runtime does not know a pod yet that is being attached; it stays. */
static void gc_begin(struct op *op)
{
    struct pods *p = op->pods;
    if (op_fail_not_ready(op)) {
        op_answer_error(op);
        return;
    }
    size_t n;
    const struct dp_pod *const *pods = datapath_pods(p->datapath, &n);
    op->joined = gc_finish;
    op->parts = 1;
    for (size_t i = 0; i < n; i++) {
        if (!has_request(p, pods[i]) &&
            !cni_is_valid_attachment(op->req.config.valid, pods[i]->container_id,
                                     pods[i]->ifname)) {
            op->parts++;
            detach_stale(p, pods[i], "the runtime does not know it", gc_detached, op);
        }
    }
    op_part_ended(op);
}

static void status_begin(struct op *op)
{
    const char *why = op->pods->ops->not_ready(op->pods->ctx);
    struct datapath_status s;
    datapath_get_status(op->pods->datapath, &s);
    if (!why) {
        op_answer_ok(op);
        return;
    }
    op_fail(op, s.in_place ? CNI_NOT_AVAILABLE : CNI_LIMITED,
            "the pod network is not available now", "%s", why);
    op_answer_error(op);
}

/* ---- the whole ---- */

struct pods *pods_new(const struct pods_config *c, const struct pods_ops *ops, void *ctx)
{
    struct pods *p = NEW(struct pods);
    p->loop = c->loop;
    p->datapath = c->datapath;
    p->vnid_wait_ms = c->vnid_wait_ms;
    p->ops = ops;
    p->ctx = ctx;
    p->link_remover = link_remover_new(c->loop);
    list_init(&p->requests);
    list_init(&p->listeners);
    p->own_netns_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    fstat(p->own_netns_fd, &p->own_netns);
    return p;
}

struct pods *pods_free(struct pods *p)
{
    if (p) {
        assert(list_is_empty(&p->requests));
        struct list *link;
        while ((link = list_pop_front(&p->listeners))) {
            free(CONTAINER_OF(link, struct listening, link));
        }
        ipam_free(p->ipam);
        link_remover_free(p->link_remover);
        fd_close(p->own_netns_fd);
        free(p);
    }
    return NULL;
}

static struct listening *find_listening(struct pods *p, const void *ctx)
{
    struct listening *l;
    LIST_FOREACH (l, struct listening, link, &p->listeners) {
        if (l->ctx == ctx) {
            return l;
        }
    }
    return NULL;
}

void pods_listen(struct pods *p, const struct pod_listener *listener, void *ctx)
{
    if (!find_listening(p, ctx)) {
        struct listening *l = NEW(struct listening);
        l->listener = listener;
        l->ctx = ctx;
        list_push_back(&p->listeners, &l->link);
    }
}

void pods_unlisten(struct pods *p, const void *ctx)
{
    struct listening *l = find_listening(p, ctx);
    if (l) {
        list_remove(&l->link);
        free(l);
    }
}

static void request(struct pods *p, struct cni_request *r, int netns_fd, pods_reply_fn *reply,
                    void *ctx)
{
    struct op *op = NEW(struct op);
    op->pods = p;
    op->req = *r;
    *r = (struct cni_request){0};
    op->netns_fd = netns_fd;
    op->reply = reply;
    op->reply_ctx = ctx;
    op->started_ms = time_mono_ms();
    op->started_ns = time_mono_ns();
    op->error.version = op->req.config.version;
    loop_task_init(&op->run, p->loop, op_run, op);
    list_push_back(&p->requests, &op->node);
    op_start(op);
}

void pods_request(struct pods *p, struct cni_request *r, int netns_fd, pods_reply_fn *reply,
                  void *ctx)
{
    request(p, r, netns_fd, reply, ctx);
}

const struct pods_stats *pods_get_stats(const struct pods *p)
{
    return &p->stats;
}

size_t pods_busy(const struct pods *p)
{
    return list_size(&p->requests) + link_remover_busy(p->link_remover);
}

void pods_link_gone(struct pods *p, const char *name)
{
    link_remover_link_gone(p->link_remover, name);
    datapath_link_gone(p->datapath, name);
}

int pods_sweep(struct pods *p, struct err *e)
{
    CLEANUP_FREE struct rtnl_link *links = NULL;
    size_t n_links, n;
    int err = datapath_links(p->datapath, &links, &n_links, e);
    if (err < 0) {
        return err;
    }
    struct smap names;
    smap_init(&names, NULL);
    for (size_t i = 0; i < n_links; i++) {
        smap_set(&names, links[i].name, &links[i]);
    }
    const struct dp_pod *const *pods = datapath_pods(p->datapath, &n);
    for (size_t i = 0; i < n; i++) {
        if (has_request(p, pods[i])) {
            continue;
        }
        if (!ipam_is_used(p->ipam, pods[i]->ip)) {
            detach_stale(p, pods[i], "its address is not of this node's subnet", no_reply, NULL);
        } else if (!smap_get(&names, pods[i]->host_if)) {
            detach_stale(p, pods[i], "its link is gone", no_reply, NULL);
        }
    }
    smap_done(&names);
    return 0;
}

static void copy_network(struct pods *p, const struct sdn_network *n)
{
    struct datapath_status s;
    p->net = *n;
    p->net.remotes = NULL;
    p->net.n_remotes = 0;
    datapath_get_status(p->datapath, &s);
    p->userspace_switch = s.in_userspace;
}

int pods_start(struct pods *p, const struct sdn_network *n, struct err *e)
{
    int r = ipam_new(n->local, &p->ipam, e);
    if (r < 0) {
        return r;
    }
    copy_network(p, n);
    size_t count;
    const struct dp_pod *const *pods = datapath_pods(p->datapath, &count);
    for (size_t i = 0; i < count; i++) {
        struct err why = {0};
        if (ipam_mark(p->ipam, pods[i]->ip, &why) == -EEXIST) {
            log_error("two pods have one address", "pod=%s/%s ip=%s", pods[i]->pod_namespace,
                      pods[i]->pod_name, IP4_TEXT(pods[i]->ip));
            p->ops->trouble(p->ctx, pods[i]->pod_namespace, pods[i]->pod_name, "AddressClash",
                            "another pod of this node has its address: one of them has no flows");
        }
    }
    return pods_sweep(p, e);
}

void pods_set_network(struct pods *p, const struct sdn_network *n)
{
    copy_network(p, n);
}
