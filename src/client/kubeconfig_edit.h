/* SPDX-License-Identifier: Apache-2.0 */
/* Kubeconfig files that are changed: entries of several clusters, users and contexts, of which
 * other programs (kubectl, oc) made some.
 *
 * A change is made to the file as it is at that moment, under kubectl's lock file (FILE.lock), and
 * replaces it atomically with mode 0600.  What the change does not touch stays, but comments do
 * not.  A symbolic link stays a link: the file that it names is replaced.  Not thread-safe. */
#pragma once

#include "client/kubeconfig.h"
#include "wire/json.h"

/* Owned path of the file: 'option' when given, else the first entry of $KUBECONFIG, else
 * ~/.kube/config. */
char *kubeconfig_path(const char *option);
/* Reads the whole file; an absent file is an empty configuration.  '*ret' is owned. */
int kubeconfig_read(const char *path, struct json **ret, struct err *e);

/* Changes '*config'; a negative result leaves the file as it is. */
typedef int kubeconfig_change_fn(void *ctx, struct json *config, struct err *e);
/* Makes a change.  -EBUSY: another program holds the lock for longer than 5 s, or left it. */
int kubeconfig_change(const char *path, kubeconfig_change_fn *fn, void *ctx, struct err *e);

/* ---- pure ---- */

/* The value WHAT of the entry 'name' of LIST: "clusters" and "cluster", "users" and "user",
 * "contexts" and "context".  NULL: there is none. */
struct json *kubeconfig_entry(const struct json *config, const char *list, const char *what,
                              const char *name);
/* The same, made when it is absent. */
struct json *kubeconfig_ensure_entry(struct json *config, const char *list, const char *what,
                                     const char *name);
/* Replaces the value of an entry, or adds the entry; takes 'value'. */
void kubeconfig_set_entry(struct json *config, const char *list, const char *what, const char *name,
                          struct json *value);
/* Removes the entry; false: there was none. */
bool kubeconfig_remove_entry(struct json *config, const char *list, const char *name);
/* Values of a context, with the contents of the files that it names; paths are relative to the
 * folder of 'path'.  'context' NULL: the current one. */
int kubeconfig_of_context(const struct json *config, const char *path, const char *context,
                          struct kubeconfig *ret, struct err *e);
/* The authorities, the server's name and 'insecure' of an entry's "cluster". */
int kubeconfig_trust_of(const struct json *cluster, const char *path, struct kubeconfig *ret,
                        struct err *e);
/* Stores the PEM text (NULL: none) in base64 at 'key'. */
void kubeconfig_set_pem(struct json *to, const char *key, const char *pem);
/* oc's name of a cluster, owned: "HOST:PORT" of its URL with "-" in place of each dot. */
char *kubeconfig_cluster_name(const char *server);
/* oc's name of a context, owned: "NAMESPACE/CLUSTER/USER", from the names of cluster and user;
 * "/CLUSTER" at the end of the user's name is left out.  'ns' NULL: none. */
char *kubeconfig_context_name(const char *ns, const char *cluster, const char *user);
/* Adds or replaces cluster, user and context of a login of 'user' ("jane") as oc names them, and
 * makes the context the current one. */
void kubeconfig_set_login(struct json *config, const char *user, const struct kubeconfig *k);
