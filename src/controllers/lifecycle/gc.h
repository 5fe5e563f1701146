/* SPDX-License-Identifier: Apache-2.0 */
/* The garbage collector: deletes objects whose owners no longer exist.
 *
 * It watches the metadata of all kinds that can be deleted, custom ones included, and follows
 * ownerReferences:\x01- an object whose owners are all absent is deleted; an object with at
 * least one existing owner only\x01  loses the references to absent ones;\x01- an owner deleted
 * in the foreground (finalizer foregroundDeletion) remains until the dependents\x01  that block
 * it are gone; an owner whose dependents are to be orphaned (finalizer orphan) remains\x01
 * until they have lost the reference.\x01Absence is never concluded from the graph in memory:
 * the owner is read first, by kind, name and\x01uid.  Owners are in the object's own namespace
 * or have none; a reference from an object without a\x01namespace to an object with one is
 * invalid, and nothing is deleted because of it. */
#pragma once

#include "controller/controller.h"

extern const struct controller gc_controller;
