/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of identity providers that are compiled in, and what their checks share. */
#pragma once

#include "identity/provider.h"

extern const struct identity_kind identity_allow_all, identity_basic_auth, identity_deny_all,
    identity_github, identity_gitlab, identity_google, identity_htpasswd, identity_keystone,
    identity_ldap, identity_openid, identity_request_header;

/* Opens a GitLabIdentityProvider with "legacy" (identity_kind.open): OAuth 2.0 without OpenID. */
int identity_open_gitlab_legacy(struct loop *l, const struct json *config,
                                struct identity_provider **ret, struct err *e);
/* -EINVAL: 'provider' has another key than those of 'keys' ("file url"), apiVersion and kind. */
int identity_check_keys(const struct json *provider, const char *keys, struct err *e);
