/* SPDX-License-Identifier: Apache-2.0 */
/* Client of a Kubernetes-style API: typed requests, and informers.
 *
 * A 'struct api_client' speaks to one server, from a kubeconfig or a URL.  If it knows several
 * servers of one cluster, it switches to the next one when a server does not answer, or answers 502
 * or 503; its watches follow, and the caller has to repeat the failed request.  Requests are
 * asynchronous; api_request_sync runs the loop until the response has arrived, and is for
 * command-line programs.  Objects are JSON values.  A Status answer becomes an error: the code is
 * mapped to an errno (404 -ENOENT, 409 AlreadyExists -EEXIST, 409 Conflict -ESTALE, 403 -EACCES,
 * 401 -EPERM, 422/400 -EINVAL, 410 -ESTALE, 429/5xx -EAGAIN) and its message kept. */
#pragma once

#include "net/http/http.h"
#include "wire/json.h"

struct api_client;
int api_client_new(struct loop *l, const char *url, const char *user_agent, struct api_client **ret,
                   struct err *e);
/* Makes a client from these values; they are not needed afterwards. */
struct kubeconfig;
int api_client_with(struct loop *l, const struct kubeconfig *k, const char *user_agent,
                    struct api_client **ret, struct err *e);
/* 'path' NULL: $KUBECONFIG (first entry), then ~/.kube/config.  Uses current-context. */
int api_client_from_kubeconfig(struct loop *l, const char *path, const char *user_agent,
                               struct api_client **ret, struct err *e);
/* A client for requests in the name of the user 'user' (header Impersonate-User), which the user of
 * 'base' must be allowed to impersonate.  It uses the connections of 'base', which must outlive it,
 * and is for requests only, not for informers.  An API server without access control ignores the
 * name. */
struct api_client *api_client_as(struct api_client *base, const char *user);
/* The same for a user with a UID, groups and further attributes: 'user' is a UserInfo of
 * authentication.k8s.io ("username", "uid", "groups", "extra"), which is not needed afterwards.
 * -EINVAL: it has no name, or a text that no header can carry. */
int api_client_as_user(struct api_client *base, const struct json *user, struct api_client **ret,
                       struct err *e);
/* Uses the certificates of 'k' for new connections and closes idle ones; unchanged on
 * failure.  The client's server must use HTTPS. */
int api_client_set_tls(struct api_client *c, const struct kubeconfig *k, struct err *e);
/* Outstanding requests are cancelled without a callback; informers must be freed before. */
struct api_client *api_client_free(struct api_client *c);
DEFINE_CLEANUP(struct api_client *, api_client_free)
/* Namespace of the kubeconfig's context, or "default". */
const char *api_client_namespace(const struct api_client *c);
const char *api_client_server(const struct api_client *c); /* The server in use. */
/* The connection to the server, for streams of the caller (http_stream); it belongs to the client.
 * The caller has to report how such a stream ended. */
struct http_client *api_client_http(struct api_client *c);
void api_client_ended(struct api_client *c, const struct http_client *used,
                      const struct http_result *r);
/* The time without any data after which an informer replaces its watch by a new one, in
 * milliseconds; 90,000 unless it is set.  More than the 60 s between a server's bookmarks. */
uint64_t api_client_quiet_ms(const struct api_client *c);
void api_client_set_quiet_ms(struct api_client *c, uint64_t ms);

/* 'error': see above; 'obj' is the decoded body (the callback may json_clone it), NULL on failure;
 * 'text' is the server's message on failure. */
typedef void api_done_fn(void *ctx, int error, const char *text, struct json *obj);
struct api_call;
/* 'body' NULL: none.  'content_type' NULL: application/json. */
struct api_call *api_request(struct api_client *c, const char *method, const char *path,
                             const char *content_type, const struct json *body, api_done_fn *done,
                             void *ctx);
/* Like api_request, with the media type of the response: 'accept' NULL is application/json. */
struct api_call *api_request_as(struct api_client *c, const char *method, const char *path,
                                const char *accept, const char *content_type,
                                const struct json *body, api_done_fn *done, void *ctx);
void api_call_cancel(struct api_call *call);
/* Media type for the metadata only, of an object or of a list. */
#define API_ACCEPT_METADATA \
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
#define API_ACCEPT_METADATA_LIST \
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
/* Like api_request_as, but waits for the response; the caller owns '*ret' (NULL pointer: not
 * wanted).  'accept' NULL: application/json. */
int api_request_sync(struct api_client *c, const char *method, const char *path, const char *accept,
                     const char *content_type, const struct json *body, struct json **ret,
                     struct err *e);

/* Called after each api_request_sync: its error (0: none), and its duration in milliseconds. */
typedef void api_trace_fn(const struct api_client *c, const char *method, const char *path,
                          int error, uint64_t ms);
void api_client_set_trace(struct api_client *c, api_trace_fn *fn); /* NULL: none. */

/* ---- paths ---- */

/* Owned "/api/v1/namespaces/NS/PLURAL/NAME" or "/apis/GROUP/VERSION/..."; 'api_version' as in
 * objects ("v1", "network.openshift.io/v1"); NS and NAME may be NULL; 'subresource' too. */
char *api_path(const char *api_version, const char *plural, const char *ns, const char *name,
               const char *subresource);

/* ---- informer: list, watch, resync ---- */

/* A listener to all objects of one kind.  Objects are listed, then watched from the list's
 * resourceVersion; a broken watch resumes from the last version seen; after 410 they are listed
 * again and the difference is reported.  While the server is unavailable the copy of the objects
 * stays, and nothing is reported as deleted.  The informer reconnects with backoff, without
 * limit.  metadata.managedFields is removed.
 *
 * informer_new makes a list and a watch of its own; informer_set_add (informer_set.h) shares them
 * with other listeners.  Keys are "namespace/name" or "name". */
struct informer;
/* Each of the callbacks may free any informer, and may add others.  All may be NULL. */
struct informer_ops {
    /* 'old' is NULL when the object is new to this listener.  Both live until the callback returns;
     * 'obj' stays in the copy. */
    void (*changed)(void *ctx, const char *key, const struct json *old, const struct json *obj);
    void (*deleted)(void *ctx, const char *key, const struct json *obj);
    /* The first complete list has been reported.  Called once. */
    void (*synced)(void *ctx);
    /* The connection to the server was lost, with the reason (called once), or is back (NULL). */
    void (*connection)(void *ctx, const char *lost_reason);
    /* This listener needs no copy: 'changed' gets no old object, 'deleted' the last state.  A
     * deletion that happens while there is no watch is not reported; 'listing' and 'listed' enclose
     * each complete list instead. */
    bool transient;
    void (*listing)(void *ctx);
    void (*listed)(void *ctx);
    /* This listener needs the objects' metadata only.  It gets whole objects when
     * another listener of the same list needs them. */
    bool metadata;
};
/* 'field_selector' NULL: all. */
struct informer *informer_new(struct api_client *c, struct loop *l, const char *api_version,
                              const char *plural, const char *field_selector,
                              const struct informer_ops *ops, void *ctx);
/* Like informer_new, limited to one namespace. */
struct informer *informer_new_in(struct api_client *c, struct loop *l, const char *ns,
                                 const char *api_version, const char *plural,
                                 const char *field_selector, const struct informer_ops *ops,
                                 void *ctx);
/* Call it right after informer_new.  The copy has keys without objects: 'old', and 'obj' of
 * 'deleted', are NULL, and informer_get finds nothing. */
void informer_keep_keys_only(struct informer *i);
/* Call it right after informer_new.  The objects of the copy have their metadata only, as 'old' and
 * 'obj' of 'deleted' then have: for listeners that keep whole objects themselves. */
void informer_keep_metadata_only(struct informer *i);
/* Call it right after the informer is made.  A server that does not know the kind (404) counts as
 * having no object of it, if all listeners call this; the list is requested again later.  A
 * listener that is added afterwards gets the empty list, too. */
void informer_set_optional(struct informer *i);
struct informer *informer_free(struct informer *i);
/* Every object of the first list has been reported to this listener. */
bool informer_synced(const struct informer *i);
const struct json *informer_get(const struct informer *i, const char *key);
/* The resourceVersion up to which the listener has all changes; 0: none yet.  A write of this kind
 * that the server answered with a resourceVersion up to this one is in the copy. */
uint64_t informer_version(const struct informer *i);
/* The number of lists that were begun, and that of the last one that is complete (1, 2 and so on;
 * 0: none so far).  A list that was begun after the server had answered a write shows that write,
 * or its undoing: also when the registry was restored, and its versions are lower than before. */
uint64_t informer_lists_begun(const struct informer *i);
uint64_t informer_list_complete(const struct informer *i);
size_t informer_count(const struct informer *i);
/* Calls 'fn' for each object, in no particular order; 'fn' must not change the informer. */
void informer_each(const struct informer *i,
                   void (*fn)(void *ctx, const char *key, const struct json *obj), void *ctx);
