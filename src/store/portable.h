/* SPDX-License-Identifier: Apache-2.0 */
/* The portable form of a registry: text, one JSON object per line (docs/store.md), for moving it
 * between backends.
 *
 *     {"format":"tenet-registry","version":1,"revision":120,"keys":2}
 *     {"key":"/registry/namespaces/red","revision":17,"value":"{...}","sum":"85944171f73967e8"}
 *     {"key":"/registry/raw","revision":90,"base64":"AAEC","sum":"..."}   (not UTF-8, or a NUL)
 *     {"end":true,"keys":2,"sha256":"..."}                                (of all lines before it)
 *
 * Keys are in their order, each once.  'sum' is the FNV-1a hash of key, revision and value: it
 * shows a changed line; the last line shows that none is missing.  Pure; the struct is used for
 * either writing or reading. */
#pragma once

#include "store/store.h"

#include "base/str.h"

/* A line is read up to this size. */
#define PORTABLE_MAX_LINE ((size_t) 512 << 20)

struct portable;
struct portable *portable_new(void);
struct portable *portable_free(struct portable *p);
DEFINE_CLEANUP(struct portable *, portable_free)

/* Each appends one line to 'out'. */
void portable_write_head(struct portable *p, uint64_t revision, size_t n_keys, struct strbuf *out);
void portable_write_item(struct portable *p, const struct store_item *item, struct strbuf *out);
void portable_write_end(struct portable *p, struct strbuf *out);

/* Takes the next line, without its end.  With '*ret_key' non-NULL it was an item, whose
 * key and value are the caller's; else the first or the last line.  -EBADMSG: '*e' names the
 * line and the error. */
int portable_read_line(struct portable *p, const char *line, size_t size, char **ret_key,
                       struct blob **ret_value, uint64_t *ret_revision, struct err *e);
/* Whether the last line was read; else -EBADMSG. */
int portable_read_end(const struct portable *p, struct err *e);
/* Revision of the exported store; from the first line. */
uint64_t portable_revision(const struct portable *p);
size_t portable_n_keys(const struct portable *p);
/* The checksum in the last line: distinguishes exports. */
const char *portable_checksum(const struct portable *p);
