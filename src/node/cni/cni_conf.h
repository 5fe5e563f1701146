/* SPDX-License-Identifier: Apache-2.0 */
/* The CNI configuration that the agent writes when pods can be attached: a plug-in
 * alone (NAME.conf), or with others chained after it (NAME.conflist, see CNI's
 * specification, "Configuration format"). */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct cni_conf {
    const char *dir, *name;  /* For example "/etc/cni/net.d" and "80-openshift-network.conf". */
    const char *socket;      /* Path of the agent's socket. */
    bool portmap, bandwidth; /* The plug-ins that are chained after tenet-cni. */
};

/* Owned path of the file. */
char *cni_conf_path(const struct cni_conf *c);
/* Appends the file's text. Pure. */
void cni_conf_text(const struct cni_conf *c, struct strbuf *out);
/* Writes it in one step, and removes the file of the other form. */
int cni_conf_write(const struct cni_conf *c, struct err *e);
/* Removes the files of both forms. */
void cni_conf_remove(const struct cni_conf *c);
