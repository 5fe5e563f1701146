/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of webhooks: what is accepted is bounded, and a patch leaves the object's identity.  The
 * first byte chooses whether the webhook may patch. */
#include "apiserver/admission/webhook_review.h"
#include "base/mem.h"

#define UID "705ab4f5-6393-11e8-b7cc-42010a800002"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void patch(const struct json *patch)
{
    static const char text[] = "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":"
                               "\"p\",\"namespace\":\"n\",\"uid\":\"1\"},"
                               "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]},"
                               "\"status\":{\"phase\":\"Pending\"}}";
    const struct api_kind *pods = api_kind_find("", "v1", "pods");
    CLEANUP(json_free) struct json *obj = NULL;
    CLEANUP(json_free) struct json *made = NULL;
    struct err e = {0};
    if (json_parse(text, strlen(text), &obj, NULL) < 0) {
        abort();
    }
    if (webhook_patch(pods, "", obj, patch, &made, &e) < 0) {
        if (!*e.text || made) {
            abort();
        }
        return;
    }
    if (!streq(json_path_string(made, "metadata", "name", NULL), "p") ||
        !streq(json_path_string(made, "metadata", "namespace", NULL), "n") ||
        !json_equal(json_get(made, "status"), json_get(obj, "status"))) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(webhook_answer_done) struct webhook_answer a = {0};
    struct err e = {0};
    if (!size) {
        return 0;
    }
    bool mutates = *data == 'm';
    if (webhook_answer_read((const char *) data + 1, size - 1, UID, mutates, &a, &e) < 0) {
        if (!*e.text) {
            abort();
        }
        return 0;
    }
    if ((a.patch && !mutates) || (!a.allowed && (a.code < 400 || a.code > 599 || !a.message)) ||
        json_count(a.warnings) > WEBHOOK_MAX_WARNINGS ||
        json_count(a.annotations) > WEBHOOK_MAX_ANNOTATIONS) {
        abort();
    }
    if (a.patch) {
        patch(a.patch);
    }
    return 0;
}
