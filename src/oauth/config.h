/* SPDX-License-Identifier: Apache-2.0 */
/* The section oauthConfig of master-config.yaml, as a value.  The rows of the master's options fill
 * it (master/master_options.c); src/master owns it.  Pure. */
#pragma once

#include "base/err.h"
#include "wire/json.h"

struct oauth_config {
    char *public_url;       /* masterPublicURL, without a slash at its end; NULL: not given. */
    char *asset_url;        /* assetPublicURL; NULL: not given. */
    bool always_select;     /* alwaysShowProviderSelection */
    char *grant, *sa_grant; /* "auto", "prompt" or "deny". */
    char *session_secrets;  /* A file of kind SessionSecrets; NULL: keys of the cluster. */
    char *session_name;
    unsigned session_s;
    unsigned code_s, token_s; /* Ages of tokens; token_s 0: no end. */
    unsigned inactivity_s;    /* 0: tokens do not end by inactivity. */
    char *login_template, *selection_template, *error_template; /* Files; NULL: built in. */
    struct json *providers; /* identityProviders, checked but for their kinds; NULL: not given. */
};

/* Checks identityProviders: names, mapping methods, keys; '*ret' is owned.  -EINVAL: "[0].name:
 * ...". */
int oauth_config_read_providers(const struct json *v, struct json **ret, struct err *e);
/* Takes relative names of files in the providers from the folder 'dir'. */
void oauth_config_resolve_files(struct json *providers, const char *dir);
/* NULL: 's' may be a public URL of the master: "https://HOST[:PORT]", without anything behind. */
const char *oauth_config_check_url(const char *s);
