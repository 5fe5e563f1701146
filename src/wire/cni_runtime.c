/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/cni_runtime.h"

#include "base/ip.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>

/* Runtimes without a burst setting send the field's maximum; applied literally, that would be
 * seconds without a limit. */
#define NO_BURST ((uint64_t) INT32_MAX)
#define ELSEWHERE "elsewhere"
#define ENGINE "engine"
#define MAX_BURST (UINT64_C(1) << 34) /* 2 GiB */

void cni_runtime_done(struct cni_runtime *r)
{
    free(r->ports);
    *r = (struct cni_runtime){0};
}

/* ---- ports ---- */

static const struct {
    uint8_t number;
    const char *name;
} protocols[] = {{CNI_TCP, "tcp"}, {CNI_UDP, "udp"}, {CNI_SCTP, "sctp"}};

uint8_t cni_protocol_parse(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
        if (strcasecmp(name, protocols[i].name) == 0) {
            return protocols[i].number;
        }
    }
    return 0;
}

const char *cni_protocol_name(uint8_t protocol)
{
    for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
        if (protocol == protocols[i].number) {
            return protocols[i].name;
        }
    }
    return "?";
}

bool cni_host_port_overlaps(const struct cni_host_port *a, const struct cni_host_port *b)
{
    return a->protocol == b->protocol && a->host_port == b->host_port &&
           (a->host_ip == b->host_ip || a->host_ip == 0 || b->host_ip == 0);
}

int cni_runtime_add_port(struct cni_runtime *r, const struct cni_host_port *p, struct err *e)
{
    for (size_t i = 0; i < r->n_ports; i++) {
        const struct cni_host_port *x = &r->ports[i];
        if (!cni_host_port_overlaps(x, p)) {
            continue;
        }
        if (x->host_ip == p->host_ip && x->port == p->port) {
            return 0; /* Said twice. */
        }
        return err_set(e, -EEXIST, "host port %u/%s is asked for twice, for ports %u and %u",
                       p->host_port, cni_protocol_name(p->protocol), x->port, p->port);
    }
    if (r->n_ports == CNI_MAX_HOST_PORTS) {
        return err_set(e, -E2BIG, "more than %d host ports", CNI_MAX_HOST_PORTS);
    }
    struct cni_host_port *ports = xcalloc(r->n_ports + 1, sizeof *ports);
    if (r->n_ports) {
        memcpy(ports, r->ports, r->n_ports * sizeof *ports);
    }
    free(r->ports);
    r->ports = ports;
    r->ports[r->n_ports++] = *p;
    return 0;
}

/* ---- runtimeConfig ---- */

/* containerd writes "HostPort", others "hostPort": Go's decoder, for which the plug-ins were
 * written, accepts both. */
static const struct json *member(const struct json *v, const char *key)
{
    for (size_t i = 0; i < json_count(v); i++) {
        if (strcasecmp(json_key_at(v, i), key) == 0) {
            return json_at(v, i);
        }
    }
    return NULL;
}

static int get_port(const struct json *v, const char *field, uint16_t *ret, struct err *e)
{
    int64_t n;
    if (json_get_int(member(v, field), &n) < 0 || n < 0 || n > 65535) {
        return err_set(e, -EINVAL, "%s: is not a number in 0-65535", field);
    }
    *ret = (uint16_t) n;
    return 0;
}

static int parse_mapping(const struct json *v, struct cni_runtime *r, struct err *e)
{
    struct cni_host_port p = {0};
    if (!json_is(v, JSON_OBJECT)) {
        return err_set(e, -EINVAL, "is not an object");
    }
    int k = get_port(v, "hostPort", &p.host_port, e);
    k = k < 0 ? k : get_port(v, "containerPort", &p.port, e);
    if (k < 0) {
        return k;
    }
    if (p.host_port == 0) {
        return 0; /* No host port is requested. */
    }
    if (p.port == 0) {
        return err_set(e, -EINVAL, "containerPort: is not a number in 1-65535");
    }
    const char *protocol = json_get_string(member(v, "protocol"));
    p.protocol = cni_protocol_parse(protocol && *protocol ? protocol : "tcp");
    if (!p.protocol) {
        return err_set(e, -EINVAL, "protocol: \"%.40s\" is not tcp, udp or sctp", protocol);
    }
    const char *ip = json_get_string(member(v, "hostIP"));
    if (ip && *ip && !streq(ip, "::") && ip4_parse(ip, &p.host_ip) < 0) {
        return err_set(e, -EINVAL, "hostIP: \"%.60s\" is not an IPv4 address", ip);
    }
    return cni_runtime_add_port(r, &p, e);
}

static int parse_mappings(const struct json *list, struct cni_runtime *r, struct err *e)
{
    if (!json_is(list, JSON_ARRAY)) {
        return err_set(e, -EINVAL, "portMappings: is not a list");
    }
    r->has_ports = true;
    for (size_t i = 0; i < json_count(list); i++) {
        int k = parse_mapping(json_at(list, i), r, e);
        if (k < 0) {
            return err_prefix(e, "portMappings[%zu]", i);
        }
    }
    return 0;
}

static int parse_rate(const struct json *v, const char *direction, uint64_t *rate, uint64_t *burst,
                      struct err *e)
{
    char field[2][32];
    int64_t n[2];
    snprintf(field[0], sizeof field[0], "%sRate", direction);
    snprintf(field[1], sizeof field[1], "%sBurst", direction);
    for (int i = 0; i < 2; i++) {
        const struct json *x = member(v, field[i]);
        n[i] = 0;
        if (x && !json_is(x, JSON_NULL) && (json_get_int(x, &n[i]) < 0 || n[i] < 0)) {
            return err_set(e, -EINVAL, "bandwidth.%s: is not a number of bits", field[i]);
        }
    }
    if (n[0] && ((uint64_t) n[0] < CNI_MIN_RATE || (uint64_t) n[0] > CNI_MAX_RATE)) {
        return err_set(e, -EINVAL, "bandwidth.%s: %" PRId64 " is not in 1000-1000000000000000",
                       field[0], n[0]);
    }
    *rate = (uint64_t) n[0];
    *burst = n[0] == 0 || (uint64_t) n[1] >= NO_BURST ? 0 : (uint64_t) n[1];
    return 0;
}

static bool is_empty(const struct json *v)
{
    return json_is(v, JSON_NULL) ||
           ((json_is(v, JSON_ARRAY) || json_is(v, JSON_OBJECT)) && json_count(v) == 0);
}

static int parse_member(const char *key, const struct json *v, struct cni_runtime *r, struct err *e)
{
    if (json_is(v, JSON_NULL)) {
        return 0;
    }
    if (streq(key, "portMappings")) {
        return parse_mappings(v, r, e);
    }
    if (streq(key, "bandwidth")) {
        if (!json_is(v, JSON_OBJECT)) {
            return err_set(e, -EINVAL, "bandwidth: is not an object");
        }
        struct cni_bandwidth *b = &r->bandwidth;
        r->has_bandwidth = true;
        int k = parse_rate(v, "ingress", &b->to_pod, &b->to_pod_burst, e);
        return k < 0 ? k : parse_rate(v, "egress", &b->from_pod, &b->from_pod_burst, e);
    }
    CLEANUP_FREE char *text = is_empty(v) ? NULL : json_to_text(v);
    return text ? err_set(e, -ENOTSUP, "%.100s: %.200s", key, text) : 0;
}

int cni_runtime_parse(const struct json *v, struct cni_runtime *ret, struct err *e)
{
    CLEANUP(cni_runtime_done) struct cni_runtime r = {0};
    int k = json_is(v, JSON_OBJECT) ? 0 : err_set(e, -EINVAL, "is not an object");
    for (size_t i = 0; k == 0 && i < json_count(v); i++) {
        k = parse_member(json_key_at(v, i), json_at(v, i), &r, e);
    }
    if (k == 0) {
        *ret = r;
        r = (struct cni_runtime){0};
    }
    return k;
}

struct json *cni_runtime_to_json(const struct cni_runtime *r)
{
    if (!r->has_ports && !r->has_bandwidth) {
        return NULL;
    }
    struct json *v = json_object();
    struct json *list = r->has_ports ? json_set(v, "portMappings", json_array()) : NULL;
    for (size_t i = 0; i < r->n_ports; i++) {
        const struct cni_host_port *p = &r->ports[i];
        struct json *item = json_append(list, json_object());
        json_set_int(item, "hostPort", p->host_port);
        json_set_int(item, "containerPort", p->port);
        json_set_string(item, "protocol", cni_protocol_name(p->protocol));
        json_set_string(item, "hostIP", p->host_ip ? IP4_TEXT(p->host_ip) : NULL);
    }
    if (r->has_bandwidth) {
        const struct cni_bandwidth *b = &r->bandwidth;
        struct json *o = json_set(v, "bandwidth", json_object());
        json_set_int(o, "ingressRate", (int64_t) b->to_pod);
        json_set_int(o, "ingressBurst", (int64_t) b->to_pod_burst);
        json_set_int(o, "egressRate", (int64_t) b->from_pod);
        json_set_int(o, "egressBurst", (int64_t) b->from_pod_burst);
    }
    return v;
}

/* ---- stored as text ---- */

char *cni_host_ports_text(const struct cni_runtime *r)
{
    struct strbuf out = STRBUF_INIT;
    for (size_t i = 0; i < r->n_ports; i++) {
        const struct cni_host_port *p = &r->ports[i];
        strbuf_addf(&out, "%s%s:", i ? "," : "", cni_protocol_name(p->protocol));
        if (p->host_ip) {
            strbuf_addf(&out, "%s:", IP4_TEXT(p->host_ip));
        }
        strbuf_addf(&out, "%u:%u", p->host_port, p->port);
    }
    if (r->n_ports && r->by_engine) {
        strbuf_adds(&out, "," ENGINE);
    }
    return r->n_ports ? strbuf_steal(&out) : NULL;
}

static int parse_stored_port(char *item, struct cni_runtime *r)
{
    char *part[4] = {item};
    size_t n = 1;
    for (char *p = item; *p; p++) {
        if (*p == ':') {
            if (n == ARRAY_SIZE(part)) {
                return -EINVAL;
            }
            *p = '\0';
            part[n++] = p + 1;
        }
    }
    struct cni_host_port p = {.protocol = cni_protocol_parse(part[0])};
    uint64_t host, own;
    if (n < 3 || !p.protocol || (n == 4 && ip4_parse(part[1], &p.host_ip) < 0) ||
        str_to_u64(part[n - 2], 65535, &host) < 0 || host == 0 ||
        str_to_u64(part[n - 1], 65535, &own) < 0 || own == 0) {
        return -EINVAL;
    }
    p.host_port = (uint16_t) host;
    p.port = (uint16_t) own;
    return cni_runtime_add_port(r, &p, NULL) < 0 ? -EINVAL : 0;
}

int cni_host_ports_parse(const char *text, struct cni_runtime *r)
{
    CLEANUP(cni_runtime_done) struct cni_runtime found = {0};
    CLEANUP_FREE char *copy = xstrdup(text);
    char *save = NULL;
    for (char *item = strtok_r(copy, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
        if (streq(item, ENGINE)) {
            found.by_engine = true;
        } else if (parse_stored_port(item, &found) < 0) {
            return -EINVAL;
        }
    }
    r->by_engine = found.by_engine;
    free(r->ports);
    r->ports = TAKE(found.ports);
    r->n_ports = found.n_ports;
    return 0;
}

char *cni_bandwidth_text(const struct cni_bandwidth *b)
{
    if (b->elsewhere) {
        return xstrdup(ELSEWHERE);
    }
    if (!b->to_pod && !b->from_pod) {
        return NULL;
    }
    return xasprintf("to=%" PRIu64 "/%" PRIu64 ",from=%" PRIu64 "/%" PRIu64, b->to_pod,
                     b->to_pod_burst, b->from_pod, b->from_pod_burst);
}

/* Parses up to the character 'end', which is skipped; NULL: malformed. */
static const char *parse_number(const char *p, char end, uint64_t max, uint64_t *ret)
{
    const char *q = p ? strchr(p, end) : NULL;
    CLEANUP_FREE char *text = q ? xstrndup(p, (size_t) (q - p)) : NULL;
    return text && str_to_u64(text, max, ret) == 0 ? q + (end != '\0') : NULL;
}

int cni_bandwidth_parse(const char *text, struct cni_bandwidth *ret)
{
    struct cni_bandwidth b = {.elsewhere = streq(text, ELSEWHERE)};
    if (b.elsewhere) {
        *ret = b;
        return 0;
    }
    if (!str_has_prefix(text, "to=")) {
        return -EINVAL;
    }
    const char *p = parse_number(text + 3, '/', CNI_MAX_RATE, &b.to_pod);
    p = parse_number(p, ',', MAX_BURST, &b.to_pod_burst);
    if (!p || !str_has_prefix(p, "from=")) {
        return -EINVAL;
    }
    p = parse_number(p + 5, '/', CNI_MAX_RATE, &b.from_pod);
    p = parse_number(p, '\0', MAX_BURST, &b.from_pod_burst);
    if (!p) {
        return -EINVAL;
    }
    *ret = b;
    return 0;
}
