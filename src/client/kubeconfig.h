/* SPDX-License-Identifier: Apache-2.0 */
/* kubeconfig files: which server the current context means, and how to connect to it.  The struct owns its
 * strings; those of files named in the kubeconfig were read with it. */
#pragma once

#include "base/err.h"

struct kubeconfig {
    char *server;      /* "https://127.0.0.1:8443" */
    char *token;       /* NULL: none */
    char *ns;          /* NULL: the context names none */
    char *ca;          /* PEM; NULL: the system's authorities */
    char *cert, *key;  /* PEM, of the user; NULL: none */
    char *server_name; /* Of the server's certificate; NULL: the host of 'server' */
    bool insecure;     /* The server's certificate is not verified. */
    /* URLs of more servers of the cluster, with commas between, for when 'server' fails; not from the file.
     * NULL: none. */
    char *more_servers;
};

/* 'path' NULL: the first entry of $KUBECONFIG, else ~/.kube/config.  Paths in it are relative to its folder, and
 * "...-data" goes before them.  The error names the file and what is wrong in it; '*ret' untouched on failure. */
int kubeconfig_load(const char *path, struct kubeconfig *ret, struct err *e);
/* Writes a kubeconfig of one context that has all in itself, mode 0600, whole or not at all; 'user' is the name it
 * gives the user. */
int kubeconfig_write(const char *path, const char *user, const struct kubeconfig *k, struct err *e);
void kubeconfig_done(struct kubeconfig *k);
