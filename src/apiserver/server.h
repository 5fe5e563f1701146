/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the API server: the server itself, a request, and what answers one.  Internal to
 * src/apiserver.
 *
 * A 'struct request' lives from apiserver_handle until request_answer has answered it, or a stream
 * has ended it. Its strings belong to the HTTP exchange or to itself. */
#pragma once

#include "api/table/table.h"
#include "apiserver/access/attributes.h"
#include "apiserver/access/priority.h"
#include "apiserver/access/user.h"
#include "apiserver/apiserver.h"
#include "apiserver/cache/subscriber.h"
#include "apiserver/request/outcome.h"
#include "base/map.h"

struct apiserver {
    struct loop *loop;
    struct store *store;
    struct apiserver_config cfg;
    struct cache cache;
    bool lost;     /* The store takes no writes, */
    char *reason;  /* because. */
    bool stopping; /* apiserver_shutdown was called. */
    struct loop_timer *watch_timer;
    struct cache_subscriber watches, definitions;
    size_t n_watches;
    bool unready;      /* apiserver_unready was called. */
    unsigned inflight; /* Writes under way. */
    struct list writes;
    struct loop_task trim;
    bool settling; /* A definition's status is being written. */
    struct loop_timer *settle_timer;
    struct metrics *metrics;
    apiserver_metrics_fn *more_metrics; /* NULL: none. */
    void *more_metrics_ctx;
    struct flow_control *flow;
    struct http_server *http; /* For its figures; NULL: none. */
    struct probe *probe;
    struct health_check *checks;
    size_t n_checks, checks_cap;
    struct security *security;
    struct openapi *openapi;
    struct alloc *alloc; /* NULL: services are given nothing. */
    struct addresses *addresses;
    struct admission *admission;
    uint64_t started_ms;
};

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

/* In which form objects are wanted. */
enum form { FORM_OBJECT, FORM_TABLE, FORM_PARTIAL };

struct accept {
    enum form form;
    bool yaml;
    bool v1beta1; /* Of the Table or PartialObjectMetadata. */
    bool pretty;
    enum api_include include;
};

/* What is done about fields that the kind does not have. */
enum field_validation { FIELDS_WARN, FIELDS_IGNORE, FIELDS_STRICT };

struct request {
    struct apiserver *server;
    struct http_exchange *x;
    uint64_t start_ns;
    struct user_info *user;         /* Who asks; not NULL after filter_request. */
    struct user_info *impersonator; /* Who acts as 'user'; NULL: nobody else. */
    struct attributes attributes;   /* The reading of method, path and query. */
    struct audit_event *audit;      /* NULL: not audited. */
    struct flow_ticket *ticket;     /* Of flow control; NULL: exempt, or given back. */
    bool acceptable;                /* What the client accepts can be made. */
    enum verb verb;
    struct cache_kind *ck;        /* NULL: not a resource of ours. */
    const struct api_kind *kind;  /* In the version that is asked for. */
    char *head;                   /* Of its texts, when they are kept in another version; NULL. */
    const char *namespace, *name; /* Texts of the attributes; NULL: none. */
    const char *subresource;      /* "" when none. */
    struct accept accept;
    /* Of a write: */
    bool dry_run;
    enum field_validation validation;
    char *manager; /* Who manages what is changed. */
};

/* ---- server.c ---- */

/* Does what the request asks for; called once it is its turn. */
void request_run(struct request *q);

/* ---- flow.c ---- */

struct flow_control *flow_new(struct apiserver *a);
/* Answers what still waits; then, when no request is left, frees. */
void flow_drop_all(struct flow_control *f);
struct flow_control *flow_free(struct flow_control *f);
/* The user is known: request_run is called now or later, or the request is answered with 429. */
void flow_admit(struct request *q);
/* Seats that the request needs, by its attributes and query: a list or a new watch costs one more
 * for each 100 objects that it reads. */
unsigned flow_cost(const struct request *q);
/* The request occupies nothing any more; once more is harmless. */
void flow_release(struct request *q);
/* Before an answer of 'size' bytes is given. */
void flow_answer(struct request *q, size_t size);
struct priority_stats flow_stats(const struct flow_control *f, enum priority_level level);
uint64_t flow_exempt(const struct flow_control *f);

/* ---- health.c ---- */

void health_init(struct apiserver *a);
/* false: no such endpoint or check. */
bool handle_health(struct request *q, const char *path, struct outcome *outcome);

/* ---- request.c ---- */

/* Finds what the attributes name: kind, verb and subresource.  -ENOENT: no such resource;
 * -EOPNOTSUPP: the resource does not support the method. */
int request_resolve(struct request *q, struct err *e);
/* From the Accept header; -EINVAL: nothing we can produce. */
int request_accept(struct request *q);
/* The body as a JSON value by Content-Type; '*ret_type' is the bare media type.  -EINVAL:
 * malformed, -EPROTONOSUPPORT: another media type. */
int request_body(struct request *q, struct json **ret, struct err *e);
/* The media type of the body without parameters, in lower case; owned. */
char *request_content_type(const struct request *q);
/* A boolean parameter: absent is false; present without a value is true. */
bool request_flag(const struct request *q, const char *name);
struct request *request_free(struct request *q);
DEFINE_CLEANUP(struct request *, request_free)

/* ---- respond.c ---- */

/* A new object with one member, a new list with one element; 'v' is taken over. */
struct json *object_of(const char *key, struct json *v);
struct json *list_of(struct json *v);
/* The Status that the outcome stands for; owned. */
struct json *status_object(const struct request *q, const struct outcome *o);
/* Turns the outcome into the response, and ends the request; one that was taken over is left
 * alone. */
void request_answer(struct request *q, struct outcome *o);
/* Answers with an error at once: for what happens before a handler is called. */
void respond_error(struct request *q, int code, const char *reason, const char *text);
/* Adds a Warning to the response, whatever its outcome; 'agent' is "-" when the warning is about
 * the request. */
void request_warn(struct request *q, const char *agent, const char *text);
/* 'text', which is of the request's kind as the cache has it, in the version that is asked for;
 * owned. */
struct blob *request_text(const struct request *q, struct blob *text);
/* The PartialObjectMetadata of 'text', which request_text made: taken out of it without parsing. */
void request_write_partial(const struct request *q, const struct blob *text, struct strbuf *out);
/* A stream that answered a request has ended: what is left of it is freed. */
void respond_streamed(struct request *q);
/* 503 with what is wrong: the store takes no writes now. */
void outcome_unavailable(struct outcome *o, const struct request *q);

/* ---- newest.c ---- */

/* A handler: fills the outcome (outcome.h). */
typedef void request_fn(struct request *q, struct outcome *outcome);
/* Calls 'handler' when the cache is as new as the request needs: now, or later. */
void newest_then(struct request *q, request_fn *handler, struct outcome *outcome);

/* ---- verbs ---- */

void handle_get(struct request *q, struct outcome *outcome);
void handle_list(struct request *q, struct outcome *outcome);
void handle_watch(struct request *q, struct outcome *outcome);
void handle_create(struct request *q, struct outcome *outcome);
void handle_update(struct request *q, struct outcome *outcome);
void handle_patch(struct request *q, struct outcome *outcome);
void handle_apply(struct request *q, struct outcome *outcome); /* A patch of the type APPLY_TYPE. */
#define APPLY_TYPE "application/apply-patch+yaml"
void handle_delete(struct request *q, struct outcome *outcome);
void handle_delete_collection(struct request *q, struct outcome *outcome);
/* Paths that are no resources; false: no such path. */
bool handle_path(struct request *q, struct outcome *outcome);
void handle_openapi(struct request *q, const char *path, struct outcome *outcome);
void handle_metrics(struct request *q, struct outcome *outcome);

/* The selectors of a request; NULL: all. */
struct selection {
    struct api_selector *labels, *fields;
    const char *name; /* Of the object, when one is watched by its path; the request's. */
    const struct request
        *viewer; /* Whose user must have leave to get each; NULL: that is settled. */
};
int selection_parse(struct request *q, struct selection *ret, struct outcome *outcome);
void selection_done(struct selection *s);
bool selection_matches(const struct selection *s, const struct object *o);
/* Where in the cache the objects of the selection are, within the request's namespace. */
struct cache_range selection_range(const struct request *q, const struct selection *s);
/* The value that it wants of the field by which the kind is indexed; NULL: several. */
const char *selection_value(const struct request *q, const struct selection *s);
/* A resourceVersion parameter: *ret 0 when absent or "0". */
int version_parse(struct request *q, uint64_t *ret, bool *ret_present, struct outcome *outcome);
/* 504: the cache does not have that revision yet. */
void outcome_too_large(struct outcome *o, const struct request *q, uint64_t revision);

/* ---- watch.c ---- */

/* Makes the timer of the watches, and subscribes to the cache. */
void watch_init(struct apiserver *a);
void watch_end_kind(struct cache_kind *ck);
void watch_end_all(struct apiserver *a);
/* Frees the watches whose exchanges are gone with the HTTP server. */
void watch_drop_all(struct apiserver *a);

/* ---- definitions.c ---- */

/* Makes the timer of the definitions, and subscribes to the cache. */
void definitions_init(struct apiserver *a);
/* Serves what the CustomResourceDefinitions in the cache say. */
void definitions_load(void *server);
/* Settles the status of those that are new; one write at a time. */
void definitions_settle(void *server);

/* ---- write.c ---- */

/* Frees what is left of writes that the store never finished. */
void write_drop_all(struct apiserver *a);

/* ---- scale.c ---- */

/* The Scale of 'obj', of kind 'k', which has that subresource; owned. */
struct json *scale_of(const struct api_kind *k, const struct json *obj);
/* As object_check_target, of a Scale of the object that 't' is about.  -EINVAL. */
int scale_check_target(struct json *scale, const struct object_target *t, struct err *e);
/* Gives 'obj' the number that 'scale' asks for; none is 0. */
void scale_put(const struct api_kind *k, const struct json *scale, struct json *obj);
/* What applying 'scale' applies to its object; owned. */
struct json *scale_config(const struct api_kind *k, const struct json *scale);

/* ---- openapi.c ---- */

struct openapi *openapi_new(void);
struct openapi *openapi_free(struct openapi *o);

/* ---- metrics.c ---- */

struct metrics *metrics_new(void);
struct metrics *metrics_free(struct metrics *m);
/* The store has answered a write, after 'duration_ns'. */
void metrics_count_store(struct metrics *m, bool deletion, int error, uint64_t duration_ns);
/* One phase of an admission plug-in; all texts are constant, and compared by their addresses. */
struct admission_call {
    const char *name, *type, *operation;
    bool rejected;
};
void metrics_count_admission(struct metrics *m, const struct admission_call *call,
                             uint64_t duration_ns);
/* A request was answered; a watch when it ended. */
void metrics_count(struct metrics *m, enum verb verb, const char *resource, int code,
                   uint64_t duration_ns);
