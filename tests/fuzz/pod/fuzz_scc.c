/* SPDX-License-Identifier: Apache-2.0 */
/* Security context constraints over any constraints, annotations of a namespace, and pod: a JSON
 * object with the members "scc", "annotations" and "pod".  Beyond not crashing: filling in twice
 * changes nothing, judging changes nothing, and what is accepted has nothing of the host that the
 * constraints forbid. */
#include "pod/scc.h"
#include "pod/scc_block.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_true(const struct json *v)
{
    return json_is(v, JSON_BOOL) && json_get_bool(v, false);
}

static void check_host(const struct json *scc, const struct json *spec)
{
    static const char *const fields[][2] = {{"hostPID", "allowHostPID"},
                                            {"hostIPC", "allowHostIPC"},
                                            {"hostNetwork", "allowHostNetwork"}};
    const struct json *volume, *ct;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (is_true(json_get(spec, fields[i][0])) && !is_true(json_get(scc, fields[i][1]))) {
            abort();
        }
    }
    JSON_FOREACH (volume, json_get(spec, "volumes")) {
        if (json_is(json_get(volume, "hostPath"), JSON_OBJECT) &&
            !is_true(json_get(scc, "allowHostDirVolumePlugin"))) {
            abort();
        }
    }
    JSON_FOREACH (ct, json_get(spec, "containers")) {
        if (is_true(json_path(ct, "securityContext", "privileged", NULL)) &&
            !is_true(json_get(scc, "allowPrivilegedContainer"))) {
            abort();
        }
    }
}

static void judge(const struct json *obj, const struct json *annotations, struct json *pod)
{
    CLEANUP(scc_free) struct scc *s = scc_new(obj);
    CLEANUP(scc_provider_done) struct scc_provider p = {0};
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    struct err e = {0};
    if (scc_points(s) > 4000000 || scc_compare(s, s) != 0 ||
        scc_provider_init(&p, s, "red", annotations, &e) < 0) {
        return;
    }
    (void) scc_fill(&p, pod, SCC_EPHEMERAL_CONTAINERS);
    (void) scc_fill(&p, pod, SCC_WHOLE_POD);
    if (scc_fill(&p, pod, SCC_WHOLE_POD)) {
        abort();
    }
    CLEANUP(json_free) struct json *before = json_clone(pod);
    scc_check(&p, pod, "", &causes);
    if (!json_equal(before, pod)) {
        abort();
    }
    if (!causes.n) {
        check_host(obj, json_get(pod, "spec"));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(json_free) struct json *v = NULL;
    struct scc_blocks blocks;
    uint32_t block;
    scc_blocks_defaults(&blocks);
    if (json_parse((const char *) data, size, &v, NULL) < 0) {
        return 0;
    }
    const struct json *annotations = json_get(v, "annotations");
    const char *text = json_path_string(annotations, SCC_UIDS_ANNOTATION, NULL);
    if (text) {
        (void) scc_blocks_parse_uids(text, &blocks, NULL);
        (void) scc_blocks_parse_levels(text, &blocks, NULL);
        if (scc_block_find(&blocks, text, &block) == 0 && block >= blocks.n) {
            abort();
        }
    }
    if (json_is(json_get(v, "scc"), JSON_OBJECT) && json_is(json_get(v, "pod"), JSON_OBJECT)) {
        judge(json_get(v, "scc"), annotations, json_get(v, "pod"));
    }
    return 0;
}
