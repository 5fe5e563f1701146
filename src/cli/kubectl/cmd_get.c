/* SPDX-License-Identifier: Apache-2.0 */
/* tenet get: shows objects, as tables that the server makes, or in full. */
#include "api/table/jsonpath.h"
#include "base/mem.h"
#include "cli/kubectl/learn.h"
#include "cli/kubectl/print.h"
#include "cli/kubectl/watch.h"

#include <stdio.h>

#define ACCEPT_TABLE "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

enum output {
    OUTPUT_TABLE,
    OUTPUT_WIDE,
    OUTPUT_JSON,
    OUTPUT_YAML,
    OUTPUT_NAME,
    OUTPUT_JSONPATH,
    OUTPUT_COLUMNS
};

struct get {
    struct session s;
    struct resources r;
    enum output output;
    const char *template; /* The template of jsonpath, or the specification of custom-columns. */
    const char *labels, *fields;
    bool all_namespaces, watch, watch_only, no_headers, show_labels, ignore_not_found;
    bool table_written; /* A table, or the headers of columns, was written. */
};

static const char help[] =
    "usage: tenet get KIND[,KIND]... [NAME]... [OPTIONS]\n"
    "       tenet get KIND/NAME... [OPTIONS]\n"
    "\n"
    "Shows objects of the cluster: nodes, namespaces (ns, project), pods (po), events (ev),\n"
    "clusternetworks, hostsubnets, netnamespaces, networkpolicies (netpol),\n"
    "adminnetworkpolicies (anp), baselineadminnetworkpolicies (banp).\n";

enum {
    OPT_FIELD_SELECTOR = OPT_FIRST_FREE,
    OPT_WATCH_ONLY,
    OPT_NO_HEADERS,
    OPT_SHOW_LABELS,
    OPT_IGNORE_NOT_FOUND
};

static const struct command_option options[] = {
    {"output", 'o', "FORMAT",
     "wide, json, yaml, name, jsonpath=TEMPLATE, or custom-columns=NAME:PATH[,NAME:PATH]...",
     "wide json yaml name jsonpath= custom-columns="},
    {"all-namespaces", 'A', NULL, "objects of all namespaces"},
    {"selector", 'l', "SEL", "only objects with these labels: a=b,c!=d,e"},
    {"field-selector", OPT_FIELD_SELECTOR, "F",
     "only objects with these fields: spec.nodeName=node1"},
    {"watch", 'w', NULL, "also prints what changes, until interrupted"},
    {"watch-only", OPT_WATCH_ONLY, NULL, "only what changes from now on"},
    {"no-headers", OPT_NO_HEADERS, NULL, "tables without their first line"},
    {"show-labels", OPT_SHOW_LABELS, NULL, "tables with the labels as last column"},
    {"ignore-not-found", OPT_IGNORE_NOT_FOUND, NULL, "no error for names that do not exist"},
    {0},
};

static int set_output(struct get *g, const char *s)
{
    static const struct {
        const char *name;
        enum output output;
    } formats[] = {{"wide", OUTPUT_WIDE},
                   {"json", OUTPUT_JSON},
                   {"yaml", OUTPUT_YAML},
                   {"name", OUTPUT_NAME},
                   {"", OUTPUT_TABLE}};
    if (str_has_prefix(s, "jsonpath=")) {
        g->output = OUTPUT_JSONPATH;
        g->template = s + strlen("jsonpath=");
        return 0;
    }
    if (str_has_prefix(s, "custom-columns=")) {
        g->output = OUTPUT_COLUMNS;
        g->template = s + strlen("custom-columns=");
        return 0;
    }
    for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
        if (streq(s, formats[i].name)) {
            g->output = formats[i].output;
            return 0;
        }
    }
    return session_error("unable to match a printer suitable for the output format \"%s\", allowed "
                         "formats are: custom-columns,json,jsonpath,name,wide,yaml",
                         s);
}

/* Returns -1 to go on, else the exit status. */
static int parse_options(struct get *g, int argc, char **argv)
{
    int opt;
    while ((opt = session_getopt(&g->s, &cmd_get, argc, argv, NULL)) != -1) {
        switch (opt) {
        case 'o':
            if (set_output(g, optarg) != 0) {
                return 1;
            }
            break;
        case 'A':
            g->all_namespaces = true;
            break;
        case 'l':
            g->labels = optarg;
            break;
        case OPT_FIELD_SELECTOR:
            g->fields = optarg;
            break;
        case OPT_WATCH_ONLY:
            g->watch_only = true;
            g->watch = true;
            break;
        case 'w':
            g->watch = true;
            break;
        case OPT_NO_HEADERS:
            g->no_headers = true;
            break;
        case OPT_SHOW_LABELS:
            g->show_labels = true;
            break;
        case OPT_IGNORE_NOT_FOUND:
            g->ignore_not_found = true;
            break;
        case OPT_HELP:
            return 0;
        default:
            return 2;
        }
    }
    return -1;
}

static bool as_table(const struct get *g)
{
    return g->output == OUTPUT_TABLE || g->output == OUTPUT_WIDE;
}

/* The answer has several kinds: names include their kind. */
static bool mixed(const struct get *g)
{
    for (size_t i = 1; i < g->r.n; i++) {
        if (g->r.list[i].kind != g->r.list[0].kind) {
            return true;
        }
    }
    return false;
}

/* The path of a resource, with the selectors when it has no name. */
static void resource_request(const struct get *g, const struct resource *r, struct strbuf *out)
{
    CLEANUP_FREE char *path = resource_path(r->kind, g->all_namespaces ? NULL : g->s.ns, r->name);
    strbuf_adds(out, path);
    if (!r->name) {
        resource_query(out, "labelSelector", g->labels);
        resource_query(out, "fieldSelector", g->fields);
    }
}

static int fetch(struct get *g, const struct resource *r, struct json **ret, struct err *e)
{
    CLEANUP_STRBUF struct strbuf path = STRBUF_INIT;
    resource_request(g, r, &path);
    return api_request_sync(g->s.client, "GET", strbuf_cstr(&path),
                            as_table(g) ? ACCEPT_TABLE : NULL, NULL, NULL, ret, e);
}

/* ---- tables ---- */

static struct print_table_options table_options(const struct get *g, const struct api_kind *k,
                                                const char *label)
{
    return (struct print_table_options){.wide = g->output == OUTPUT_WIDE,
                                        .no_headers = g->no_headers,
                                        .show_namespace = g->all_namespaces && k->namespaced,
                                        .show_labels = g->show_labels,
                                        .kind = mixed(g) ? label : NULL};
}

static void write_table(struct get *g, const struct api_kind *k, const struct json *table,
                        struct print_widths *w)
{
    CLEANUP_FREE char *label = resource_label(k);
    struct print_table_options o = table_options(g, k, label);
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    print_table(table, &o, w, &out);
    fwrite(strbuf_cstr(&out), 1, out.size, stdout);
}

/* Moves the rows of 'from' to the end of those of 'to'. */
static void append_rows(struct json *to, const struct json *from)
{
    struct json *rows = json_ensure_array(to, "rows");
    const struct json *row;
    JSON_FOREACH (row, json_get(from, "rows")) {
        json_append(rows, json_clone(row));
    }
}

static int report(const struct get *g, const struct err *e)
{
    return e->code == -ENOENT && g->ignore_not_found ? 0 : session_fail(&g->s, e, NULL);
}

static int show_tables(struct get *g)
{
    int status = 0;
    bool namespaced = true;
    for (size_t i = 0; i < g->r.n;) {
        const struct api_kind *k = g->r.list[i].kind;
        CLEANUP(json_free) struct json *table = NULL;
        namespaced &= k->namespaced;
        /* Names of one kind make one table. */
        for (; i < g->r.n && g->r.list[i].kind == k; i++) {
            CLEANUP(json_free) struct json *one = NULL;
            struct err e = {0};
            if (fetch(g, &g->r.list[i], &one, &e) < 0) {
                status |= report(g, &e);
            } else if (!table) {
                table = TAKE(one);
            } else {
                append_rows(table, one);
            }
        }
        if (json_count(json_get(table, "rows")) > 0) {
            struct print_widths w = {0};
            if (g->table_written) {
                putchar('\n');
            }
            write_table(g, k, table, &w);
            g->table_written = true;
        }
    }
    if (!g->table_written && status == 0 && !g->ignore_not_found) {
        fflush(stdout);
        if (namespaced && !g->all_namespaces) {
            fprintf(stderr, "No resources found in %s namespace.\n", g->s.ns);
        } else {
            fputs("No resources found\n", stderr);
        }
    }
    return status;
}

/* ---- objects ---- */

static void add_type(struct json *o, const struct api_kind *k)
{
    CLEANUP_FREE char *version = api_kind_api_version(k);
    if (!json_get(o, "apiVersion")) {
        json_set_string(o, "apiVersion", version);
    }
    if (!json_get(o, "kind")) {
        json_set_string(o, "kind", k->kind);
    }
}

static int write_columns(struct get *g, const struct json *items)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    struct err e = {0};
    if (print_custom_columns(g->template, items, g->no_headers || g->table_written, &out, &e) < 0) {
        return session_error("%s", e.text);
    }
    g->table_written = true;
    fwrite(strbuf_cstr(&out), 1, out.size, stdout);
    return 0;
}

static int write_object(struct get *g, const struct json *o)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    struct err e = {0};
    if (g->output == OUTPUT_COLUMNS) {
        CLEANUP(json_free) struct json *one = json_array();
        json_append(one, json_clone(o));
        return write_columns(g, one);
    }
    if (g->output == OUTPUT_JSON) {
        print_json(o, &out);
    } else if (g->output == OUTPUT_YAML) {
        print_yaml(o, &out);
    } else if (jsonpath_print(g->template, o, &out, &e) < 0) {
        return session_error("%s", e.text);
    }
    fwrite(strbuf_cstr(&out), 1, out.size, stdout);
    return 0;
}

static void write_name(const struct api_kind *k, const struct json *o)
{
    CLEANUP_FREE char *label = resource_label(k);
    const char *name = json_path_string(o, "metadata", "name", NULL);
    printf("%s/%s\n", label, name ? name : "");
}

/* Adds the objects that 'r' names to 'items'. */
static int collect(struct get *g, const struct resource *r, struct json *items)
{
    CLEANUP(json_free) struct json *answer = NULL;
    struct err e = {0};
    if (fetch(g, r, &answer, &e) < 0) {
        return report(g, &e);
    }
    if (r->name) {
        add_type(answer, r->kind);
        json_append(items, TAKE(answer));
        return 0;
    }
    CLEANUP(json_free) struct json *list = json_take(answer, "items");
    struct json *o;
    JSON_FOREACH (o, list) {
        add_type(o, r->kind);
        json_append(items, json_clone(o));
    }
    return 0;
}

static int show_objects(struct get *g)
{
    int status = 0;
    CLEANUP(json_free) struct json *items = json_array();
    for (size_t i = 0; i < g->r.n; i++) {
        size_t before = json_count(items);
        status |= collect(g, &g->r.list[i], items);
        for (size_t j = before; g->output == OUTPUT_NAME && j < json_count(items); j++) {
            write_name(g->r.list[i].kind, json_at(items, j));
        }
    }
    if (g->output == OUTPUT_NAME) {
        return status;
    }
    if (g->output == OUTPUT_COLUMNS) {
        return status | write_columns(g, items);
    }
    if (g->r.n == 1 && g->r.list[0].name) {
        const struct json *only = json_at(items, 0);
        return only ? write_object(g, only) : status;
    }
    if (status != 0 && json_count(items) == 0) {
        return status;
    }
    CLEANUP(json_free) struct json *list = json_object();
    json_set_string(list, "apiVersion", "v1");
    json_set_string(list, "kind", "List");
    json_set_string(json_ensure_object(list, "metadata"), "resourceVersion", "");
    json_set(list, "items", TAKE(items));
    return status | write_object(g, list);
}

/* ---- watch ---- */

struct get_watch {
    struct get *g;
    const struct api_kind *kind;
    struct json *columns;
    struct print_widths widths;
    int status;
};

static void show_list(struct get_watch *w, struct json *list)
{
    struct get *g = w->g;
    if (as_table(g)) {
        const struct json *columns = json_get(list, "columnDefinitions");
        w->columns = columns ? json_clone(columns) : NULL;
        if (!g->watch_only && json_count(json_get(list, "rows")) > 0) {
            write_table(g, w->kind, list, &w->widths);
        }
        return;
    }
    struct json *o;
    JSON_FOREACH (o, g->watch_only ? NULL : json_get(list, "items")) {
        add_type(o, w->kind);
        if (g->output == OUTPUT_NAME) {
            write_name(w->kind, o);
        } else {
            w->status |= write_object(g, o);
        }
    }
}

static bool show_event(void *ctx, const char *type, const struct json *object)
{
    struct get_watch *w = ctx;
    CLEANUP(json_free) struct json *o = json_clone(object);
    if (as_table(w->g)) {
        if (json_count(json_get(o, "columnDefinitions")) == 0 && w->columns) {
            json_set(o, "columnDefinitions", json_clone(w->columns));
        }
        write_table(w->g, w->kind, o, &w->widths);
    } else if (w->g->output == OUTPUT_NAME) {
        write_name(w->kind, o);
    } else {
        w->status |= write_object(w->g, o);
    }
    return fflush(stdout) == 0 && w->status == 0;
}

static int show_changes(struct get *g)
{
    if (g->r.n != 1) {
        return session_error("you may only specify a single resource type");
    }
    const struct resource *r = &g->r.list[0];
    struct get_watch w = {.g = g, .kind = r->kind};
    CLEANUP_STRBUF struct strbuf path = STRBUF_INIT;
    CLEANUP_FREE char *list_path = resource_path(r->kind, g->all_namespaces ? NULL : g->s.ns, NULL);
    CLEANUP_FREE char *by_name = r->name ? xasprintf("metadata.name=%s", r->name) : NULL;
    strbuf_adds(&path, list_path);
    resource_query(&path, "labelSelector", g->labels);
    resource_query(&path, "fieldSelector", by_name ? by_name : g->fields);
    const char *accept = as_table(g) ? ACCEPT_TABLE : NULL;
    CLEANUP(json_free) struct json *list = NULL;
    struct err e = {0};
    if (api_request_sync(g->s.client, "GET", strbuf_cstr(&path), accept, NULL, NULL, &list, &e) <
        0) {
        return session_fail(&g->s, &e, NULL);
    }
    if (by_name && json_count(json_get(list, as_table(g) ? "rows" : "items")) == 0) {
        CLEANUP(json_free) struct json *none = NULL;
        if (fetch(g, r, &none, &e) < 0) {
            return report(g, &e);
        }
    }
    show_list(&w, list);
    fflush(stdout);
    const char *version = json_path_string(list, "metadata", "resourceVersion", NULL);
    int result = w.status == 0 ? watch_run(&g->s, strbuf_cstr(&path), accept,
                                           version ? version : "", 0, show_event, &w, &e)
                               : 0;
    json_free(w.columns);
    return result < 0 ? session_fail(&g->s, &e, NULL) : w.status;
}

static int check(const struct get *g)
{
    bool named = false;
    for (size_t i = 0; i < g->r.n; i++) {
        named |= g->r.list[i].name != NULL;
    }
    if (named && (g->labels || g->fields)) {
        return session_error("name cannot be provided when a selector is specified");
    }
    if (named && g->all_namespaces) {
        return session_error("a resource cannot be retrieved by name across all namespaces");
    }
    return 0;
}

static void get_done(struct get *g)
{
    resources_done(&g->r);
    session_done(&g->s);
}

static int run(int argc, char **argv)
{
    __attribute__((cleanup(get_done))) struct get g = {0};
    int status = parse_options(&g, argc, argv);
    if (status >= 0) {
        return status;
    }
    status = session_open(&g.s);
    if (status == 0) {
        status = learn_resources(&g.s, argc - optind, argv + optind, &g.r);
    }
    if (status == 0) {
        status = check(&g);
    }
    if (status != 0) {
        return status;
    }
    return g.watch ? show_changes(&g) : as_table(&g) ? show_tables(&g) : show_objects(&g);
}

const struct command cmd_get = {.name = "get",
                                .summary = "show objects of the cluster",
                                .help = help,
                                .options = options,
                                .shared = session_options,
                                .complete = COMPLETE_KIND,
                                .run = run};
