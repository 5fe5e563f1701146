/* SPDX-License-Identifier: Apache-2.0 */
/* Reading Prometheus' text format (version 0.0.4): what base/prom.h writes, from a node that may be
 * hostile.
 *
 *     container_cpu_usage_seconds_total{container="c",namespace="n",pod="p"} 4.71 1395066363000
 *
 * Samples point into the text, and nothing is allocated.  Pure. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct exposition_sample {
    const char *name, *labels, *value; /* Not terminated; the labels without their braces. */
    size_t name_size, labels_size, value_size;
    int64_t time_ms; /* Since 1970; -1: none. */
};

/* Reads the sample after '*at' and moves '*at' behind its line; comments and empty lines are left
 * out.  1: a sample; 0: the end of the text; -EINVAL: the line is malformed. */
int exposition_next(const char **at, const char *end, struct exposition_sample *ret, struct err *e);
bool exposition_is(const struct exposition_sample *s, const char *name);
/* Appends the value of a label.  -ENOENT: the sample has no such label. */
int exposition_label(const struct exposition_sample *s, const char *label, struct strbuf *out);
