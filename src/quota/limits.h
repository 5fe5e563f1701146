/* SPDX-License-Identifier: Apache-2.0 */
/* LimitRanges: the amounts that containers get when they state none, and the bounds of containers,
 * pods and claims.
 *
 * The rules and the texts are those of kube-apiserver's plug-in LimitRanger.  Pure; objects belong
 * to the caller. */
#pragma once

#include "wire/json.h"

/* Gives the pod's containers the default limits and requests of the LimitRange that they lack, and
 * says so in the annotation kubernetes.io/limit-ranger.  Returns whether it changed the pod. */
bool limits_fill_pod(const struct json *range, struct json *pod);
/* What of the object, a pod or ('is_claim') a PersistentVolumeClaim, is outside of the LimitRange:
 * one text, or "[a, b]".  Owned; NULL: nothing. */
char *limits_check(const struct json *range, const struct json *obj, bool is_claim);
