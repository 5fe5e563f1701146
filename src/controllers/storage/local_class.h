/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the storage class "local", the default class of a cluster that has no other storage: its
 * volumes are directories of the nodes' disks, which the kubelets make (docs/storage.md).
 *
 * The class is made when the controllers start, if none of that name exists; a class that an
 * administrator has changed stays so.  A controller without watches. */
#pragma once

#include "controller/controller.h"

extern const struct controller local_class_controller;
