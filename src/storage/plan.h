/* SPDX-License-Identifier: Apache-2.0 */
/* What the binder does next with a claim or a volume.
 *
 * A plan is at most one write, and what to tell the user.  The write changes an object, which makes
 * the next plan; so a process that dies between two plans leaves nothing that another process does
 * not continue.  The controller carries plans out (controllers/storage/binder.h).
 *
 * The events and their words are those of Kubernetes' binder; the one for a claim without a
 * matching volume also names the nearest misses.  A plan owns its body and message.  Pure. */
#pragma once

#include "storage/match.h"

enum storage_act {
    STORAGE_REST,      /* Nothing is to be written. */
    STORAGE_BIND,      /* The body is the Binding of the claim. */
    STORAGE_PUT_CLAIM, /* A PUT of the whole object, or of its status. */
    STORAGE_PUT_CLAIM_STATUS,
    STORAGE_PUT_VOLUME,
    STORAGE_PUT_VOLUME_STATUS,
    /* The claim of the volume is read from the API server: it is gone as far as the copy says.
     * Another plan is made with what was read. */
    STORAGE_READ_CLAIM,
    /* The pods of the claim's namespace are read; the plan is carried out if none uses it. */
    STORAGE_RELEASE_CLAIM,
};

struct storage_plan {
    enum storage_act act;
    struct json *body;
    const char *reason; /* Of an Event about the object; NULL: none. */
    char *message;
    bool warning;
    bool when_written; /* The Event is recorded after the write has succeeded. */
};
void storage_plan_done(struct storage_plan *p);
#define CLEANUP_STORAGE_PLAN __attribute__((cleanup(storage_plan_done)))

/* The objects that plans look at. */
struct storage_view {
    /* Volumes that an unbound claim can get: those of its class, those reserved for it. */
    const struct json *const *volumes;
    size_t n_volumes;
    size_t n_other_class; /* Volumes of other classes that are free. */
    const struct json *const *classes;
    size_t n_classes;
    const struct json *(*volume)(void *ctx, const char *name); /* NULL: there is none. */
    /* Whether the node is ready, and runs pods. */
    bool (*node_works)(void *ctx, const char *name);
    /* A node for work that any ready node can do; NULL: there is none. */
    const char *(*any_node)(void *ctx);
    void *ctx;
    bool used; /* A pod that has a node and has not ended mounts the claim. */
    int64_t now_ms;
};

void storage_plan_claim(const struct json *claim, const struct storage_view *v,
                        struct storage_plan *ret);

/* What is known of the claim that a volume names. */
struct storage_owner {
    const struct json *claim; /* NULL: there is none with the reference's uid. */
    bool read;                /* Read from the API server, not from the copy. */
};
void storage_plan_volume(const struct json *volume, const struct storage_owner *owner,
                         const struct storage_view *v, struct storage_plan *ret);
