/* SPDX-License-Identifier: Apache-2.0 */
/* Names of images, and the credentials for them. */
#include "base/base64.h"
#include "base/mem.h"
#include "pod/image_name.h"
#include "pod/pull_secret.h"

#include "json_text.h"

#include <stdio.h>

#define DIGEST "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define A64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void names_are_completed(void **state)
{
    static const char *const table[][4] = {
        /* Image, complete name, repository, policy. */
        {"nginx", "docker.io/library/nginx:latest", "docker.io/library/nginx", "Always"},
        {"nginx:latest", "docker.io/library/nginx:latest", "docker.io/library/nginx", "Always"},
        {"nginx:1.2-a_B", "docker.io/library/nginx:1.2-a_B", "docker.io/library/nginx",
         "IfNotPresent"},
        {"nginx:my-latest", "docker.io/library/nginx:my-latest", "docker.io/library/nginx",
         "IfNotPresent"},
        {"a/b", "docker.io/a/b:latest", "docker.io/a/b", "Always"},
        {"docker.io/nginx", "docker.io/library/nginx:latest", "docker.io/library/nginx", "Always"},
        {"index.docker.io/a/b:1", "docker.io/a/b:1", "docker.io/a/b", "IfNotPresent"},
        {"localhost/a", "localhost/a:latest", "localhost/a", "Always"},
        {"localhost:5000/a:1", "localhost:5000/a:1", "localhost:5000/a", "IfNotPresent"},
        {"h.example.com/a/b/c", "h.example.com/a/b/c:latest", "h.example.com/a/b/c", "Always"},
        {"Host/a", "Host/a:latest", "Host/a", "Always"},
        {"h:80/a:1@" DIGEST, "h:80/a:1@" DIGEST, "h:80/a", "IfNotPresent"},
        {"a@" DIGEST, "docker.io/library/a@" DIGEST, "docker.io/library/a", "IfNotPresent"},
        {"a_b__c-d---e.f", "docker.io/library/a_b__c-d---e.f:latest",
         "docker.io/library/a_b__c-d---e.f", "Always"},
        {A64 ":1", "docker.io/library/" A64 ":1", "docker.io/library/" A64, "IfNotPresent"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        CLEANUP_FREE char *name = NULL, *repository = NULL;
        struct err e = {0};
        assert_int_equal(image_name_complete(table[i][0], &name, &e), 0);
        assert_string_equal(name, table[i][1]);
        assert_int_equal(image_name_repository(table[i][0], &repository, &e), 0);
        assert_string_equal(repository, table[i][2]);
        assert_string_equal(image_name_pull_policy(table[i][0]), table[i][3]);
        CLEANUP_FREE char *again = NULL;
        assert_int_equal(image_name_complete(name, &again, &e), 0);
        assert_string_equal(again, name);
    }
}

static void what_is_no_name_is_refused(void **state)
{
    static const char *const table[] = {
        "",
        "/",
        "a/",
        "/a",
        "a//b",
        "A",
        "a/B",
        "a b",
        "a\n",
        ":1",
        "a:",
        "a:b:c",
        "a:-b",
        "a:.b",
        "a@",
        "a@sha256:0",
        "a@sha256:" A64 "0",
        "a@"
        "sha256:0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF",
        "a@:" A64,
        "a..b",
        "a.-b",
        "a___b",
        "-a",
        "a-",
        "_a",
        "a_",
        "h:/a",
        "h:x/a",
        "h.:80/a",
        ".h/a",
        "h..x/a",
        "-h.x/a",
        "h-.x/a",
        "https://h.example.com/a",
        "a?b",
        "ä",
        A64,
        "a:" A64 A64 "0",
        "h:80/",
        "a@b@c",
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        char *name = NULL;
        struct err e = {0};
        if (image_name_complete(table[i], &name, &e) != -EINVAL) {
            fail_msg("%s is a name: %s", table[i], name);
        }
        assert_non_null(strstr(e.text, "invalid reference format"));
        assert_int_equal(image_name_repository(table[i], &name, NULL), -EINVAL);
        assert_null(name);
    }
}

/* 255 characters of host and path, with those that are added. */
static void long_names_are_judged_when_completed(void **state)
{
    static const struct {
        const char *host;
        int size; /* The path's size. */
        bool good;
    } table[] = {
        {"h.io/", 250, true},
        {"h.io/", 251, false},
        {"", 237, true},
        {"", 238, false},
        {"docker.io/", 237, true},
        {"docker.io/", 238, false},
        {"docker.io/a/", 243, true},
        {"docker.io/a/", 244, false},
        {"a/", 243, true},
        {"a/", 244, false},
        {"index.docker.io/a/", 243, true},
    };
    char path[256];
    memset(path, 'a', sizeof path);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        CLEANUP_FREE char *image = xasprintf("%s%.*s:1", table[i].host, table[i].size, path);
        CLEANUP_FREE char *name = NULL, *again = NULL;
        struct err e = {0};
        int r = image_name_complete(image, &name, &e);
        assert_int_equal(r, table[i].good ? 0 : -EINVAL);
        if (r < 0) {
            assert_non_null(strstr(e.text, "repository name must not be more than 255 characters"));
        } else {
            assert_int_equal(image_name_complete(name, &again, &e), 0);
            assert_string_equal(again, name);
        }
    }
}

static void keys_match_as_in_the_keyring(void **state)
{
    static const struct {
        const char *key, *repository;
        bool matches;
    } table[] = {
        {"h.example.com", "h.example.com/a", true},
        {"https://h.example.com", "h.example.com/a", true},
        {"http://h.example.com/", "h.example.com/a", true},
        {"https://h.example.com/v1/", "h.example.com/a", true},
        {"https://h.example.com/v2/team", "h.example.com/team/a", true},
        {"h.example.com/team", "h.example.com/team/a", true},
        {"h.example.com/team", "h.example.com/other/a", false},
        {"h.example.com/team/a/b", "h.example.com/team/a", false},
        {"h.example.com:5000", "h.example.com:5000/a", true},
        {"h.example.com:5000", "h.example.com/a", false},
        {"h.example.com", "h.example.com:5000/a", false},
        {"h.example.com:5000", "h.example.com:50/a", false},
        {"*.example.com", "h.example.com/a", true},
        {"*.example.com", "example.com/a", false},
        {"*.example.com", "x.h.example.com/a", false},
        {"*.*.com", "h.example.com/a", true},
        {"k*s.example.com", "kubes.example.com/a", true},
        {"k*s.example.com", "kube.example.com/a", false},
        {"?.example.com", "h.example.com/a", true},
        {"?.example.com", "hh.example.com/a", false},
        {"*.example.com:5000/team", "h.example.com:5000/team/a", true},
        {"*", "h.example.com/a", false},
        {"*", "localhost/a", true},
        {"example.com", "example.com.evil.net/a", false},
        {"example.com", "evil.net/example.com", false},
        {"", "h.example.com/a", false},
        {"/", "h/a", false},
        {"https://", "h/a", false},
        {"*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*ab", A64 A64 "/a", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        if (pull_secret_matches(table[i].key, table[i].repository) != table[i].matches) {
            fail_msg("%s for %s", table[i].key, table[i].repository);
        }
    }
}

/* A Secret whose 'key' has the document ' for ". */
static struct json *secret_of(const char *key, const char *document)
{
    CLEANUP(json_free) struct json *doc = from(document);
    CLEANUP_FREE char *text = json_to_text(doc);
    CLEANUP_STRBUF struct strbuf coded = STRBUF_INIT;
    base64_encode(text, strlen(text), &coded);
    struct json *secret = json_object();
    json_set_string(json_ensure_object(secret, "data"), key, strbuf_cstr(&coded));
    return secret;
}

/* "REGISTRY USER PASSWORD TOKEN; ..." */
static char *describe(const struct json *list)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *c;
    JSON_FOREACH (c, list) {
        strbuf_addf(&b, "%s %s %s %s; ", json_get_text(c, "registry"), json_get_text(c, "username"),
                    json_get_text(c, "password"), json_get_text(c, "identitytoken"));
    }
    return xstrdup(strbuf_cstr(&b));
}

static void credentials(const char *image, const char *key, const char *document, const char *want)
{
    CLEANUP(json_free) struct json *secret = secret_of(key, document);
    const struct json *secrets[] = {secret};
    CLEANUP(json_free) struct json *list = pull_secret_credentials(image, secrets, 1);
    CLEANUP_FREE char *got = describe(list);
    assert_string_equal(got, want);
}

#define JSON_KEY ".dockerconfigjson"

static void credentials_are_chosen_by_registry_and_path(void **state)
{
    static const char many[] = "{'auths': {'h.example.com': {'username': 'host', 'password': 'p'},"
                               "'h.example.com/team': {'username': 'team', 'password': 'p'},"
                               "'*.example.com': {'username': 'star', 'password': 'p'},"
                               "'other.example.com': {'username': 'other', 'password': 'p'}}}";
    credentials("h.example.com/team/a", JSON_KEY, many,
                "h.example.com/team team p ; h.example.com host p ; *.example.com star p ; ");
    credentials("h.example.com/a:1", JSON_KEY, many,
                "h.example.com host p ; *.example.com star p ; ");
    credentials("other.example.com/a", JSON_KEY, many,
                "other.example.com other p ; *.example.com star p ; ");
    credentials("nginx", JSON_KEY, many, "");
    credentials("no name", JSON_KEY, many, "");
    static const char hub[] = "{'https://index.docker.io/v1/': {'auth': 'dTpwOnE='}}";
    credentials("nginx", ".dockercfg", hub, "index.docker.io u p:q ; ");
    credentials("a/b:1", ".dockercfg", hub, "index.docker.io u p:q ; ");
    credentials("h.example.com/a", ".dockercfg", hub, "");
    credentials("nginx", JSON_KEY, "{'auths': {'docker.io': {'auth': 'dTpw'}}}",
                "docker.io u p ; ");
    credentials("h/a", JSON_KEY, "{'auths': {'h': {'auth': 'dTpw'}}}", ""); /* docker.io/h/a */
    credentials("h.x/a", JSON_KEY,
                "{'auths': {'h.x': {'auth': 'dTpw', 'username': 'v', 'password': 'w'}}}",
                "h.x u p ; ");
    credentials("h.x/a", JSON_KEY, "{'auths': {'h.x': {'identitytoken': 't'}}}", "h.x   t; ");
}

static void what_is_no_document_has_no_credentials(void **state)
{
    static const char *const documents[] = {
        "{}",
        "[]",
        "3",
        "{'auths': 3}",
        "{'auths': []}",
        "{'auths': {'h.x': 3}}",
        "{'auths': {'h.x': {}}}",
        "{'auths': {'h.x': {'auth': '%%%'}}}",
        "{'auths': {'h.x': {'auth': 'bm9jb2xvbg=='}}}",
        "{'h.x': {'username': 'u'}}",
        "{'auths': {'h.x': {'auth': 3, 'password': 'p'}}}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(documents); i++) {
        credentials("h.x/a", JSON_KEY, documents[i], "");
    }
    static const char *const data[] = {"%%%", "", "e30"};
    for (size_t i = 0; i < ARRAY_SIZE(data); i++) {
        CLEANUP(json_free) struct json *secret = json_object();
        json_set_string(json_ensure_object(secret, "data"), JSON_KEY, data[i]);
        const struct json *secrets[] = {secret};
        CLEANUP(json_free) struct json *list = pull_secret_credentials("h.x/a", secrets, 1);
        assert_int_equal(json_count(list), 0);
    }
}

static void secrets_are_taken_in_their_order_and_no_more_than_enough(void **state)
{
    CLEANUP(json_free)
    struct json *one = secret_of(JSON_KEY, "{'auths': {'h.x': {'auth': 'dTpw'}}}");
    CLEANUP(json_free) struct json *two = secret_of(".dockercfg", "{'h.x': {'auth': 'djpw'}}");
    const struct json *secrets[] = {one, two};
    CLEANUP(json_free) struct json *list = pull_secret_credentials("h.x/a", secrets, 2);
    CLEANUP_FREE char *got = describe(list);
    assert_string_equal(got, "h.x u p ; h.x v p ; ");
    const struct json *many[PULL_SECRET_MAX + 2];
    for (size_t i = 0; i < ARRAY_SIZE(many); i++) {
        many[i] = i ? two : one;
    }
    CLEANUP(json_free) struct json *best = pull_secret_credentials("h.x/a", many, ARRAY_SIZE(many));
    assert_int_equal(json_count(best), PULL_SECRET_MAX);
    assert_string_equal(json_get_text(json_at(best, 0), "username"), "u");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_completed),
        cmocka_unit_test(what_is_no_name_is_refused),
        cmocka_unit_test(long_names_are_judged_when_completed),
        cmocka_unit_test(keys_match_as_in_the_keyring),
        cmocka_unit_test(credentials_are_chosen_by_registry_and_path),
        cmocka_unit_test(what_is_no_document_has_no_credentials),
        cmocka_unit_test(secrets_are_taken_in_their_order_and_no_more_than_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
