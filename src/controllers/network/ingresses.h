/* SPDX-License-Identifier: Apache-2.0 */
/* Makes Routes from Ingresses (route/ingress.h), keeps them as the Ingress says, and reports the
 * routers' names in the Ingress' status.
 *
 * The routes name the Ingress as their controller, so that the garbage collector deletes them with
 * it.  Keys of the queue are "NAMESPACE/NAME" of an Ingress.  Loop's thread. */
#pragma once

#include "controller/controller.h"

extern const struct controller ingresses_controller;
