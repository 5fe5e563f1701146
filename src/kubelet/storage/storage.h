/* SPDX-License-Identifier: Apache-2.0 */
/* What the node does for PersistentVolumes beside mounting them in pods: it makes and deletes volumes of
 * the class "local", publishes how much they may still take, and empties released volumes with the
 * policy Recycle.
 *
 * The state is in the API and in directories; each step can be repeated, so that a restart in its middle
 * goes on.  File systems are touched on threads of jobs.h only: a dead file server holds up its own
 * volume alone.  Everything else runs on the loop's thread. */
#pragma once

#include "client/client.h"
#include "controller/recorder.h"

struct storage;

struct storage_config {
    struct loop *loop;
    struct api_client *client;
    struct recorder *recorder;
    const char *node_name; /* Copied, as all texts. */
    const char *root_dir;
    const char *recycle_prefixes; /* "/srv/volumes,/tmp"; NULL: no hostPath volume is emptied. */
    int64_t margin_bytes;         /* What volumes leave of the file system. */
    const struct json *(*node)(void *ctx); /* The Node; NULL: not known yet. */
    void *ctx;
};
/* The client and the recorder must outlive it. */
struct storage *storage_new(const struct storage_config *c);
/* Requests are cancelled; work that does not end within 5 seconds is left to its thread. */
struct storage *storage_free(struct storage *s);
