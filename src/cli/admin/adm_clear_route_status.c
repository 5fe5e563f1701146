/* SPDX-License-Identifier: Apache-2.0 */
/* tenet adm clear-route-status: removes what routers said about routes.
 *
 * A router that goes leaves its entries in the status of routes.  A router that still runs writes
 * its entries again. */
#include "base/mem.h"
#include "cli/admin/adm.h"
#include "cli/session.h"
#include "client/client.h"

#include <stdio.h>

#define RETRIES 8
#define VERSION "route.openshift.io/v1"

static const char help[] =
    "usage: tenet adm clear-route-status ROUTE... [--router NAME] [OPTIONS]\n"
    "       tenet adm clear-route-status --all [--all-namespaces] [--router NAME] [OPTIONS]\n"
    "\n"
    "Removes the entries of routers from the status of routes: of one router, or of all.  A "
    "router\n"
    "that goes leaves its entries; one that runs writes them again.\n";

enum { OPT_ROUTER = OPT_FIRST_FREE, OPT_ALL };

static const struct command_option options[] = {
    {"all", OPT_ALL, NULL, "all routes of the namespace"},
    {"all-namespaces", 'A', NULL, "all routes of all namespaces"},
    {"router", OPT_ROUTER, "NAME", "only the entries of this router"},
    {0}};

struct clearing {
    struct session s;
    const char *router; /* NULL: the entries of all routers. */
    bool all, everywhere;
};

/* The entries that stay; owned.  '*ret_gone' is the number of the others. */
static struct json *what_stays(const struct json *route, const char *router, size_t *ret_gone)
{
    struct json *stay = json_array();
    const struct json *in;
    *ret_gone = 0;
    JSON_FOREACH (in, json_path(route, "status", "ingress", NULL)) {
        if (router && !streq(json_get_text(in, "routerName"), router)) {
            json_append(stay, json_clone(in));
        } else {
            (*ret_gone)++;
        }
    }
    return stay;
}

static int clear_once(struct session *s, const char *path, const struct json *route,
                      struct json *stay, struct err *e)
{
    CLEANUP_FREE char *status = xasprintf("%s/status", path);
    CLEANUP(json_free) struct json *patch = json_object(), *answer = NULL;
    json_set_string(json_ensure_object(patch, "metadata"), "resourceVersion",
                    json_path_string(route, "metadata", "resourceVersion", NULL));
    json_set(json_ensure_object(patch, "status"), "ingress", stay);
    return api_request_sync(s->client, "PATCH", status, NULL, "application/merge-patch+json", patch,
                            &answer, e);
}

static int clear_route(struct clearing *c, const char *ns, const char *name)
{
    CLEANUP_FREE char *path = api_path(VERSION, "routes", ns, name, NULL);
    struct err e = {0};
    size_t gone = 0;
    int r = -EEXIST;
    for (unsigned i = 0; i < RETRIES && (r == -EEXIST || r == -ESTALE); i++) {
        CLEANUP(json_free) struct json *route = NULL;
        r = api_request_sync(c->s.client, "GET", path, NULL, NULL, NULL, &route, &e);
        if (r < 0) {
            return session_fail(&c->s, &e, NULL);
        }
        struct json *stay = what_stays(route, c->router, &gone);
        if (gone == 0) {
            json_free(stay);
            r = 0;
            break;
        }
        r = clear_once(&c->s, path, route, stay, &e);
    }
    if (r < 0) {
        return session_fail(&c->s, &e, NULL);
    }
    printf("route %s/%s: %zu %s removed\n", ns, name, gone, gone == 1 ? "entry" : "entries");
    return 0;
}

static int clear_all(struct clearing *c)
{
    CLEANUP_FREE char *path =
        api_path(VERSION, "routes", c->everywhere ? NULL : c->s.ns, NULL, NULL);
    CLEANUP(json_free) struct json *list = NULL;
    const struct json *route;
    struct err e = {0};
    int status = 0;
    if (api_request_sync(c->s.client, "GET", path, NULL, NULL, NULL, &list, &e) < 0) {
        return session_fail(&c->s, &e, NULL);
    }
    JSON_FOREACH (route, json_get(list, "items")) {
        CLEANUP(json_free) struct json *stay = NULL;
        size_t gone;
        stay = what_stays(route, c->router, &gone);
        if (gone) {
            status |= clear_route(c, json_path_string(route, "metadata", "namespace", NULL),
                                  json_path_string(route, "metadata", "name", NULL));
        }
    }
    return status;
}

static void clearing_done(struct clearing *c)
{
    session_done(&c->s);
}

static int run(int argc, char **argv)
{
    __attribute__((cleanup(clearing_done))) struct clearing c = {0};
    int opt;
    optind = 0;
    while ((opt = session_getopt(&c.s, &adm_clear_route_status, argc, argv, NULL)) != -1) {
        if (opt == OPT_ROUTER) {
            c.router = optarg;
        } else if (opt == OPT_ALL || opt == 'A') {
            c.all = true;
            c.everywhere |= opt == 'A';
        } else {
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    if (c.all == (optind < argc)) {
        return command_usage(&adm_clear_route_status, "give either names of routes or --all");
    }
    int status = session_open(&c.s);
    if (status == 0 && c.all) {
        return clear_all(&c);
    }
    for (int i = optind; status == 0 && i < argc; i++) {
        status = clear_route(&c, c.s.ns, argv[i]);
    }
    return status;
}

const struct command adm_clear_route_status = {.name = "adm clear-route-status",
                                               .summary = "remove what routers said about routes",
                                               .help = help,
                                               .options = options,
                                               .shared = session_options,
                                               .run = run};
