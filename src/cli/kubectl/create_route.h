/* SPDX-License-Identifier: Apache-2.0 */
/* "tenet create route edge|passthrough|reencrypt [NAME] --service NAME". */
#pragma once

#include "cli/kubectl/compose_route.h"
#include "cli/kubectl/create_workload.h"
#include "cli/kubectl/target.h"

/* Makes a Route.  The arguments are those of "create", with the word "route".  Returns the exit
 * status. */
int create_route(int argc, char **argv);
/* Reads the service, and creates the Route.  'said' as in targets_create.  Returns the exit
 * status. */
int create_route_of(struct targets *t, const struct compose_route_options *o,
                    const struct json *service, const char *said);

/* Their options, apart from those of all commands that create objects, and from --port: rows. */
enum {
    OPT_ROUTE_SERVICE = OPT_CREATE_FREE,
    OPT_ROUTE_HOSTNAME,
    OPT_ROUTE_PATH,
    OPT_ROUTE_CERT,
    OPT_ROUTE_KEY,
    OPT_ROUTE_CA,
    OPT_ROUTE_DESTINATION_CA,
    OPT_ROUTE_INSECURE,
    OPT_ROUTE_WILDCARD,
    OPT_ROUTE_FREE
};
#define CREATE_ROUTE_OPTIONS                                                                      \
    {"service", OPT_ROUTE_SERVICE, "NAME", "the service", COMPLETE_SERVICE},                      \
        {"hostname", OPT_ROUTE_HOSTNAME, "HOST", "the host name; default: the server makes one"}, \
        {"path", OPT_ROUTE_PATH, "PATH", "the path of requests; default: all"},                   \
        {"cert", OPT_ROUTE_CERT, "FILE", "the certificate (PEM)", COMPLETE_FILE},                 \
        {"key", OPT_ROUTE_KEY, "FILE", "its private key (PEM)", COMPLETE_FILE},                   \
        {"ca-cert", OPT_ROUTE_CA, "FILE", "certificates of authorities (PEM)", COMPLETE_FILE},    \
        {"dest-ca-cert", OPT_ROUTE_DESTINATION_CA, "FILE",                                        \
         "of reencrypt: the authorities of the pods' certificates (PEM)", COMPLETE_FILE},         \
        {"insecure-policy", OPT_ROUTE_INSECURE, "POLICY", "HTTP without TLS",                     \
         "None Allow Redirect"},                                                                  \
    {                                                                                             \
        "wildcard-policy", OPT_ROUTE_WILDCARD, "POLICY", "Subdomain: all hosts of the domain",    \
            "None Subdomain"                                                                      \
    }
