/* SPDX-License-Identifier: Apache-2.0 */
/* Inactivity of OAuth tokens: which uses must be stored, when, and with which value.
 *
 * A token's inactivityTimeoutSeconds counts from its creation, so a use moves it.  A master stores
 * a use only shortly before the token would end, so that a token in constant use costs one write in
 * most of its timeout.  Until then the use is in a heap, by the time when it must be stored.  Pure:
 * the time comes in as an argument; all times are milliseconds of the wall clock. */
#pragma once

#include "base/map.h"
#include "wire/json.h"

/* A use is stored this long before the token would end: a third of the shortest timeout. */
#define OAUTH_INACTIVITY_LEAD_MS INT64_C(100000)

struct oauth_use {
    int64_t seen_ms; /* The last use. */
    int64_t due_ms;  /* When it must be stored. */
    char name[];     /* The token's object. */
};
struct oauth_uses {
    struct oauth_use **heap; /* The earliest 'due_ms' first. */
    size_t n, cap;
    struct smap by_name; /* The same uses. */
};

void oauth_uses_init(struct oauth_uses *u);
void oauth_uses_done(struct oauth_uses *u);
/* Records a use of the token at 'seen_ms'; 'end_ms' is when inactivity ends the token at present.
 * A token that is recorded keeps the time when it must be stored. */
void oauth_uses_record(struct oauth_uses *u, const char *name, int64_t seen_ms, int64_t end_ms);
/* When the first use must be stored; -1: there is none. */
int64_t oauth_uses_due_ms(const struct oauth_uses *u);
/* Removes a use that must be stored at 'now_ms' and returns it, owned; NULL: there is none. */
struct oauth_use *oauth_uses_take(struct oauth_uses *u, int64_t now_ms);

/* When inactivity ends the OAuthAccessToken; -1: it does not. */
int64_t oauth_inactivity_end_ms(const struct json *token);
/* The inactivityTimeoutSeconds of a token that was last used at 'seen_ms', if uses prolong it by
 * 'timeout_s' (0: inactivity no longer ends it; negative: it is not known).  The value is not
 * beyond expiresIn.  -1: nothing is to be stored, because the present value is not smaller. */
int64_t oauth_inactivity_next_s(const struct json *token, int64_t seen_ms, int64_t timeout_s);
