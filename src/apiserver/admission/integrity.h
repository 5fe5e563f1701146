/* SPDX-License-Identifier: Apache-2.0 */
/* Protection against unreadable objects in the store, and against giving out numbers
 * (subnets, VNIDs) whose owner may have been lost.
 *
 * A request for such an object, or for a list that it belongs to, is answered with 500, as in
 * Kubernetes: if the object were omitted, clients would conclude that it was deleted.  While a
 * HostSubnet or a NetNamespace cannot be read, or one was removed by "tenet store repair", it is
 * unknown which subnet or VNID is in use: no write may set a number that the object did not have
 * before.  An administrator who knows that the number is right confirms it with an annotation. */
#pragma once

#include "apiserver/request/request.h"

/* "true" on a HostSubnet or NetNamespace: an administrator confirms its number. */
#define ANNOTATION_NUMBER_KNOWN "tenet.io/number-is-known"

/* -EBADMSG: the request is about an object that cannot be read. */
int integrity_check_readable(struct request *q, struct outcome *outcome);
/* For the health check: the objects that cannot be read; NULL: all can.
 * Valid until control returns to the loop. */
const char *integrity_error(const struct apiserver *a);
