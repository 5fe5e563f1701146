/* SPDX-License-Identifier: Apache-2.0 */
/* Stores uses of OAuth tokens that inactivity ends, so that a token that is used stays valid.
 *
 * Each master stores the uses that it saw.  Two masters may do so at once: the larger
 * inactivityTimeoutSeconds stays.  A write that loses against another is tried once more; after
 * that, and after a failure of the store, the next use of the token is stored.  Loop's thread
 * only. */
#pragma once

struct apiserver;
struct oauth_inactivity;

/* Begins to follow the uses that the security of 'a' reports. */
struct oauth_inactivity *oauth_inactivity_new(struct apiserver *a);
/* Uses that are not stored yet are forgotten.  The store has been closed, so no write is left. */
struct oauth_inactivity *oauth_inactivity_free(struct oauth_inactivity *i);
