/* SPDX-License-Identifier: Apache-2.0 */
/* Service accounts: each namespace gets the managed ones ("default" and others); Secrets of type
 * kubernetes.io/service-account-token are completed, and deleted with their account.
 *
 * The API server signs a Secret's token when the Secret is written and its account exists
 * (apiserver/admission/admit_secret.c): this controller has no key. */
#pragma once

#include "controller/controller.h"

struct service_accounts_config {
    const char *const *names; /* Managed accounts; ends with NULL.  Borrowed, like 'ca'. */
    const char *ca;           /* PEM, for the Secrets; NULL: none. */
};
/* Its configuration is a struct service_accounts_config. */
extern const struct controller service_accounts_controller;
