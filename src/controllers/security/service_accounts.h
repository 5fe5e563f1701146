/* SPDX-License-Identifier: Apache-2.0 */
/* Service accounts: each namespace gets the managed ones ("default" and others); Secrets of type
 * kubernetes.io/service-account-token are completed, and go with their account.
 *
 * The API server signs a Secret's token when the Secret is written and its account is there
 * (apiserver/admission/admit_secret.c): this controller has no key. */
#pragma once

#include "client/client.h"

struct service_accounts_config {
    const char *const *names; /* Managed accounts; ends with NULL.  Borrowed, as 'ca'. */
    const char *ca;           /* PEM, for the Secrets; NULL: none. */
};
struct service_accounts;
struct service_accounts *service_accounts_new(struct loop *l, struct api_client *client,
                                              const struct service_accounts_config *cfg);
struct service_accounts *service_accounts_free(struct service_accounts *s);
