/* SPDX-License-Identifier: Apache-2.0 */
/* PriorityClass (scheduling.k8s.io/v1): the rules between name and value, after
 * ValidatePriorityClass. */
#include "api/kind_util.h"
#include "api/kinds.h"

#define RESERVED_PREFIX "system-"
#define MAX_USER_VALUE 1000000000

/* The classes of the system's own pods, which an administrator may create again unchanged. */
static bool is_system_class(const char *name, int64_t value)
{
    return (streq_null(name, "system-node-critical") && value == 2000001000) ||
           (streq_null(name, "system-cluster-critical") && value == 2000000000);
}

void kind_priority_class_validate(const struct json *obj, const struct json *old,
                                  struct api_causes *c)
{
    const char *name = json_path_string(obj, "metadata", "name", NULL);
    int64_t value = json_get_int_or(json_get(obj, "value"), 0);
    if (is_system_class(name, value)) {
        return;
    }
    if (name && str_has_prefix(name, RESERVED_PREFIX)) {
        api_forbidden(c, "metadata.name",
                      "priority class names with '" RESERVED_PREFIX
                      "' prefix are reserved for system use only");
    }
    if (value > MAX_USER_VALUE) {
        api_forbidden(c, "value", "maximum allowed value of a user defined priority is %d",
                      MAX_USER_VALUE);
    }
}
