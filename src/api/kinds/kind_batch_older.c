/* SPDX-License-Identifier: Apache-2.0 */
/* The earlier names of Job and CronJob: the same objects, under other paths. */
#include "api/kind_util.h"
#include "api/kinds.h"

/* The fields are those of the present names. */
static void unchanged(struct json *obj)
{
}

const struct api_view kind_extensions_job_view = {
    .of = &api_kind_job, .show = unchanged, .store = unchanged};
const struct api_view kind_scheduled_job_view = {
    .of = &api_kind_cron_job, .show = unchanged, .store = unchanged};

/* A selector means that the user chooses it: manualSelector is younger than this version, which had
 * autoSelector for the other case. */
void kind_extensions_job_prepare(struct json *obj, const struct json *old)
{
    struct json *spec = json_get(obj, "spec");
    const struct json *was = json_path(old, "spec", "manualSelector", NULL);
    if (json_is(spec, JSON_OBJECT) && !json_get(spec, "manualSelector")) {
        json_set_bool(spec, "manualSelector",
                      old ? json_get_bool(was, false) : json_get(spec, "selector") != NULL);
    }
    kind_job_prepare(obj, old);
}
