/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of the streams of a pod, described by rows: PodLogOptions, PodExecOptions and their
 * like.  A row says how a value is checked, and under which name the node gets it. */
#pragma once

#include "apiserver/request/request.h"

enum stream_option_type {
    STREAM_BOOL,
    STREAM_COUNT, /* A whole number of at least 'min'. */
    STREAM_TIME,  /* RFC 3339. */
    STREAM_TEXT,
    STREAM_TEXTS, /* May occur several times. */
    STREAM_PORTS, /* Ports with commas between; may occur several times. */
};

struct stream_option {
    const char *name;
    const char *node; /* The node's name of it; NULL: it is not passed on. */
    enum stream_option_type type;
    int64_t min;
};

struct stream_options {
    const char *kind; /* "PodLogOptions" */
    const struct stream_option *rows;
    size_t n;
    /* Checks that join several options; NULL: none. */
    void (*check)(const struct request *q, struct api_causes *causes);
};
extern const struct stream_options stream_log_options, stream_rollout_log_options,
    stream_exec_options, stream_attach_options, stream_forward_options;

/* Appends "?name=value&..." for the node.  On failure the outcome is filled. */
int stream_options_read(const struct stream_options *o, const struct request *q,
                        struct strbuf *query, struct outcome *outcome);
