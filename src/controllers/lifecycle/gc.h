/* SPDX-License-Identifier: Apache-2.0 */
/* The garbage collector: deletes objects whose owners no longer exist.
 *
 * It watches the metadata of all kinds that can be deleted, custom ones included, and follows
 * ownerReferences:
 *
 *   - It deletes an object whose owners are all absent. An object with at least one existing owner
 *     only loses the references to absent owners.
 *   - An owner that is deleted in the foreground (finalizer foregroundDeletion) remains until the
 *     dependents that block its deletion are gone.
 *   - An owner whose dependents are to be orphaned (finalizer orphan) remains until they have lost
 *     the reference.
 *
 * It never concludes from its graph in memory that an owner is absent: it reads the owner first,
 * by kind, name and uid. Owners are in the object's own namespace or have none. A reference from
 * an object without a namespace to an object with one is invalid, and nothing is deleted because
 * of it. */
#pragma once

#include "controller/controller.h"

extern const struct controller gc_controller;
