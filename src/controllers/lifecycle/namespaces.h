/* SPDX-License-Identifier: Apache-2.0 */
/* The namespace controller: empties a Namespace that is being deleted, then lets it go.
 *
 * A Namespace with a deletionTimestamp stays until its finalizer "kubernetes" is taken away.  That is done
 * here, by its subresource finalize, when no object of any namespaced kind is left in it: each round asks the
 * server which kinds there are, custom ones too.  What is left waits for finalizers of its own; conditions of
 * the Namespace say what that is. */
#pragma once

#include "controller/controller.h"

extern const struct controller namespaces_controller;

/* Pure: an owned copy of the Namespace 'ns' without the finalizer "kubernetes"; NULL when it is not being
 * deleted or has none. */
struct json *namespaces_finalized(const struct json *ns);
