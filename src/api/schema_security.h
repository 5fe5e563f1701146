/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas of the kinds of identities and access, their roots.  Internal to src/api. */
#pragma once

#include "api/schema.h"

extern const struct api_schema api_schema_secret, api_schema_service_account, api_schema_role,
    api_schema_cluster_role, api_schema_role_binding, api_schema_cluster_role_binding,
    api_schema_certificate_signing_request, api_schema_token_review, api_schema_self_subject_review,
    api_schema_subject_access_review, api_schema_local_subject_access_review,
    api_schema_self_subject_access_review, api_schema_self_subject_rules_review;
