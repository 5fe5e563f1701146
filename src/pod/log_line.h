/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a container's log, as runtimes write them (CRI): time, stream, tag, text; and what of them
 * a client of the log gets.
 *
 *     2026-11-23T10:00:00.123456789Z stdout F the text
 *
 * The tag P says that the next line of the stream goes on with the text.  Pure; a filter belongs to
 * its caller. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#define LOG_LINE_MAX 65536 /* Longer lines are passed on in pieces of this size. */

struct log_line {
    const char *time; /* "2026-11-23T10:00:00.123456789Z", not terminated. */
    size_t time_size;
    bool is_stderr, partial;
    const char *text;
    size_t size;
};
/* 'p' is a line without its line feed; the result points into it.  -EINVAL: not such a line. */
int log_line_parse(const char *p, size_t size, struct log_line *ret);

struct log_filter {
    /* Set by the caller: */
    int64_t since_ns; /* Lines before this time are left out; INT64_MIN: none. */
    bool timestamps;
    uint64_t limit; /* Bytes of output; UINT64_MAX: any number. */
    /* The state: */
    bool within;        /* The last line was partial: its rest follows. */
    bool begun;         /* A line was not before since_ns; all later ones pass. */
    bool done;          /* The limit is reached. */
    struct strbuf rest; /* The incomplete last line. */
};
#define LOG_FILTER_INIT \
    ((struct log_filter){.since_ns = INT64_MIN, .limit = UINT64_MAX, .rest = STRBUF_INIT})
/* Takes bytes of the file, appends what the client gets. */
void log_filter_feed(struct log_filter *f, const char *p, size_t size, struct strbuf *out);
/* The end of one file: an incomplete last line is passed on as it is. */
void log_filter_end(struct log_filter *f, struct strbuf *out);
void log_filter_done(struct log_filter *f);
