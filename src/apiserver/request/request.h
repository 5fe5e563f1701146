/* SPDX-License-Identifier: Apache-2.0 */
/* A request: its user, its resource, and the form of its response.
 *
 * It lives from apiserver_handle until request_answer has answered it
 * (respond.h), or a stream has ended it.  Its strings belong to the HTTP exchange
 * or to itself.  Everything runs on the loop's thread. */
#pragma once

#include "api/table/table.h"
#include "apiserver/access/attributes.h"
#include "apiserver/access/audit.h"
#include "apiserver/access/user.h"
#include "apiserver/request/outcome.h"
#include "apiserver/request/server_priv.h"
#include "oauth/token.h"

enum verb {
    VERB_GET,
    VERB_LIST,
    VERB_WATCH,
    VERB_CREATE,
    VERB_UPDATE,
    VERB_PATCH,
    VERB_DELETE,
    VERB_DELETE_COLLECTION,
    VERB_OTHER,
    VERB_MAX
};
extern const char *const verb_names[VERB_MAX];

/* The form in which objects are returned. */
enum form { FORM_OBJECT, FORM_TABLE, FORM_PARTIAL };

struct accept {
    enum form form;
    bool list;       /* The form is PartialObjectMetadataList. */
    bool aggregated; /* Discovery of everything in one answer; of /api and /apis only. */
    bool yaml;
    bool protobuf;
    bool v1beta1; /* Version of the Table or PartialObjectMetadata. */
    bool pretty;
    enum api_include include;
};

/* The treatment of fields that the kind does not have. */
enum field_validation { FIELDS_WARN, FIELDS_IGNORE, FIELDS_STRICT };

struct request {
    struct apiserver *server;
    struct http_exchange *x;
    uint64_t start_ns;
    struct user_info *user;         /* The requesting user; not NULL after filter_request. */
    struct user_info *impersonator; /* The user who acts as 'user'; NULL: no impersonation. */
    struct attributes attributes;   /* Read from method, path and query. */
    struct audit_event *audit;      /* NULL: not audited. */
    char audit_id[AUDIT_ID_MAX + 1];
    struct flow_ticket *ticket; /* The ticket of flow control; NULL: exempt, or released. */
    bool cacheable;             /* The response has a Cache-Control of its own. */
    int streamed;               /* Status of a response that is a stream; 0: none has begun. */
    enum verb verb;
    bool legacy;                 /* "apiVersion" is v1, as in /oapi/v1 (api/legacy.h). */
    struct cache_kind *ck;       /* NULL: not a resource of this server. */
    const struct api_kind *kind; /* In the version that the client requested. */
    /* The head of its texts, if objects are kept in another version; otherwise NULL. */
    char *head;
    const char *namespace, *name; /* Texts of the attributes; NULL: none. */
    char
        token_name[OAUTH_TOKEN_TEXT_SIZE]; /* The name in the attributes, if it replaced a token. */
    const char *subresource;               /* "" when none. */
    struct accept accept;
    /* Members of a write: */
    bool dry_run;
    enum field_validation validation;
    char *manager; /* The name of the field manager. */
    /* Warnings of the response: an object of agents by text; NULL: none. */
    struct json *warnings;
};

/* A handler; fills the outcome (outcome.h). */
typedef void request_fn(struct request *q, struct outcome *outcome);

/* Executes the request when flow control admits it; in server.c. */
void request_run(struct request *q);
/* Finds the kind, verb and subresource that the attributes name.  -ENOENT: no such resource;
 * -EOPNOTSUPP: the resource does not support the method. */
int request_resolve(struct request *q, struct err *e);
/* The "apiVersion" of the resource's objects in this request and its answer; owned. */
char *request_api_version(const struct request *q);
/* Reads the Accept header.  The server produces the acceptable type with the highest quality, the
 * first of several; protobuf only for kinds that have that form, once the kind is known.  -EINVAL:
 * it can produce none of the types. */
int request_accept(struct request *q);
/* The body as a JSON value by Content-Type; '*ret_type' is the bare media type.  -EINVAL:
 * malformed, -EPROTONOSUPPORT: another media type. */
int request_body(struct request *q, struct json **ret, struct err *e);
/* The media type of a server-side apply. */
#define APPLY_TYPE "application/apply-patch+yaml"
/* The media type of the body without parameters, in lower case; owned. */
char *request_content_type(const struct request *q);
/* A boolean parameter: absent is false; present without a value is true. */
bool request_flag(const struct request *q, const char *name);
/* Whether the request came with the OAuth token whose object is called 'name'. */
bool request_has_token(const struct request *q, const char *name);
/* Whether the OAuth token that the request came with (if any) is no longer valid. */
bool request_has_ended_token(const struct request *q, int64_t now_ms);
struct request *request_free(struct request *q);
DEFINE_CLEANUP(struct request *, request_free)
