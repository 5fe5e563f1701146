/* SPDX-License-Identifier: Apache-2.0 */
/* TemplateInstanceRequester: the server writes in whose name a TemplateInstance creates objects.
 * OpenShift lets a user with the verb assign name another one, for its service broker; there is
 * none here, so that no user acts as another one. */
#include "apiserver/admission/plugins.h"

int template_admit_requester(struct request *q, struct json *obj, const struct json *old,
                             struct outcome *outcome)
{
    struct json *spec = json_get(obj, "spec");
    const char *given = json_path_string(spec, "requester", "username", NULL);
    if (old || !json_is(spec, JSON_OBJECT)) {
        return 0; /* Validation refuses a change. */
    }
    if (given && *given && !streq(given, q->user->name)) {
        return admission_refuse_field(q, obj, "spec.requester.username",
                                      "you do not have permission to set username", outcome);
    }
    json_set(spec, "requester", user_object(q->user));
    return 1;
}
