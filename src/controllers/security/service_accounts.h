/* SPDX-License-Identifier: Apache-2.0 */
/* Service accounts: each namespace gets the managed ones ("default" and others); Secrets of type
 * kubernetes.io/service-account-token get their token, and go with their account. */
#pragma once

#include "client/client.h"

struct jws_keys;
struct service_accounts_config {
    const char *const *names;    /* Managed accounts; ends with NULL. */
    const struct jws_keys *keys; /* NULL: no tokens are made. */
    const char *ca;              /* PEM, for the Secrets; NULL: none.  Borrowed, as all of these. */
};
struct service_accounts;
struct service_accounts *service_accounts_new(struct loop *l, struct api_client *client,
                                              const struct service_accounts_config *cfg);
struct service_accounts *service_accounts_free(struct service_accounts *s);
