/* SPDX-License-Identifier: Apache-2.0 */
/* kubeconfig files: the server of the current context, and the credentials for it.  The struct owns
 * its strings; the contents of files that the kubeconfig names are read with it. */
#pragma once

#include "base/err.h"

struct kubeconfig {
    char *server;      /* "https://127.0.0.1:8443" */
    char *context;     /* The name of the current context; NULL: the values are of no file. */
    char *token;       /* NULL: none */
    char *ns;          /* NULL: the context names none */
    char *ca;          /* PEM; NULL: the system's authorities */
    char *cert, *key;  /* Certificate and key of the user, in PEM form; NULL: none. */
    char *server_name; /* The name in the server's certificate; NULL: the host of 'server'. */
    bool insecure;     /* The server's certificate is not verified. */
    /* URLs of further servers of the cluster, separated by commas, used when
     * 'server' fails; not from the file.  NULL: none. */
    char *more_servers;
};

/* 'path' NULL: the first entry of $KUBECONFIG, else ~/.kube/config.  Paths in it are relative to
 * its folder, and a "...-data" key takes precedence over the path.  The error names the file and
 * the problem; '*ret' is untouched on failure. */
int kubeconfig_load(const char *path, struct kubeconfig *ret, struct err *e);
/* The API server and the service account of the pod in which the process runs: the variables
 * KUBERNETES_SERVICE_HOST and _PORT, and the files of its account's volume. */
int kubeconfig_of_pod(struct kubeconfig *ret, struct err *e);
/* Atomically writes a self-contained kubeconfig of one context with mode
 * 0600; 'user' is the name of its user. */
int kubeconfig_write(const char *path, const char *user, const struct kubeconfig *k, struct err *e);
void kubeconfig_done(struct kubeconfig *k);
