/* SPDX-License-Identifier: Apache-2.0 */
/* Deletes the objects of a CustomResourceDefinition before the definition itself is removed.
 *
 * A definition that is being deleted exists until its finalizer
 * customresourcecleanup.apiextensions.k8s.io is removed.  This controller removes it when no object
 * of the kind is left; until then the condition Terminating describes the state. */
#pragma once

#include "controller/controller.h"

extern const struct controller crd_cleanup_controller;
