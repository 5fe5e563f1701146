/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a CustomResourceDefinition: its objects go first.
 *
 * A definition that is being deleted stays until its finalizer customresourcecleanup.apiextensions.k8s.io is taken
 * away.  That is done here, when no object of the kind is left; meanwhile the condition Terminating says so. */
#pragma once

#include "controller/controller.h"

extern const struct controller crd_cleanup_controller;
