/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds that a command line or a file can name: compiled-in kinds, and further kinds of the
 * server.
 *
 * The server is asked only when a name is unknown, or is a category to which the server may add
 * kinds.  The session must be open; it owns the learned kinds.  All functions return 0, or the exit
 * status after the error was printed. */
#pragma once

#include "cli/kubectl/manifest.h"
#include "cli/kubectl/resource.h"
#include "cli/session.h"

int learn_resources(struct session *s, int n, char *const *args, struct resources *ret);
int learn_manifests(struct session *s, struct manifests *m);

/* The kind of a word such as "pods" or "deploy.apps".  NULL: the server has none, which a warning
 * tells: rules may name what the server does not serve. */
const struct api_kind *learn_kind(struct session *s, const char *name);
