/* SPDX-License-Identifier: Apache-2.0 */
#include "oauth/config.h"

#include "base/mem.h"
#include "oauth/redirect.h"

static bool is_one_of(const char *const *words, const char *s)
{
    for (; *words; words++) {
        if (streq(*words, s)) {
            return true;
        }
    }
    return false;
}

static int check_keys(const struct json *v, struct err *e)
{
    static const char *const keys[] = {"name",          "challenge", "login",
                                       "mappingMethod", "provider",  NULL};
    for (size_t i = 0; i < json_count(v); i++) {
        const char *key = json_key_at(v, i);
        const struct json *value = json_at(v, i);
        if (!is_one_of(keys, key)) {
            return err_set(e, -EINVAL, "%.80s: unknown key", key);
        }
        if ((streq(key, "challenge") || streq(key, "login")) && !json_is(value, JSON_BOOL)) {
            return err_set(e, -EINVAL, "%s: must be true or false", key);
        }
    }
    return 0;
}

static int check_provider(const struct json *list, size_t at, struct err *e)
{
    static const char *const methods[] = {"", "claim", "add", "generate", "lookup", NULL};
    const struct json *v = json_at(list, at);
    const char *name = json_get_text(v, "name");
    if (!json_is(v, JSON_OBJECT)) {
        return err_set(e, -EINVAL, "name: must be given");
    }
    int r = check_keys(v, e);
    if (r < 0) {
        return r;
    }
    if (!*name || strcspn(name, ":/%") != strlen(name) || streq(name, ".") || streq(name, "..") ||
        streq(name, "~")) {
        return err_set(e, -EINVAL,
                       "name: must not be empty, and has neither \":\", \"/\" nor "
                       "\"%%\"");
    }
    for (size_t i = 0; i < at; i++) {
        if (streq(json_get_text(json_at(list, i), "name"), name)) {
            return err_set(e, -EINVAL, "name: \"%.80s\" is there twice", name);
        }
    }
    if (!is_one_of(methods, json_get_text(v, "mappingMethod"))) {
        return err_set(e, -EINVAL, "mappingMethod: must be claim, lookup, generate or add");
    }
    return *json_get_text(json_get(v, "provider"), "kind")
               ? 0
               : err_set(e, -EINVAL, "provider.kind: must be given");
}

int oauth_config_read_providers(const struct json *v, struct json **ret, struct err *e)
{
    if (!json_is(v, JSON_ARRAY)) {
        return err_set(e, -EINVAL, "must be a list of providers");
    }
    for (size_t i = 0; i < json_count(v); i++) {
        struct err why = {0};
        int r = check_provider(v, i, &why);
        if (r < 0) {
            return err_set(e, r, "[%zu].%s", i, why.text);
        }
    }
    *ret = json_clone(v);
    return 0;
}

static void resolve_file(struct json *o, const char *key, const char *dir)
{
    const char *name = json_get_text(o, key);
    if (*name && *name != '/') {
        json_set(o, key, json_stringf("%s/%s", dir, name));
    }
}

void oauth_config_resolve_files(struct json *providers, const char *dir)
{
    /* The keys of all kinds that name files, and their secrets, which may be in files. */
    static const char *const keys[] = {"file", "ca", "certFile", "keyFile", "clientCA"};
    static const char *const secrets[] = {"bindPassword", "clientSecret"};
    for (size_t i = 0; i < json_count(providers); i++) {
        struct json *p = json_get(json_at(providers, i), "provider");
        for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
            resolve_file(p, keys[k], dir);
        }
        for (size_t k = 0; k < ARRAY_SIZE(secrets); k++) {
            resolve_file(json_get(p, secrets[k]), "file", dir);
            resolve_file(json_get(p, secrets[k]), "keyFile", dir);
        }
    }
}

const char *oauth_config_check_url(const char *s)
{
    __attribute__((cleanup(oauth_uri_donep))) struct oauth_uri u = {0};
    bool ok = oauth_uri_parse(s, &u, NULL) == 0 && streq(u.scheme, "https") && !u.query &&
              streq(u.path, "/");
    return ok ? NULL : "must be https://HOST[:PORT] without a path";
}
