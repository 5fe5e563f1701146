/* SPDX-License-Identifier: Apache-2.0 */
/* HAProxy's runtime API (management guide of HAProxy 2.6, section 9.3): the texts of commands and
 * the answers that the router reads.
 *
 * On an interactive connection ("prompt") each answer ends with a line that begins with "> ".
 * Lines of a payload are answered by "+ " each.  Answers point into the text, and nothing is
 * allocated. Pure. */
#pragma once

#include "base/str.h"

/* The size of the first answer in 'p' without its prompt; '*ret_used' is the size with the prompt.
 * -EAGAIN: the answer is not complete.  '*ret_skip' is the number of bytes before the answer. */
int haproxy_answer(const char *p, size_t size, size_t *ret_skip, size_t *ret_size,
                   size_t *ret_used);

/* A part of an answer; not terminated. */
struct haproxy_word {
    const char *p;
    size_t size;
};
bool haproxy_word_is(const struct haproxy_word *w, const char *s);
/* The word as an owned text. */
char *haproxy_word_text(const struct haproxy_word *w);

/* One line of "show map FILE".  Moves '*at' behind it; false: there is no further entry. */
struct haproxy_map_entry {
    struct haproxy_word key, value;
};
bool haproxy_next_map_entry(const char **at, const char *end, struct haproxy_map_entry *ret);

/* One line of "show servers state" (format 1). */
struct haproxy_server {
    struct haproxy_word backend, name;
    unsigned weight;
    bool maintenance; /* An administrator's command keeps it from getting connections. */
};
bool haproxy_next_server(const char **at, const char *end, struct haproxy_server *ret);

/* One line of "show ssl crt-list -n FILE": the file of a certificate, without ":LINE". */
bool haproxy_next_certificate(const char **at, const char *end, struct haproxy_word *ret);

/* One line of "show backend": a name. */
bool haproxy_next_backend(const char **at, const char *end, struct haproxy_word *ret);

/* One line of "show stat" (CSV), whose columns the guide numbers (section 9.1). */
#define HAPROXY_STAT_COLUMNS 64
struct haproxy_stat {
    struct haproxy_word column[HAPROXY_STAT_COLUMNS];
    size_t n;
};
bool haproxy_next_stat(const char **at, const char *end, struct haproxy_stat *ret);

/* Appends a word of a command; blanks, semicolons and backslashes are escaped.  -EINVAL: a control
 * character, which no command can carry; nothing is appended. */
int haproxy_add_word(struct strbuf *out, const char *word);
