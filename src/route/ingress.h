/* SPDX-License-Identifier: Apache-2.0 */
/* Routes of an Ingress (networking.k8s.io/v1), as OpenShift's ingress-to-route controller makes
 * them.
 *
 * Each path of each rule with a host becomes a route, if its service and its port exist, and if the
 * certificate that it names can be read.  A route's name is made from the Ingress' name, and from
 * host, path and service, so that the same Ingress always has the same routes.  Pure: objects in,
 * objects out. */
#pragma once

#include "wire/json.h"

/* The controller that an IngressClass names for routes. */
#define ROUTE_INGRESS_CONTROLLER "openshift.io/ingress-to-route"

/* Objects of the Ingress' namespace; NULL: there is none.  Borrowed. */
struct route_ingress_sources {
    const struct json *(*service)(void *ctx, const char *name);
    const struct json *(*secret)(void *ctx, const char *name);
    void *ctx;
};

/* Whether routes are made from the Ingress; 'class' is its IngressClass (NULL: it does not exist,
 * or the Ingress names none). */
bool route_ingress_is_ours(const struct json *ingress, const struct json *class);
/* An array of Routes; owned. */
struct json *route_ingress_plan(const struct json *ingress,
                                const struct route_ingress_sources *sources);
/* 'have', a route that exists, with the fields that the Ingress decides as 'want' has them, which
 * the user keeps from changing; owned.  NULL: it has them already. */
struct json *route_ingress_update(const struct json *have, const struct json *want);
/* The loadBalancer of the Ingress' status: the names of the routers that admitted one of the
 * routes, an array of Routes.  Owned. */
struct json *route_ingress_status(const struct json *routes);
