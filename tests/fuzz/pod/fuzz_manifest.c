/* SPDX-License-Identifier: Apache-2.0 */
/* Any manifest of static pods: what is accepted is a pod of the node that refers to no object of the
 * API, and reading it again gives the same one.
 *
 * The first byte says whether it may be a list; the rest is the text. */
#include "base/mem.h"
#include "pod/manifest.h"
#include "pod/pod.h"
#include "pod/reference.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) ((x) ? (void) 0 : abort())

static void check_pod(const struct json *pod)
{
    const struct json *spec = json_get(pod, "spec");
    CHECK(str_has_suffix(pod_name(pod), "-n1") && *pod_namespace(pod));
    CHECK(!strchr(pod_name(pod), '/') && !strchr(pod_namespace(pod), '/'));
    CHECK(strlen(pod_uid(pod)) == 32 && !pod_is_deleted(pod));
    CHECK(streq(json_get_text(spec, "nodeName"), "n1"));
    CHECK(!pod_refers_to(spec, POD_SECRET, NULL) && !pod_refers_to(spec, POD_CONFIG_MAP, NULL));
    CHECK(!*json_get_text(spec, "serviceAccountName") && pod_count_containers(pod) > 0);
    CHECK(!manifest_mirror_of(pod));
    CLEANUP(json_free) struct json *mirror = manifest_mirror(pod, "n1", "u");
    CHECK(streq(manifest_mirror_of(mirror), pod_uid(pod)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    struct manifest_source s = {
        .node = "n1", .kind = "file", .path = "/m", .list = data[0] & 1, .now_ms = 0};
    CLEANUP_FREE char *text = xmemdup(data + 1, size - 1);
    CLEANUP(json_free) struct json *pods = NULL, *again = NULL;
    struct err e = {0};
    int r = manifest_read(&s, text, size - 1, &pods, &e);
    CHECK(r == 0 ? json_is(pods, JSON_ARRAY) : !pods && e.text[0]);
    const struct json *pod;
    JSON_FOREACH (pod, pods) {
        check_pod(pod);
    }
    CHECK(manifest_read(&s, text, size - 1, &again, &e) == r);
    CHECK(r < 0 || json_equal(pods, again));
    return 0;
}
