/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/explain/scc_question.h"

#include "api/kinds/pod_restrictions.h"

const struct json *scc_question_pod(const struct json *obj)
{
    const struct api_kind *k =
        api_kind_by_name(json_get_text(obj, "apiVersion"), json_get_text(obj, "kind"));
    const char *path = k ? pod_restrictions_path(k->group, k->plural) : NULL;
    return path ? pod_restrictions_find(obj, path) : NULL;
}

struct json *scc_question_template(const struct json *pod, const char *account)
{
    struct json *o = json_object(), *spec = json_clone(json_get(pod, "spec"));
    const struct json *meta = json_get(pod, "metadata");
    static const char *const kept[] = {"labels", "annotations"};
    for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
        if (json_get(meta, kept[i])) {
            json_set(json_ensure_object(o, "metadata"), kept[i],
                     json_clone(json_get(meta, kept[i])));
        }
    }
    if (account && json_is(spec, JSON_OBJECT)) {
        json_set_string(spec, "serviceAccountName", account);
    }
    json_set(o, "spec", spec);
    return o;
}
