/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps Endpoints and EndpointSlices of the services that select pods, and slices that mirror Endpoints made by hand.
 *
 * What a change concerns is found by indexes: of services by a label of their selector, of pods by their labels.  Of
 * pods only what matters here is kept.  After its own writes a service waits until they are seen, so that a slice is
 * never made twice.  Runs in one master at a time, on the loop's thread. */
#pragma once

#include "client/client.h"
#include "controller/recorder.h"
#include "sdn/address.h"

struct endpoints;
/* Uses a pod's reported address only if it counts (sdn/address.h).  'foreign' is copied; the other arguments must
 * outlive the controller. */
struct endpoints *endpoints_new(struct loop *l, struct api_client *client,
                                struct recorder *recorder, const struct address_ranges *foreign);
struct endpoints *endpoints_free(struct endpoints *e);
