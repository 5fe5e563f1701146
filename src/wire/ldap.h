/* SPDX-License-Identifier: Apache-2.0 */
/* LDAP version 3 (RFC 4511) for a client: messages in BER, filters and URLs as text, names.
 *
 * What a client of directories needs to prove a password and to read groups: simple bind, search
 * with limits and paged results (RFC 2696), StartTLS, unbind.  The decoder takes the bytes of a
 * server that may be hostile: lengths are definite and bounded, and a message must fill its
 * envelope.  Lengths in a form that is longer than needed are accepted, because Active Directory
 * sends them.  Pure; no state. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>
#include <sys/types.h>

/* Bytes of the largest message that is accepted. */
#define LDAP_MAX_MESSAGE (4u << 20)
#define LDAP_PORT 389
#define LDAPS_PORT 636

enum ldap_scope { LDAP_SCOPE_BASE, LDAP_SCOPE_ONE, LDAP_SCOPE_SUB };
enum ldap_deref { LDAP_DEREF_NEVER, LDAP_DEREF_SEARCH, LDAP_DEREF_BASE, LDAP_DEREF_ALWAYS };

/* ---- requests ---- */

/* Message numbers 'id' are 1 to INT32_MAX. */

/* A simple bind (RFC 4511, 4.2).  The empty name and password make an anonymous connection.  The
 * caller must not pass a name with an empty password: many servers answer that with success
 * (RFC 4513, 5.1.2). */
void ldap_write_bind(struct strbuf *out, int32_t id, const char *dn, const char *password);
void ldap_write_unbind(struct strbuf *out, int32_t id);
void ldap_write_start_tls(struct strbuf *out, int32_t id); /* RFC 4511, 4.14 */

struct ldap_search {
    const char *base;
    enum ldap_scope scope;
    enum ldap_deref deref;
    uint32_t size_limit;           /* Entries; 0: no limit of the client. */
    uint32_t time_limit;           /* Seconds; 0: no limit of the client. */
    const char *filter;            /* RFC 4515 */
    const char *const *attributes; /* NULL at the end; NULL or none: all. */
    uint32_t page_size;            /* Entries in a page; 0: no paging. */
    const void *cookie;            /* Of the page before; NULL with size 0: the first page. */
    size_t cookie_size;
};
/* -EINVAL: the filter is malformed; nothing is written then. */
int ldap_write_search(struct strbuf *out, int32_t id, const struct ldap_search *s, struct err *e);

/* ---- responses ---- */

/* The size of the message at 'p', of which 'size' bytes are there; 0: not complete.  -EINVAL: no
 * LDAP message; -EMSGSIZE: over LDAP_MAX_MESSAGE. */
ssize_t ldap_message_size(const void *p, size_t size);

enum ldap_operation {
    LDAP_BIND_RESPONSE = 1,
    LDAP_ENTRY = 4,
    LDAP_SEARCH_DONE = 5,
    LDAP_REFERENCE = 19,
    LDAP_EXTENDED_RESPONSE = 24,
};
enum ldap_result {
    LDAP_SUCCESS = 0,
    LDAP_TIME_LIMIT = 3,
    LDAP_SIZE_LIMIT = 4,
    LDAP_REFERRAL = 10,
    LDAP_NO_SUCH_OBJECT = 32,
    LDAP_INAPPROPRIATE_AUTH = 48,
    LDAP_INVALID_CREDENTIALS = 49,
};
/* "invalid credentials"; "result 123" in 'buf' for a code without a name. */
#define LDAP_RESULT_TEXT_SIZE 48
const char *ldap_result_text(uint32_t result, char buf[LDAP_RESULT_TEXT_SIZE]);

/* Bytes, with a NUL behind them that is not counted. */
struct ldap_value {
    char *data;
    size_t size;
};
/* Whether it is UTF-8 without control characters, and not empty. */
bool ldap_value_is_text(const struct ldap_value *v);
struct ldap_attribute {
    char *name;
    struct ldap_value *values;
    size_t n;
};
struct ldap_entry {
    char *dn;
    struct ldap_attribute *attributes;
    size_t n;
};
void ldap_entry_done(struct ldap_entry *entry);
/* The first attribute of that name, in any case, with at least one value; NULL: none. */
const struct ldap_attribute *ldap_entry_get(const struct ldap_entry *entry, const char *name);

struct ldap_message {
    int32_t id; /* 0: a notice of the server, such as that it disconnects. */
    enum ldap_operation operation;
    uint32_t result; /* Of all but entries and references. */
    char *text;      /* The server's explanation, "" when it has none. */
    char *oid;       /* Of an extended response; "". */
    struct ldap_entry entry;
    bool paged;               /* Search done: the server has answered the paging. */
    struct ldap_value cookie; /* Empty: that was the last page. */
};
void ldap_message_done(struct ldap_message *m);
static inline UNUSED void ldap_message_donep(struct ldap_message *m)
{
    ldap_message_done(m);
}
/* Parses the message that fills 'size' bytes.  -EINVAL: malformed, or an operation that no client
 * gets.  '*ret' is untouched on failure. */
int ldap_parse(const void *p, size_t size, struct ldap_message *ret, struct err *e);

/* ---- filters (RFC 4515) ---- */

/* Appends the filter in BER.  -EINVAL: malformed; 'out' is unchanged then. */
int ldap_filter_write(const char *text, struct strbuf *out, struct err *e);
int ldap_filter_check(const char *text, struct err *e);
/* Appends the value so that a filter takes it for these bytes and nothing else. */
void ldap_filter_escape(const void *value, size_t size, struct strbuf *out);
/* Whether it can be the name of an attribute: letters, digits, "-", "." and options after ";". */
bool ldap_attribute_is_valid(const char *name);

/* ---- URLs (RFC 4516) ---- */

struct ldap_url {
    bool tls; /* ldaps: */
    char *host;
    uint16_t port;
    char *base;
    char *attribute; /* The first one; NULL: none is named. */
    bool has_scope;
    enum ldap_scope scope; /* LDAP_SCOPE_BASE when there is none, as in the RFC. */
    char *filter;          /* NULL: there is none. */
};
void ldap_url_done(struct ldap_url *u);
static inline UNUSED void ldap_url_donep(struct ldap_url *u)
{
    ldap_url_done(u);
}
/* -EINVAL says what is wrong. */
int ldap_url_parse(const char *text, struct ldap_url *ret, struct err *e);
/* "base", "one" or "sub".  -EINVAL: another word. */
int ldap_scope_parse(const char *text, enum ldap_scope *ret);

/* ---- distinguished names (RFC 4514) ---- */

/* Appends the name in a form that is equal for names that most servers treat as equal: ASCII
 * letters in lower case, blanks around values removed and others joined, escapes in one form.
 * -EINVAL: no distinguished name. */
int ldap_dn_normalize(const char *dn, struct strbuf *out, struct err *e);
/* Whether both are names, and equal in that form. */
bool ldap_dn_equal(const char *a, const char *b);
/* Whether 'dn' is 'base' or below it; both are names. */
bool ldap_dn_is_below(const char *dn, const char *base);
