/* SPDX-License-Identifier: Apache-2.0 */
/* Objects in the form in which the server keeps them, and the rules that
 * turn a client's object into one.
 *
 * The store holds an object's text without its resourceVersion, which is not known before the
 * write.  The text begins with a head that is the same for all objects of a kind, up to the brace
 * that opens metadata, so that the version can be inserted or changed without parsing.
 *
 * 'struct object' is immutable and counted; a change makes a new one.  Loop's thread only. */
#pragma once

#include "api/selector.h"
#include "base/mem.h"

struct object {
    uint32_t refs;
    uint64_t revision;
    struct blob *text;    /* The bytes that clients get. */
    struct blob *message; /* The same in protobuf, once a client needed it (encode.h); or NULL. */
    struct api_index *index;
    char key[]; /* "NAMESPACE/NAME", or "NAME" of a kind without namespaces. */
};

/* Maximum nesting of a stored object: within a list it must still be within JSON_MAX_DEPTH. */
#define OBJECT_MAX_DEPTH (JSON_MAX_DEPTH - 4)

/* {"kind":"Pod","apiVersion":"v1","metadata":{   (owned) */
char *object_head(const struct api_kind *k);
/* The same with another apiVersion. */
char *object_head_as(const struct api_kind *k, const char *version);

/* Makes an object from the bytes of the store.  Bytes that are not in canonical form are parsed and
 * converted; NULL: they are not an object. */
struct object *object_new(const struct api_kind *k, const char *head, const char *key,
                          const struct blob *value, uint64_t revision);
struct object *object_ref(struct object *o);
struct object *object_unref(struct object *o);
DEFINE_CLEANUP(struct object *, object_unref)

/* The text of 'o' with another resourceVersion: that of its deletion, or of the change
 * after which a selector no longer matches. */
struct blob *object_text_at(const struct object *o, const char *head, uint64_t revision);
/* The text of a stored value with its resourceVersion. */
struct blob *object_text(const char *head, const struct blob *value, uint64_t revision);
/* Converts 'text', whose head is 'from', to another version, whose head is 'to'. */
struct blob *object_text_as(const struct blob *text, const char *from, const char *to);
/* The bytes for the store; metadata.resourceVersion is left out.  -E2BIG: nested too deeply. */
int object_encode(const struct api_kind *k, const struct json *obj, struct blob **ret);
/* Whether 'o' was made from 'value'. */
bool object_same(const struct object *o, const char *head, const struct blob *value);
/* 'text' in the form of the view 'k', with this apiVersion. */
struct blob *object_text_view(const struct blob *text, const struct api_kind *k,
                              const char *version);
/* The tree of 'o'; object_parse_as: in the version of 'k'. */
struct json *object_parse(const struct object *o);
struct json *object_parse_as(const struct object *o, const struct api_kind *k);

/* ---- rules ---- */

/* The kind, namespace and name that the object of a request must have. */
struct object_target {
    const struct api_kind *kind;
    const char *namespace; /* NULL: none. */
    const char *name;      /* NULL on creation. */
    const char *subresource;
};

/* Checks that 'obj' is an object of the target's kind with its name and namespace, which are
 * filled in when absent.  -EINVAL: it is not. */
int object_check_target(struct json *obj, const struct object_target *t, struct err *e);
/* Brings 'obj' into the form of its kind's schema: without unknown members, with defaults. */
void object_conform(const struct api_kind *k, struct json *obj);
/* Puts the empty values of fields that are always there into an object of a compiled-in kind.
 * Returns whether it was changed. */
bool object_complete(const struct api_kind *k, struct json *obj);
/* Prepares a new object: sets the metadata that the server controls, and defaults.
 * Without a name, one is made from generateName. */
void object_prepare_create(const struct api_kind *k, struct json *obj, int64_t now_ms);
/* Prepares an update of 'old' to 'obj': fields that the client may not change are taken from
 * 'old'. */
void object_prepare_update(const struct api_kind *k, const struct json *old, struct json *obj);
/* The result of an update through a subresource: 'old' with that part of
 * 'obj'; owned by the caller. */
struct json *object_prepare_part(const struct api_kind *k, const char *subresource,
                                 const struct json *old, const struct json *obj);
/* Whether the object can be removed: its deletion was requested, no grace
 * period is left, and it has no finalizers. */
bool object_is_finished(const struct api_kind *k, const struct json *obj);
bool object_has_finalizers(const struct api_kind *k, const struct json *obj);
/* The grace period in seconds, from the request for deletion on; 0: none,
 * or no deletion was requested. */
int64_t object_grace_s(const struct json *obj);
/* Marks the object as being deleted 'grace_s' seconds after the first request for deletion,
 * which is now unless it was marked before. */
void object_mark_deleted(const struct api_kind *k, struct json *obj, int64_t grace_s,
                         int64_t now_ms);
/* A random part of a name: five letters and digits, and the terminator. */
#define OBJECT_SUFFIX_SIZE 6
void object_random_suffix(char ret[OBJECT_SUFFIX_SIZE]);
/* Makes the name from generateName and a new random suffix. */
void object_generate_name(struct json *obj);
