/* SPDX-License-Identifier: Apache-2.0 */
/* A write under way, from the request through the store to the response.
 *
 * A write is based on the object that the cache has.  When the store reports a conflict with
 * another write, the write is computed again from the newer object, unless the client requires a
 * certain version.  A write owns its request and answers it at the end; the writes of a collection
 * share one request, which the last of them answers. */
#pragma once

#include "apiserver/admission/alloc.h"
#include "apiserver/admission/project_limit.h"
#include "apiserver/admission/quota.h"
#include "apiserver/admission/uids.h"
#include "apiserver/admission/webhooks.h"
#include "apiserver/request/request.h"

struct write;
/* Computes the change: sends it to the store with write_put or write_delete, or fills the
 * outcome. */
typedef void write_attempt_fn(struct write *w, struct outcome *outcome);

#define DEFINITION_CHANGED_TEXT "its CustomResourceDefinition was changed; try again"

struct write {
    struct list node;
    struct apiserver *server;
    struct request *q;
    struct cache_kind *ck;
    char *key;
    unsigned attempts;
    unsigned waits;           /* How often it waited for an object that it lacks. */
    struct loop_timer *timer; /* NULL: it has not waited. */
    write_attempt_fn *attempt;
    struct json *body; /* The object or patch; NULL: none. */
    int (*patch)(struct write *w, struct json **obj,
                 struct err *e); /* Applies 'body'; only for a patch. */
    /* Fills in the success of the change at 'revision'; NULL: its object is answered. */
    void (*stored)(struct write *w, uint64_t revision, struct outcome *outcome);
    /* Continues the request after the change, in place of an answer; NULL: the request is over. */
    void (*then)(struct write *w, struct outcome *outcome);
    struct deletion *deletion; /* Only for a deletion. */
    bool generated;            /* The server generated the name. */
    bool creates_or_updates;   /* Creates or updates, decided at each attempt. */
    bool creates;              /* A composed object that is new. */
    bool finished;             /* The object is removed by this update. */
    bool ending;               /* The object is being deleted. */
    /* The value being sent to the store: */
    bool deletes; /* The key is being deleted. */
    uint64_t sent_ns;
    struct blob *value;
    struct object *base;      /* The object that the change is based on; NULL: creation. */
    struct alloc_write alloc; /* Claims of a Service. */
    struct uids_write uids;   /* Claims of a namespace. */
    struct quota_write quota; /* The write's share of quotas. */
    struct project_limit_write
        project_limit;            /* The limit that a request for a project counts in. */
    struct webhook_run *webhooks; /* Calls of webhooks; NULL: none was asked. */
    /* Other objects that change in the same transaction; keys and values are owned.  Only of a
     * kind that gets no addresses or ports. */
    struct store_claim *others;
    size_t n_others, cap_others;
};

struct write *write_new(struct request *q, struct cache_kind *ck, const char *key,
                        write_attempt_fn *attempt);
/* Makes the first attempt; the write may be over, and its request answered, when this returns. */
void write_try(struct write *w);
void write_free(struct write *w);
/* Sends the value (the reference is taken over) to the store, and takes the outcome
 * over; 'base' NULL: the key must not exist. */
void write_put(struct write *w, struct object *base, struct blob *value, struct outcome *outcome);
/* Sends a deletion to the store; 'value' (the reference is taken over) is the last
 * state, which the client gets; NULL: none. */
void write_delete(struct write *w, struct object *base, struct blob *value,
                  struct outcome *outcome);
/* Adds the replacement of 'base', of kind 'ck', by 'value' (the reference is taken over) to the
 * write: all is stored together, and only if no other write has changed 'base'. */
void write_add_other(struct write *w, const struct cache_kind *ck, const struct object *base,
                     struct blob *value);
/* Adds the creation of the object 'key', of kind 'ck', with 'value' (the reference is taken
 * over). */
void write_add_new(struct write *w, const struct cache_kind *ck, const char *key,
                   struct blob *value);
/* Discards them, before another attempt. */
void write_drop_others(struct write *w);
/* Reads dryRun, and checks that a write can begin now. */
int write_begin(struct request *q, struct outcome *outcome);
/* Fills in 409: the object exists. */
void outcome_exists(struct outcome *o, const struct api_kind *k, const char *name);
/* Fills in an error of the store that another attempt would not change. */
void outcome_store_error(struct outcome *o, const struct request *q, int error);

/* Steps of a write.  After a failure (negative, NULL) the outcome is filled. */

/* The body as a tree, owned. */
int write_read_body(struct request *q, struct json **ret, struct outcome *outcome);
/* Checks the version and UID that the client requires of the object. */
int write_check_preconditions(struct request *q, const struct json *obj, const struct json *old,
                              struct outcome *outcome);
/* Gives the object the addresses, ports and user IDs that it needs and lacks, records the claims of
 * the write, and reserves what it adds to quotas.  'old' NULL: created.  Negative: the outcome is
 * filled, or taken over by an attempt that is made again. */
int write_settle(struct write *w, struct json *obj, const struct json *old,
                 struct outcome *outcome);
/* Whether the creation of 'obj' waits now for an object that a controller is about to make, such
 * as the service account of a new namespace; then the outcome is taken over, and the attempt is
 * made again after a moment.  It waits for about a second in all, as Kubernetes does. */
bool write_awaits(struct write *w, const struct json *obj, struct outcome *outcome);
/* Runs admission, which may change 'obj', and validation.  When webhooks are to be asked, the
 * outcome is taken over, and the attempt is made again after their answers. */
int write_check(struct write *w, struct json *obj, const struct json *old, struct outcome *outcome);
/* Asks the webhooks about the deletion of 'old'. */
int write_check_deletion(struct write *w, const struct json *old, struct outcome *outcome);
/* The bytes for the store; NULL: the outcome is filled. */
struct blob *write_encode(struct request *q, const struct json *obj, struct outcome *outcome);
/* Validates the update of 'old' to 'obj', and encodes it; '*ret_same': it changes nothing. */
struct blob *write_finish(struct write *w, struct json *obj, const struct json *old, bool *ret_same,
                          struct outcome *outcome);
/* Creates 'value' (taken over), or answers a dry run; NULL: the outcome is filled already. */
void write_send_new(struct write *w, struct blob *value, struct outcome *outcome);
/* Stores 'value' (taken over) in place of 'base', or responds if nothing is to be stored. */
void write_send_update(struct write *w, struct object *base, struct blob *value, bool same,
                       struct outcome *outcome);

void handle_create(struct request *q, struct outcome *outcome);
void handle_update(struct request *q, struct outcome *outcome);
void handle_patch(struct request *q, struct outcome *outcome);

/* Frees the writes that the store never finished. */
void write_drop_all(struct apiserver *a);
