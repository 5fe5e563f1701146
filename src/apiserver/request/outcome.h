/* SPDX-License-Identifier: Apache-2.0 */
/* The outcome of a request: the result that handlers and their helpers fill in, and that
 * request_answer (respond.h) turns into the response.
 *
 * A helper that can fail returns 0 or a negative errno; on failure it has filled the outcome.  A
 * handler always fills it: with an error, an object, JSON or text, or with OUTCOME_TAKEN_OVER when
 * a stream has begun or another part answers later; the request may be gone by then.  An outcome
 * that was not filled is answered with 500.
 *
 * An outcome owns its texts, causes and values; constants are named as such.  An outcome is
 * filled once: filling it does not free earlier contents.  Warnings belong to the request
 * (request_warn), because streams have them as well. */
#pragma once

#include "api/kind.h"
#include "base/mem.h"
#include "base/str.h"

enum outcome_type {
    OUTCOME_NONE,       /* Not filled. */
    OUTCOME_TAKEN_OVER, /* Nothing to answer: a stream has begun, or another part answers later. */
    OUTCOME_STATUS,     /* A Status: an error, or the success of a deletion. */
    OUTCOME_OBJECT,     /* One object of the request's kind, in its stored form. */
    OUTCOME_JSON,       /* Any JSON; YAML is possible if the client accepts it. */
    OUTCOME_TEXT,       /* Bytes of a content type. */
};

struct outcome {
    enum outcome_type type;
    int code;                 /* HTTP status. */
    const char *content_type; /* Constant; NULL: JSON, or YAML where the client accepts that. */
    struct blob *object;
    struct json *json;
    struct strbuf text;
    /* The members of a Status: */
    const char *reason; /* Constant; NULL: none. */
    char *message;
    char *name;       /* details.name; NULL: none. */
    char *kind;       /* details.kind; NULL: the plural of the request's kind. */
    char *group;      /* details.group of 'kind'; ignored when the request has a kind. */
    char *uid;        /* NULL: none. */
    char *resume;     /* metadata.continue; NULL: none. */
    unsigned retry_s; /* Retry-After; 0: none. */
    bool plain;       /* Leave the request's kind out of the details. */
    struct api_causes causes;
};

void outcome_done(struct outcome *o);
static inline UNUSED void outcome_donep(struct outcome *o)
{
    outcome_done(o);
}

/* An error without details of a kind; 429 and 503 ask the client to retry after a second.  'reason'
 * is constant. */
void outcome_error(struct outcome *o, int code, const char *reason, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
/* An error about the object 'name' (NULL: none) of the request's kind.  'reason' is constant. */
void outcome_status(struct outcome *o, int code, const char *reason, const char *name,
                    const char *fmt, ...) PRINTF_LIKE(5, 6);
/* Adds a cause; 'reason' is constant, 'field' may be NULL. */
void outcome_add_cause(struct outcome *o, const char *reason, const char *field,
                       const char *message);
void outcome_take_causes(struct outcome *o, struct api_causes *causes);
/* Fills in 404, 409 or 422 for the object 'name' of kind 'k'.  'causes' is taken over. */
void outcome_not_found(struct outcome *o, const struct api_kind *k, const char *name);
void outcome_conflict(struct outcome *o, const struct api_kind *k, const char *name,
                      const char *why);
void outcome_invalid(struct outcome *o, const struct api_kind *k, const char *name,
                     struct api_causes *causes);
/* 422 for one field. */
void outcome_invalid_field(struct outcome *o, const struct api_kind *k, const char *name,
                           const char *field, const char *message);
/* 422 for the parameters of a request; 'kind' is "CreateOptions" or the like; 'causes' is taken
 * over. */
void outcome_invalid_options(struct outcome *o, const char *kind, struct api_causes *causes);
/* Success of the deletion of the object 'name' with 'uid' (NULL: none). */
void outcome_deleted(struct outcome *o, const char *name, const char *uid);
/* 'stored' is of the request's kind in the version in which it is kept; the reference is taken
 * over. */
void outcome_object(struct outcome *o, int code, struct blob *stored);
/* 'v' is taken over; 'content_type' as in struct outcome. */
void outcome_json(struct outcome *o, int code, const char *content_type, struct json *v);
/* 'text' is taken over; 'content_type' NULL: JSON. */
void outcome_text(struct outcome *o, int code, const char *content_type, struct strbuf *text);
/* Marks that the request now belongs to a stream, or to work that calls request_answer later. */
void outcome_take_over(struct outcome *o);

/* "pods" or "hostsubnets.network.openshift.io", as error messages name resources.  The text is in
 * 'buf'; RESOURCE_TEXT has a buffer that lives until the end of the enclosing block. */
const char *resource_text_(const struct api_kind *k, char *buf, size_t size);
#define RESOURCE_TEXT(k) (resource_text_(k, (char[128]){0}, 128))
