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
    /* What is being stored. */
    bool deletes;
    uint64_t sent_ns;
    struct blob *value;
    struct object *base; /* What the change is based on; NULL: creation. */
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
/* The body; the request was answered on failure. */
int read_body(struct request *q, struct json **ret);
/* An answer to an error of the store that another attempt would not change. */
void respond_store_error(struct request *q, int error);

/* ---- delete.c ---- */

/* The store has done its part of a deletion. */
void delete_stored(struct write *w, int error, uint64_t revision);
/* Frees what a deletion has beside its write. */
void delete_drop(struct write *w);
