/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps Endpoints and EndpointSlices of the services that select pods, and slices that mirror Endpoints made by hand.
 *
 * What a change concerns is found by indexes: of services by a label of their selector, of pods by their labels.  Of
 * pods only what matters here is kept.  After its own writes a service waits until they are seen, so that a slice is
 * never made twice.  Runs in one master at a time, on the loop's thread. */
#pragma once

#include "controller/controller.h"
#include "sdn/address.h"

/* Uses a pod's reported address only if it counts (sdn/address.h).  Its configuration is a struct
 * address_ranges, those of other pod networks, which is copied. */
extern const struct controller endpoints_controller;
