/* SPDX-License-Identifier: Apache-2.0 */
/* tenet describe: describes objects, with related objects and the events about them. */
#include "base/mem.h"
#include "base/timeutil.h"
#include "cli/kubectl/describe.h"
#include "cli/kubectl/learn.h"

#include <stdio.h>

struct describe {
    struct session s;
    struct resources r;
    const char *labels;
    bool all_namespaces;
    size_t written;
};

static const char help[] =
    "usage: tenet describe KIND [NAME]... [OPTIONS]\n"
    "       tenet describe KIND/NAME... [OPTIONS]\n"
    "\n"
    "Shows objects in words: their fields, what belongs to them, and the events about them.\n";

static const struct command_option options[] = {
    {"selector", 'l', "SEL", "only objects with these labels"},
    {"all-namespaces", 'A', NULL, "objects of all namespaces"},
    {0},
};

/* Reads an owned object; NULL if it does not exist or cannot be read, since the rest is shown all
 * the same. */
static struct json *fetch(struct describe *d, const char *path)
{
    struct json *o = NULL;
    return api_request_sync(d->s.client, "GET", path, NULL, NULL, NULL, &o, NULL) < 0 ? NULL : o;
}

static struct json *fetch_list(struct describe *d, const char *plural, const char *ns,
                               const char *fields)
{
    CLEANUP_STRBUF struct strbuf path = STRBUF_INIT;
    CLEANUP_FREE char *base = api_path("v1", plural, ns, NULL, NULL);
    strbuf_adds(&path, base);
    resource_query(&path, "fieldSelector", fields);
    return fetch(d, strbuf_cstr(&path));
}

static struct json *fetch_network(struct describe *d, const char *plural, const char *name)
{
    CLEANUP_FREE char *path = api_path("network.openshift.io/v1", plural, NULL, name, NULL);
    return fetch(d, path);
}

static void show(struct describe *d, const struct api_kind *k, const struct json *o)
{
    const char *name = json_path_string(o, "metadata", "name", NULL);
    const char *uid = json_path_string(o, "metadata", "uid", NULL);
    const char *ns = json_path_string(o, "metadata", "namespace", NULL);
    CLEANUP(json_free) struct json *pods = NULL;
    CLEANUP(json_free) struct json *hostsubnet = NULL;
    CLEANUP(json_free) struct json *netnamespace = NULL;
    CLEANUP(json_free) struct json *endpoints = NULL;
    if (!name) {
        return;
    }
    CLEANUP_FREE char *about =
        xasprintf("involvedObject.name=%s,involvedObject.kind=%s%s%s", name, k->kind,
                  uid ? ",involvedObject.uid=" : "", uid ? uid : "");
    CLEANUP(json_free) struct json *events = fetch_list(d, "events", ns, about);
    if (streq(k->kind, "Node")) {
        CLEANUP_FREE char *on_node = xasprintf("spec.nodeName=%s", name);
        pods = fetch_list(d, "pods", NULL, on_node);
        hostsubnet = fetch_network(d, "hostsubnets", name);
    } else if (streq(k->kind, "Namespace")) {
        pods = fetch_list(d, "pods", name, NULL);
        netnamespace = fetch_network(d, "netnamespaces", name);
    } else if (streq(k->kind, "Service") && !*k->group) {
        CLEANUP_FREE char *path = api_path("v1", "endpoints", ns, name, NULL);
        endpoints = fetch(d, path);
    }
    const struct describe_more more = {events, pods, hostsubnet, netnamespace, endpoints};
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    strbuf_adds(&out, d->written++ ? "\n\n" : "");
    describe_object(k, o, &more, time_wall_ms(), &out);
    fwrite(strbuf_cstr(&out), 1, out.size, stdout);
}

static int describe_resource(struct describe *d, const struct resource *r)
{
    CLEANUP_STRBUF struct strbuf path = STRBUF_INIT;
    CLEANUP_FREE char *base = resource_path(r->kind, d->all_namespaces ? NULL : d->s.ns, r->name);
    CLEANUP(json_free) struct json *answer = NULL;
    struct err e = {0};
    strbuf_adds(&path, base);
    if (!r->name) {
        resource_query(&path, "labelSelector", d->labels);
    }
    if (api_request_sync(d->s.client, "GET", strbuf_cstr(&path), NULL, NULL, NULL, &answer, &e) <
        0) {
        return session_fail(&d->s, &e, NULL);
    }
    if (r->name) {
        show(d, r->kind, answer);
        return 0;
    }
    const struct json *o;
    JSON_FOREACH (o, json_get(answer, "items")) {
        show(d, r->kind, o);
    }
    return 0;
}

static void describe_done(struct describe *d)
{
    resources_done(&d->r);
    session_done(&d->s);
}

static int run(int argc, char **argv)
{
    __attribute__((cleanup(describe_done))) struct describe d = {0};
    int opt, status = 0;
    while ((opt = session_getopt(&d.s, &cmd_describe, argc, argv, NULL)) != -1) {
        switch (opt) {
        case 'l':
            d.labels = optarg;
            break;
        case 'A':
            d.all_namespaces = true;
            break;
        case OPT_HELP:
            return 0;
        default:
            return 2;
        }
    }
    status = session_open(&d.s);
    if (status == 0) {
        status = learn_resources(&d.s, argc - optind, argv + optind, &d.r);
    }
    if (status != 0) {
        return status;
    }
    for (size_t i = 0; i < d.r.n; i++) {
        status |= describe_resource(&d, &d.r.list[i]);
    }
    if (d.written == 0 && status == 0) {
        fputs("No resources found\n", stderr);
    }
    return status;
}

const struct command cmd_describe = {.name = "describe",
                                     .summary = "show objects in words, with their events",
                                     .help = help,
                                     .options = options,
                                     .shared = session_options,
                                     .complete = COMPLETE_KIND,
                                     .run = run};
