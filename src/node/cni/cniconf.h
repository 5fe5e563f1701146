/* SPDX-License-Identifier: Apache-2.0 */
/* The CNI configuration that the agent writes when pods can be attached: a plug-in
 * alone (NAME.conf), or with others chained after it (NAME.conflist, see CNI's
 * specification, "Configuration format"). */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct cniconf {
    const char *dir, *name;  /* For example "/etc/cni/net.d" and "80-openshift-network.conf". */
    const char *socket;      /* Path of the agent's socket. */
    bool portmap, bandwidth; /* The plug-ins that are chained after tenet-cni. */
};

/* Owned path of the file. */
char *cniconf_path(const struct cniconf *c);
/* Appends the file's text. Pure. */
void cniconf_text(const struct cniconf *c, struct strbuf *out);
/* Writes it in one step, and removes the file of the other form. */
int cniconf_write(const struct cniconf *c, struct err *e);
/* Removes the files of both forms. */
void cniconf_remove(const struct cniconf *c);
