/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of identity providers.  Internal to src/identity. */
#pragma once

#include "identity/provider.h"

extern const struct identity_kind identity_basic_auth;
extern const struct identity_kind identity_keystone;
extern const struct identity_kind identity_ldap;
