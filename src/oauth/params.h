/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of OAuth requests: of a query, or of a form's body (WHATWG URL,
 * application/x-www-form-urlencoded), which have the same syntax.
 *
 * Strict: an invalid escape, a NUL or bytes that are not UTF-8 are refused, and so are more than
 * OAUTH_PARAMS_MAX parameters.  The struct owns its texts, which may be secrets: oauth_params_done
 * erases them.  Pure; not thread-safe. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#define OAUTH_PARAMS_MAX 64

struct oauth_params {
    char *names[OAUTH_PARAMS_MAX], *values[OAUTH_PARAMS_MAX];
    size_t sizes[OAUTH_PARAMS_MAX]; /* Bytes of the values. */
    size_t n;
};

/* -EINVAL with the reason, and '*ret' is empty.  'text' has 'size' bytes; an empty one has no
 * parameters. */
int oauth_params_parse(const char *text, size_t size, struct oauth_params *ret, struct err *e);
void oauth_params_done(struct oauth_params *p);
static inline UNUSED void oauth_params_donep(struct oauth_params *p)
{
    oauth_params_done(p);
}

/* The first value of the parameter 'name'; NULL: absent. */
const char *oauth_param(const struct oauth_params *p, const char *name);
/* The same, where an absent parameter is "". */
const char *oauth_param_text(const struct oauth_params *p, const char *name);
/* -EINVAL: a parameter is there twice (RFC 6749, 3.1 and 3.2); 'but' (NULL: none) may be. */
int oauth_params_check_single(const struct oauth_params *p, const char *but, struct err *e);

/* Appends "name=value" to 'url', escaped, after 'separator' ('?', '&' or '#'; 0: nothing). */
void oauth_param_add(struct strbuf *url, char separator, const char *name, const char *value);
/* The separator with which a parameter is added to the query of 'url'. */
char oauth_query_separator(const char *url);
