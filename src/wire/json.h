/* SPDX-License-Identifier: Apache-2.0 */
/* JSON values (RFC 8259): a mutable tree, a strict parser and a writer.
 *
 * Why our own: objects of users pass through here and must come out as they went in.  The packaged
 * libraries lose integers above 2^53, keep or merge duplicate keys, or clash in symbol names (see
 * docs/architecture.md).  Numbers are therefore kept as the text that was read.
 *
 * A tree owns its children; json_free frees all of it.  Functions that store a value into a
 * tree take ownership of the value.  A value stays where it is as long as it is in the tree;
 * the text of a key only until its object is next changed.  Lookup by key is constant time
 * also in objects with very many members.  Nothing here recurses: any depth can be walked.
 * Accessors accept NULL and values of the wrong type, and then return NULL, false or the
 * default: "json_get_string(json_path(o, "metadata", "name", NULL))" needs no checks
 * between.  Not thread-safe per tree. */
#pragma once

#include "base/err.h"
#include "base/str.h"

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json;

/* Parses exactly one value that fills 'text' but for white space.  Refuses: duplicate keys,
 * invalid UTF-8, depth over JSON_MAX_DEPTH, NUL in strings (\u0000), lone surrogates.  -EINVAL
 * with line and column in '*e'.  '*ret' untouched on failure, owned by the caller on success. */
#define JSON_MAX_DEPTH 64
int json_parse(const char *text, size_t size, struct json **ret, struct err *e);
/* The same without one member, whose value is an object or array: 'without' has the keys that lead
 * to it from the outermost object, NULL at the end.  Its value is passed over, and not checked. */
int json_parse_without(const char *text, size_t size, const char *const *without, struct json **ret,
                       struct err *e);
/* The same for a stream of values: parses the first value of 'text' and stores in '*ret_used' the
 * bytes it took (leading white space included).  -EAGAIN: the value is not complete yet. */
int json_parse_first(const char *text, size_t size, struct json **ret, size_t *ret_used,
                     struct err *e);

/* Finds the end of a value in a stream of objects or arrays without parsing it: feed it the bytes
 * as they come, each once.  Zero-initialize. */
struct json_scan {
    size_t depth;
    bool in_string, escaped;
};
/* Bytes of 'p' up to and including the end of the value; 0: all were taken and it goes on. */
size_t json_scan_feed(struct json_scan *s, const char *p, size_t size);

struct json *json_free(struct json *v);
DEFINE_CLEANUP(struct json *, json_free)
struct json *json_clone(const struct json *v);
/* Deep equality; objects regardless of order, numbers by text. */
bool json_equal(const struct json *a, const struct json *b);

/* Constructors; all return an owned value and never NULL, except for json_number_n. */
struct json *json_null(void);
struct json *json_bool(bool b);
struct json *json_int(int64_t i);
struct json *json_number_n(const char *text, size_t size); /* NULL: not in JSON's number syntax. */
struct json *json_string(const char *s);
struct json *json_string_n(const char *s, size_t size);
struct json *json_stringf(const char *fmt, ...) PRINTF_LIKE(1, 2);
struct json *json_array(void);
struct json *json_object(void);

enum json_type json_type(const struct json *v);          /* JSON_NULL for NULL. */
bool json_is(const struct json *v, enum json_type type); /* false for NULL. */
const char *json_get_string(const struct json *v);       /* NULL if not a string. */
size_t json_string_size(const struct json *v);
bool json_get_bool(const struct json *v, bool dflt);
/* -EINVAL: not a number or not whole; -ERANGE: does not fit. */
int json_get_int(const struct json *v, int64_t *ret);
int64_t json_get_int_or(const struct json *v, int64_t dflt);
const char *json_number_text(const struct json *v); /* NULL if not a number. */

/* Arrays and objects share count and index; objects keep insertion order. */
size_t json_count(const struct json *v);
struct json *json_at(const struct json *v,
                     size_t i); /* i-th element or member value; NULL past the end. */
const char *json_key_at(const struct json *v, size_t i);
struct json *json_get(const struct json *obj, const char *key);
/* The string at 'key'; "" if there is none. */
const char *json_get_text(const struct json *obj, const char *key);
/* Follows keys until the NULL that ends the list. */
struct json *json_path(const struct json *obj, ...) __attribute__((sentinel));
const char *json_path_string(const struct json *obj, ...) __attribute__((sentinel));

/* Mutators.  They take ownership of 'v'; json_set replaces.  They return 'v' so that trees can
 * be built inline.  'obj' and 'arr' must be of that type.  'v' or 's' NULL: nothing is changed,
 * NULL is returned. */
struct json *json_set(struct json *obj, const char *key, struct json *v);
struct json *json_set_string(struct json *obj, const char *key, const char *s);
struct json *json_set_int(struct json *obj, const char *key, int64_t i);
struct json *json_set_bool(struct json *obj, const char *key, bool b);
struct json *json_append(struct json *arr, struct json *v);
/* The object at 'key', made when it is absent or not an object. */
struct json *json_ensure_object(struct json *obj, const char *key);
struct json *json_ensure_array(struct json *obj, const char *key);
bool json_remove(struct json *obj, const char *key);
struct json *json_take(struct json *obj,
                       const char *key); /* Removed and owned by the caller; NULL. */
bool json_remove_at(struct json *v, size_t i);
struct json *json_take_at(struct json *v,
                          size_t i); /* Element or member value; NULL past the end. */

/* Appends the text of 'v' to 'out', compact, or indented by two blanks a level (kubectl's -o json
 * uses four: pass 4).  indent 0 is compact. */
void json_write(const struct json *v, unsigned indent, struct strbuf *out);
char *json_to_text(const struct json *v); /* Owned, compact. */
/* Appends 's' quoted and escaped; bytes that are not UTF-8 become U+FFFD. */
void json_write_string(const char *s, size_t size, struct strbuf *out);

#define JSON_FOREACH(item, v)                                                                    \
    for (size_t item##_i = 0; item##_i < json_count(v) && ((item) = json_at(v, item##_i), true); \
         item##_i++)
