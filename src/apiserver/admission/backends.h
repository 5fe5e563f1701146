/* SPDX-License-Identifier: Apache-2.0 */
/* The pods behind a service to which the API server itself connects.
 *
 * What a pod's status says may be the word of a hostile node, so an address counts only if it is in
 * the pod network and could be this pod's (addresses.h).  A service leads to its pods, and to no
 * other address of its Endpoints, which users of a project may write.  Loop's thread only. */
#pragma once

#include "apiserver/request/request.h"

/* The object of the core group; owned, NULL: there is none. */
struct json *backends_find(const struct apiserver *a, const char *plural, const char *ns,
                           const char *name);
/* The port of the Service by number or name ("": its only one); NULL: it has none such. */
const struct json *backends_port(const struct json *service, const char *port);
/* One of the pods that are ready behind the port with this name of the Endpoints, and its port
 * number; owned.  NULL: there is none. */
struct json *backends_choose(const struct apiserver *a, const struct json *endpoints,
                             const char *port_name, uint16_t *ret_port);
/* The address of a pod behind 'port' of the service.  -EHOSTUNREACH: the reason why there is
 * none. */
int backends_resolve(const struct apiserver *a, const char *ns, const char *name, uint16_t port,
                     uint32_t *ret_ip, uint16_t *ret_port, struct err *e);
