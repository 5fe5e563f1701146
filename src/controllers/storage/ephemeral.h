/* SPDX-License-Identifier: Apache-2.0 */
/* Generic ephemeral volumes: makes the claim "POD-VOLUME" for each volume of a pod with a
 * volumeClaimTemplate.  The pod owns the claim, so the garbage collector removes it with the pod.
 * A claim of that name that belongs to another is left alone, and an Event of the pod says so. */
#pragma once

#include "controller/controller.h"

extern const struct controller ephemeral_volumes_controller;
