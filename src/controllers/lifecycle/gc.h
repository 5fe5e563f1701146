/* SPDX-License-Identifier: Apache-2.0 */
/* The garbage collector: objects go when their owners have gone.
 *
 * It watches the metadata of all kinds that can be deleted, custom ones too, and follows ownerReferences:
 * - an object all of whose owners are absent is deleted; one with an owner left only loses the references;
 * - an owner that is deleted in the foreground (finalizer foregroundDeletion) stays until the dependents which
 *   block it have gone; one that is deleted as orphaning (finalizer orphan), until they have lost the reference.
 * Absence is never believed from memory: the owner is read first, by kind, name and uid.  Owners are in the
 * object's own namespace or in none; a reference from an object without a namespace to one with a namespace
 * cannot be right, and nothing is deleted for it. */
#pragma once

#include "controller/controller.h"

extern const struct controller gc_controller;
