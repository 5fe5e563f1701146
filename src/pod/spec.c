/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/spec.h"

#include "base/mem.h"
#include "pod/resources.h"

#include <stdio.h>

#define HOSTNAME_MAX 63
#define FQDN_MAX 64 /* HOST_NAME_MAX of Linux. */
#define DNS_SERVERS_MAX 3
#define DNS_SEARCHES_MAX 32
#define DNS_SEARCH_CHARS_MAX 2048

/* ---- pairs ---- */

struct pairs {
    struct runtime_pair *v;
    size_t n;
};

static void add_pair(struct pairs *p, const char *key, const char *value)
{
    p->v[p->n++] = (struct runtime_pair){key, value};
}

static struct pairs pairs_of(const struct json *map, size_t more, struct arena *a)
{
    struct pairs p = {.v = ARENA_NEW(a, struct runtime_pair, json_count(map) + more)};
    for (size_t i = 0; i < json_count(map); i++) {
        const char *value = json_get_string(json_at(map, i));
        add_pair(&p, arena_strdup(a, json_key_at(map, i)), value ? value : "");
    }
    return p;
}

static struct runtime_pairs pairs_end(const struct pairs *p)
{
    return (struct runtime_pairs){p->v, p->n};
}

/* ---- names ---- */

char *pod_log_directory(const struct json *pod, const struct pod_node *n, struct arena *a)
{
    return arena_printf(a, "%s/%s_%s_%s", n->log_dir, pod_namespace(pod), pod_name(pod),
                        pod_uid(pod));
}

int pod_hostname(const struct json *pod, const struct pod_node *n, struct arena *a,
                 const char **ret, struct err *e)
{
    const struct json *spec = json_get(pod, "spec");
    const char *own = json_get_text(spec, "hostname"), *sub = json_get_text(spec, "subdomain");
    if (pod_uses_host_network(pod)) {
        *ret = NULL; /* The pod shares the node's UTS namespace. */
        return 0;
    }
    const char *name = *own ? own : pod_name(pod);
    size_t size = MIN(strlen(name), (size_t) HOSTNAME_MAX);
    while (size > 0 && (name[size - 1] == '-' || name[size - 1] == '.')) {
        size--;
    }
    char *short_name = arena_strndup(a, name, size);
    if (!*sub || !json_get_bool(json_get(spec, "setHostnameAsFQDN"), false)) {
        *ret = short_name;
        return 0;
    }
    const char *full =
        arena_printf(a, "%s.%s.%s.svc.%s", short_name, sub, pod_namespace(pod), n->cluster_domain);
    if (strlen(full) > FQDN_MAX) {
        return err_set(e, -ENAMETOOLONG,
                       "failed to construct FQDN from pod hostname and cluster domain, FQDN %s is "
                       "too long (%d characters is the max, %zu characters requested)",
                       full, FQDN_MAX, strlen(full));
    }
    *ret = full;
    return 0;
}

/* ---- DNS ---- */

/* A list that takes each text once, up to 'max' of them. */
struct limited {
    const char **v;
    size_t n, max;
    bool left_out; /* There were more. */
};

static struct limited limited_new(struct arena *a, size_t max)
{
    return (struct limited){.v = ARENA_NEW(a, const char *, max), .max = max};
}

static void add_texts(struct limited *to, const char *const *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool there = false;
        for (size_t k = 0; k < to->n; k++) {
            there = there || streq(to->v[k], from[i]);
        }
        if (!there && to->n == to->max) {
            to->left_out = true;
        } else if (!there) {
            to->v[to->n++] = from[i];
        }
    }
}

static void add_json(struct limited *to, const struct json *list)
{
    const struct json *item;
    JSON_FOREACH (item, list) {
        const char *s = json_get_string(item);
        if (s) {
            add_texts(to, &s, 1);
        }
    }
}

static void limit_characters(struct limited *t)
{
    size_t chars = 0, n = 0;
    for (; n < t->n && chars + strlen(t->v[n]) + 1 <= DNS_SEARCH_CHARS_MAX; n++) {
        chars += strlen(t->v[n]) + 1;
    }
    t->left_out = t->left_out || n < t->n;
    t->n = n;
}

/* The options of dnsConfig replace those of the same name. */
static void add_options(const struct json *list, struct arena *a, struct runtime_texts *to)
{
    const char **v = ARENA_NEW(a, const char *, to->n + json_count(list));
    struct runtime_texts all = {.v = v};
    const struct json *o;
    for (size_t i = 0; i < to->n; i++) {
        bool replaced = false;
        size_t size = strcspn(to->v[i], ":");
        JSON_FOREACH (o, list) {
            const char *name = json_get_text(o, "name");
            replaced = replaced || (strlen(name) == size && strncmp(name, to->v[i], size) == 0);
        }
        if (!replaced) {
            v[all.n++] = to->v[i];
        }
    }
    JSON_FOREACH (o, list) {
        const char *name = json_get_text(o, "name"), *value = json_get_text(o, "value");
        v[all.n++] = *value ? arena_printf(a, "%s:%s", name, value) : name;
    }
    *to = all;
}

struct resolver {
    struct limited servers, searches;
    struct runtime_texts options;
};

static struct resolver make_resolver(const struct json *pod, const struct pod_node *n,
                                     struct arena *a)
{
    const char *policy = json_path_string(pod, "spec", "dnsPolicy", NULL);
    const struct json *config = json_path(pod, "spec", "dnsConfig", NULL);
    bool none = policy && streq(policy, "None");
    bool cluster = !none && n->cluster_dns.n &&
                   (!policy || streq(policy, "ClusterFirstWithHostNet") ||
                    (streq(policy, "ClusterFirst") && !pod_uses_host_network(pod)));
    struct resolver r = {.servers = limited_new(a, DNS_SERVERS_MAX),
                         .searches = limited_new(a, DNS_SEARCHES_MAX)};
    if (cluster) {
        const char *own[] = {arena_printf(a, "%s.svc.%s", pod_namespace(pod), n->cluster_domain),
                             arena_printf(a, "svc.%s", n->cluster_domain), n->cluster_domain};
        static const char *const ndots[] = {"ndots:5"};
        add_texts(&r.servers, n->cluster_dns.v, n->cluster_dns.n);
        add_texts(&r.searches, own, ARRAY_SIZE(own));
        add_texts(&r.searches, n->dns_searches.v, n->dns_searches.n);
        r.options = (struct runtime_texts){ndots, 1};
    } else if (!none) {
        add_texts(&r.servers, n->dns_servers.v, n->dns_servers.n);
        add_texts(&r.searches, n->dns_searches.v, n->dns_searches.n);
        r.options = n->dns_options;
    }
    add_json(&r.servers, json_get(config, "nameservers"));
    add_json(&r.searches, json_get(config, "searches"));
    limit_characters(&r.searches);
    add_options(json_get(config, "options"), a, &r.options);
    return r;
}

void pod_dns(const struct json *pod, const struct pod_node *n, struct arena *a,
             struct runtime_sandbox_spec *ret)
{
    struct resolver r = make_resolver(pod, n, a);
    ret->dns_servers = (struct runtime_texts){r.servers.v, r.servers.n};
    ret->dns_searches = (struct runtime_texts){r.searches.v, r.searches.n};
    ret->dns_options = r.options;
}

static const char *joined(const struct limited *t, struct arena *a)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    for (size_t i = 0; i < t->n; i++) {
        strbuf_addf(&b, "%s%s", i ? " " : "", t->v[i]);
    }
    return arena_strdup(a, strbuf_cstr(&b));
}

struct runtime_texts pod_dns_left_out(const struct json *pod, const struct pod_node *n,
                                      struct arena *a)
{
    struct resolver r = make_resolver(pod, n, a);
    const char **v = ARENA_NEW(a, const char *, 2);
    size_t count = 0;
    if (r.servers.left_out) {
        v[count++] = arena_printf(a,
                                  "Nameserver limits were exceeded, some nameservers have been "
                                  "omitted, the applied nameserver line is: %s",
                                  joined(&r.servers, a));
    }
    if (r.searches.left_out) {
        v[count++] = arena_printf(a,
                                  "Search Line limits were exceeded, some search paths have been "
                                  "omitted, the applied search line is: %s",
                                  joined(&r.searches, a));
    }
    return (struct runtime_texts){v, count};
}

/* ---- the sandbox ---- */

static void set_ports(const struct json *pod, struct arena *a, struct runtime_sandbox_spec *ret)
{
    size_t n = pod_count_containers(pod), most = 0;
    for (size_t i = 0; i < n; i++) {
        most += json_count(json_get(pod_container_at(pod, i, NULL), "ports"));
    }
    struct runtime_port *v = ARENA_NEW(a, struct runtime_port, most);
    for (size_t i = 0; i < n && !pod_uses_host_network(pod); i++) {
        const struct json *p;
        JSON_FOREACH (p, json_get(pod_container_at(pod, i, NULL), "ports")) {
            int64_t host = json_get_int_or(json_get(p, "hostPort"), 0);
            const char *protocol = json_get_text(p, "protocol");
            if (host <= 0 || host > UINT16_MAX) {
                continue;
            }
            v[ret->n_ports++] = (struct runtime_port){
                .protocol = streq(protocol, "UDP")    ? RUNTIME_UDP
                            : streq(protocol, "SCTP") ? RUNTIME_SCTP
                                                      : RUNTIME_TCP,
                .container_port = (uint16_t) json_get_int_or(json_get(p, "containerPort"), 0),
                .host_port = (uint16_t) host,
                .host_ip = json_get_text(p, "hostIP")};
        }
    }
    ret->ports = v;
}

int pod_sandbox_spec(const struct json *pod, uint32_t attempt, const struct pod_node *n,
                     struct arena *a, struct runtime_sandbox_spec *ret, struct err *e)
{
    const struct json *metadata = json_get(pod, "metadata");
    struct pairs labels = pairs_of(json_get(metadata, "labels"), 3, a);
    struct pairs notes = pairs_of(json_get(metadata, "annotations"), 1, a);
    struct runtime_sandbox_spec s = {
        .name = pod_name(pod),
        .uid = pod_uid(pod),
        .namespace = pod_namespace(pod),
        .attempt = attempt,
        .log_directory = pod_log_directory(pod, n, a),
        .cgroup_parent = pod_cgroup_parent(pod, n->cgroup_root, n->systemd, a),
    };
    add_pair(&labels, POD_LABEL_NAME, s.name);
    add_pair(&labels, POD_LABEL_NAMESPACE, s.namespace);
    add_pair(&labels, POD_LABEL_UID, s.uid);
    add_pair(&notes, POD_NOTE_GRACE, arena_printf(a, "%lld", (long long) pod_grace_s(pod)));
    s.labels = pairs_end(&labels);
    s.annotations = pairs_end(&notes);
    pod_dns(pod, n, a, &s);
    set_ports(pod, a, &s);
    int r = pod_hostname(pod, n, a, &s.hostname, e);
    r = r < 0 ? r : pod_sysctls(pod, &n->security, a, &s.sysctls, e);
    r = r < 0 ? r : pod_security(pod, NULL, NULL, &n->security, a, &s.security, e);
    if (r == 0) {
        *ret = s;
    }
    return r;
}

/* ---- a container ---- */

static const char *json_note(const struct json *v, struct arena *a)
{
    CLEANUP_FREE char *text = json_to_text(v);
    return arena_strdup(a, text);
}

static void set_notes(const struct json *pod, const struct pod_container_input *in, struct arena *a,
                      struct runtime_container_spec *s)
{
    const struct json *c = in->container;
    const struct json *pre_stop = json_path(c, "lifecycle", "preStop", NULL);
    const char *path = json_get_text(c, "terminationMessagePath");
    const char *policy = json_get_text(c, "terminationMessagePolicy");
    char hash[POD_HASH_SIZE];
    pod_container_hash(c, hash);
    struct pairs labels = pairs_of(NULL, 4, a), notes = pairs_of(NULL, 8, a);
    add_pair(&labels, POD_LABEL_NAME, pod_name(pod));
    add_pair(&labels, POD_LABEL_NAMESPACE, pod_namespace(pod));
    add_pair(&labels, POD_LABEL_UID, pod_uid(pod));
    add_pair(&labels, POD_LABEL_CONTAINER, s->name);
    add_pair(&notes, POD_NOTE_HASH, arena_strdup(a, hash));
    add_pair(&notes, POD_NOTE_RESTARTS, arena_printf(a, "%u", in->restarts));
    add_pair(&notes, POD_NOTE_LEVEL, arena_printf(a, "%u", in->level));
    add_pair(&notes, POD_NOTE_MESSAGE_PATH, *path ? path : POD_LOG_DEFAULT_MESSAGE_PATH);
    add_pair(&notes, POD_NOTE_MESSAGE_POLICY, *policy ? policy : "File");
    add_pair(&notes, POD_NOTE_GRACE, arena_printf(a, "%lld", (long long) pod_grace_s(pod)));
    if (json_get(c, "ports")) {
        add_pair(&notes, POD_NOTE_PORTS, json_note(json_get(c, "ports"), a));
    }
    if (pre_stop) {
        add_pair(&notes, POD_NOTE_PRE_STOP, json_note(pre_stop, a));
    }
    s->labels = pairs_end(&labels);
    s->annotations = pairs_end(&notes);
}

int pod_container_spec(const struct json *pod, const struct pod_container_input *in,
                       const struct pod_node *n, struct arena *a,
                       struct runtime_container_spec *ret, struct err *e)
{
    const struct json *c = in->container;
    const char *dir = json_get_text(c, "workingDir");
    struct runtime_container_spec s = {
        .name = json_get_text(c, "name"),
        .attempt = in->restarts,
        .image = in->image_ref,
        .command = in->command,
        .args = in->args,
        .working_dir = *dir ? dir : NULL,
        .env = in->env,
        .mounts = in->mounts,
        .n_mounts = in->n_mounts,
        .devices = in->devices,
        .n_devices = in->n_devices,
        .log_path = arena_printf(a, "%s/%u.log", json_get_text(c, "name"), in->restarts),
        .stdin_open = json_get_bool(json_get(c, "stdin"), false),
        .stdin_once = json_get_bool(json_get(c, "stdinOnce"), false),
        .tty = json_get_bool(json_get(c, "tty"), false),
    };
    set_notes(pod, in, a, &s);
    pod_container_resources(pod, c, n->memory_capacity, a, &s.resources);
    int r = pod_security(pod, c, in->target_id, &n->security, a, &s.security, e);
    if (r == 0) {
        *ret = s;
    }
    return r;
}
