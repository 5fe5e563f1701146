/* SPDX-License-Identifier: Apache-2.0 */
#include "api/selector.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct api_index *index_of(const char *kind, const char *text)
{
    struct json *v = NULL;
    assert_int_equal(json_parse(text, strlen(text), &v, NULL), 0);
    struct api_index *x = api_index_new(api_kind_by_alias(kind), v);
    json_free(v);
    return x;
}

static void label_selectors_select(void **state)
{
    static const struct {
        const char *selector;
        bool matches;
    } cases[] = {
        {"", true},
        {"   ", true},
        {"app=web", true},
        {"app==web", true},
        {"app = web", true},
        {"app!=web", false},
        {"app!=db", true},
        {"none!=x", true},
        {"app", true},
        {"none", false},
        {"!app", false},
        {"!none", true},
        {"! none", true},
        {"app in (web,db)", true},
        {"app in ( db , web )", true},
        {"app in (db)", false},
        {"app notin (db)", true},
        {"app notin (web)", false},
        {"none notin (web)", true},
        {"none in (web)", false},
        {"empty=", true},
        {"empty in ()", true},
        {"app=", false},
        {"n>4", true},
        {"n>5", false},
        {"n<6", true},
        {"n<5", false},
        {"app>1", false},
        {"app=web,tier=front", true},
        {"app=web,tier=back", false},
        {"example.com/x=y", true},
        {"app=web,!none,n in (5,6),tier", true},
        {"in=5", false},
        {"notin", false},
    };
    CLEANUP(api_index_free)
    struct api_index *x = index_of(
        "pods", "{\"metadata\":{\"labels\":{\"app\":\"web\",\"tier\":\"front\",\"n\":\"5\","
                "\"empty\":\"\",\"example.com/x\":\"y\"}}}");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(api_selector_free) struct api_selector *s = NULL;
        struct err e = {0};
        if (api_selector_parse_labels(cases[i].selector, &s, &e) < 0) {
            fail_msg("\"%s\": %s", cases[i].selector, e.text);
        }
        if (api_selector_matches(s, x) != cases[i].matches) {
            fail_msg("\"%s\" gives the wrong answer", cases[i].selector);
        }
    }
    assert_true(api_selector_matches(NULL, x));
}

static void malformed_label_selectors_are_refused(void **state)
{
    static const char *const cases[] = {
        ",",      "a,",      "a=b,",     "=",         "a in",      "a in x",      "a in (b",
        "a in b", "a b",     "a==b==c",  "(a)",       "a in (b))", "!a=b",        "a>x",
        "a>",     "a/b/c=d", "-a=b",     "a=-b",      "a=b c",     "a in (b c)",  "!",
        "!!a",    "a!b",     "a=b,,c=d", "a notin (", "a=(b)",     "a in (-b,c)", "\xff=b",
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct api_selector *s = NULL;
        struct err e = {0};
        if (api_selector_parse_labels(cases[i], &s, &e) != -EINVAL || !e.text[0] || s) {
            fail_msg("\"%s\" was taken", cases[i]);
        }
    }
}

static void field_selectors_select(void **state)
{
    static const struct {
        const char *selector;
        bool matches;
    } cases[] = {
        {"", true},
        {"metadata.name=web", true},
        {"metadata.name==web", true},
        {"metadata.name!=web", false},
        {"metadata.namespace=red,spec.nodeName=n1", true},
        {"metadata.namespace=red,spec.nodeName=n2", false},
        {"status.phase!=Succeeded,status.phase!=Failed", true},
        {"spec.hostNetwork=false", true},
        {"spec.schedulerName=", true},
        {"spec.serviceAccountName=a\\,b\\=c\\\\d", true},
        {"spec.nodeName!=", true},
        {",metadata.name=web,", true},
    };
    CLEANUP(api_index_free)
    struct api_index *x = index_of(
        "pods",
        "{\"metadata\":{\"name\":\"web\",\"namespace\":\"red\"},\"spec\":{\"nodeName\":"
        "\"n1\",\"serviceAccountName\":\"a,b=c\\\\d\"},\"status\":{\"phase\":\"Running\"}}");
    const struct api_kind *k = api_kind_by_alias("pods");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(api_selector_free) struct api_selector *s = NULL;
        struct err e = {0};
        if (api_selector_parse_fields(k, cases[i].selector, &s, &e) < 0) {
            fail_msg("\"%s\": %s", cases[i].selector, e.text);
        }
        if (api_selector_matches(s, x) != cases[i].matches) {
            fail_msg("\"%s\" gives the wrong answer", cases[i].selector);
        }
    }
}

static void fields_that_a_kind_does_not_have_are_named(void **state)
{
    struct api_selector *s = NULL;
    struct err e = {0};
    const struct api_kind *k = api_kind_by_alias("nodes");
    assert_int_equal(api_selector_parse_fields(k, "spec.nodeName=x", &s, &e), -ENOTSUP);
    assert_string_equal(e.text, "field label not supported: spec.nodeName");
    assert_int_equal(api_selector_parse_fields(k, "metadata.name", &s, &e), -EINVAL);
    assert_int_equal(api_selector_parse_fields(k, "metadata.name=a=b", &s, &e), -EINVAL);
    assert_int_equal(api_selector_parse_fields(k, "metadata.name=a\\x", &s, &e), -EINVAL);
    assert_int_equal(api_selector_parse_fields(k, "metadata.name=a\\", &s, &e), -EINVAL);
    assert_int_equal(api_selector_parse_fields(k, "metadata.name!a", &s, &e), -EINVAL);
    assert_null(s);
}

static void fields_of_other_types_are_their_text(void **state)
{
    CLEANUP(api_index_free)
    struct api_index *n = index_of("netnamespaces", "{\"netid\":17}");
    CLEANUP(api_index_free)
    struct api_index *e = index_of("events", "{\"source\":{\"component\":\"c\"},\"type\":[]}");
    CLEANUP(api_index_free)
    struct api_index *o = index_of("nodes", "{\"spec\":{\"unschedulable\":true}}");
    int netid = api_field_find(api_kind_by_alias("netnamespaces"), "netid");
    int source = api_field_find(api_kind_by_alias("events"), "source");
    int type = api_field_find(api_kind_by_alias("events"), "type");
    int cordoned = api_field_find(api_kind_by_alias("nodes"), "spec.unschedulable");
    assert_string_equal(api_index_field(n, (size_t) netid), "17");
    assert_string_equal(api_index_field(e, (size_t) source), "c");
    assert_string_equal(api_index_field(e, (size_t) type), "");
    assert_string_equal(api_index_field(o, (size_t) cordoned), "true");
    assert_int_equal(api_field_find(api_kind_by_alias("nodes"), "netid"), -1);
}

/* Only a selector of one value is a place in an index. */
static void value_of_a_field_is_that_of_an_equality_only(void **state)
{
    static const struct {
        const char *text, *value;
    } cases[] = {{"spec.nodeName=a", "a"},
                 {"spec.nodeName==a", "a"},
                 {"spec.nodeName!=a", NULL},
                 {"spec.nodeName!=", NULL},
                 {"spec.nodeName=", ""},
                 {"metadata.name=a", NULL},
                 {"metadata.name!=a,spec.nodeName=b", "b"},
                 {"spec.nodeName!=a,spec.nodeName=b", "b"},
                 {"", NULL}};
    const struct api_kind *k = api_kind_by_alias("pods");
    size_t field = (size_t) api_field_find(k, "spec.nodeName");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(api_selector_free) struct api_selector *s = NULL;
        assert_int_equal(api_selector_parse_fields(k, cases[i].text, &s, NULL), 0);
        const char *value = api_selector_value(s, field);
        assert_true(value ? streq_null(cases[i].value, value) : !cases[i].value);
    }
    assert_null(api_selector_value(NULL, field));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(label_selectors_select),
        cmocka_unit_test(malformed_label_selectors_are_refused),
        cmocka_unit_test(field_selectors_select),
        cmocka_unit_test(fields_that_a_kind_does_not_have_are_named),
        cmocka_unit_test(fields_of_other_types_are_their_text),
        cmocka_unit_test(value_of_a_field_is_that_of_an_equality_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
