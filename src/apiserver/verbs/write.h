/* SPDX-License-Identifier: Apache-2.0 */
/* A change under way: from the request through the store to the answer.
 *
 * A write is based on the object that the cache has.  When the store finds that another one was faster, the
 * write is computed again from the newer object, unless the client insists on its version.  It owns its
 * request, which it answers and frees; the writes of a collection share one, which the last answers. */
#pragma once

#include "apiserver/server.h"

struct write {
    struct list node;
    struct apiserver *server;
    struct request *q;
    struct cache_kind *ck;
    char *key;
    unsigned attempts;
    /* Computes the change and calls write_put, write_delete or answers. */
    void (*attempt)(struct write *w);
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
    struct object *base;        /* What the change is based on; NULL: creation. */
    struct store_claim *claims; /* See alloc.h; keys and values are the write's. */
    size_t n_claims, cap_claims;
};

struct write *write_new(struct request *q, struct cache_kind *ck, const char *key,
                        void (*attempt)(struct write *w));
/* Its request was answered, or is another's. */
void write_free(struct write *w);
/* Sends the value (the reference is taken over) to the store; 'base' NULL: must not exist. */
void write_put(struct write *w, struct object *base, struct blob *value);
/* Deletes; 'value' (the reference is taken over) is the last state, which the client is told; NULL: none. */
void write_delete(struct write *w, struct object *base, struct blob *value);
/* dryRun, and whether a write can begin now; the request was answered on failure. */
int write_begin(struct request *q);
/* An answer to an error of the store that another attempt would not change. */
void respond_store_error(struct request *q, int error);

/* Steps of a write.  After a failure (negative, NULL, true of write_is_refused) the request was answered. */

/* The body as a tree, owned. */
int write_read_body(struct request *q, struct json **ret);
/* The namespace of a new object (its name may be NULL) must be there, and not on its way out. */
int write_check_namespace(struct request *q, const char *name);
/* Version and UID that the client demands of the object it changes. */
int write_check_preconditions(struct request *q, const struct json *obj, const struct json *old);
/* Admission, which may change 'obj', and validation. */
bool write_is_refused(struct request *q, struct json *obj, const struct json *old);
/* The bytes for the store. */
struct blob *write_encode(struct request *q, const struct json *obj);
/* Validates the update of 'old' to 'obj', and encodes it; '*ret_same': nothing is changed. */
struct blob *write_finish(struct write *w, struct json *obj, const struct json *old,
                          bool *ret_same);
/* Creates 'value' (taken over), or answers a dry run; NULL: the request was answered already. */
void write_send_new(struct write *w, struct blob *value);
/* Stores 'value' (taken over) in the place of 'base', or answers when nothing is to be stored. */
void write_send_update(struct write *w, struct object *base, struct blob *value, bool same);
/* ---- lease.c ---- */

/* Whether the lease that the request is made under, if any, is held; the request was answered on failure. */
int lease_check(struct request *q);
bool lease_is_held(const struct write *w);
/* The store's key of that lease (owned), and the revision at which it must be; false: there is none. */
bool lease_guard(const struct write *w, char **ret_key, uint64_t *ret_at);
void respond_lease_lost(struct request *q);

/* ---- delete.c ---- */

/* The store has done its part of a deletion. */
void delete_stored(struct write *w, int error, uint64_t revision);
/* Frees what a deletion has beside its write. */
void delete_drop(struct write *w);
