/* SPDX-License-Identifier: Apache-2.0 */
/* Cells of tables and checks of typed fields, for the files of the kinds.
 * Internal to src/api.  Cells are owned by the caller. */
#pragma once

#include "api/kind.h"
#include "base/ip.h"

/* ---- cells ---- */

struct json *api_cell_name(const struct json *obj, int64_t now_ms); /* metadata.name */
struct json *api_cell_age(const struct json *obj, int64_t now_ms);  /* of creationTimestamp */
/* The string 's', or 'dflt' when it is NULL or empty. */
struct json *api_cell_text(const char *s, const char *dflt);
/* Age of the RFC 3339 time 's': "3m12s", or "<unknown>". */
struct json *api_cell_since(const char *s, int64_t now_ms);
/* "[a, b]" as oc prints lists of strings. */
struct json *api_cell_list(const struct json *list);

/* "pod/web" for an object reference. */
struct json *api_cell_reference(const struct json *ref);
/* The same for the owner that is the object's controller; "<none>": it has none. */
struct json *api_cell_controller(const struct json *obj, int64_t now_ms);

/* Names and images of the containers in an object's pod template, joined by ",", and the
 * selector beside it; "<none>" without one. */
struct json *api_cell_containers(const struct json *obj, int64_t now_ms);
struct json *api_cell_images(const struct json *obj, int64_t now_ms);
struct json *api_cell_selector(const struct json *obj, int64_t now_ms);

#define API_COLUMN_NAME                                                                     \
    {                                                                                       \
        "Name", "string", "name", "Name must be unique within its scope.", 0, api_cell_name \
    }
#define API_COLUMN_AGE_PRIORITY(p)                                      \
    {                                                                   \
        "Age", "string", "", "Time since its creation", p, api_cell_age \
    }
#define API_COLUMN_AGE API_COLUMN_AGE_PRIORITY(0)
/* ---- text rules that descriptions refer to ---- * As api_check_dns_label (kind.h): NULL, or a
 * constant text with the rule. */
#define API_COLUMN_AGE_WIDE API_COLUMN_AGE_PRIORITY(1)

const char *api_check_ip(const char *s); /* An address of either family. */
const char *api_check_ip4(const char *s);
/* An address of either family that traffic can be sent to: not unspecified, loopback or
 * link-local. */
const char *api_check_endpoint_ip(const char *s);
/* A CIDR of IPv4 or IPv6; host bits may be set, as in Kubernetes. */
const char *api_check_cidr(const char *s);
/* A key of a ConfigMap or Secret: [-._a-zA-Z0-9]+, like a file name. */
const char *api_check_config_key(const char *s);
/* The name of a container's port: an IANA service name (RFC 6335, section 5.1). */
const char *api_check_port_name(const char *s);
int api_parse_cidr4(const char *s, struct err *e); /* An IPv4 CIDR without host bits. */

/* ---- fields ----
 *
 * For fields without a description, such as the schemas in CustomResourceDefinitions. Each takes
 * the field's name and its value (NULL: absent), adds a cause for an invalid value, and returns
 * whether there is a valid value. Absent optional fields add no cause and return false. */

bool api_field_string(struct api_causes *c, const char *field, const struct json *v, bool required);
bool api_field_bool(struct api_causes *c, const char *field, const struct json *v);
bool api_field_array(struct api_causes *c, const char *field, const struct json *v);
bool api_field_object(struct api_causes *c, const char *field, const struct json *v);
bool api_field_int(struct api_causes *c, const char *field, const struct json *v, bool required,
                   int64_t min, int64_t max, int64_t *ret);
/* One of 'values', which ends with NULL. */
bool api_field_enum(struct api_causes *c, const char *field, const struct json *v, bool required,
                    const char *const *values);

/* Labels, or maps with the same rules: names and values. */
void api_validate_labels(struct api_causes *c, const char *field, const struct json *labels);
/* The same for annotations, with their size together. */
void api_validate_annotations(struct api_causes *c, const char *field, const struct json *map);
/* A number of 0 or more, or a percentage of at most 100 ("25%"); absent is fine. */
void api_validate_share(struct api_causes *c, const char *field, const struct json *v);
/* A port: a number, or the name of one. */
void api_validate_port(struct api_causes *c, const char *field, const struct json *v);
/* A path without "..". */
void api_validate_path(struct api_causes *c, const char *field, const struct json *path);
/* A cause when the value differs from the old object's. */
void api_field_immutable(struct api_causes *c, const char *field, const struct json *v,
                         const struct json *old);

/* ---- RBAC ---- */

#define API_RBAC_GROUP "rbac.authorization.k8s.io"
struct json *api_cell_created(const struct json *obj, int64_t now_ms); /* creationTimestamp */

/* ---- defaults ---- */

/* Sets 'key' of 'obj' when it is absent or null ("": absent, too). */
void api_default_string(struct json *obj, const char *key, const char *s);
void api_default_int(struct json *obj, const char *key, int64_t i);
/* The object at 'key', created when it is absent or null; NULL: another type is there. */
struct json *api_default_object(struct json *obj, const char *key);
