/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/explain/node_maps.h"

#include "cli/command.h"
#include "cli/explain/agents.h"
#include "cli/kubectl/print.h"

#include <inttypes.h>
#include <stdio.h>

static const char help[] =
    "usage: tenet node maps [OPTIONS] [MAP]\n"
    "\n"
    "Prints the eBPF maps of this node with how full they are; or the entries of one, in words, "
    "with\n"
    "the objects that they speak of. MAP is a name with or without \"tenet_\": pods, routes,\n"
    "services, conns, ... Only nodes with the datapath ebpf have maps.\n";

/* ---- tables ---- */

void node_maps_render(const struct json *maps, struct strbuf *out)
{
    enum { COLUMNS = 5 };
    static const char *const head[COLUMNS] = {"MAP", "TYPE", "ENTRIES", "OF", "FULL"};
    size_t n = json_count(maps);
    CLEANUP_FREE const char **cells = xcalloc((n + 1) * COLUMNS, sizeof *cells);
    CLEANUP_FREE char **owned = xcalloc((n + 1) * COLUMNS, sizeof *owned);
    memcpy(cells, head, sizeof head);
    for (size_t i = 0; i < n; i++) {
        const struct json *m = json_at(maps, i);
        const char **row = cells + (i + 1) * COLUMNS;
        char **own = owned + i * COLUMNS;
        int64_t entries = json_get_int_or(json_get(m, "entries"), 0);
        int64_t max = json_get_int_or(json_get(m, "max"), 0);
        row[0] = json_get_text(m, "name");
        row[1] = json_get_text(m, "type");
        row[2] = own[2] = xasprintf("%" PRId64, entries);
        row[3] = own[3] = xasprintf("%" PRId64, max);
        row[4] = own[4] = xasprintf("%" PRId64 "%%", max ? 100 * entries / max : 0);
    }
    print_columns(cells, COLUMNS, n + 1, "", out);
    for (size_t i = 0; i < (n + 1) * COLUMNS; i++) {
        free(owned[i]);
    }
}

/* "address=10.128.0.2 vnid=7" */
static char *fields_text(const struct json *o)
{
    struct strbuf text = STRBUF_INIT;
    for (size_t i = 0; i < json_count(o); i++) {
        const struct json *v = json_at(o, i);
        strbuf_addf(&text, "%s%s=", i ? " " : "", json_key_at(o, i));
        if (json_get_string(v)) {
            strbuf_adds(&text, json_get_string(v));
        } else {
            json_write(v, 0, &text);
        }
    }
    strbuf_cstr(&text);
    return strbuf_steal(&text);
}

void node_maps_render_entries(const struct json *map, struct strbuf *out)
{
    enum { COLUMNS = 3 };
    static const char *const head[COLUMNS] = {"KEY", "VALUE", "OBJECT"};
    const struct json *items = json_get(map, "items");
    size_t n = json_count(items);
    CLEANUP_FREE const char **cells = xcalloc((n + 1) * COLUMNS, sizeof *cells);
    CLEANUP_FREE char **owned = xcalloc(2 * n + 1, sizeof *owned);
    memcpy(cells, head, sizeof head);
    for (size_t i = 0; i < n; i++) {
        const struct json *item = json_at(items, i);
        const char **row = cells + (i + 1) * COLUMNS;
        row[0] = owned[2 * i] = fields_text(json_get(item, "key"));
        row[1] = owned[2 * i + 1] = fields_text(json_get(item, "value"));
        row[2] = *json_get_text(item, "object") ? json_get_text(item, "object") : "-";
    }
    strbuf_addf(out, "%s, %" PRId64 " of %" PRId64 "\n", json_get_text(map, "name"),
                json_get_int_or(json_get(map, "entries"), 0),
                json_get_int_or(json_get(map, "max"), 0));
    print_columns(cells, COLUMNS, n + 1, "", out);
    for (size_t i = 0; i < 2 * n; i++) {
        free(owned[i]);
    }
}

/* ---- asking ---- */

/* The agent answers with a part of the entries at a time. */
static int get_map(struct agents *a, const char *socket, const char *name, struct json **ret,
                   struct err *e)
{
    CLEANUP(json_free) struct json *whole = NULL;
    CLEANUP_FREE char *after = NULL;
    int64_t got = 0;
    do {
        CLEANUP_STRBUF struct strbuf path = STRBUF_INIT;
        CLEANUP(json_free) struct json *part = NULL;
        strbuf_adds(&path, "/v1/maps?name=");
        http_escape(name, &path);
        strbuf_addf(&path, after ? "&after=%s" : "%s", after ? after : "");
        int r = agents_get(a, socket, strbuf_cstr(&path), &part, e);
        if (r < 0) {
            return r;
        }
        const char *next = json_path_string(part, "map", "next", NULL);
        free(after);
        after = next ? xstrdup(next) : NULL;
        struct json *items = json_get(json_get(part, "map"), "items");
        got += (int64_t) json_count(items);
        if (!whole) {
            json_remove(json_get(part, "map"), "next");
            whole = TAKE(part);
        } else {
            while (json_count(items)) {
                json_append(json_get(json_get(whole, "map"), "items"), json_take_at(items, 0));
            }
        }
        /* A map that changes meanwhile might begin anew for ever. */
    } while (after && got < json_get_int_or(json_path(whole, "map", "max", NULL), 0));
    *ret = TAKE(whole);
    return 0;
}

/* 'ctx': the name of the map; NULL: a list of all. */
static int get(void *ctx, struct agents *a, const char *socket, struct json **ret, struct err *e)
{
    return ctx ? get_map(a, socket, ctx, ret, e) : agents_get(a, socket, "/v1/maps", ret, e);
}

static void render(void *ctx, const struct json *answer, struct strbuf *out)
{
    if (ctx) {
        node_maps_render_entries(json_get(answer, "map"), out);
    } else {
        node_maps_render(json_get(answer, "maps"), out);
    }
}

static const struct command_option options[] = {
    AGENTS_NODE_OPTION,
    {0},
};

static int run(int argc, char **argv)
{
    static const struct agents_view view = {get, render};
    CLEANUP_AGENTS struct agents a = {0};
    optind = 0;
    int c = agents_getopt(&a, &cmd_node_maps, argc, argv);
    if (c != -1) {
        return c == OPT_HELP ? 0 : 2;
    }
    char *map = optind < argc ? argv[optind++] : NULL;
    int status = command_expect_end(&cmd_node_maps, argc, argv);
    return status >= 0 ? status : agents_show(&a, &view, map);
}

const struct command cmd_node_maps = {
    .name = "node maps",
    .summary = "the eBPF maps of a running node",
    .help = help,
    .options = options,
    .shared = agents_options,
    .complete =
        "pods ports routes vteps services backends serving settings affinity conns refusals "
        "drops policy classes blocks pairs port_sets tracked shares fragments",
    .run = run,
};
