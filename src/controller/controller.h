/* SPDX-License-Identifier: Apache-2.0 */
/* The framework of controllers: a controller is a description, and a set
 * of them runs from a table of rows.
 *
 * A description (struct controller) lists the watched kinds, the functions that turn events into
 * keys of a queue (workqueue.h), and the function that reconciles a key.  The set starts each
 * controller whose needs are met: it makes the controller's queue and its informers, which all
 * controllers of the process share (client/informer_set.h), and begins to reconcile when every
 * watch has its first complete list.  When a need is no longer met the controller is stopped, even
 * during its work.  The set keeps metrics of the queues.
 *
 * The set owns controllers, queues and informers.  Everything runs on the loop's thread. */
#pragma once

#include "client/informer_set.h"
#include "controller/recorder.h"
#include "controller/workqueue.h"

/* The environment of a controller; everything in it outlives the controller. */
struct controller_env {
    struct loop *loop;
    /* Its writes count only while this process leads (leader.h).  A controller with an account gets
     * a client that acts as that. */
    struct api_client *client;
    struct informer_set *informers;
    struct recorder *recorder;
    struct workqueue *queue; /* The controller's own. */
};

/* One kind that a controller watches.  The functions get the controller's state, are called in the
 * order of the events, and may be NULL.  Without 'changed' and 'deleted' each event adds the
 * object's key to the queue. */
struct controller_watch {
    const char *api_version, *plural;
    const char *fields; /* Field selector; NULL: all objects. */
    /* CONTROLLER_INFORMER: the member of the state to which the informer is assigned. */
    size_t informer;
    void (*changed)(void *state, const char *key, const struct json *old, const struct json *obj);
    void (*deleted)(void *state, const char *key, const struct json *obj);
    /* See informer_ops. */
    void (*listing)(void *state);
    void (*listed)(void *state);
    bool transient, metadata;
};
/* The offset, plus one, so that 0 is none. */
#define CONTROLLER_INFORMER(type, member) (offsetof(type, member) + 1)

struct controller {
    const char *name; /* The name in logs and metrics. */
    const struct controller_watch *watches;
    size_t n_watches;
    unsigned parallel; /* Number of keys reconciled at once. */
    /* The service account of the namespace kube-system whose rights its requests have: what a
     * controller makes for users must not be judged by the rights of the master.  Lists and watches
     * are shared, and are the master's own.  NULL: all requests are the master's. */
    const char *account;
    /* Makes the state; the informers are set afterwards, before any event.  'config' comes from the
     * row.  On failure no state is left, and 'e' says why. */
    int (*start)(const struct controller_env *env, const void *config, void **ret_state,
                 struct err *e);
    /* Every watch has reported its first complete list; the queue starts next.  May be NULL. */
    void (*synced)(void *state);
    /* The controller waits for more than its watches and calls workqueue_start itself. */
    bool starts_queue;
    work_fn *reconcile; /* Reconciles a key; its context is the state. */
    /* Writes metrics of its own in Prometheus' text format, while it runs; may be NULL. */
    void (*write_metrics)(void *state, struct strbuf *out);
    /* Releases the state; queue and informers are freed already. */
    void (*stop)(void *state);
};

/* One row of a table of controllers. */
struct controller_row {
    const struct controller *controller;
    unsigned needs; /* Bits that the table defines; the controller runs while all are met. */
    size_t config;  /* Offset of the controller's configuration within the set's configuration. */
};

struct controller_set;
/* Makes a set in which no controller runs yet.  'env' is copied, except its queue;
 * the rows and 'config' must outlive the set. */
struct controller_set *controller_set_new(const struct controller_env *env,
                                          const struct controller_row *rows, size_t n_rows,
                                          const void *config);
/* Starts the controllers whose needs 'has' covers, in the order of the rows, and stops the
 * others in the reverse order.  On failure the first controller that could not be started, and
 * the ones after it, do not run; 'e' says why. */
int controller_set_enable(struct controller_set *s, unsigned has, struct err *e);
bool controller_set_runs(const struct controller_set *s, const struct controller *c);
/* Stops all controllers: requests under way are cancelled, and there are no further callbacks. */
struct controller_set *controller_set_free(struct controller_set *s);
/* Writes metrics of the queues in Prometheus' text format, with the names that client-go uses. */
void controller_set_write_metrics(const struct controller_set *s, struct strbuf *out);
