/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts of file servers by mount(8), which knows the helper of each file system.
 *
 * The command line is made by pure functions, one for each plug-in.  Users of the cluster write servers,
 * paths and options: each text is checked so that it can be neither an option of mount(8) nor the
 * beginning of a further mount option. */
#pragma once

#include "wire/json.h"

struct network_mount {
    char *source;  /* "server:/export" */
    char *options; /* "ro,nfsvers=4" */
    const char *fs_type;
};
void network_mount_done(struct network_mount *m);
static inline UNUSED void network_mount_donep(struct network_mount *m)
{
    network_mount_done(m);
}

/* "ro" or "rw" and the options of the array, with commas between (owned). */
int mount_options_join(bool readonly, const struct json *options, char **ret, struct err *e);

/* 'source': NFSVolumeSource. */
int nfs_mount_make(const struct json *source, const struct json *options, bool readonly,
                   struct network_mount *ret, struct err *e);
/* 'source': GlusterfsVolumeSource or GlusterfsPersistentVolumeSource; 'endpoints': the Endpoints that it
 * names.  The other addresses are servers for the case that the first one fails. */
int glusterfs_mount_make(const struct json *source, const struct json *endpoints,
                         const struct json *options, bool readonly, struct network_mount *ret,
                         struct err *e);

/* Mounts it at the directory 'at', unless something is mounted there.  mount(8) is ended after two
 * minutes.  Blocks. */
int network_mount_run(const struct network_mount *m, const char *at, struct err *e);
