/* SPDX-License-Identifier: Apache-2.0 */
#include "node/registry/registration.h"

#include "api/condition.h"
#include "base/ip.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/reconnect.h"
#include "base/said.h"
#include "base/timeutil.h"
#include "net/loop/process.h"

#include <sys/utsname.h>

LOG_MODULE("node");

#define HEARTBEAT_MS 300000
#define RETRY_MIN_MS 250
#define RETRY_MAX_MS 10000

struct registration {
    struct loop *loop;
    struct api_client *client;
    char *name, *path, *status_path;
    uint32_t ip;
    loop_fn *registered;
    void *ctx;
    bool is_registered, gone;
    bool ready;
    char *reason, *message;
    bool has_addresses;
    /* The addresses to report; empty when the registry refuses 'offered'. */
    struct sdn_addresses addresses;
    struct sdn_addresses offered; /* The addresses that registration_set_addresses was given. */
    bool has_host_ports;
    bool host_ports_refused; /* The API server does not let this agent write them. */
    char *host_ports;
    bool dirty;     /* A change has to be written to the registry. */
    bool heartbeat; /* The heartbeat time has to be written, too. */
    struct api_call *call;
    struct loop_timer *timer; /* Timer of the next attempt, or of the heartbeat. */
    struct backoff attempts;
    struct said failure; /* The failure that was logged. */
};

/* ---- the object ---- */

static bool set_if_other(struct json *obj, const char *key, const char *value)
{
    if (streq_null(json_path_string(obj, key, NULL), value)) {
        return false;
    }
    json_set_string(obj, key, value);
    return true;
}

static bool set_condition(struct json *node, const char *type, bool value,
                          const struct registration_want *w, int64_t now_ms)
{
    if (!condition_set(node, type, value ? "True" : "False", w->reason, w->message, now_ms) &&
        !w->heartbeat) {
        return false;
    }
    char now[TIME_TEXT_SIZE];
    time_format_s(now_ms, now);
    json_set_string(condition_find(node, type), "lastHeartbeatTime", now);
    return true;
}

static bool set_address(struct json *list, const char *type, const char *address)
{
    struct json *a;
    JSON_FOREACH (a, list) {
        if (streq_null(json_path_string(a, "type", NULL), type)) {
            return set_if_other(a, "address", address);
        }
    }
    a = json_append(list, json_object());
    json_set_string(a, "type", type);
    json_set_string(a, "address", address);
    return true;
}

/* The index of the next address of type InternalIP from 'i' on. */
static size_t next_internal(const struct json *list, size_t i)
{
    while (i < json_count(list) &&
           !streq_null(json_path_string(json_at(list, i), "type", NULL), "InternalIP")) {
        i++;
    }
    return i;
}

/* Makes 'a' the addresses of type InternalIP after the first one. */
static bool set_other_addresses(struct json *list, const struct sdn_addresses *a)
{
    size_t first = next_internal(list, 0), at = first;
    bool same = true;
    for (size_t k = 0; k < a->n && same; k++) {
        at = next_internal(list, at + 1);
        same = streq_null(json_path_string(json_at(list, at), "address", NULL), IP4_TEXT(a->ip[k]));
    }
    if (same && next_internal(list, at + 1) >= json_count(list)) {
        return false;
    }
    while ((at = next_internal(list, first + 1)) < json_count(list)) {
        json_remove_at(list, at);
    }
    for (size_t k = 0; k < a->n; k++) {
        struct json *item = json_append(list, json_object());
        json_set_string(item, "type", "InternalIP");
        json_set_string(item, "address", IP4_TEXT(a->ip[k]));
    }
    return true;
}

bool registration_annotate(struct json *node, const char *host_ports)
{
    if (streq_null(json_path_string(node, "metadata", "annotations", SDN_HOST_PORTS, NULL),
                   host_ports)) {
        return false;
    }
    struct json *metadata = json_ensure_object(node, "metadata");
    struct json *annotations = json_ensure_object(metadata, "annotations");
    if (host_ports) {
        json_set_string(annotations, SDN_HOST_PORTS, host_ports);
    } else {
        json_remove(annotations, SDN_HOST_PORTS);
    }
    return true;
}

bool registration_update(struct json *node, const struct registration_want *w, int64_t now_ms)
{
    const char *by = json_path_string(condition_find(node, "Ready"), "reason", NULL);
    bool changed = false;
    if (!by || !str_has_prefix(by, "Kubelet")) {
        struct json *status = json_ensure_object(node, "status");
        struct json *addresses = json_ensure_array(status, "addresses");
        changed |= set_address(addresses, "InternalIP", IP4_TEXT(w->node_ip));
        changed |= set_address(addresses, "Hostname", w->node_name);
        changed |= w->addresses && set_other_addresses(addresses, w->addresses);
        changed |= set_condition(node, "Ready", w->ready, w, now_ms);
    }
    return set_condition(node, "NetworkUnavailable", !w->ready, w, now_ms) || changed;
}

/* PRETTY_NAME of os-release(5), without its quotes. */
static char *os_image(void)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    if (file_read("/etc/os-release", 65536, &text, NULL) < 0) {
        return xstrdup("Linux");
    }
    static const char key[] = "PRETTY_NAME=";
    const char *at = strbuf_cstr(&text);
    while (at && !str_has_prefix(at, key)) {
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
    if (!at) {
        return xstrdup("Linux");
    }
    at += strlen(key);
    at += *at == '"';
    return xstrndup(at, strcspn(at, "\"\n"));
}

/* The text of a file with one line; empty when it cannot be read, for lack of rights or of the
 * device. */
static void set_from_file(struct json *info, const char *key, const char *path)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    if (file_read(path, 4096, &text, NULL) == 0) {
        CLEANUP_FREE char *line = xstrndup(strbuf_cstr(&text), strcspn(strbuf_cstr(&text), " \n"));
        json_set_string(info, key, line);
    }
}

static struct json *new_node(const struct registration *r)
{
    struct utsname u = {0};
    uname(&u);
    const char *arch = streq(u.machine, "x86_64")    ? "amd64"
                       : streq(u.machine, "aarch64") ? "arm64"
                                                     : u.machine;
    struct json *node = json_object();
    json_set_string(node, "apiVersion", "v1");
    json_set_string(node, "kind", "Node");
    struct json *metadata = json_ensure_object(node, "metadata");
    json_set_string(metadata, "name", r->name);
    struct json *labels = json_ensure_object(metadata, "labels");
    json_set_string(labels, "kubernetes.io/hostname", r->name);
    json_set_string(labels, "kubernetes.io/os", "linux");
    json_set_string(labels, "kubernetes.io/arch", arch);
    struct json *info = json_ensure_object(json_ensure_object(node, "status"), "nodeInfo");
    json_set_string(info, "operatingSystem", "linux");
    json_set_string(info, "architecture", arch);
    json_set_string(info, "kernelVersion", u.release);
    CLEANUP_FREE char *image = os_image();
    json_set_string(info, "osImage", image);
    json_set_string(info, "kubeletVersion", "tenet-" TENET_VERSION);
    set_from_file(info, "machineID", "/etc/machine-id");
    set_from_file(info, "bootID", "/proc/sys/kernel/random/boot_id");
    set_from_file(info, "systemUUID", "/sys/class/dmi/id/product_uuid");
    return node;
}

/* ---- bringing it there ---- */

static void begin(void *ctx);

static struct registration_want want_of(const struct registration *r)
{
    return (struct registration_want){.node_name = r->name,
                                      .node_ip = r->ip,
                                      .addresses = r->has_addresses ? &r->addresses : NULL,
                                      .ready = r->ready,
                                      .reason = r->reason,
                                      .message = r->message,
                                      .heartbeat = r->heartbeat};
}

static void retry(struct registration *r, const char *text)
{
    if (said_is_news(&r->failure, text)) {
        log_warn("cannot register this node", "node=%s error=\"%s\"", r->name, text);
    }
    loop_timer_arm(r->timer, backoff_fail(&r->attempts, loop_now_ms(r->loop), r->ip));
}

static void succeeded(struct registration *r)
{
    if (r->failure.text) {
        log_info("the master has this node again", "node=%s", r->name);
        said_done(&r->failure);
    }
    backoff_reset(&r->attempts);
    r->heartbeat = false;
    loop_timer_arm(r->timer, r->dirty ? 0 : HEARTBEAT_MS);
    if (!r->is_registered) {
        r->is_registered = true;
        log_info("node registered", "node=%s ip=%s", r->name, IP4_TEXT(r->ip));
        r->registered(r->ctx);
    }
}

static void written(void *ctx, int error, const char *text, struct json *obj)
{
    struct registration *r = ctx;
    r->call = NULL;
    if (error == 0) {
        succeeded(r);
        return;
    }
    r->dirty = true;
    /* Another client changed the object: read it and try again. */
    if (error == -ESTALE || error == -EEXIST) {
        begin(r);
        return;
    }
    if (r->addresses.n && (error == -EINVAL || error == -EACCES || error == -EPERM)) {
        /* One refused address, which the registry has for another node, must not cost the node its
         * registration. */
        log_warn("this node's further addresses are refused; only the main one is reported",
                 "node=%s error=\"%s\"", r->name, text);
        r->addresses.n = 0;
        begin(r);
        return;
    }
    retry(r, text);
}

static void created(void *ctx, int error, const char *text, struct json *obj)
{
    struct registration *r = ctx;
    if (error == 0) {
        /* Some servers drop the status of a new object: then it is written by itself. */
        struct registration_want w = want_of(r);
        w.heartbeat = false;
        CLEANUP(json_free) struct json *copy = json_clone(obj);
        if (registration_update(copy, &w, time_wall_ms())) {
            r->call = api_request(r->client, "PUT", r->status_path, NULL, copy, written, r);
            return;
        }
    }
    written(r, error, text, obj);
}

/* Then the status, in a request of its own. */
static void annotated(void *ctx, int error, const char *text, struct json *obj)
{
    struct registration *r = ctx;
    if (error == 0) {
        r->call = NULL;
        r->dirty = true;
        begin(r);
        return;
    }
    if (error == -EACCES || error == -EPERM) {
        /* The node's status matters more; host ports stay closed to the outside. */
        log_warn("this agent may not update its Node: its host ports are not published and stay "
                 "closed to the outside",
                 "node=%s error=\"%s\"", r->name, text);
        r->call = NULL;
        r->dirty = r->host_ports_refused = true;
        begin(r);
        return;
    }
    written(r, error, text, obj);
}

static void read_back(void *ctx, int error, const char *text, struct json *obj)
{
    struct registration *r = ctx;
    struct registration_want w = want_of(r);
    r->call = NULL;
    if (error == -ENOENT && r->is_registered) {
        /* The Node was deleted on purpose; this node's HostSubnet is deleted next. */
        r->gone = true;
        return;
    }
    if (error < 0 && error != -ENOENT) {
        r->dirty = true;
        retry(r, text);
        return;
    }
    CLEANUP(json_free) struct json *node = error == 0 ? json_clone(obj) : new_node(r);
    if (r->has_host_ports && !r->host_ports_refused && registration_annotate(node, r->host_ports) &&
        error == 0) {
        r->call = api_request(r->client, "PUT", r->path, NULL, node, annotated, r);
        return;
    }
    bool changed = registration_update(node, &w, time_wall_ms());
    if (error == -ENOENT) {
        r->call = api_request(r->client, "POST", "/api/v1/nodes", NULL, node, created, r);
    } else if (changed) {
        r->call = api_request(r->client, "PUT", r->status_path, NULL, node, written, r);
    } else {
        succeeded(r);
    }
}

static void begin(void *ctx)
{
    struct registration *r = ctx;
    if (r->call || r->gone) {
        return;
    }
    if (!r->dirty && r->is_registered) {
        r->heartbeat = true;
    }
    r->dirty = false;
    r->call = api_request(r->client, "GET", r->path, NULL, NULL, read_back, r);
}

struct registration *registration_new(const struct registration_config *c, loop_fn *registered,
                                      void *ctx)
{
    struct registration *r = NEW(struct registration);
    r->attempts = BACKOFF_INIT(RETRY_MIN_MS, RETRY_MAX_MS);
    r->loop = c->loop;
    r->client = c->client;
    r->name = xstrdup(c->node_name);
    r->ip = c->node_ip;
    r->path = api_path("v1", "nodes", NULL, r->name, NULL);
    r->status_path = api_path("v1", "nodes", NULL, r->name, "status");
    r->registered = registered;
    r->ctx = ctx;
    r->reason = xstrdup("TenetStarting");
    r->message = xstrdup("the node's agent is starting");
    r->timer = loop_timer_new(c->loop, begin, r);
    loop_timer_arm(r->timer, 0);
    return r;
}

struct registration *registration_free(struct registration *r)
{
    if (r) {
        if (r->call) {
            api_call_cancel(r->call);
        }
        loop_timer_free(r->timer);
        free(r->name);
        free(r->path);
        free(r->status_path);
        free(r->reason);
        free(r->message);
        free(r->host_ports);
        said_done(&r->failure);
        free(r);
    }
    return NULL;
}

static void write_soon(struct registration *r)
{
    r->dirty = true;
    backoff_reset(&r->attempts);
    loop_timer_arm(r->timer, 0);
}

void registration_set_ready(struct registration *r, bool ready, const char *reason,
                            const char *message)
{
    if (r->ready == ready && streq(r->reason, reason) && streq(r->message, message)) {
        return;
    }
    r->ready = ready;
    free(r->reason);
    free(r->message);
    r->reason = xstrdup(reason);
    r->message = xstrdup(message);
    write_soon(r);
}

void registration_set_addresses(struct registration *r, const struct sdn_addresses *a)
{
    if (!r->has_addresses || a->n != r->offered.n ||
        memcmp(a->ip, r->offered.ip, a->n * sizeof a->ip[0]) != 0) {
        r->has_addresses = true;
        r->addresses = r->offered = *a;
        write_soon(r);
    }
}

void registration_set_host_ports(struct registration *r, const char *text)
{
    if (!r->has_host_ports || !streq_null(r->host_ports, text)) {
        free(r->host_ports);
        r->host_ports = text ? xstrdup(text) : NULL;
        r->has_host_ports = true;
        r->host_ports_refused = false;
        write_soon(r);
    }
}

bool registration_is_current(const struct registration *r)
{
    return r->gone || (!r->dirty && !r->call);
}
