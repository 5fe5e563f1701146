/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds that a command line or a file names: those compiled in, and those the server has besides.
 *
 * The server is asked only when a name is not known, or stands for kinds of which the server may have more.
 * The session must be open; what was learned is its own.  All return 0, or the exit status after the error was
 * printed. */
#pragma once

#include "cli/kubectl/manifest.h"
#include "cli/kubectl/resource.h"
#include "cli/session.h"

int learn_resources(struct session *s, int n, char *const *args, struct resources *ret);
int learn_manifests(struct session *s, struct manifests *m);
