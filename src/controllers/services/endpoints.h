/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the Endpoints and EndpointSlices of services with selectors, and the
 * slices that mirror Endpoints made by hand.
 *
 * Indexes find the objects that a change affects: services by a label of their selector, pods by
 * their labels.  Only the fields of pods that endpoints depend on are kept.  After writing for a
 * service the controller waits until the informer has shown the writes, so that a slice is never
 * made twice.  Runs in one master at a time, on the loop's thread. */
#pragma once

#include "controller/controller.h"
#include "sdn/address.h"

/* Accepts a pod's reported address only under the rules of sdn/address.h.  Its configuration is a
 * struct address_ranges, those of other pod networks, which is copied. */
extern const struct controller endpoints_controller;
