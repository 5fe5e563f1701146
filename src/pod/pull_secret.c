/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/pull_secret.h"

#include "base/base64.h"
#include "base/mem.h"
#include "pod/image_name.h"

#include <stdlib.h>

#define HUB "docker.io/"
#define HUB_KEY "index.docker.io"

/* "https://index.docker.io/v1/" as "index.docker.io": host and path, without scheme and version. */
static char *registry_of(const char *key)
{
    const char *s = str_has_prefix(key, "https://")  ? key + 8
                    : str_has_prefix(key, "http://") ? key + 7
                                                     : key;
    size_t host = strcspn(s, "/");
    const char *path = s + host;
    if (str_has_prefix(path, "/v1/") || str_has_prefix(path, "/v2/")) {
        path += 3;
    }
    return xasprintf("%.*s%s", (int) host, s, streq(path, "/") ? "" : path);
}

/* Whether the pattern is for the whole label.  Each star is tried again only while it is the last
 * one, so that no pattern of a user takes long. */
static bool label_matches(const char *pattern, size_t n, const char *s, size_t size)
{
    size_t i = 0, k = 0, star = SIZE_MAX, from = 0;
    while (k < size) {
        if (i < n && pattern[i] == '*') {
            star = i++;
            from = k;
        } else if (i < n && (pattern[i] == '?' || pattern[i] == s[k])) {
            i++;
            k++;
        } else if (star != SIZE_MAX) {
            i = star + 1;
            k = ++from;
        } else {
            return false;
        }
    }
    while (i < n && pattern[i] == '*') {
        i++;
    }
    return i == n;
}

static bool host_matches(const char *pattern, size_t n, const char *host, size_t size)
{
    for (;;) {
        const char *dot = memchr(pattern, '.', n), *of = memchr(host, '.', size);
        size_t a = dot ? (size_t) (dot - pattern) : n, b = of ? (size_t) (of - host) : size;
        if (!dot != !of || !label_matches(pattern, a, host, b)) {
            return false;
        }
        if (!dot) {
            return true;
        }
        pattern = dot + 1;
        n -= a + 1;
        host = of + 1;
        size -= b + 1;
    }
}

static bool registry_matches(const char *registry, const char *repository)
{
    size_t a = strcspn(registry, "/"), b = strcspn(repository, "/");
    const char *colon = memchr(registry, ':', a), *of = memchr(repository, ':', b);
    size_t port = colon ? (size_t) (registry + a - colon) : 0;
    size_t port_of = of ? (size_t) (repository + b - of) : 0;
    if (port != port_of || (port && strncmp(colon, of, port) != 0)) {
        return false;
    }
    return host_matches(registry, a - port, repository, b - port_of) &&
           str_has_prefix(repository + b, registry + a);
}

bool pull_secret_matches(const char *key, const char *repository)
{
    CLEANUP_FREE char *registry = registry_of(key);
    return registry_matches(registry, repository);
}

/* Reads USER:PASSWORD; false: it is none. */
static bool split_auth(struct json *c, const char *auth)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    const char *colon = NULL;
    if (base64_decode(auth, strlen(auth), &text) == 0) {
        colon = strchr(strbuf_cstr(&text), ':');
    }
    if (!colon) {
        return false;
    }
    CLEANUP_FREE char *user = xstrndup(text.data, (size_t) (colon - text.data));
    json_set_string(c, "username", user);
    json_set_string(c, "password", colon + 1);
    return true;
}

static void add_credential(struct json *list, const char *registry, const struct json *entry)
{
    const char *auth = json_get_text(entry, "auth");
    struct json *c = json_object();
    json_set_string(c, "registry", registry);
    json_set_string(c, "username", json_get_text(entry, "username"));
    json_set_string(c, "password", json_get_text(entry, "password"));
    json_set_string(c, "identitytoken", json_get_text(entry, "identitytoken"));
    bool good = !*auth || split_auth(c, auth);
    if (good && (*json_get_text(c, "username") || *json_get_text(c, "identitytoken"))) {
        json_append(list, c);
    } else {
        json_free(c);
    }
}

/* The registries of a Secret with their credentials; NULL: it has none. */
static struct json *registries_of(const struct json *secret)
{
    static const struct {
        const char *key;
        bool wrapped; /* The registries are in "auths". */
    } forms[] = {{".dockerconfigjson", true}, {".dockercfg", false}};
    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        const char *data = json_path_string(secret, "data", forms[i].key, NULL);
        CLEANUP(json_free) struct json *doc = NULL;
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
        if (!data) {
            continue;
        }
        if (base64_decode(data, strlen(data), &text) < 0 ||
            json_parse(strbuf_cstr(&text), text.size, &doc, NULL) < 0) {
            return NULL;
        }
        if (!json_is(doc, JSON_OBJECT)) {
            return NULL;
        }
        return forms[i].wrapped ? json_take(doc, "auths") : TAKE(doc);
    }
    return NULL;
}

/* A credential, and its place among those that were found. */
struct found {
    struct json *credential;
    size_t at;
};

/* The key that is last in the order of bytes first: longer paths, and names before stars. */
static int by_registry(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    int r =
        strcmp(json_get_text(y->credential, "registry"), json_get_text(x->credential, "registry"));
    return r ? r : x->at < y->at ? -1 : 1;
}

static void keep_best(struct json *list)
{
    size_t n = json_count(list);
    struct found *v = xcalloc(n + 1, sizeof *v);
    for (size_t i = 0; i < n; i++) {
        v[n - 1 - i] = (struct found){json_take_at(list, n - 1 - i), n - 1 - i};
    }
    qsort(v, n, sizeof *v, by_registry);
    for (size_t i = 0; i < n; i++) {
        if (i < PULL_SECRET_MAX) {
            json_append(list, v[i].credential);
        } else {
            json_free(v[i].credential);
        }
    }
    free(v);
}

/* Those whose registry 'matches' the repository. */
static struct json *collect(const char *repository, const struct json *const *secrets, size_t n,
                            bool (*matches)(const char *registry, const char *repository))
{
    struct json *list = json_array();
    for (size_t i = 0; i < n; i++) {
        CLEANUP(json_free) struct json *doc = registries_of(secrets[i]);
        for (size_t k = 0; k < json_count(doc); k++) {
            const char *key = json_key_at(doc, k);
            CLEANUP_FREE char *registry = key ? registry_of(key) : NULL;
            if (registry && matches(registry, repository)) {
                add_credential(list, registry, json_at(doc, k));
            }
        }
    }
    keep_best(list);
    return list;
}

static bool is_hub_key(const char *registry, const char *repository)
{
    return streq(registry, HUB_KEY);
}

struct json *pull_secret_credentials(const char *image, const struct json *const *secrets, size_t n)
{
    CLEANUP_FREE char *repository = NULL;
    if (image_name_repository(image, &repository, NULL) < 0) {
        return json_array();
    }
    struct json *list = collect(repository, secrets, n, registry_matches);
    if (json_count(list) == 0 && str_has_prefix(repository, HUB)) {
        json_free(list);
        list = collect(repository, secrets, n, is_hub_key);
    }
    return list;
}
