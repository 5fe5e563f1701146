/* SPDX-License-Identifier: Apache-2.0 */
/* DefaultTolerationSeconds: a pod stays five minutes on a node that is not ready or cannot be
 * reached, unless it says how long, as in Kubernetes. */
#include "apiserver/admission/plugins.h"

#define DEFAULT_S 300

/* Whether a toleration of the list is about the taint 'key' with the effect NoExecute. */
static bool bears(const struct json *list, const char *key)
{
    const struct json *t;
    JSON_FOREACH (t, list) {
        const char *of = json_get_text(t, "key"), *effect = json_get_text(t, "effect");
        if ((!*of || streq(of, key)) && (!*effect || streq(effect, "NoExecute"))) {
            return true;
        }
    }
    return false;
}

int tolerations_admit(struct request *q, struct json *obj, const struct json *old,
                      struct outcome *outcome)
{
    static const char *const taints[] = {"node.kubernetes.io/not-ready",
                                         "node.kubernetes.io/unreachable"};
    struct json *spec = json_get(obj, "spec");
    const struct json *list = json_get(spec, "tolerations");
    bool lacks[ARRAY_SIZE(taints)], changed = false;
    if (*q->subresource || !json_is(spec, JSON_OBJECT) ||
        (list && !json_is(list, JSON_NULL) && !json_is(list, JSON_ARRAY))) {
        return 0;
    }
    for (size_t i = 0; i < ARRAY_SIZE(taints); i++) {
        lacks[i] = !bears(list, taints[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(taints); i++) {
        if (lacks[i]) {
            struct json *t = json_append(json_ensure_array(spec, "tolerations"), json_object());
            json_set_string(t, "key", taints[i]);
            json_set_string(t, "operator", "Exists");
            json_set_string(t, "effect", "NoExecute");
            json_set_int(t, "tolerationSeconds", DEFAULT_S);
            changed = true;
        }
    }
    return changed;
}
