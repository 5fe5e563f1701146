/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the driver: driver.c (plans and backends), commit.c (differences and
 * commands), adopt.c (HAProxy's state), reload.c (the configuration and the processes). */
#pragma once

#include "base/backoff.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/said.h"
#include "router/driver.h"
#include "router/haproxy_conn.h"

#define SLOT_NAME_SIZE 48

struct server {
    unsigned weight;
    bool dying; /* It gets no new connection, and is deleted when it has none. */
};

/* A backend of the running configuration. */
struct slot {
    char name[SLOT_NAME_SIZE], shape_id[ROUTE_SHAPE_SIZE];
    struct item *owner;  /* NULL: none. */
    struct smap servers; /* HAProxy's servers by name: struct server. */
    struct list touched; /* Linked while servers may differ from the plan. */
    struct list free;    /* Linked in the shape while a route may take it. */
    bool exists;         /* The running worker has it. */
};

struct shape {
    struct route_plan *plan; /* Has the text; owned. */
    struct list free;
    size_t used;
};

/* A route. */
struct item {
    char *key;
    struct route_plan *plan; /* Served by 'slot'; NULL: nothing yet. */
    struct slot *slot;
    struct route_plan *pending; /* Waits for a backend of its shape; NULL: none. */
    struct list waiting;        /* Linked while 'pending' is there. */
};

/* The entry of a map, or the file of a certificate, that a route wants. */
struct want {
    struct item *owner;
    char *value;
};

enum reload_step { RELOAD_NONE, RELOAD_CHECK, RELOAD_SWITCH };

struct driver {
    struct driver_config cfg;
    struct driver_state state;
    struct smap items, slots, shapes;
    struct list waiting, touched_slots;
    struct smap want[ROUTE_N_MAPS], have[ROUTE_N_MAPS], touched[ROUTE_N_MAPS];
    struct smap want_certs, have_certs, touched_certs, have_cas;
    uint64_t next_slot;
    bool begun, stopping, resync;
    uint64_t dirty_ns; /* When the first change that is not sent yet came; 0: none. */
    struct loop_task commit;
    struct loop_timer *retry, *dying, *reload_timer;
    /* The connection in use, and the one that looks for a new worker. */
    struct haproxy_conn *runtime, *probe;
    bool ready; /* The state of the worker behind 'runtime' was read. */
    unsigned silent;
    /* Reload. */
    enum reload_step step;
    uint64_t loaded; /* The generation that the worker must have; 0: any. */
    uint64_t generation, reload_started_ms, reloaded_ms;
    struct backoff reload_again;
    uint64_t former_slot; /* 'next_slot' before the configuration that is verified. */
    struct said reload_error;
    char running[64]; /* The description of the running worker. */
    bool passthrough; /* The configuration has the front end for it. */
    char check_text[400];
    int check_result;
    /* The process. */
    struct loop_child *child;
    struct backoff start_again;
    uint64_t started_ms;
    struct said start_error;
    struct loop_timer *stop_timer;
    uint64_t stop_deadline_ms;
    loop_fn *stopped;
    void *stopped_ctx;
};

/* driver.c */
void driver_serve_waiting(struct driver *d); /* Gives free backends to routes that wait. */
struct slot *driver_slot(struct driver *d, const char *name, const char *shape_id);
struct shape *driver_shape(struct driver *d, const struct route_plan *p);
void driver_slot_settle(struct driver *d, struct slot *s); /* Frees it when it is empty. */
void driver_touch_slot(struct driver *d, struct slot *s);
void driver_touch(struct driver *d); /* Queues a commit. */
void want_free(void *w);

/* Makes the plan of a route wait for another backend: HAProxy has lost the present one. */
void driver_lose_slot(struct driver *d, struct item *i);

/* commit.c */
void driver_commit(void *ctx);
void driver_delete_dying(void *ctx);
char *driver_path(const struct driver *d, const char *folder, const char *file);

/* adopt.c */
void driver_connect(struct driver *d);
void driver_look_for_new(struct driver *d);
void driver_disconnect(struct driver *d);

/* reload.c */
void driver_reload_soon(struct driver *d);
/* There is another reason for it: earlier failures do not delay it. */
void driver_reload_changed(struct driver *d);
void driver_reload_now(void *ctx);
void driver_reload_done(struct driver *d, bool ok, const char *why);
void driver_retry(void *ctx);
bool driver_is_current(const struct driver *d, const char *description);
