/* SPDX-License-Identifier: Apache-2.0 */
/* Host names of routes without one: as the master makes them, and as a router does.  Pure. */
#pragma once

/* The domain of generated hosts when the master's routingConfig.subdomain does not name one. */
#define ROUTE_DEFAULT_SUBDOMAIN "router.default.svc.cluster.local"
/* The annotation of routes whose host the master made. */
#define ROUTE_HOST_GENERATED "openshift.io/host.generated"

/* "NAME-NAMESPACE.SUBDOMAIN", with "-" for each "." of the name; owned. */
char *route_host_generate(const char *name, const char *namespace, const char *subdomain);
/* The host that a router's template (ROUTER_SUBDOMAIN) gives to a route: "${name}" and
 * "${namespace}" are replaced, and quotation marks around the whole do not count.  NULL: another
 * "${...}" is in it.  Owned. */
char *route_host_expand(const char *template, const char *name, const char *namespace);
