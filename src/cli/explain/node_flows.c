/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/explain/node_flows.h"

#include "cli/command.h"
#include "cli/explain/agents.h"
#include "cli/kubectl/print.h"

#include <inttypes.h>
#include <stdio.h>

static const char help[] =
    "usage: tenet node flows [OPTIONS]\n"
    "\n"
    "Prints the pipeline of br0 on this node: of each rule the table, what it matches, how many\n"
    "packets it took, which object it comes from and what it is for.\n";

struct request {
    bool used, drops;
};

static bool is_wanted(const struct request *q, const struct json *flow)
{
    return (!q->used || json_get_int_or(json_get(flow, "packets"), 0) > 0) &&
           (!q->drops || json_get(flow, "cause"));
}

void node_flows_render(const struct json *answer, struct strbuf *out)
{
    enum { COLUMNS = 6, OWNED = 3 };
    static const char *const head[] = {"TABLE", "PRIORITY", "PACKETS",
                                       "MATCH", "OBJECT",   "MEANING"};
    const struct json *flows = json_get(answer, "flows");
    size_t n = json_count(flows);
    CLEANUP_FREE const char **cells = xcalloc((n + 1) * COLUMNS, sizeof *cells);
    CLEANUP_FREE char **owned = xcalloc(OWNED * n + 1, sizeof *owned);
    memcpy(cells, head, sizeof head);
    for (size_t i = 0; i < n; i++) {
        const struct json *f = json_at(flows, i);
        const char **row = cells + (i + 1) * COLUMNS;
        char **own = owned + OWNED * i;
        own[0] = xasprintf("%" PRId64 " %s", json_get_int_or(json_get(f, "table"), 0),
                           json_get_text(f, "tableName"));
        own[1] = xasprintf("%" PRId64, json_get_int_or(json_get(f, "priority"), 0));
        own[2] = xasprintf("%" PRId64, json_get_int_or(json_get(f, "packets"), 0));
        row[0] = own[0];
        row[1] = own[1];
        row[2] = own[2];
        row[3] = *json_get_text(f, "match") ? json_get_text(f, "match") : "(everything)";
        row[4] = *json_get_text(f, "object") ? json_get_text(f, "object") : "-";
        row[5] = json_get_text(f, "meaning");
        if (*json_get_text(f, "cause")) {
            free(own[1]);
            row[1] = own[1] =
                xasprintf("%" PRId64 " drop", json_get_int_or(json_get(f, "priority"), 0));
        }
    }
    print_columns(cells, COLUMNS, n + 1, "  ", out);
    for (size_t i = 0; i < OWNED * n; i++) {
        free(owned[i]);
    }
}

/* Removes unselected flows from the answer. */
static void filter(const struct request *q, struct json *answer)
{
    struct json *flows = json_get(answer, "flows");
    struct json *kept = json_array();
    while (json_count(flows)) {
        struct json *f = json_take_at(flows, 0);
        if (is_wanted(q, f)) {
            json_append(kept, f);
        } else {
            json_free(f);
        }
    }
    json_set(answer, "flows", kept);
}

static int get(void *ctx, struct agents *a, const char *socket, struct json **ret, struct err *e)
{
    int r = agents_get(a, socket, "/v1/flows", ret, e);
    if (r == 0) {
        filter(ctx, *ret);
    }
    return r;
}

static void render(void *ctx, const struct json *answer, struct strbuf *out)
{
    node_flows_render(answer, out);
}

enum { OPT_USED = OPT_FIRST_FREE, OPT_DROPS };

static const struct command_option options[] = {
    AGENTS_NODE_OPTION,
    {"used", OPT_USED, NULL, "only rules that packets matched"},
    {"drops", OPT_DROPS, NULL, "only rules that drop"},
    {0},
};

static int run(int argc, char **argv)
{
    static const struct agents_view view = {get, render};
    CLEANUP_AGENTS struct agents a = {0};
    struct request q = {0};
    int c;
    optind = 0;
    while ((c = agents_getopt(&a, &cmd_node_flows, argc, argv)) != -1) {
        switch (c) {
        case OPT_USED:
            q.used = true;
            break;
        case OPT_DROPS:
            q.drops = true;
            break;
        default:
            return c == OPT_HELP ? 0 : 2;
        }
    }
    int status = command_expect_end(&cmd_node_flows, argc, argv);
    return status >= 0 ? status : agents_show(&a, &view, &q);
}

const struct command cmd_node_flows = {
    .name = "node flows",
    .summary = "the pipeline of a running node in words",
    .help = help,
    .options = options,
    .shared = agents_options,
    .run = run,
};
