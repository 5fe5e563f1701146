/* SPDX-License-Identifier: Apache-2.0 */
/* PodDisruptionBudget (policy/v1): the rules beyond its description, in the words of
 * kube-apiserver. */
#include "api/kind_util.h"
#include "api/kinds.h"
#include "api/kinds/template.h"
#include "api/label_selector.h"

void kind_pod_disruption_budget_prepare(struct json *obj, const struct json *old)
{
    (void) template_prepare(obj, old);
}

void kind_pod_disruption_budget_validate(const struct json *obj, const struct json *old,
                                         struct api_causes *c)
{
    const struct json *spec = json_get(obj, "spec");
    const struct json *least = json_get(spec, "minAvailable");
    const struct json *missing = json_get(spec, "maxUnavailable");
    if (least && missing) {
        api_invalid(c, "spec", spec, "minAvailable and maxUnavailable cannot be both set");
    }
    api_validate_share(c, "spec.minAvailable", least);
    api_validate_share(c, "spec.maxUnavailable", missing);
    label_selector_check(c, "spec.selector", json_get(spec, "selector"));
}
