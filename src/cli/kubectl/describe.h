/* SPDX-License-Identifier: Apache-2.0 */
/* Describes one object, for "tenet describe". Pure. */
#pragma once

#include "api/kind.h"

/* Related objects; members may be NULL. */
struct describe_more {
    const struct json *events;       /* List of Events about it. */
    const struct json *pods;         /* Node, Namespace: list of its Pods. */
    const struct json *hostsubnet;   /* Node */
    const struct json *netnamespace; /* Namespace */
    const struct json *endpoints;    /* Service */
};
void describe_object(const struct api_kind *k, const struct json *o,
                     const struct describe_more *more, int64_t now_ms, struct strbuf *out);

/* Appends "Host IP" for "hostIP"; names with "/", "." or "-" stay as they are. */
void describe_label(const char *field, struct strbuf *out);
