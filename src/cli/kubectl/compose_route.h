/* SPDX-License-Identifier: Apache-2.0 */
/* New Routes for services: for "expose service" and "create route".  Pure. */
#pragma once

#include "wire/json.h"

struct compose_route_options {
    const char *name;                             /* NULL: that of the service. */
    const char *service;                          /* Its name. */
    const char *host, *path, *port;               /* NULL: not given. */
    const char *wildcard;                         /* The policy; NULL: not given. */
    const char *termination;                      /* edge, passthrough, reencrypt; NULL: no TLS. */
    const char *insecure;                         /* NULL: not given. */
    const char *cert, *key, *ca, *destination_ca; /* PEM; NULL: not given. */
    const struct json *labels;                    /* An object; NULL: those of the service. */
};

/* A Route for the service 'service' as the server has it (NULL: it does not exist, so that a port
 * must be given).  Owned.  NULL: '*e' has the reason in the words of oc. */
struct json *compose_route(const struct compose_route_options *o, const struct json *service,
                           struct err *e);
