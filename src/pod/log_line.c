/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/log_line.h"

#include "base/timeutil.h"

#include <stdio.h>

/* The word before the next blank; moves '*at' behind the blank. */
static bool take_word(const char **at, const char *end, const char **ret, size_t *ret_size)
{
    const char *blank = memchr(*at, ' ', (size_t) (end - *at));
    *ret = *at;
    *ret_size = (size_t) ((blank ? blank : end) - *at);
    *at = blank ? blank + 1 : end;
    return *ret_size > 0;
}

static bool is_word(const char *p, size_t size, const char *word)
{
    return size == strlen(word) && memcmp(p, word, size) == 0;
}

int log_line_parse(const char *p, size_t size, struct log_line *ret)
{
    const char *end = p + size, *stream, *tag;
    size_t stream_size, tag_size;
    struct log_line l = {0};
    if (!take_word(&p, end, &l.time, &l.time_size) || !take_word(&p, end, &stream, &stream_size) ||
        !take_word(&p, end, &tag, &tag_size)) {
        return -EINVAL;
    }
    l.is_stderr = is_word(stream, stream_size, "stderr");
    /* A tag may be a list with colons between. */
    l.partial = tag[0] == 'P' && (tag_size == 1 || tag[1] == ':');
    bool full = tag[0] == 'F' && (tag_size == 1 || tag[1] == ':');
    if ((!l.is_stderr && !is_word(stream, stream_size, "stdout")) || (!l.partial && !full)) {
        return -EINVAL;
    }
    l.text = p;
    l.size = (size_t) (end - p);
    *ret = l;
    return 0;
}

/* Nanoseconds since 1970; INT64_MAX if it is no time, which no filter leaves out. */
static int64_t line_time(const struct log_line *l)
{
    char text[64];
    int64_t ms, ns = 0;
    size_t n = MIN(l->time_size, sizeof text - 1);
    memcpy(text, l->time, n);
    text[n] = '\0';
    if (time_parse(text, &ms) < 0) {
        return INT64_MAX;
    }
    const char *dot = strchr(text, '.');
    int digits = 0;
    for (const char *p = dot ? dot + 1 : ""; digits < 9 && *p >= '0' && *p <= '9'; p++) {
        ns = ns * 10 + (*p - '0');
        digits++;
    }
    for (; digits < 9; digits++) {
        ns *= 10;
    }
    return ms / 1000 * NS_PER_S + ns;
}

static void add(struct log_filter *f, const char *p, size_t size, struct strbuf *out)
{
    size_t n = (size_t) MIN((uint64_t) size, f->limit);
    strbuf_add(out, p, n);
    if (f->limit != UINT64_MAX) {
        f->limit -= n;
        f->done = !f->limit;
    }
}

/* The time of a line in UTC: conmon writes the machine's own with its offset. */
static void add_time(struct log_filter *f, const struct log_line *l, struct strbuf *out)
{
    int64_t ns = line_time(l);
    if (ns == INT64_MAX || l->time[l->time_size - 1] == 'Z') {
        add(f, l->time, l->time_size, out);
        return;
    }
    char text[TIME_TEXT_SIZE], fraction[16];
    time_format_s(ns / NS_PER_S * 1000, text);
    int n = snprintf(fraction, sizeof fraction, ".%09dZ", (int) (ns % NS_PER_S));
    add(f, text, strlen(text) - 1, out);
    add(f, fraction, (size_t) n, out);
}

static void take_line(struct log_filter *f, const char *p, size_t size, struct strbuf *out)
{
    struct log_line l;
    if (f->done || log_line_parse(p, size, &l) < 0) {
        return; /* What no runtime writes is left out, as by kubelets. */
    }
    if (!f->begun && !f->within) {
        f->begun = f->since_ns == INT64_MIN || line_time(&l) >= f->since_ns;
    }
    if (f->begun) {
        if (f->timestamps && !f->within) {
            add_time(f, &l, out);
            add(f, " ", 1, out);
        }
        add(f, l.text, l.size, out);
        if (!l.partial) {
            add(f, "\n", 1, out);
        }
    }
    f->within = l.partial;
}

void log_filter_feed(struct log_filter *f, const char *p, size_t size, struct strbuf *out)
{
    while (size && !f->done) {
        const char *lf = memchr(p, '\n', size);
        size_t n = lf ? (size_t) (lf - p) : size;
        if (f->rest.size || !lf) {
            strbuf_add(&f->rest, p, n);
        }
        if (lf && f->rest.size) {
            take_line(f, f->rest.data, f->rest.size, out);
            strbuf_reset(&f->rest);
        } else if (lf) {
            take_line(f, p, n, out);
        } else if (f->rest.size > LOG_LINE_MAX * 4) {
            strbuf_reset(&f->rest); /* No runtime writes such lines. */
        }
        n += lf != NULL;
        p += n;
        size -= n;
    }
}

void log_filter_end(struct log_filter *f, struct strbuf *out)
{
    if (f->rest.size) {
        take_line(f, f->rest.data, f->rest.size, out);
        strbuf_reset(&f->rest);
    }
}

void log_filter_done(struct log_filter *f)
{
    strbuf_done(&f->rest);
}
