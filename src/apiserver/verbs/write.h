/* SPDX-License-Identifier: Apache-2.0 */
/* A change under way: from the request through the store to the answer.
 *
 * A write is based on the object that the cache has.  When the store finds that another one was
 * faster, the write is computed again from the newer object, unless the client insists on its
 * version.  It owns its request, which it answers when it is over; the writes of a collection share
 * one, which the last answers. */
#pragma once

#include "apiserver/admission/alloc.h"
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
    write_attempt_fn *attempt;
    struct json *body; /* The object or patch; NULL: none. */
    int (*patch)(struct write *w, struct json **obj,
                 struct err *e); /* Applies 'body'; of a patch. */
    struct deletion *deletion;   /* Of a deletion. */
    bool generated;              /* The name was made by the server. */
    bool creates_or_updates;     /* Whichever is due when it is attempted. */
    bool finished;               /* The object goes with this update. */
    bool ending;                 /* The object is being deleted. */
    /* What is being stored. */
    bool deletes; /* That it is gone. */
    uint64_t sent_ns;
    struct blob *value;
    struct object *base;      /* What the change is based on; NULL: creation. */
    struct alloc_write alloc; /* Claims of a Service. */
};

struct write *write_new(struct request *q, struct cache_kind *ck, const char *key,
                        write_attempt_fn *attempt);
/* Makes the first attempt; the write may be over, and its request answered, when this returns. */
void write_try(struct write *w);
void write_free(struct write *w);
/* Sends the value (the reference is taken over) to the store, which takes the outcome over; 'base'
 * NULL: must not exist. */
void write_put(struct write *w, struct object *base, struct blob *value, struct outcome *outcome);
/* Deletes; 'value' (the reference is taken over) is the last state, which the client is told; NULL:
 * none. */
void write_delete(struct write *w, struct object *base, struct blob *value,
                  struct outcome *outcome);
/* dryRun, and whether a write can begin now. */
int write_begin(struct request *q, struct outcome *outcome);
/* An error of the store that another attempt would not change. */
void outcome_store_error(struct outcome *o, const struct request *q, int error);

/* Steps of a write.  After a failure (negative, NULL) the outcome is filled. */

/* The body as a tree, owned. */
int write_read_body(struct request *q, struct json **ret, struct outcome *outcome);
/* Version and UID that the client demands of the object it changes. */
int write_check_preconditions(struct request *q, const struct json *obj, const struct json *old,
                              struct outcome *outcome);
/* Admission, which may change 'obj', and validation. */
int write_check(struct request *q, struct json *obj, const struct json *old,
                struct outcome *outcome);
/* The bytes for the store. */
struct blob *write_encode(struct request *q, const struct json *obj, struct outcome *outcome);
/* Validates the update of 'old' to 'obj', and encodes it; '*ret_same': nothing is changed. */
struct blob *write_finish(struct write *w, struct json *obj, const struct json *old, bool *ret_same,
                          struct outcome *outcome);
/* Creates 'value' (taken over), or answers a dry run; NULL: the outcome is filled already. */
void write_send_new(struct write *w, struct blob *value, struct outcome *outcome);
/* Stores 'value' (taken over) in the place of 'base', or answers when nothing is to be stored. */
void write_send_update(struct write *w, struct object *base, struct blob *value, bool same,
                       struct outcome *outcome);

void handle_create(struct request *q, struct outcome *outcome);
void handle_update(struct request *q, struct outcome *outcome);
void handle_patch(struct request *q, struct outcome *outcome);

/* Frees what is left of writes that the store never finished. */
void write_drop_all(struct apiserver *a);
