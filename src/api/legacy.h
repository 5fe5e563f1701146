/* SPDX-License-Identifier: Apache-2.0 */
/* The older form of OpenShift's kinds: /oapi/v1, without groups.
 *
 * Until release 3.6 OpenShift's own kinds were served at /oapi/v1 with "apiVersion: v1"; their
 * groups came later.  Both name the same resources.  The form is a matter of paths and of
 * apiVersion alone: every decision about a request (rights, admission, quota) is about the
 * resource of the group.  Pure; constant data. */
#pragma once

#include "api/kind.h"

/* "apiVersion" of all kinds in this form. */
#define API_LEGACY_VERSION "v1"

/* The group whose resource /oapi/v1/RESOURCE is; NULL: there is none. */
const char *api_legacy_group(const char *resource);
/* The group whose resource /api/v1/RESOURCE is, although it is OpenShift's; NULL: there is none. */
const char *api_legacy_core_group(const char *resource);
/* Whether the kind has this form. */
bool api_legacy_has(const struct api_kind *k);
