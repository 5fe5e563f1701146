/* SPDX-License-Identifier: Apache-2.0 */
/* pods/proxy and services/proxy: requests that the API server passes on to a port of a pod.
 *
 *   /api/v1/namespaces/NS/pods/[https:]NAME[:PORT]/proxy/PATH
 *   /api/v1/namespaces/NS/services/[https:]NAME[:PORT]/proxy/PATH
 *
 * PORT is a number or a name; a pod's first port by default.  The right is the verb of the method
 * on the subresource.
 *
 * What a pod's status says may be the word of a hostile node, so an address counts only if it is in
 * the pod network and could be this pod's (admission/addresses.h); pods of the host's network are
 * not served.  A service leads to its pods, and to no other address of its Endpoints.  Redirects
 * are not followed.  The client's credentials and cookies do not leave the API server, and in a
 * browser a page of a pod does not get the origin of the API.
 *
 * Bodies of requests are at most as large as others (3 MiB); responses flow with bounded memory.
 * Everything runs on the loop's thread. */
#pragma once

#include "apiserver/request/request.h"

/* Whether the request is to be passed on: to a node (stream.h), or to a pod. */
bool proxy_is_passed(const struct request *q);
/* Whether the request is for a pod or a service. */
bool proxy_is_asked(const struct request *q);
void handle_proxy(struct request *q, struct outcome *outcome);
void proxy_init(struct apiserver *a);
/* Ends all; their clients see the end. */
void proxy_end_all(struct apiserver *a);
/* Ends those that came with the OAuth token whose object is called 'name'. */
void proxy_end_of_token(struct apiserver *a, const char *name);
