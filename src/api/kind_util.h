/* SPDX-License-Identifier: Apache-2.0 */
/* What the kinds' files share: cells of tables, checks of typed fields, and the list of the kinds.
 * Internal to src/api.  Cells are owned by the caller. */
#pragma once

#include "api/kind.h"
#include "base/ip.h"

extern const struct api_kind api_kind_namespace, api_kind_project, api_kind_node, api_kind_pod,
    api_kind_event, api_kind_cluster_network, api_kind_host_subnet, api_kind_net_namespace,
    api_kind_crd, api_kind_lease, api_kind_config_map, api_kind_event_v1, api_kind_secret,
    api_kind_service_account, api_kind_role, api_kind_cluster_role, api_kind_role_binding,
    api_kind_cluster_role_binding, api_kind_certificate_signing_request, api_kind_token_review,
    api_kind_self_subject_review, api_kind_subject_access_review,
    api_kind_local_subject_access_review, api_kind_self_subject_access_review,
    api_kind_self_subject_rules_review, api_kind_network_policy, api_kind_admin_network_policy,
    api_kind_baseline_admin_network_policy, api_kind_service, api_kind_endpoints,
    api_kind_endpoint_slice;

/* ---- cells ---- */

struct json *api_cell_name(const struct json *obj, int64_t now_ms); /* metadata.name */
struct json *api_cell_age(const struct json *obj, int64_t now_ms);  /* of creationTimestamp */
/* The string 's', or 'dflt' when it is NULL or empty. */
struct json *api_cell_text(const char *s, const char *dflt);
/* Age of the RFC 3339 time 's': "3m12s", or "<unknown>". */
struct json *api_cell_since(const char *s, int64_t now_ms);
/* "[a, b]" as oc prints lists of strings. */
struct json *api_cell_list(const struct json *list);

/* "pod/web" of an object reference. */
struct json *api_cell_reference(const struct json *ref);

#define API_COLUMN_NAME                                                                     \
    {                                                                                       \
        "Name", "string", "name", "Name must be unique within its scope.", 0, api_cell_name \
    }
#define API_COLUMN_AGE_PRIORITY(p)                                      \
    {                                                                   \
        "Age", "string", "", "Time since its creation", p, api_cell_age \
    }
#define API_COLUMN_AGE API_COLUMN_AGE_PRIORITY(0)
#define API_COLUMN_AGE_WIDE API_COLUMN_AGE_PRIORITY(1)

/* ---- typed fields ----
 *
 * Each takes the field's name and its value (NULL: absent), adds a cause when it is wrong, and tells
 * whether there is a good value to go on with.  Absent optional fields are neither wrong nor good. */

bool api_field_string(struct api_causes *c, const char *field, const struct json *v, bool required);
bool api_field_bool(struct api_causes *c, const char *field, const struct json *v);
bool api_field_array(struct api_causes *c, const char *field, const struct json *v);
bool api_field_object(struct api_causes *c, const char *field, const struct json *v);
bool api_field_int(struct api_causes *c, const char *field, const struct json *v, bool required,
                   int64_t min, int64_t max, int64_t *ret);
/* One of 'values', which end with NULL. */
bool api_field_enum(struct api_causes *c, const char *field, const struct json *v, bool required,
                    const char *const *values);
/* An IPv4 address, and an address of either family. */
bool api_field_ip4(struct api_causes *c, const char *field, const struct json *v, bool required,
                   uint32_t *ret);
bool api_field_ip(struct api_causes *c, const char *field, const struct json *v, bool required);
/* A canonical IPv4 CIDR. */
bool api_field_cidr(struct api_causes *c, const char *field, const struct json *v, bool required,
                    struct ip4_prefix *ret);
/* Lists of the two, each element at most once. */
void api_field_ip4_list(struct api_causes *c, const char *field, const struct json *v);
void api_field_cidr_list(struct api_causes *c, const char *field, const struct json *v);
/* A string that passes 'check' (api_check_...). */
bool api_field_checked(struct api_causes *c, const char *field, const struct json *v, bool required,
                       const char *(*check)(const char *) );
/* A cause when the value differs from the old object's. */
void api_field_immutable(struct api_causes *c, const char *field, const struct json *v,
                         const struct json *old);

/* ---- RBAC ---- */

#define API_RBAC_GROUP "rbac.authorization.k8s.io"
/* A role's rules; 'namespaced': of a Role, which has none for paths. */
void api_validate_rules(const struct json *rules, bool namespaced, struct api_causes *c);
/* Of bindings: defaults of subjects and roleRef, and their rules; 'cluster': of a ClusterRoleBinding. */
void api_binding_defaults(struct json *obj);
void api_validate_binding(const struct json *obj, const struct json *old, bool cluster,
                          struct api_causes *c);
/* Columns of both bindings' tables. */
extern const struct api_column api_binding_columns[6];
struct json *api_cell_created(const struct json *obj, int64_t now_ms); /* creationTimestamp */

/* ---- access reviews ---- */

/* spec.resourceAttributes and spec.nonResourceAttributes, one of which must be there. */
void api_validate_access_spec(const struct json *spec, struct api_causes *c);
/* spec.user, spec.groups and spec.extra besides. */
void api_validate_subject_spec(const struct json *spec, struct api_causes *c);

/* ---- defaults ---- */

/* Sets 'key' of 'obj' when it is absent or null ("": absent, too). */
void api_default_string(struct json *obj, const char *key, const char *s);
void api_default_int(struct json *obj, const char *key, int64_t i);
