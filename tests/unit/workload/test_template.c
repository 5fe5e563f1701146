/* SPDX-License-Identifier: Apache-2.0 */
/* Templates: the language of parameters and of generated values, the limits of what a template can
 * become, and the readiness of an instance's objects. */
#include "base/random.h"
#include "json_text.h"
#include "rng.h"
#include "workload/template_instance.h"
#include "workload/template_process.h"

#include <stdlib.h>

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

static void pseudo_random(void *p, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        ((unsigned char *) p)[i] = (unsigned char) rng();
    }
}

static int start(void **state)
{
    rng_start(1);
    return 0;
}

/* ---- generated values ---- */

static void each_class_has_all_of_its_characters_and_no_others(void **state)
{
    static const struct {
        const char *class, *alphabet;
    } cases[] = {
        {"a", "a"},
        {"abz", "abz"},
        {"a-z", LOWER},
        {"a-zA-Z", LOWER UPPER},
        {"a-Z", LOWER UPPER},
        {"0-9", DIGITS},
        {"0-1", "01"},
        {"9-9", "9"},
        {"A-F0-9", "ABCDEF" DIGITS},
        {"a-zA-Z0-9", LOWER UPPER DIGITS},
        {"x-9", "xyz" UPPER DIGITS},
        {"aaaaaab", "ab"},
        {"a-ca-d", "abcd"},
        {"-a-", "a"},
        {"\\w", LOWER UPPER DIGITS "_"},
        {"\\d", DIGITS},
        {"\\a", LOWER UPPER DIGITS},
        {"\\A", "~!@#$%^&*()-_+={}[]\\|<,>.?/\"';:`"},
        {"\\dx", DIGITS "x"},
        {"\\w\\A", LOWER UPPER DIGITS "~!@#$%^&*()-_+={}[]\\|<,>.?/\"';:`"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *pattern = xasprintf("<[%s]{200}>", cases[i].class);
        size_t seen[256] = {0}, n = strlen(cases[i].alphabet), total = 0;
        for (int round = 0; round < 60; round++) {
            CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
            assert_int_equal(template_generate(pattern, pseudo_random, &out, NULL), 0);
            assert_int_equal(out.size, 202);
            assert_int_equal(out.data[0], '<');
            assert_int_equal(out.data[201], '>');
            for (size_t j = 1; j < 201; j++) {
                assert_non_null(strchr(cases[i].alphabet, out.data[j]));
                seen[(unsigned char) out.data[j]]++;
                total++;
            }
        }
        /* A class of 95 expects 126 of each in 12,000: half and twice that are far outside of what
         * chance does, and a bias of modulo would be within one and a half times. */
        for (size_t j = 0; j < n; j++) {
            size_t got = seen[(unsigned char) cases[i].alphabet[j]];
            assert_true(got * n > total / 2 && got * n < total * 2);
        }
    }
}

/* Bytes that count up: without a bias each character comes equally often. */
static unsigned char next_byte;
static void counting(void *p, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        ((unsigned char *) p)[i] = next_byte++;
    }
}

static void no_character_is_more_likely_than_another(void **state)
{
    size_t seen[256] = {0};
    next_byte = 0;
    /* 62 * 4 of each 256 bytes are used, so 4 * 62 characters are one round. */
    for (int i = 0; i < 8; i++) {
        CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
        assert_int_equal(template_generate("[\\a]{248}", counting, &out, NULL), 0);
        for (size_t j = 0; j < out.size; j++) {
            seen[(unsigned char) out.data[j]]++;
        }
        next_byte = 0;
    }
    for (const char *p = LOWER UPPER DIGITS; *p; p++) {
        assert_int_equal(seen[(unsigned char) *p], 32);
    }
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *) a, *(char *const *) b);
}

static void ten_thousand_values_are_all_different(void **state)
{
    enum { N = 10000 };
    static char *values[N];
    bool seen[256] = {0};
    for (size_t i = 0; i < N; i++) {
        struct strbuf out = STRBUF_INIT;
        assert_int_equal(template_generate("[a-zA-Z0-9]{12}", random_bytes, &out, NULL), 0);
        values[i] = strbuf_steal(&out);
        for (const char *p = values[i]; *p; p++) {
            seen[(unsigned char) *p] = true;
        }
    }
    qsort(values, N, sizeof values[0], compare);
    for (size_t i = 0; i < N; i++) {
        assert_true(i == 0 || !streq(values[i - 1], values[i]));
    }
    for (const char *p = LOWER UPPER DIGITS; *p; p++) {
        assert_true(seen[(unsigned char) *p]);
    }
    for (size_t i = 0; i < N; i++) {
        free(values[i]);
    }
}

static void text_around_classes_is_copied(void **state)
{
    static const struct {
        const char *pattern, *value;
    } cases[] = {
        {"", ""},
        {"plain", "plain"},
        {"[a]", "[a]"},
        {"[a]{", "[a]{"},
        {"[a]{}", "[a]{}"},
        {"[a]{x}", "[a]{x}"},
        {"[a]{2", "[a]{2"},
        {"[]{2}", "[]{2}"},
        {"[a b]{2}", "[a b]{2}"},
        {"[[a]{2}]", "[aa]"},
        {"test[1]{1}x", "test1x"},
        {"[a]{3}-[b]{2}", "aaa-bb"},
        {"[a]{01}", "a"},
        {"{2}", "{2}"},
        {"\\d", "\\d"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
        struct err e = {0};
        assert_int_equal(template_generate(cases[i].pattern, pseudo_random, &out, &e), 0);
        assert_string_equal(strbuf_cstr(&out), cases[i].value);
    }
}

static void wrong_patterns_say_what_is_wrong(void **state)
{
    static const struct {
        const char *pattern, *text;
    } cases[] = {
        {"[z-a]{2}", "invalid range specified: z-a"},
        {"[A-z]{2}", "invalid range specified: A-z"},
        {"[0-a]{2}", "invalid range specified: 0-a"},
        {"[a]{0}", "range must be within [1-255] characters (0)"},
        {"[a]{256}", "range must be within [1-255] characters (256)"},
        {"[a]{99999999999999999999}",
         "range must be within [1-255] characters (99999999999999999999)"},
        {"[-]{1}", "the class [-] is empty"},
        {"[--]{1}", "the class [--] is empty"},
        {"[\\x]{1}", "unknown class \\x: there are \\w, \\d, \\a and \\A"},
        {"[a\\]{1}", "unknown class \\]: there are \\w, \\d, \\a and \\A"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
        struct err e = {0};
        assert_int_equal(template_generate(cases[i].pattern, pseudo_random, &out, &e), -EINVAL);
        assert_string_equal(e.text, cases[i].text);
        assert_int_equal(out.size, 0);
    }
}

static void a_value_has_a_limit(void **state)
{
    CLEANUP_STRBUF struct strbuf pattern = STRBUF_INIT;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    struct err e = {0};
    for (int i = 0; i < 257; i++) {
        strbuf_adds(&pattern, "[a]{255}");
    }
    strbuf_addc(&pattern, 'b'); /* 65,536 bytes. */
    assert_int_equal(template_generate(pattern.data, pseudo_random, &out, &e), 0);
    assert_int_equal(out.size, TEMPLATE_MAX_GENERATED);
    strbuf_addc(&pattern, 'c');
    assert_int_equal(template_generate(pattern.data, pseudo_random, &out, &e), -E2BIG);
    assert_string_equal(e.text, "the generated value is longer than 65536 bytes");
    assert_int_equal(out.size, TEMPLATE_MAX_GENERATED);
}

/* ---- processing ---- */

#define PARAMETERS                                                                      \
    "'parameters': [{'name': 'A', 'value': 'va'}, {'name': 'B', 'value': '${A}'}, "     \
    "{'name': 'N', 'value': '42'}, {'name': 'J', 'value': '{\\'k\\': [true, null]}'}, " \
    "{'name': 'E'}, {'name': 'S', 'value': 'yes: [no'}, {'name': 'under_Score9', 'value': 'u'}]"

/* Processes a template with PARAMETERS and 'more'; fails the test on causes. */
static struct json *processed(const char *more)
{
    CLEANUP_FREE char *text = xasprintf("{" PARAMETERS ", %s}", more);
    CLEANUP(api_causes_done) struct api_causes c = {0};
    struct json *ret = NULL;
    CLEANUP(json_free) struct json *t = from(text);
    int r = template_process(t, pseudo_random, &ret, &c);
    if (r < 0) {
        fail_msg("%s: %s: %s", more, c.list[0].field, c.list[0].message);
    }
    return ret;
}

static void references_are_replaced_in_texts(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"plain", "'plain'"},
        {"${A}", "'va'"},
        {"x${A}y${A}${N}", "'xvayva42'"},
        {"${B}", "'${A}'"},       /* Values are not searched again. */
        {"${B}${A}", "'${A}va'"}, /* The original replaced the first ${A} here. */
        {"${E}", "''"},
        {"${UNKNOWN} ${A}", "'${UNKNOWN} va'"},
        {"${}", "'${}'"},
        {"${A", "'${A'"},
        {"$A}", "'$A}'"},
        {"$${A}", "'$va'"},
        {"${a}", "'${a}'"},
        {"${A-B}", "'${A-B}'"},
        {"${under_Score9}", "'u'"},
        {"$", "'$'"},
        {"${{A}}", "'va'"},
        {"${{N}}", "42"},
        {"${{E}}", "''"},
        {"${{J}}", "{'k': [true, null]}"},
        {"${{S}}", "'yes: [no'"},
        {"${{UNKNOWN}}", "'${{UNKNOWN}}'"},
        {"x${{N}}", "'x${{N}}'"},
        {"${{N}}x", "'${{N}}x'"},
        {"${{N}}${{N}}", "'${{N}}${{N}}'"},
        {"${{N}", "'${{N}'"},
        {"${{}}", "'${{}}'"},
        {"${{N}}}", "'${{N}}}'"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *objects = xasprintf("'objects': [{'x': '%s'}]", cases[i].text);
        CLEANUP(json_free) struct json *t = processed(objects);
        CLEANUP_FREE char *want = xasprintf("{'x': %s}", cases[i].want);
        assert_json(json_at(json_get(t, "objects"), 0), want);
    }
}

static void references_are_replaced_in_names_and_lists(void **state)
{
    CLEANUP(json_free)
    struct json *t = processed(
        "'message': '${A}!', 'labels': {'l-${A}': '${N}'}, 'objects': "
        "[{'${A}': [1, '${A}', {'${{N}}': true}], 'metadata': {'labels': {'l-va': 'own'}}}]");
    assert_string_equal(json_get_text(t, "message"), "va!");
    assert_json(json_get(t, "labels"), "{'l-va': '42'}");
    assert_json(json_get(t, "objects"),
                "[{'va': [1, 'va', {'42': true}], 'metadata': {'labels': {'l-va': '42'}}}]");
}

static void namespaces_stay_only_with_a_reference(void **state)
{
    CLEANUP(json_free)
    struct json *t =
        processed("'objects': [{'metadata': {'namespace': 'fixed'}}, "
                  "{'metadata': {'namespace': '${A}'}}, {'metadata': {'namespace': '${GONE}'}}, "
                  "{'metadata': {'namespace': '${A'}}, {'metadata': {'namespace': 5}}, {'x': 1}]");
    assert_json(json_get(t, "objects"),
                "[{'metadata': {}}, {'metadata': {'namespace': 'va'}}, "
                "{'metadata': {'namespace': '${GONE}'}}, {'metadata': {}}, {'metadata': {}}, "
                "{'x': 1}]");
}

static void openshift_kinds_of_v1_get_their_group(void **state)
{
    static const struct {
        const char *kind, *version, *want;
    } cases[] = {
        {"DeploymentConfig", "v1", "apps.openshift.io/v1"},
        {"BuildConfig", "v1", "build.openshift.io/v1"},
        {"ImageStream", "v1", "image.openshift.io/v1"},
        {"Route", "v1", "route.openshift.io/v1"},
        {"Template", "v1", "template.openshift.io/v1"},
        {"RoleBinding", "v1", "authorization.openshift.io/v1"},
        {"Pod", "v1", "v1"},
        {"Route", "example.com/v1", "example.com/v1"},
        {"Deployment", "v1", "v1"},
        {"", "v1", "v1"},
        {"Image ", "v1", "v1"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *objects = xasprintf("'objects': [{'apiVersion': '%s', 'kind': '%s'}]",
                                               cases[i].version, cases[i].kind);
        CLEANUP(json_free) struct json *t = processed(objects);
        assert_string_equal(json_get_text(json_at(json_get(t, "objects"), 0), "apiVersion"),
                            cases[i].want);
    }
}

static void a_given_value_is_before_the_own_one_and_the_generator(void **state)
{
    CLEANUP(json_free)
    struct json *t =
        from("{'parameters': [{'name': 'V', 'value': 'own', 'generate': 'expression', 'from': "
             "'[a]{3}'}, {'name': 'G', 'generate': 'expression', 'from': '[a]{3}'}, "
             "{'name': 'H', 'generate': 'expression', 'from': '[a]{3}'}, {'name': 'R', "
             "'required': true}], 'objects': [{'v': '${V}-${G}-${H}-${R}'}]}");
    CLEANUP(api_causes_done) struct api_causes c = {0};
    CLEANUP(json_free) struct json *out = NULL;
    assert_true(template_set_parameter(t, "H", "given"));
    assert_false(template_set_parameter(t, "X", "given"));
    assert_int_equal(template_process(t, pseudo_random, &out, &c), -EINVAL);
    assert_null(out);
    assert_string_equal(c.list[0].field, "template.parameters[3]");
    assert_string_equal(c.list[0].message, "Required value: template.parameters[3]: parameter R is "
                                           "required and must be specified");
    api_causes_done(&c);
    c = (struct api_causes){0};
    assert_true(template_set_parameter(t, "R", "r"));
    assert_int_equal(template_process(t, pseudo_random, &out, &c), 0);
    assert_json(json_get(out, "objects"), "[{'v': 'own-aaa-given-r'}]");
}

/* The first cause of a template. */
static void assert_refused(const char *text, const char *field, const char *message)
{
    CLEANUP(json_free) struct json *t = from(text);
    CLEANUP(json_free) struct json *out = NULL;
    CLEANUP(api_causes_done) struct api_causes c = {0};
    assert_int_equal(template_process(t, pseudo_random, &out, &c), -EINVAL);
    assert_null(out);
    assert_string_equal(c.list[0].field, field);
    assert_string_equal(c.list[0].message, message);
}

static void what_cannot_be_processed_is_named(void **state)
{
    assert_refused("{'objects': [{}, 5]}", "template.objects[1]",
                   "Invalid value: 5: unable to handle object: it is not an object");
    assert_refused("{'labels': {'a': 'b'}, 'objects': [{'metadata': 5}]}", "template.objects[0]",
                   "Invalid value: label could not be applied: metadata and its labels must be "
                   "objects");
    assert_refused("{'labels': {'a': 'b'}, 'objects': [{'metadata': {'labels': 'x'}}]}",
                   "template.objects[0]",
                   "Invalid value: label could not be applied: metadata and "
                   "its labels must be objects");
    assert_refused("{'parameters': [{'name': 'A', 'value': 'b'}], 'objects': [{'${A}': 1, 'b': "
                   "2}]}",
                   "template.objects[0]",
                   "Invalid value: a member is there twice after its name got its value");
}

/* A template with 'count' objects of 'refs' references to a value of 'size' bytes. */
static int process_large(size_t size, size_t refs, size_t count)
{
    CLEANUP(json_free) struct json *t = from("{'parameters': [{'name': 'A'}], 'objects': []}");
    CLEANUP_STRBUF struct strbuf value = STRBUF_INIT;
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    CLEANUP(json_free) struct json *out = NULL;
    CLEANUP(api_causes_done) struct api_causes c = {0};
    for (size_t i = 0; i < size; i++) {
        strbuf_addc(&value, 'x');
    }
    for (size_t i = 0; i < refs; i++) {
        strbuf_adds(&text, "${A}");
    }
    assert_true(template_set_parameter(t, "A", strbuf_cstr(&value)));
    for (size_t i = 0; i < count; i++) {
        struct json *o = json_append(json_get(t, "objects"), json_object());
        json_set_string(o, "v", strbuf_cstr(&text));
    }
    int r = template_process(t, pseudo_random, &out, &c);
    if (r < 0) {
        assert_string_equal(c.list[0].message, "Invalid value: its values are too large");
    }
    return r;
}

static void what_a_template_becomes_has_a_limit(void **state)
{
    assert_int_equal(process_large(1023, 1024, 4), 0);
    assert_int_equal(process_large(1023, 1025, 4), -EINVAL);
    assert_int_equal(process_large(0, 1000, 1000), 0);
    assert_int_equal(process_large(0, 5000, 1000), -EINVAL);
    assert_int_equal(process_large(1u << 22, 1, 1), -EINVAL);
    /* A deep value at a deep place. */
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    for (int depth = 20; depth <= 30; depth += 10) {
        strbuf_reset(&text);
        strbuf_adds(&text, "{'parameters': [{'name': 'A', 'value': '");
        for (int i = 0; i < 30; i++) {
            strbuf_addc(&text, '[');
        }
        for (int i = 0; i < 30; i++) {
            strbuf_addc(&text, ']');
        }
        strbuf_adds(&text, "'}], 'objects': [{'x': ");
        for (int i = 0; i < depth; i++) {
            strbuf_addc(&text, '[');
        }
        strbuf_adds(&text, "'${{A}}'");
        for (int i = 0; i < depth; i++) {
            strbuf_addc(&text, ']');
        }
        strbuf_adds(&text, "}]}");
        if (depth == 20) {
            CLEANUP(json_free) struct json *t = from(text.data);
            CLEANUP(json_free) struct json *out = NULL;
            CLEANUP(api_causes_done) struct api_causes c = {0};
            assert_int_equal(template_process(t, pseudo_random, &out, &c), 0);
        } else {
            assert_refused(text.data, "template.objects[0]",
                           "Invalid value: it is nested too deeply");
        }
    }
}

/* ---- instances ---- */

static void a_dry_run_waits_for_what_it_needs(void **state)
{
    CLEANUP(json_free)
    struct json *list =
        from("[{'kind': 'ServiceAccount', 'metadata': {'name': 'sa'}},"
             " {'kind': 'Role', 'metadata': {'name': 'r'}},"
             " {'kind': 'Namespace', 'metadata': {'name': 'ns'}},"
             " {'kind': 'Pod', 'spec': {'serviceAccountName': 'sa'}},"
             " {'kind': 'Pod', 'spec': {'serviceAccountName': 'other'}},"
             " {'kind': 'RoleBinding', 'roleRef': {'kind': 'Role', 'name': 'r'}},"
             " {'kind': 'RoleBinding', 'roleRef': {'kind': 'ClusterRole', 'name': 'r'}},"
             " {'kind': 'ConfigMap', 'metadata': {'namespace': 'ns'}},"
             " {'kind': 'ConfigMap', 'metadata': {'name': 'sa'}},"
             " {'kind': 'Secret', 'metadata': {'annotations': {"
             "'kubernetes.io/service-account.name': 'sa'}}},"
             " {'kind': 'Pod', 'spec': {'serviceAccountName': 'later'}},"
             " {'kind': 'ServiceAccount', 'metadata': {'name': 'later'}}]");
    static const bool want[] = {false, false, false, true, false, true,
                                false, true,  false, true, false, false};
    for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
        assert_int_equal(template_object_depends(list, i), want[i]);
    }
}

#define AWAITED                                     \
    "'metadata': {'generation': 2, 'annotations': " \
    "{'template.alpha.openshift.io/wait-for-ready': 'True'}}"

static void readiness_follows_the_status(void **state)
{
    static const struct {
        const char *version, *kind, *rest;
        enum template_state want;
    } cases[] = {
#define DEPLOYMENT(replicas, status, want) \
    {"apps/v1", "Deployment", "'spec': {'replicas': " #replicas "}, 'status': {" status "}", want}
#define COUNTS(u, a, r)                                                            \
    "'observedGeneration': 2, 'updatedReplicas': " #u ", 'availableReplicas': " #a \
    ", 'replicas': " #r
        DEPLOYMENT(2, COUNTS(2, 2, 2), TEMPLATE_READY),
        DEPLOYMENT(2, COUNTS(1, 2, 2), TEMPLATE_WAITING),
        DEPLOYMENT(2, COUNTS(2, 1, 2), TEMPLATE_WAITING),
        DEPLOYMENT(2, COUNTS(2, 2, 3), TEMPLATE_WAITING),
        DEPLOYMENT(0, "'observedGeneration': 2", TEMPLATE_READY),
        DEPLOYMENT(2, "'updatedReplicas': 2, 'availableReplicas': 2, 'replicas': 2",
                   TEMPLATE_WAITING),
        DEPLOYMENT(2,
                   COUNTS(2, 1, 2) ", 'conditions': [{'type': 'Progressing', 'status': 'False'}]",
                   TEMPLATE_FAILED),
        {"apps/v1", "StatefulSet", "'status': {'observedGeneration': 2, 'readyReplicas': 1}",
         TEMPLATE_READY},
        {"apps/v1", "StatefulSet", "'status': {'observedGeneration': 1, 'readyReplicas': 1}",
         TEMPLATE_WAITING},
        {"apps/v1", "StatefulSet", "'status': {'observedGeneration': 2}", TEMPLATE_WAITING},
        {"batch/v1", "Job", "'status': {}", TEMPLATE_WAITING},
        {"batch/v1", "Job", "'status': {'conditions': [{'type': 'Complete', 'status': 'True'}]}",
         TEMPLATE_READY},
        {"batch/v1", "Job", "'status': {'conditions': [{'type': 'Failed', 'status': 'True'}]}",
         TEMPLATE_FAILED},
#define CONFIG(status, want) \
    {"apps.openshift.io/v1", "DeploymentConfig", "'status': {" status "}", want}
        CONFIG("'observedGeneration': 2", TEMPLATE_WAITING),
        CONFIG("'observedGeneration': 2, 'latestVersion': 1, 'conditions': [{'type': 'Available', "
               "'status': 'True'}, {'type': 'Progressing', 'status': 'True', 'reason': "
               "'NewReplicationControllerAvailable'}]",
               TEMPLATE_READY),
        CONFIG("'observedGeneration': 2, 'latestVersion': 1, 'conditions': [{'type': 'Available', "
               "'status': 'True'}, {'type': 'Progressing', 'status': 'True', 'reason': "
               "'ReplicationControllerUpdated'}]",
               TEMPLATE_WAITING),
        CONFIG("'observedGeneration': 2, 'latestVersion': 1, 'conditions': [{'type': "
               "'Progressing', 'status': 'False'}]",
               TEMPLATE_FAILED),
        {"build.openshift.io/v1", "Build", "'status': {'phase': 'Running'}", TEMPLATE_WAITING},
        {"build.openshift.io/v1", "Build", "'status': {'phase': 'Complete'}", TEMPLATE_READY},
        {"build.openshift.io/v1", "Build", "'status': {'phase': 'Error'}", TEMPLATE_FAILED},
        {"route.openshift.io/v1", "Route", "'status': {}", TEMPLATE_WAITING},
        {"route.openshift.io/v1", "Route",
         "'status': {'ingress': [{'conditions': [{'type': 'Admitted', 'status': 'True'}]}]}",
         TEMPLATE_READY},
        {"route.openshift.io/v1", "Route",
         "'status': {'ingress': [{'conditions': [{'type': 'Admitted', 'status': 'True'}]}, {}]}",
         TEMPLATE_WAITING},
        {"example.com/v1", "Deployment", "'status': {}", TEMPLATE_READY},
        {"v1", "ConfigMap", "'data': {}", TEMPLATE_READY},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *text = xasprintf("{'apiVersion': '%s', 'kind': '%s', " AWAITED ", %s}",
                                            cases[i].version, cases[i].kind, cases[i].rest);
        CLEANUP(json_free) struct json *o = from(text);
        assert_int_equal(template_object_state(o), cases[i].want);
        (void) json_remove(json_get(o, "metadata"), "annotations");
        assert_int_equal(template_object_state(o), TEMPLATE_READY);
        assert_false(template_object_is_awaited(o));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(each_class_has_all_of_its_characters_and_no_others, start),
        cmocka_unit_test(no_character_is_more_likely_than_another),
        cmocka_unit_test(ten_thousand_values_are_all_different),
        cmocka_unit_test_setup(text_around_classes_is_copied, start),
        cmocka_unit_test_setup(wrong_patterns_say_what_is_wrong, start),
        cmocka_unit_test_setup(a_value_has_a_limit, start),
        cmocka_unit_test(references_are_replaced_in_texts),
        cmocka_unit_test(references_are_replaced_in_names_and_lists),
        cmocka_unit_test(namespaces_stay_only_with_a_reference),
        cmocka_unit_test(openshift_kinds_of_v1_get_their_group),
        cmocka_unit_test_setup(a_given_value_is_before_the_own_one_and_the_generator, start),
        cmocka_unit_test(what_cannot_be_processed_is_named),
        cmocka_unit_test(what_a_template_becomes_has_a_limit),
        cmocka_unit_test(a_dry_run_waits_for_what_it_needs),
        cmocka_unit_test(readiness_follows_the_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
