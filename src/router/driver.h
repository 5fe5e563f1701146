/* SPDX-License-Identifier: Apache-2.0 */
/* Brings HAProxy to the state that plans (route/plan.h) ask for.
 *
 * The driver starts HAProxy as a master and a worker, and adopts one that runs already: HAProxy's
 * own answers are the only record of what it does.  Changes are collected until the loop is idle,
 * then sent through the runtime API in an order in which no request is lost: certificates, servers,
 * entries of maps, and after these what is not needed any more.  When there is no free backend of a
 * plan's shape, the driver writes the configuration and reloads in the background: HAProxy's master
 * starts another worker with the same listening sockets, and the old one finishes its connections.
 *
 * The driver owns the plans.  Everything runs on the loop's thread. */
#pragma once

#include "base/prom.h"
#include "net/loop/loop.h"
#include "route/plan.h"

struct driver;
struct driver_config {
    struct loop *loop;
    struct route_plan_options *options; /* 'passthrough' is the driver's. */
    const char *haproxy;                /* The program. */
    bool bind_at_once;                  /* Start before the routes are known. */
    uint64_t reload_ms;                 /* Least time between two reloads. */
};

struct driver_state {
    bool running;  /* The worker answers. */
    bool synced;   /* It does what the plans say. */
    bool settled;  /* It has done so once since the driver began, or could not load that. */
    char why[256]; /* The reason when it does not run, or the last error. */
    uint64_t reloads, failed_reloads, starts, adoptions, commands, refused_commands;
    uint64_t backends, free_backends, routes;
    struct prom_histogram reload_time, change_time;
};

/* Starts at once when the folder has the configuration of an earlier run, or HAProxy runs. */
int driver_new(const struct driver_config *cfg, struct driver **ret, struct err *e);
/* Takes 'p' for the route 'key' ("NAMESPACE/NAME"); NULL: the route is not served. */
void driver_set(struct driver *d, const char *key, struct route_plan *p);
/* All routes of the first lists are set; before this nothing is removed, and HAProxy is not started
 * without a configuration. */
void driver_begin(struct driver *d);
const struct driver_state *driver_state(const struct driver *d);
/* The key of the route that has the backend; NULL: none. */
const char *driver_route_of(const struct driver *d, const char *backend);
/* Asks HAProxy "show stat"; 'fn' gets NULL when it does not answer. */
typedef void driver_stat_fn(void *ctx, const char *csv, size_t size);
void driver_show_stat(struct driver *d, driver_stat_fn *fn, void *ctx);
/* Tells HAProxy to accept no connection and to finish those it has; 'done' is called when it has
 * ended, or was killed after 'timeout_ms'. */
void driver_stop(struct driver *d, uint64_t timeout_ms, loop_fn *done, void *ctx);
/* HAProxy goes on without the driver. */
struct driver *driver_free(struct driver *d);
