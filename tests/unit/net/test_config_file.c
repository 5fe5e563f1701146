/* SPDX-License-Identifier: Apache-2.0 */
/* Reading configuration files. */
#include "base/log.h"
#include "base/mem.h"
#include "net/loop/config_file.h"
#include "net/loop/process.h"

#include <setjmp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/config-file-XXXXXX";

static int set_up(void **state)
{
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    CLEANUP_FREE char *path = xasprintf("%s/c.yaml", folder);
    (void) unlink(path);
    return rmdir(folder);
}

static int read_name(void *config, const struct json *doc, const char *dir, struct err *e)
{
    const char *name = json_get_text(doc, "name");
    char **ret = config;
    if (!*name) {
        return err_set(e, -EINVAL, "name: absent");
    }
    *ret = xasprintf("%s in %s", name, dir);
    return 0;
}

static void a_file_is_read_or_its_error_names_it(void **state)
{
    CLEANUP_FREE char *path = xasprintf("%s/c.yaml", folder);
    CLEANUP_FREE char *dir = realpath(folder, NULL);
    CLEANUP_FREE char *big = xcalloc((1 << 20) + 1, 1);
    memset(big, '#', (1 << 20) + 1);
    const struct {
        const char *text;
        size_t size;
        const char *error; /* NULL: it is read. */
    } cases[] = {
        {"name: a", 7, NULL},   {"{\"name\": \"a\"}", 13, NULL}, {"", 0, "name: absent"},
        {"name: [", 7, "line"}, {big, (1 << 20) + 1, ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *got = NULL;
        CLEANUP_FREE char *want = xasprintf("a in %s", dir);
        struct err e = {0};
        assert_int_equal(file_write_unsynced(path, cases[i].text, cases[i].size, 0600, NULL), 0);
        int r = config_file_load(path, read_name, &got, &e);
        if (cases[i].error) {
            assert_true(r < 0);
            assert_null(got);
            assert_non_null(strstr(e.text, path));
            assert_non_null(strstr(e.text, cases[i].error));
        } else {
            assert_int_equal(r, 0);
            assert_string_equal(got, want);
        }
    }
    struct err e = {0};
    CLEANUP_FREE char *none = xasprintf("%s/none", folder);
    assert_int_equal(config_file_load(none, read_name, NULL, &e), -ENOENT);
    assert_non_null(strstr(e.text, none));
}

static void a_file_with_a_secret_is_not_read_when_others_can_read_it(void **state)
{
    static const struct {
        const char *text, *key; /* NULL: there is no secret in the file itself. */
    } cases[] = {
        {"name: a\nx: [{provider: {bindPassword: s}}]\n", "x[0].provider.bindPassword"},
        {"name: a\noauth: {clientSecret: {value: s}}\n", "oauth.clientSecret"},
        {"name: a\nkeys: [{secret: s}]\n", "keys[0].secret"},
        {"name: a\noauth: {clientSecret: {file: /etc/x}}\n", NULL},
        {"name: a\nbindPassword: ''\n", NULL},
    };
    CLEANUP_FREE char *path = xasprintf("%s/c.yaml", folder);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        for (unsigned mode = 0600; mode <= 0644; mode += 4) {
            CLEANUP_FREE char *got = NULL;
            struct err e = {0};
            bool refused = cases[i].key && mode & 4;
            assert_int_equal(
                file_write_unsynced(path, cases[i].text, strlen(cases[i].text), mode, NULL), 0);
            assert_int_equal(config_file_load(path, read_name, &got, &e), refused ? -EPERM : 0);
            assert_true(!refused || strstr(e.text, cases[i].key));
        }
    }
}

static void levels_of_the_log_are_set(void **state)
{
    struct err e = {0};
    assert_int_equal(config_file_set_log(NULL, NULL, &e), 0);
    assert_int_equal(config_file_set_log("info", NULL, &e), 0);
    assert_int_equal(config_file_set_log("info,x=loud", NULL, &e), -EINVAL);
    assert_non_null(strstr(e.text, "loud"));
    assert_int_equal(config_file_set_log(NULL, "xml", &e), -EINVAL);
    assert_string_equal(e.text, "logFormat: \"xml\" is not text or json");
    assert_int_equal(config_file_set_log(NULL, "text", &e), 0);
}

static void the_hosts_name_is_in_lower_case(void **state)
{
    char name[CONFIG_HOST_NAME_SIZE];
    config_file_host_name(name);
    assert_true(*name);
    for (const char *p = name; *p; p++) {
        assert_false(*p >= 'A' && *p <= 'Z');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read_or_its_error_names_it),
        cmocka_unit_test(a_file_with_a_secret_is_not_read_when_others_can_read_it),
        cmocka_unit_test(levels_of_the_log_are_set),
        cmocka_unit_test(the_hosts_name_is_in_lower_case),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
