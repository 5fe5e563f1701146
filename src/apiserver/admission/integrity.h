/* SPDX-License-Identifier: Apache-2.0 */
/* What the API server does about objects in the store that cannot be read, and about numbers that
 * may have been lost.
 *
 * A request for such an object, or for a list that it belongs to, is answered with 500, as in
 * Kubernetes: leaving it out would tell clients that it was deleted.  While a HostSubnet or a
 * NetNamespace cannot be read, or one was taken out by "tenet store repair", nobody knows which
 * subnet or VNID is in use: no write may give one out that the object did not have before.  An
 * administrator who knows the number says so with an annotation. */
#pragma once

#include "apiserver/request/request.h"

/* "true" on a HostSubnet or NetNamespace: its number is known to be right. */
#define ANNOTATION_NUMBER_KNOWN "tenet.io/number-is-known"

/* -EBADMSG: the request is about an object that cannot be read. */
int integrity_check_readable(struct request *q, struct outcome *outcome);
/* Of the health check: what cannot be read; NULL: all can.  Valid until the loop goes on. */
const char *integrity_error(const struct apiserver *a);
