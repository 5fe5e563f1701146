/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/verbs/process.h"

#include "apiserver/request/respond.h"
#include "base/random.h"
#include "workload/template_process.h"

bool process_is_asked(const struct request *q)
{
    return q->kind == api_kind_find(TEMPLATE_GROUP, "v1", "processedtemplates");
}

int process_body(struct request *q, struct json **body, struct outcome *outcome)
{
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    struct json *processed = NULL;
    if (template_process(*body, random_bytes, &processed, &causes) < 0) {
        const char *name = json_path_string(*body, "metadata", "name", NULL);
        outcome_invalid(outcome, q->kind, name ? name : "", &causes);
        return -EINVAL;
    }
    json_free(*body);
    *body = processed;
    return 0;
}
