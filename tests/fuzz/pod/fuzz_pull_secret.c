/* SPDX-License-Identifier: Apache-2.0 */
/* Any name of an image, and any pull Secret: a name that is completed stays as it is, its repository
 * has a host, and each credential's registry is for it.
 *
 * The input is the image's name, a line end, and the Secret's document. */
#include "base/base64.h"
#include "base/mem.h"
#include "pod/image_name.h"
#include "pod/pull_secret.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) ((x) ? (void) 0 : abort())

static void check_name(const char *image)
{
    CLEANUP_FREE char *name = NULL, *again = NULL, *repository = NULL;
    struct err e = {0};
    if (image_name_complete(image, &name, &e) < 0) {
        CHECK(!name && e.text[0]);
        return;
    }
    CHECK(image_name_complete(name, &again, &e) == 0 && streq(again, name));
    CHECK(image_name_repository(name, &repository, &e) == 0);
    CHECK(str_has_prefix(name, repository) && strchr(repository, '/'));
    CHECK(!strpbrk(name, " \n\t\"\\?#%"));
}

static void check_secret(const char *image, const char *key, const struct strbuf *coded)
{
    CLEANUP(json_free) struct json *secret = json_object();
    json_set_string(json_ensure_object(secret, "data"), key, strbuf_cstr(coded));
    const struct json *secrets[] = {secret, secret};
    CLEANUP(json_free) struct json *list = pull_secret_credentials(image, secrets, 2);
    CLEANUP_FREE char *repository = NULL;
    const struct json *c;
    bool named = image_name_repository(image, &repository, NULL) == 0;
    CHECK(json_count(list) <= PULL_SECRET_MAX && (named || json_count(list) == 0));
    JSON_FOREACH (c, list) {
        const char *registry = json_get_text(c, "registry");
        CHECK(pull_secret_matches(registry, repository) || streq(registry, "index.docker.io"));
        CHECK(*json_get_text(c, "username") || *json_get_text(c, "identitytoken"));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const keys[] = {".dockerconfigjson", ".dockercfg"};
    const char *text = (const char *) data;
    const char *end = size ? memchr(text, '\n', size) : NULL;
    if (!end) {
        return 0;
    }
    CLEANUP_FREE char *image = xstrndup(text, (size_t) (end - text));
    CLEANUP_STRBUF struct strbuf coded = STRBUF_INIT;
    base64_encode(end + 1, size - (size_t) (end + 1 - text), &coded);
    check_name(image);
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        check_secret(image, keys[i], &coded);
    }
    return 0;
}
