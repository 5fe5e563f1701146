/* SPDX-License-Identifier: Apache-2.0 */
/* The namespace controller: deletes all objects of a Namespace that is
 * being deleted, then removes its finalizer.
 *
 * A Namespace with a deletionTimestamp exists until its finalizer "kubernetes" is removed.  This
 * controller removes it through the subresource finalize when no object of any namespaced kind is
 * left in the namespace; each round reads the kinds from the server, custom ones included.
 * Remaining objects wait for finalizers of their own; conditions of the Namespace list them. */
#pragma once

#include "controller/controller.h"

extern const struct controller namespaces_controller;

/* Pure: an owned copy of the Namespace 'ns' without the finalizers "kubernetes" and
 * "openshift.io/origin"; NULL: it is not being deleted, or has neither. */
struct json *namespaces_finalized(const struct json *ns);
