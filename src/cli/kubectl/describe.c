/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/kubectl/describe.h"

#include "api/label_selector.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "cli/kubectl/print.h"

#include <ctype.h>
#include <strings.h>

#define GAP 2

/* ---- lines: labels, and values in a column ---- */

struct line {
    char *label; /* With its indentation, and with ":" if it has one. */
    char *value; /* NULL: none. */
};
struct lines {
    struct line *list;
    size_t n, cap;
};

static void lines_done(struct lines *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->list[i].label);
        free(l->list[i].value);
    }
    free(l->list);
}
#define CLEANUP_LINES __attribute__((cleanup(lines_done)))

/* 'value' NULL: a heading.  Line breaks in values are shown as such and do not make lines. */
static void add(struct lines *l, unsigned level, const char *label, const char *value)
{
    CLEANUP_STRBUF struct strbuf v = STRBUF_INIT;
    for (const char *p = value ? value : ""; *p; p++) {
        if ((unsigned char) *p < 0x20 || *p == 0x7f) {
            strbuf_addf(&v, *p == '\n' ? "\\n" : "\\x%02x", (unsigned char) *p);
        } else {
            strbuf_addc(&v, *p);
        }
    }
    l->list = grow(l->list, &l->cap, l->n + 1, sizeof(*l->list));
    l->list[l->n++] = (struct line){xasprintf("%*s%s:", (int) level * 2, "", label),
                                    value ? strbuf_steal(&v) : NULL};
}

static void add_text(struct lines *l, unsigned level, const char *text)
{
    add(l, level, text, NULL);
    struct line *last = &l->list[l->n - 1];
    last->label[strlen(last->label) - 1] = '\0';
}

/* The values of consecutive lines that have one stand in one column. */
static void write_lines(const struct lines *l, struct strbuf *out)
{
    for (size_t i = 0; i < l->n;) {
        size_t end = i, width = 0;
        for (; end < l->n && l->list[end].value; end++) {
            width = MAX(width, strlen(l->list[end].label) + GAP);
        }
        if (end == i) {
            strbuf_addf(out, "%s\n", l->list[i++].label);
        }
        for (; i < end; i++) {
            strbuf_addf(out, "%-*s%s\n", (int) width, l->list[i].label, l->list[i].value);
        }
    }
}

/* ---- any object ---- */

/* Writes one word of a name: capitalised, or all in capitals when it is an abbreviation. */
static void add_word(const char *word, size_t n, struct strbuf *out)
{
    static const char *const upper[] = {"id", "ip", "mac", "uid", "url", "api", "mtu"};
    bool capitals = false;
    for (size_t i = 0; i < ARRAY_SIZE(upper); i++) {
        capitals |= strlen(upper[i]) == n && !strncasecmp(word, upper[i], n);
    }
    for (size_t i = 0; i < n; i++) {
        bool big = capitals || i == 0;
        strbuf_addc(out, big ? (char) toupper((unsigned char) word[i]) : word[i]);
    }
}

void describe_label(const char *field, struct strbuf *out)
{
    if (strpbrk(field, "/.-_")) {
        strbuf_adds(out, field);
        return;
    }
    const char *word = field;
    for (const char *p = field; *p; p++) {
        bool end = !p[1] || (isupper((unsigned char) p[1]) &&
                             (!isupper((unsigned char) *p) ||
                              (islower((unsigned char) p[2]) && !streq(p + 2, "s"))));
        if (end) {
            strbuf_adds(out, word > field ? " " : "");
            add_word(word, (size_t) (p + 1 - word), out);
            word = p + 1;
        }
    }
}

static char *scalar_text(const struct json *v)
{
    if (json_is(v, JSON_STRING)) {
        return xstrdup(json_get_string(v));
    }
    return json_is(v, JSON_NULL) ? xstrdup("<nil>") : json_to_text(v);
}

static bool is_tree(const struct json *v)
{
    return json_is(v, JSON_OBJECT) || json_is(v, JSON_ARRAY);
}

static void add_value(struct lines *l, unsigned level, const char *label, const struct json *v);

/* Writes all members, sorted by name. */
static void add_members(struct lines *l, unsigned level, const struct json *o)
{
    size_t n = 0;
    CLEANUP_FREE const char **keys = print_sorted_keys(o, &n);
    for (size_t i = 0; i < n; i++) {
        const char *key = keys[i];
        CLEANUP_STRBUF struct strbuf label = STRBUF_INIT;
        describe_label(key, &label);
        add_value(l, level, strbuf_cstr(&label), json_get(o, key));
    }
}

static void add_value(struct lines *l, unsigned level, const char *label, const struct json *v)
{
    if (!is_tree(v)) {
        CLEANUP_FREE char *text = scalar_text(v);
        add(l, level, label, text);
        return;
    }
    add(l, level, label, NULL);
    if (json_is(v, JSON_OBJECT)) {
        add_members(l, level + 1, v);
        return;
    }
    const struct json *item;
    JSON_FOREACH (item, v) {
        if (json_is(item, JSON_OBJECT)) {
            add_members(l, level + 1, item);
        } else {
            CLEANUP_FREE char *text = scalar_text(item);
            add_text(l, level + 1, text);
        }
    }
}

/* Writes "Labels: a=b" and one line for each further label. */
static void add_map(struct lines *l, const char *label, const struct json *map, const char *between)
{
    size_t n = 0;
    CLEANUP_FREE const char **keys = print_sorted_keys(map, &n);
    if (n == 0) {
        add(l, 0, label, "<none>");
    }
    for (size_t i = 0; i < n; i++) {
        CLEANUP_FREE char *value = scalar_text(json_get(map, keys[i]));
        CLEANUP_FREE char *text = xasprintf("%s%s%s", keys[i], between, value);
        add(l, 0, i ? "" : label, text);
        if (i) {
            l->list[l->n - 1].label[0] = '\0';
        }
    }
}

static void add_string(struct lines *l, const char *label, const char *value)
{
    add(l, 0, label, value && *value ? value : "<none>");
}

static void add_head(struct lines *l, const struct json *o)
{
    const struct json *m = json_get(o, "metadata");
    add_string(l, "Name", json_path_string(m, "name", NULL));
    const char *ns = json_path_string(m, "namespace", NULL);
    add(l, 0, "Namespace", ns ? ns : "");
    add_map(l, "Labels", json_get(m, "labels"), "=");
    add_map(l, "Annotations", json_get(m, "annotations"), ": ");
}

static void describe_any(const struct api_kind *k, const struct json *o, bool no_events,
                         struct strbuf *out)
{
    static const char *const in_head[] = {"name",        "namespace",     "labels",
                                          "annotations", "managedFields", NULL};
    CLEANUP_LINES struct lines l = {0};
    CLEANUP(json_free) struct json *rest = json_clone(o);
    CLEANUP_FREE char *version = api_kind_api_version(k);
    json_set_string(rest, "apiVersion", version);
    json_set_string(rest, "kind", k->kind);
    struct json *meta = json_ensure_object(rest, "metadata");
    for (size_t i = 0; in_head[i]; i++) {
        json_remove(meta, in_head[i]);
    }
    add_head(&l, o);
    add_members(&l, 0, rest);
    if (no_events) {
        add(&l, 0, "Events", "<none>");
    }
    write_lines(&l, out);
}

/* ---- tables ---- */

/* Writes a heading and rows of texts; cells may be NULL. */
struct rows {
    const char **cells;
    size_t n, cap, columns;
};

static void rows_add(struct rows *r, const char *cell)
{
    r->cells = grow(r->cells, &r->cap, r->n + 1, sizeof(*r->cells));
    r->cells[r->n++] = cell && *cell ? cell : "<none>";
}

static void rows_write(struct rows *r, const char *title, size_t n_header, struct strbuf *out)
{
    if (r->n == n_header) {
        strbuf_addf(out, "%s:  <none>\n", title);
    } else {
        strbuf_addf(out, "%s:\n", title);
        print_columns(r->cells, r->columns, r->n / r->columns, "  ", out);
    }
    free(r->cells);
}

static struct rows rows_new(const char *const *header, size_t n)
{
    struct rows r = {.columns = n};
    for (size_t i = 0; i < n; i++) {
        rows_add(&r, header[i]);
    }
    return r;
}

static void write_events(const struct json *events, int64_t now_ms, struct strbuf *out)
{
    static const char *const header[] = {"Type", "Reason", "Age", "From", "Message",
                                         "----", "------", "---", "----", "-------"};
    struct rows r = rows_new(header, ARRAY_SIZE(header));
    r.columns = 5;
    size_t n = json_count(json_get(events, "items"));
    CLEANUP_FREE char(*ages)[TIME_TEXT_SIZE * 2] = xcalloc(n + 1, sizeof(*ages));
    for (size_t i = 0; i < n; i++) {
        const struct json *ev = json_at(json_get(events, "items"), i);
        const char *last = json_path_string(ev, "lastTimestamp", NULL);
        int64_t seen = 0, count = json_get_int_or(json_get(ev, "count"), 1);
        char age[TIME_TEXT_SIZE] = "<unknown>";
        if (last && time_parse(last, &seen) == 0) {
            time_format_age(now_ms - seen, age);
        }
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT_MAX(sizeof(*ages) - 1);
        strbuf_adds(&text, age);
        if (count > 1) {
            strbuf_addf(&text, " (x%lld)", (long long) count);
        }
        memcpy(ages[i], strbuf_cstr(&text), text.size + 1);
        rows_add(&r, json_path_string(ev, "type", NULL));
        rows_add(&r, json_path_string(ev, "reason", NULL));
        rows_add(&r, ages[i]);
        rows_add(&r, json_path_string(ev, "source", "component", NULL));
        rows_add(&r, json_path_string(ev, "message", NULL));
    }
    rows_write(&r, "Events", ARRAY_SIZE(header), out);
}

static void write_pods(const struct json *pods, struct strbuf *out)
{
    static const char *const header[] = {"Namespace", "Name", "IP", "Node",
                                         "---------", "----", "--", "----"};
    struct rows r = rows_new(header, ARRAY_SIZE(header));
    r.columns = 4;
    const struct json *p;
    JSON_FOREACH (p, json_get(pods, "items")) {
        rows_add(&r, json_path_string(p, "metadata", "namespace", NULL));
        rows_add(&r, json_path_string(p, "metadata", "name", NULL));
        rows_add(&r, json_path_string(p, "status", "podIP", NULL));
        rows_add(&r, json_path_string(p, "spec", "nodeName", NULL));
    }
    rows_write(&r, "Pods", ARRAY_SIZE(header), out);
}

static void write_conditions(const struct json *o, struct strbuf *out)
{
    static const char *const header[] = {"Type", "Status", "Since", "Reason", "Message",
                                         "----", "------", "-----", "------", "-------"};
    struct rows r = rows_new(header, ARRAY_SIZE(header));
    r.columns = 5;
    const struct json *c;
    JSON_FOREACH (c, json_path(o, "status", "conditions", NULL)) {
        rows_add(&r, json_path_string(c, "type", NULL));
        rows_add(&r, json_path_string(c, "status", NULL));
        rows_add(&r, json_path_string(c, "lastTransitionTime", NULL));
        rows_add(&r, json_path_string(c, "reason", NULL));
        rows_add(&r, json_path_string(c, "message", NULL));
    }
    rows_write(&r, "Conditions", ARRAY_SIZE(header), out);
}

/* ---- kinds with a form of their own ---- */

static void describe_node(const struct json *o, const struct describe_more *more,
                          struct strbuf *out)
{
    CLEANUP_LINES struct lines l = {0};
    add_head(&l, o);
    add_string(&l, "Created", json_path_string(o, "metadata", "creationTimestamp", NULL));
    add_string(&l, "Host Subnet", json_path_string(more->hostsubnet, "subnet", NULL));
    add(&l, 0, "Addresses", NULL);
    const struct json *a;
    JSON_FOREACH (a, json_path(o, "status", "addresses", NULL)) {
        const char *type = json_path_string(a, "type", NULL);
        const char *address = json_path_string(a, "address", NULL);
        add(&l, 1, type ? type : "", address ? address : "");
    }
    const struct json *info = json_path(o, "status", "nodeInfo", NULL);
    if (info) {
        add_value(&l, 0, "System Info", info);
    }
    write_lines(&l, out);
    write_conditions(o, out);
    write_pods(more->pods, out);
}

static void describe_namespace(const struct json *o, const struct describe_more *more,
                               struct strbuf *out)
{
    CLEANUP_LINES struct lines l = {0};
    add_head(&l, o);
    add_string(&l, "Status", json_path_string(o, "status", "phase", NULL));
    const char *id = json_number_text(json_get(more->netnamespace, "netid"));
    add_string(&l, "NetID", id);
    write_lines(&l, out);
    write_pods(more->pods, out);
}

#define ENDPOINTS_SHOWN 3 /* The form is kubectl's. */

/* The ready endpoints of one port of a service, found by the port's name. */
static char *endpoints_text(const struct json *endpoints, const char *port)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *s, *p, *a;
    size_t n = 0;
    JSON_FOREACH (s, json_get(endpoints, "subsets")) {
        JSON_FOREACH (p, json_get(s, "ports")) {
            const char *name = json_path_string(p, "name", NULL);
            if (!streq(name ? name : "", port)) {
                continue;
            }
            JSON_FOREACH (a, json_get(s, "addresses")) {
                const char *ip = json_path_string(a, "ip", NULL);
                if (n++ < ENDPOINTS_SHOWN) {
                    strbuf_addf(&b, "%s%s:%lld", b.size ? "," : "", ip ? ip : "",
                                (long long) json_get_int_or(json_get(p, "port"), 0));
                }
            }
        }
    }
    if (n > ENDPOINTS_SHOWN) {
        strbuf_addf(&b, " + %zu more...", n - ENDPOINTS_SHOWN);
    }
    return xstrdup(b.size ? b.data : "");
}

static void add_joined(struct lines *l, const char *label, const struct json *list)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *item;
    JSON_FOREACH (item, list) {
        const char *s = json_get_string(item);
        strbuf_addf(&b, "%s%s", b.size ? "," : "", s ? s : "");
    }
    if (b.size) {
        add(l, 0, label, b.data);
    }
}

static void add_service_port(struct lines *l, const struct json *port, const struct json *endpoints)
{
    const char *name = json_path_string(port, "name", NULL);
    const char *protocol = json_path_string(port, "protocol", NULL);
    const struct json *target = json_get(port, "targetPort");
    long long node_port = (long long) json_get_int_or(json_get(port, "nodePort"), 0);
    const char *shown = name && *name ? name : "<unset>";
    protocol = protocol ? protocol : "TCP";
    CLEANUP_FREE char *text = xasprintf(
        "%s  %lld/%s", shown, (long long) json_get_int_or(json_get(port, "port"), 0), protocol);
    add(l, 0, "Port", text);
    CLEANUP_FREE char *target_text = target ? scalar_text(target) : xstrdup("0");
    CLEANUP_FREE char *both = xasprintf("%s/%s", target_text, protocol);
    add(l, 0, "TargetPort", both);
    if (node_port) {
        CLEANUP_FREE char *on_nodes = xasprintf("%s  %lld/%s", shown, node_port, protocol);
        add(l, 0, "NodePort", on_nodes);
    }
    CLEANUP_FREE char *behind = endpoints_text(endpoints, name ? name : "");
    add(l, 0, "Endpoints", behind);
}

static void describe_service(const struct json *o, const struct describe_more *more,
                             struct strbuf *out)
{
    static const struct {
        const char *label, *field;
    } last[] = {{"Session Affinity", "sessionAffinity"},
                {"External Traffic Policy", "externalTrafficPolicy"},
                {"Internal Traffic Policy", "internalTrafficPolicy"}};
    CLEANUP_LINES struct lines l = {0};
    const struct json *spec = json_get(o, "spec"), *port, *in;
    add_head(&l, o);
    add_map(&l, "Selector", json_get(spec, "selector"), "=");
    add_string(&l, "Type", json_path_string(spec, "type", NULL));
    if (json_path_string(spec, "ipFamilyPolicy", NULL)) {
        add_string(&l, "IP Family Policy", json_path_string(spec, "ipFamilyPolicy", NULL));
    }
    add_joined(&l, "IP Families", json_get(spec, "ipFamilies"));
    const char *ip = json_path_string(spec, "clusterIP", NULL);
    add(&l, 0, "IP", ip ? ip : "");
    add_joined(&l, "IPs", json_get(spec, "clusterIPs"));
    add_joined(&l, "External IPs", json_get(spec, "externalIPs"));
    if (json_path_string(spec, "externalName", NULL)) {
        add_string(&l, "External Name", json_path_string(spec, "externalName", NULL));
    }
    CLEANUP(json_free) struct json *ingress = json_array();
    JSON_FOREACH (in, json_path(o, "status", "loadBalancer", "ingress", NULL)) {
        const char *address = json_path_string(in, "ip", NULL);
        address = address ? address : json_path_string(in, "hostname", NULL);
        json_append(ingress, json_string(address ? address : ""));
    }
    add_joined(&l, "LoadBalancer Ingress", ingress);
    JSON_FOREACH (port, json_get(spec, "ports")) {
        add_service_port(&l, port, more->endpoints);
    }
    for (size_t i = 0; i < ARRAY_SIZE(last); i++) {
        const char *s = json_path_string(spec, last[i].field, NULL);
        if (s) {
            add(&l, 0, last[i].label, s);
        }
    }
    const char *health = json_number_text(json_get(spec, "healthCheckNodePort"));
    if (health) {
        add(&l, 0, "HealthCheck NodePort", health);
    }
    add_joined(&l, "LoadBalancer Source Ranges", json_get(spec, "loadBalancerSourceRanges"));
    write_lines(&l, out);
}

/* ---- quotas and limits, as kubectl and oc show them ---- */

static void write_usage(const struct json *status, struct strbuf *out)
{
    static const char *const header[] = {"Resource", "Used", "Hard", "--------", "----", "----"};
    struct rows r = rows_new(header, ARRAY_SIZE(header));
    const struct json *hard = json_get(status, "hard");
    r.columns = 3;
    for (size_t i = 0; i < json_count(hard); i++) {
        const char *name = json_key_at(hard, i);
        const char *used = json_path_string(status, "used", name, NULL);
        rows_add(&r, name);
        rows_add(&r, used ? used : "0");
        rows_add(&r, json_get_string(json_at(hard, i)));
    }
    print_columns(r.cells, r.columns, r.n / r.columns, "  ", out);
    free(r.cells);
}

static void add_scopes(struct lines *l, const struct json *spec)
{
    CLEANUP_STRBUF struct strbuf scopes = STRBUF_INIT;
    const struct json *item;
    JSON_FOREACH (item, json_get(spec, "scopes")) {
        strbuf_addf(&scopes, "%s%s", scopes.size ? ", " : "", json_get_string(item));
    }
    JSON_FOREACH (item, json_path(spec, "scopeSelector", "matchExpressions", NULL)) {
        strbuf_addf(&scopes, "%s%s", scopes.size ? ", " : "", json_get_text(item, "scopeName"));
    }
    if (scopes.size) {
        add(l, 0, "Scopes", strbuf_cstr(&scopes));
    }
}

static void describe_quota(const struct json *o, struct strbuf *out)
{
    CLEANUP_LINES struct lines l = {0};
    add(&l, 0, "Name", json_path_string(o, "metadata", "name", NULL));
    add(&l, 0, "Namespace", json_path_string(o, "metadata", "namespace", NULL));
    add_scopes(&l, json_get(o, "spec"));
    write_lines(&l, out);
    write_usage(json_get(o, "status"), out);
}

static void describe_cluster_quota(const struct json *o, struct strbuf *out)
{
    CLEANUP_LINES struct lines l = {0};
    CLEANUP_STRBUF struct strbuf names = STRBUF_INIT, labels = STRBUF_INIT;
    const struct json *item, *selector = json_path(o, "spec", "selector", NULL);
    JSON_FOREACH (item, json_path(o, "status", "namespaces", NULL)) {
        strbuf_addf(&names, "%s%s", names.size ? ", " : "", json_get_text(item, "namespace"));
    }
    if (!label_selector_is_empty(json_get(selector, "labels"))) {
        label_selector_write(json_get(selector, "labels"), &labels);
    }
    add_head(&l, o);
    add_string(&l, "Namespaces", strbuf_cstr(&names));
    add_string(&l, "Label Selector", strbuf_cstr(&labels));
    add_map(&l, "Annotation Selector", json_get(selector, "annotations"), "=");
    add_scopes(&l, json_path(o, "spec", "quota", NULL));
    write_lines(&l, out);
    write_usage(json_path(o, "status", "total", NULL), out);
}

static const char *const limit_maps[] = {"min", "max", "defaultRequest", "default",
                                         "maxLimitRequestRatio"};

/* Whether one of the first 'n' maps of the item has the resource. */
static bool has_row(const struct json *item, size_t n, const char *resource)
{
    for (size_t i = 0; i < n; i++) {
        if (json_path(item, limit_maps[i], resource, NULL)) {
            return true;
        }
    }
    return false;
}

/* Appends a row for each resource that the item bounds. */
static void add_limit(struct rows *r, const struct json *item)
{
    for (size_t i = 0; i < ARRAY_SIZE(limit_maps); i++) {
        const struct json *map = json_get(item, limit_maps[i]);
        for (size_t k = 0; k < json_count(map); k++) {
            const char *resource = json_key_at(map, k);
            if (has_row(item, i, resource)) {
                continue;
            }
            rows_add(r, json_get_text(item, "type"));
            rows_add(r, resource);
            for (size_t m = 0; m < ARRAY_SIZE(limit_maps); m++) {
                const char *amount = json_path_string(item, limit_maps[m], resource, NULL);
                rows_add(r, amount ? amount : "-");
            }
        }
    }
}

static void describe_limits(const struct json *o, struct strbuf *out)
{
    static const char *const header[] = {"Type",
                                         "Resource",
                                         "Min",
                                         "Max",
                                         "Default Request",
                                         "Default Limit",
                                         "Max Limit/Request Ratio",
                                         "----",
                                         "--------",
                                         "---",
                                         "---",
                                         "---------------",
                                         "-------------",
                                         "-----------------------"};
    CLEANUP_LINES struct lines l = {0};
    const struct json *item;
    struct rows r = rows_new(header, ARRAY_SIZE(header));
    r.columns = ARRAY_SIZE(header) / 2;
    add(&l, 0, "Name", json_path_string(o, "metadata", "name", NULL));
    add(&l, 0, "Namespace", json_path_string(o, "metadata", "namespace", NULL));
    write_lines(&l, out);
    JSON_FOREACH (item, json_path(o, "spec", "limits", NULL)) {
        add_limit(&r, item);
    }
    print_columns(r.cells, r.columns, r.n / r.columns, "  ", out);
    free(r.cells);
}

void describe_object(const struct api_kind *k, const struct json *o,
                     const struct describe_more *more, int64_t now_ms, struct strbuf *out)
{
    bool events = json_count(json_get(more->events, "items")) > 0;
    if (streq(k->kind, "Node")) {
        describe_node(o, more, out);
    } else if (streq(k->kind, "Namespace")) {
        describe_namespace(o, more, out);
    } else if (streq(k->kind, "Service") && !*k->group) {
        describe_service(o, more, out);
    } else if (streq(k->kind, "ResourceQuota")) {
        describe_quota(o, out);
        return;
    } else if (streq(k->kind, "LimitRange")) {
        describe_limits(o, out);
        return;
    } else if (streq(k->kind, "ClusterResourceQuota") ||
               streq(k->kind, "AppliedClusterResourceQuota")) {
        describe_cluster_quota(o, out);
        return;
    } else {
        describe_any(k, o, !events, out);
        if (!events) {
            return;
        }
    }
    write_events(more->events, now_ms, out);
}
