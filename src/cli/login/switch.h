/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of the kubeconfig's current context. */
#pragma once

#include "base/err.h"

/* Makes the context 'name' the current one. */
int switch_context(const char *path, const char *name, struct err *e);
/* Makes 'project' the project of the session: its context has cluster and user of the context
 * 'from' (NULL: the current one), is named as oc names it, and becomes the current one. */
int switch_project(const char *path, const char *from, const char *project, struct err *e);
