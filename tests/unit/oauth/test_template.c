/* SPDX-License-Identifier: Apache-2.0 */
#include "oauth/template.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static char *page(const char *text, const char *data)
{
    CLEANUP(template_free) struct template *t = NULL;
    CLEANUP(json_free) struct json *v = NULL;
    struct strbuf b = STRBUF_INIT;
    struct err e = {0};
    if (template_parse(text, strlen(text), &t, &e) < 0) {
        fail_msg("%s: %s", text, e.text);
    }
    assert_int_equal(json_parse(data, strlen(data), &v, NULL), 0);
    template_write(t, v, &b);
    return strbuf_steal(&b);
}

static void values_conditions_and_lists_are_written(void **state)
{
    static const struct {
        const char *text, *data, *page;
    } cases[] = {
        {"plain", "{}", "plain"},
        {"a {{ .A }} b", "{\"A\":\"x\"}", "a x b"},
        {"{{.A.B}}{{.A.C}}", "{\"A\":{\"B\":1,\"C\":true}}", "1true"},
        {"{{ .Missing }}{{ .A.B }}", "{\"A\":\"x\"}", ""},
        {"{{ if .A }}yes{{ else }}no{{ end }}", "{\"A\":\"x\"}", "yes"},
        {"{{ if .A }}yes{{ else }}no{{ end }}", "{\"A\":\"\"}", "no"},
        {"{{ if .A }}yes{{ end }}!", "{\"A\":false}", "!"},
        {"{{ if not .A }}yes{{ end }}", "{\"A\":[]}", "yes"},
        {"{{ if eq .A \"x y\" }}1{{ else if eq .A \"z\" }}2{{ else }}3{{ end }}", "{\"A\":\"x y\"}",
         "1"},
        {"{{ if eq .A \"x y\" }}1{{ else if eq .A \"z\" }}2{{ else }}3{{ end }}", "{\"A\":\"z\"}",
         "2"},
        {"{{ if eq .A \"x y\" }}1{{ else if eq .A \"z\" }}2{{ else }}3{{ end }}", "{}", "3"},
        {"{{ if ne .A \"x\" }}1{{ end }}", "{\"A\":\"x\"}", ""},
        {"{{ range .L }}[{{ . }}]{{ end }}", "{\"L\":[\"a\",\"b\"]}", "[a][b]"},
        {"{{ range .L }}[{{ .N }}]{{ end }}", "{\"L\":[{\"N\":1},{\"N\":2}]}", "[1][2]"},
        {"{{ range $p := .L }}{{ $p.N }}{{ .T }}{{ end }}", "{\"L\":[{\"N\":1}],\"T\":\"t\"}",
         "1t"},
        {"{{ range .L }}x{{ end }}y", "{}", "y"},
        {"{{ range .L }}{{ range .M }}{{ . }}{{ end }};{{ end }}", "{\"L\":[{\"M\":[1,2]},{}]}",
         "12;;"},
        {"{{/* a comment */}}a  {{- .A -}}  b", "{\"A\":\"x\"}", "axb"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *made = page(cases[i].text, cases[i].data);
        assert_string_equal(made, cases[i].page);
    }
}

static void values_are_escaped(void **state)
{
    CLEANUP_FREE char *made =
        page("<p title=\"{{ .A }}\" lang='{{ .A }}'>{{ .A }}</p>", "{\"A\":\"<b a='x'>&\\\"`\"}");
    assert_string_equal(made, "<p title=\"&lt;b a=&#39;x&#39;&gt;&amp;&#34;&#96;\" "
                              "lang='&lt;b a=&#39;x&#39;&gt;&amp;&#34;&#96;'>"
                              "&lt;b a=&#39;x&#39;&gt;&amp;&#34;&#96;</p>");
}

static void a_value_where_other_rules_of_escaping_hold_is_refused(void **state)
{
    static const char place[] = "line 1: a value may stand in text and in quoted attributes only";
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"<script>{{ .A }}</script>", place},
        {"<style>p{{ .A }}</style>", place},
        {"<!-- {{ .A }} -->", place},
        {"<p title={{ .A }}>", place},
        {"<{{ .A }}>", place},
        {"a\n{{ if .A }}", "line 2: a block has no end"},
        {"{{ end }}", "line 1: end without a block"},
        {"{{ else }}", "line 1: else without an if"},
        {"{{ .A ", "line 1: \"{{\" without \"}}\""},
        {"{{ }}", "line 1: an action is empty"},
        {"{{ .A | js }}",
         "line 1: this action is not supported: there are values, if, else, end and range"},
        {"{{ template \"x\" }}",
         "line 1: this action is not supported: there are values, if, else, end and range"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct template *t = NULL;
        struct err e = {0};
        assert_int_equal(template_parse(cases[i].text, strlen(cases[i].text), &t, &e), -EINVAL);
        assert_string_equal(e.text, cases[i].error);
    }
}

static void text_after_a_script_is_text_again(void **state)
{
    CLEANUP_FREE char *made =
        page("<script>if (a<b) {}</script><!-- - -->{{ .A }}", "{\"A\":\"x\"}");
    assert_string_equal(made, "<script>if (a<b) {}</script><!-- - -->x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_conditions_and_lists_are_written),
        cmocka_unit_test(values_are_escaped),
        cmocka_unit_test(a_value_where_other_rules_of_escaping_hold_is_refused),
        cmocka_unit_test(text_after_a_script_is_text_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
