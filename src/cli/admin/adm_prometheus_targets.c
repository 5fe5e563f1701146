/* SPDX-License-Identifier: Apache-2.0 */
/* tenet adm prometheus-targets: the masters and nodes of the cluster in the form of Prometheus'
 * file discovery (file_sd_configs): Debian builds Prometheus without discovery by the API. */
#include "base/mem.h"
#include "cli/admin/adm.h"
#include "cli/session.h"
#include "net/loop/process.h"

#include <stdio.h>

#define KUBELET_PORT 10250
#define NODE_PORT 9101

static const char help[] = "usage: tenet adm prometheus-targets [--output FILE] [OPTIONS]\n"
                           "\n"
                           "Prints where the metrics of masters, nodes and kubelets are, for "
                           "file_sd_configs of Prometheus.\n"
                           "With --output the file is replaced when the targets have changed; "
                           "Prometheus sees that by itself.\n"
                           "Run it from a timer.\n";

enum { OPT_NODE_PORT = OPT_FIRST_FREE };

static const struct command_option options[] = {
    {"output", 'o', "FILE", "the file; default: standard output", COMPLETE_FILE},
    {"node-port", OPT_NODE_PORT, "PORT",
     "port of metricsBindAddress in the nodes' configuration; default: 9101"},
    {0},
};

static void add(struct json *list, const char *kind, const char *node, const char *address,
                uint64_t port)
{
    struct json *group = json_append(list, json_object());
    json_append(json_ensure_array(group, "targets"),
                json_stringf("%s:%llu", address, (unsigned long long) port));
    struct json *labels = json_ensure_object(group, "labels");
    json_set_string(labels, "__meta_tenet_kind", kind);
    json_set_string(labels, "node", node);
}

static void add_masters(struct json *list, const struct json *endpoints)
{
    const struct json *subset, *address, *port;
    JSON_FOREACH (subset, json_get(endpoints, "subsets")) {
        JSON_FOREACH (port, json_get(subset, "ports")) {
            if (!streq(json_get_text(port, "name"), "https")) {
                continue;
            }
            JSON_FOREACH (address, json_get(subset, "addresses")) {
                add(list, "master", NULL, json_get_text(address, "ip"),
                    (uint64_t) json_get_int_or(json_get(port, "port"), 0));
            }
        }
    }
}

static void add_node(struct json *list, const struct json *node, uint64_t port)
{
    const char *name = json_path_string(node, "metadata", "name", NULL);
    const char *runtime =
        json_path_string(node, "status", "nodeInfo", "containerRuntimeVersion", NULL);
    const struct json *address;
    JSON_FOREACH (address, json_path(node, "status", "addresses", NULL)) {
        const char *ip = json_get_text(address, "address");
        if (!streq(json_get_text(address, "type"), "InternalIP")) {
            continue;
        }
        add(list, "node", name, ip, port);
        if (runtime && *runtime) {
            add(list, "kubelet", name, ip, KUBELET_PORT);
        }
        return;
    }
}

static int print(const struct json *list, const char *file)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT, now = STRBUF_INIT;
    struct err e = {0};
    json_write(list, 2, &text);
    strbuf_addc(&text, '\n');
    if (!file) {
        fputs(strbuf_cstr(&text), stdout);
        return 0;
    }
    if (file_read(file, 16 << 20, &now, NULL) == 0 &&
        streq(strbuf_cstr(&now), strbuf_cstr(&text))) {
        return 0;
    }
    return file_write_atomic(file, text.data, text.size, 0644, &e) < 0 ? command_fail(&e, NULL) : 0;
}

static int list_targets(struct session *s, const char *file, uint64_t port)
{
    CLEANUP(json_free) struct json *list = json_array();
    CLEANUP(json_free) struct json *endpoints = NULL;
    CLEANUP(json_free) struct json *nodes = NULL;
    const struct json *node;
    struct err e = {0};
    if (api_request_sync(s->client, "GET", "/api/v1/namespaces/default/endpoints/kubernetes", NULL,
                         NULL, NULL, &endpoints, &e) < 0 ||
        api_request_sync(s->client, "GET", "/api/v1/nodes", NULL, NULL, NULL, &nodes, &e) < 0) {
        return session_fail(s, &e, NULL);
    }
    add_masters(list, endpoints);
    JSON_FOREACH (node, json_get(nodes, "items")) {
        add_node(list, node, port);
    }
    return print(list, file);
}

static int run(int argc, char **argv)
{
    CLEANUP_SESSION struct session s = {0};
    const char *file = NULL;
    uint64_t port = NODE_PORT;
    int opt;
    optind = 0;
    while ((opt = session_getopt(&s, &adm_prometheus_targets, argc, argv, NULL)) != -1) {
        switch (opt) {
        case 'o':
            file = optarg;
            break;
        case OPT_NODE_PORT:
            if (str_to_u64(optarg, UINT16_MAX, &port) < 0 || !port) {
                return command_usage(&adm_prometheus_targets, "--node-port %s is not in 1-65535",
                                     optarg);
            }
            break;
        default:
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    int status = command_expect_end(&adm_prometheus_targets, argc, argv);
    if (status >= 0 || (status = session_open(&s)) != 0) {
        return status;
    }
    return list_targets(&s, file, port);
}

const struct command adm_prometheus_targets = {.name = "adm prometheus-targets",
                                               .summary =
                                                   "masters and nodes as targets of Prometheus",
                                               .help = help,
                                               .options = options,
                                               .shared = session_options,
                                               .run = run};
