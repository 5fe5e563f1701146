/* SPDX-License-Identifier: Apache-2.0 */
/* Wakes idled services: an Event "NeedPods" about a service scales its targets to
 * their previous numbers of replicas; when there are endpoints again, the annotations
 * are removed.  Runs on the loop's thread. */
#pragma once

#include "controller/controller.h"

extern const struct controller wakeup_controller;
