/* SPDX-License-Identifier: Apache-2.0 */
/* kubeconfig files: which server the current context means.  The struct owns its strings. */
#pragma once

#include "base/err.h"

struct kubeconfig {
    char *server; /* "http://127.0.0.1:8443" */
    char *token;  /* NULL: none */
    char *ns;     /* NULL: the context names none */
};

/* 'path' NULL: the first entry of $KUBECONFIG, else ~/.kube/config.  The error names the file and what
 * is wrong in it; '*ret' untouched on failure. */
int kubeconfig_load(const char *path, struct kubeconfig *ret, struct err *e);
void kubeconfig_done(struct kubeconfig *k);
