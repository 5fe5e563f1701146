/* SPDX-License-Identifier: Apache-2.0 */
/* The serving part of a master: the store, the API server on its sockets,
 * and DNS for hosts that are not nodes.
 *
 * It holds the cluster's data, the key of the server's certificate and the key that signs the
 * tokens of service accounts; it has the key of the cluster's authority only with "tls:
 * auto", with which it makes certificates itself.  Controllers connect like any client, over
 * HTTPS or, in the same process, over a listener on loopback (master_api_connect).
 * Everything runs on the loop's thread. */
#pragma once

#include "client/client.h"
#include "client/informer_set.h"
#include "master/master_host.h"
#include "master/master_security.h"

struct master_api_config {
    const struct master_config *config; /* Borrowed, like 'host'. */
    const struct master_host *host;
    /* Called once, when the registry is loaded and the API answers. */
    void (*ready)(void *ctx);
    /* Called when the server cannot make the client that its own parts need (DNS, the service
     * "kubernetes"): the process has to end. */
    void (*failed)(void *ctx, const struct err *e);
    void *ctx;
};
struct pki_ca;
struct master_api;
/* Opens the listening socket before the store, so that an occupied port leaves no database behind;
 * then serves.  Errors name the key of the configuration. */
int master_api_new(struct loop *l, const struct master_api_config *cfg, struct master_api **ret,
                   struct err *e);
/* Clients of master_api_connect must be freed before. */
struct master_api *master_api_free(struct master_api *m);

/* Adds a check to /readyz; see apiserver_add_check. */
void master_api_add_check(struct master_api *m, const char *name, apiserver_check_fn *fn,
                          void *ctx);
/* Adds a function that appends to /metrics; NULL: none. */
void master_api_set_metrics(struct master_api *m, apiserver_metrics_fn *fn, void *ctx);
/* A client of this API with all rights, for parts of the same process. */
int master_api_connect(struct master_api *m, struct api_client **ret, struct err *e);
/* Informers that DNS uses and other parts of this process may share; NULL before 'ready'. */
struct informer_set *master_api_informers(const struct master_api *m);
/* Whether other processes may write to the same store. */
bool master_api_is_shared(const struct master_api *m);
/* Whether the API server authenticates clients: without HTTPS there is no access control. */
bool master_api_is_secure(const struct master_api *m);
/* The authority of "tls: auto"; NULL: there is none. */
const struct pki_ca *master_api_ca(const struct master_api *m);

/* Reads certificates and the audit policy again; a failure is logged, and
 * the previous ones stay in use. */
void master_api_reload(struct master_api *m);
/* Gives the OAuth server the section oauthConfig of 'c'; a failure is logged, and the previous one
 * stays in force. */
void master_api_reload_oauth(struct master_api *m, const struct master_config *c);
/* From now on /readyz fails; requests are still served. */
void master_api_unready(struct master_api *m);
/* Removes itself from the endpoints of the service "kubernetes", ends watches, waits until requests
 * under way are answered, and calls 'done'.  Clients of master_api_connect must be freed before. */
void master_api_stop(struct master_api *m, loop_fn *done, void *ctx);
