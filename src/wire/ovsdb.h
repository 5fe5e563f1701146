/* SPDX-License-Identifier: Apache-2.0 */
/* OVSDB: framing, requests, replies, update notifications and column values.  Pure:
 * text in, values out.
 *
 * Sources: RFC 7047 (sections named at each function); "monitor_cond" and its "update2"
 * notification from ovsdb-server(7) 4.1.12 and 4.1.14.  Update2 because a change of a
 * set or map column carries the difference only: with plain "update" each new port
 * would send all ports of the bridge twice.
 *
 * Trees made here are the caller's (wire/json.h); functions that take a tree into
 * another one own it.  What is read is checked: a malformed value is -EBADMSG with the
 * reason.  Not thread-safe per object. */
#pragma once

#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "wire/json.h"

#define OVSDB_UUID_SIZE 37 /* Text form and NUL. */

/* ---- framing (RFC 7047 4: JSON-RPC 1.0 without separators) ---- */

/* Finds the end of the next message; zero-initialize it for a new connection. */
struct ovsdb_framer {
    size_t scanned; /* Bytes of the present message already scanned. */
    unsigned depth;
    bool in_string, escaped;
};
/* 'data' starts with the present message (white space before it is fine). Returns 0 with the
 * message's size in '*ret_size', and the framer is ready for the next; -EAGAIN: more bytes
 * needed; -EBADMSG: no JSON object starts here. */
int ovsdb_frame(struct ovsdb_framer *f, const char *data, size_t size, size_t *ret_size,
                struct err *e);

enum ovsdb_kind { OVSDB_REQUEST, OVSDB_NOTIFICATION, OVSDB_REPLY };
struct ovsdb_msg {
    struct json *json; /* Owned; the pointers below are into it. */
    enum ovsdb_kind kind;
    const char *method;                /* In requests and notifications. */
    const struct json *params;         /* An array. */
    const struct json *id;             /* In requests and replies. */
    const struct json *result, *error; /* In replies; NULL: null. */
};
/* One whole message of 'size' bytes. */
int ovsdb_msg_parse(const char *text, size_t size, struct ovsdb_msg *ret, struct err *e);
void ovsdb_msg_done(struct ovsdb_msg *m);
/* The number given to the request by ovsdb_put_*; false: another form of id. */
bool ovsdb_msg_id(const struct ovsdb_msg *m, uint64_t *ret);

/* ---- messages to the server (appended to 'out') ---- */

/* RFC 7047 4.1.3; 'ops' (an array of operations) is read only. */
void ovsdb_put_transact(struct strbuf *out, uint64_t id, const char *db, const struct json *ops);
/* ovsdb-server(7) 4.1.12; 'tables' maps each table to its monitor request and is read only. */
void ovsdb_put_monitor_cond(struct strbuf *out, uint64_t id, const char *db, const char *monitor,
                            const struct json *tables);
void ovsdb_put_echo(struct strbuf *out, uint64_t id);                               /* 4.1.11 */
void ovsdb_put_echo_reply(struct strbuf *out, const struct ovsdb_msg *request);     /* 4.1.11 */
void ovsdb_put_unknown_method(struct strbuf *out, const struct ovsdb_msg *request); /* An error. */

/* ---- values (RFC 7047 5.1); integers and strings are plain JSON ---- */

struct json *ovsdb_uuid(const char *uuid);
struct json *ovsdb_named_uuid(const char *name);
struct json *ovsdb_set(void); /* Empty; ovsdb_set_add returns the set. */
struct json *ovsdb_set_add(struct json *set, struct json *atom);
struct json *ovsdb_map(void);
struct json *ovsdb_map_add(struct json *map, const char *key, const char *value);

/* Number of members of a set; an atom is a set of one (5.1). */
size_t ovsdb_set_count(const struct json *v);
const struct json *ovsdb_set_at(const struct json *v, size_t i);
/* Text of a uuid atom; NULL if it is none. */
const char *ovsdb_get_uuid(const struct json *atom);

/* Columns of a row.  An absent column leaves '*value' as it is: update2 leaves out what did not
 * change.  An optional column (a set of at most one) that is empty reads as NULL or 'none'. */
int ovsdb_read_string(const struct json *row, const char *column, char **value, struct err *e);
int ovsdb_read_int(const struct json *row, const char *column, int64_t none, int64_t *value,
                   struct err *e);
/* Sets of strings or uuids as keys of 'set' (values not NULL, not owned), maps of strings
 * as owned values of 'map' (smap_init(m, free)).  'diff' is how to apply an update2: false:
 * replaces all; true: a member of a set is toggled; a pair of a map is removed where it is the
 * same, else set. */
int ovsdb_read_set(const struct json *row, const char *column, bool diff, struct smap *set,
                   struct err *e);
int ovsdb_read_map(const struct json *row, const char *column, bool diff, struct smap *map,
                   struct err *e);

/* ---- operations of a transaction (RFC 7047 5.2); the calls take ownership of the trees ---- */

struct json *ovsdb_where_uuid(const char *uuid); /* [["_uuid", "==", uuid]] */
struct json *ovsdb_insert(const char *table, struct json *row, const char *uuid_name);
struct json *ovsdb_update(const char *table, struct json *where, struct json *row);
/* One mutation (5.1 <mutation>): [column, mutator, value]. */
struct json *ovsdb_mutate(const char *table, struct json *where, const char *column,
                          const char *mutator, struct json *value);
/* Another mutation for an operation that ovsdb_mutate made; returns it. */
struct json *ovsdb_mutate_add(struct json *op, const char *column, const char *mutator,
                              struct json *value);
/* Fails the transaction at once unless the row's columns equal 'row'. */
struct json *ovsdb_wait_equal(const char *table, struct json *where, struct json *row);
struct json *ovsdb_select(const char *table, struct json *where, const char *column);
struct json *ovsdb_comment(const char *text);

/* ---- replies and notifications ---- */

/* Whether the transaction answered by 'm', of 'n_ops' operations, was committed (4.1.3).  If
 * not, '*ret_failed' is the index of the operation at fault, or n_ops when it failed as a whole,
 * and the result one of: -EAGAIN (a wait did not hold: another client changed the row), -EEXIST
 * (constraint violation), -ENOENT (referential integrity), -ECANCELED, -EIO, -EBADMSG. */
int ovsdb_transact_result(const struct ovsdb_msg *m, size_t n_ops, size_t *ret_failed,
                          struct err *e);
/* First row of the select that was operation 'op' of a committed transaction; NULL: none. */
const struct json *ovsdb_selected_row(const struct ovsdb_msg *m, size_t op);
/* The error of a reply as text: 0, or -EPROTO with it. */
int ovsdb_reply_error(const struct ovsdb_msg *m, struct err *e);

enum ovsdb_change { OVSDB_INSERT, OVSDB_MODIFY, OVSDB_DELETE };
/* 'row': for an insert all columns with a value other than the default, for a modification the
 * differences; NULL for a deletion. A negative return ends the walk. */
typedef int ovsdb_row_fn(void *ctx, const char *table, const char *uuid, enum ovsdb_change change,
                         const struct json *row, struct err *e);
/* Walks <table-updates2>: the result of monitor_cond, or the content of an update2 notification. */
int ovsdb_walk_updates(const struct json *updates, ovsdb_row_fn *fn, void *ctx, struct err *e);
/* The updates in an "update2" notification for 'monitor'; NULL: 'm' is another message. */
const struct json *ovsdb_update_of(const struct ovsdb_msg *m, const char *monitor);
