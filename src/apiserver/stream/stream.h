/* SPDX-License-Identifier: Apache-2.0 */
/* Streams between clients and nodes: the subresources exec, attach, portforward and log of pods,
 * and nodes/proxy.
 *
 * exec, attach and portforward are upgrades, by POST or GET, and count as the verb create whatever
 * the method (access/attributes.c).  The node speaks the client's protocol, so that the bytes are
 * passed on as they are, with bounded memory.  Logs are passed on as they come. */
#pragma once

#include "apiserver/request/request.h"

/* Whether the request is for such a stream. */
bool stream_is_asked(const struct request *q);
void handle_stream(struct request *q, struct outcome *outcome);
/* Answers a request for deploymentconfigs/log with the log of the pod. */
void stream_rollout_log(struct request *q, const struct json *pod, struct outcome *outcome);
void stream_init(struct apiserver *a);
/* Ends all streams; their clients see the end. */
void stream_end_all(struct apiserver *a);
/* Ends the streams that came with the OAuth token whose object is called 'name'. */
void stream_end_of_token(struct apiserver *a, const char *name);
