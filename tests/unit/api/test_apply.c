/* SPDX-License-Identifier: Apache-2.0 */
/* Server-side apply: merging, ownership, conflicts, removal, and the bounds of the record. */
#include "api/patch/apply.h"

#include "api/patch/merge.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct api_kind *pod(void)
{
    return api_kind_find("", "v1", "pods");
}

static struct json *parse(const char *text)
{
    struct json *v = NULL;
    struct err e = {0};
    CLEANUP_FREE char *json = xstrdup(text);
    for (char *p = json; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    if (json_parse(json, strlen(json), &v, &e) < 0) {
        fail_msg("%s: %s", text, e.text);
    }
    return v;
}

static void expect(const struct json *have, const char *want)
{
    CLEANUP(json_free) struct json *v = parse(want);
    if (!json_equal(have, v)) {
        CLEANUP_FREE char *text = json_to_text(have);
        fail_msg("have %s\nwant %s", text, want);
    }
}

/* Applies 'config' (with single quotes) as 'manager' to '*obj' (NULL: nothing there), which becomes the result. */
static void apply_to(struct json **obj, const char *subresource, const char *manager, bool force,
                     const char *config, const char *conflict)
{
    CLEANUP(json_free) struct json *c = parse(config);
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    CLEANUP_FREE char *text = NULL;
    struct json *out = NULL;
    struct err e = {0};
    const struct api_manager m = {
        .name = manager, .applies = true, .subresource = subresource, .now_ms = 1000};
    int r = api_apply(pod(), *obj, c, &m, force, &out, &causes, &text, &e);
    if (conflict) {
        assert_int_equal(r, -EEXIST);
        assert_string_equal(text, conflict);
        assert_true(causes.n > 0);
        assert_string_equal(causes.list[0].reason, "FieldManagerConflict");
        return;
    }
    if (r < 0) {
        fail_msg("%s: %s", config, e.text);
    }
    json_free(*obj);
    *obj = out;
}

static void apply_as(struct json **obj, const char *manager, bool force, const char *config,
                     const char *conflict)
{
    apply_to(obj, "", manager, force, config, conflict);
}

static void update_as(struct json **obj, const char *manager, const char *subresource,
                      const char *text)
{
    struct json *now = parse(text);
    const struct api_manager m = {.name = manager, .subresource = subresource, .now_ms = 2000};
    api_managed_update(pod(), *obj, now, &m);
    json_free(*obj);
    *obj = now;
}

/* The set of the manager's entry; "{}" when there is none. */
static void expect_owned(const struct json *obj, const char *manager, const char *want)
{
    const struct json *entry;
    CLEANUP(json_free) struct json *none = json_object();
    const struct json *set = none;
    JSON_FOREACH (entry, json_path(obj, "metadata", "managedFields", NULL)) {
        if (streq_null(json_path_string(entry, "manager", NULL), manager)) {
            set = json_get(entry, "fieldsV1");
        }
    }
    expect(set, want);
}

static void a_field_set_names_what_is_applied(void **state)
{
    CLEANUP(json_free)
    struct json *obj = parse(
        "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'a','namespace':'b','uid':'x','labels':"
        "{'app':'web'},'finalizers':['a/b']},'spec':{'hostNetwork':true,'containers':[{'name':'c',"
        "'ports':[{'containerPort':80}],'args':['x']}],'nodeSelector':{'a':'b'},'tolerations':[]}"
        "}");
    CLEANUP(json_free) struct json *set = fieldset_of(api_kind_schema(pod()), obj);
    expect(set,
           "{'f:metadata':{'f:labels':{'f:app':{}},'f:finalizers':{'v:\\'a/b\\'':{}}},'f:spec':{"
           "'f:hostNetwork':{},'f:containers':{'k:{\\'name\\':\\'c\\'}':{'.':{},'f:name':{},"
           "'f:args':{},'f:ports':{'k:{\\'containerPort\\':80,\\'protocol\\':\\'TCP\\'}':{'.':{},"
           "'f:containerPort':{}}}}},'f:nodeSelector':{},'f:tolerations':{}}}");
}

static void two_managers_own_a_part_each(void **state)
{
    struct json *obj = NULL;
    apply_as(&obj, "a", false,
             "{'metadata':{'name':'p','labels':{'a':'1'}},'spec':{'hostname':'h'}}", NULL);
    apply_as(&obj, "b", false, "{'metadata':{'name':'p','labels':{'b':'2'}}}", NULL);
    expect(json_path(obj, "metadata", "labels", NULL), "{'a':'1','b':'2'}");
    expect_owned(obj, "a", "{'f:metadata':{'f:labels':{'f:a':{}}},'f:spec':{'f:hostname':{}}}");
    expect_owned(obj, "b", "{'f:metadata':{'f:labels':{'f:b':{}}}}");
    /* What is applied no longer goes, what others own stays. */
    apply_as(&obj, "a", false, "{'metadata':{'name':'p'},'spec':{'hostname':'h'}}", NULL);
    expect(json_path(obj, "metadata", "labels", NULL), "{'b':'2'}");
    apply_as(&obj, "b", false, "{'metadata':{'name':'p'}}", NULL);
    assert_null(json_path(obj, "metadata", "labels", NULL));
    expect_owned(obj, "b", "{}");
    assert_int_equal(json_count(json_path(obj, "metadata", "managedFields", NULL)), 1);
    json_free(obj);
}

static void another_value_of_anothers_field_is_a_conflict(void **state)
{
    struct json *obj = NULL;
    apply_as(&obj, "a", false, "{'metadata':{'name':'p'},'spec':{'hostname':'h','subdomain':'s'}}",
             NULL);
    /* The same value is no conflict: both own it then. */
    apply_as(&obj, "b", false, "{'metadata':{'name':'p'},'spec':{'hostname':'h'}}", NULL);
    apply_as(&obj, "b", false, "{'metadata':{'name':'p'},'spec':{'hostname':'x'}}",
             "Apply failed with 1 conflict: conflict with \"a\": .spec.hostname");
    apply_as(&obj, "b", false, "{'metadata':{'name':'p'},'spec':{'hostname':'x','subdomain':'y'}}",
             "Apply failed with 2 conflicts: conflicts with \"a\":\n- .spec.hostname\n- "
             ".spec.subdomain");
    assert_string_equal(json_path_string(obj, "spec", "hostname", NULL), "h");
    apply_as(&obj, "b", true, "{'metadata':{'name':'p'},'spec':{'hostname':'x'}}", NULL);
    assert_string_equal(json_path_string(obj, "spec", "hostname", NULL), "x");
    expect_owned(obj, "a", "{'f:spec':{'f:subdomain':{}}}");
    expect_owned(obj, "b", "{'f:spec':{'f:hostname':{}}}");
    json_free(obj);
}

static void an_update_takes_what_it_changes(void **state)
{
    struct json *obj = NULL;
    apply_as(&obj, "a", false, "{'metadata':{'name':'p'},'spec':{'hostname':'h','subdomain':'s'}}",
             NULL);
    update_as(&obj, "u", "", "{'metadata':{'name':'p'},'spec':{'hostname':'x','subdomain':'s'}}");
    expect_owned(obj, "a", "{'f:spec':{'f:subdomain':{}}}");
    expect_owned(obj, "u", "{'f:spec':{'f:hostname':{}}}");
    apply_as(&obj, "a", false, "{'metadata':{'name':'p'},'spec':{'hostname':'h','subdomain':'s'}}",
             "Apply failed with 1 conflict: conflict with \"u\" using v1: .spec.hostname");
    /* What an update removes is nobody's. */
    update_as(&obj, "u", "", "{'metadata':{'name':'p'},'spec':{'hostname':'x'}}");
    expect_owned(obj, "a", "{}");
    /* An update that changes nothing leaves no trace. */
    CLEANUP(json_free) struct json *before = json_clone(obj);
    update_as(&obj, "v", "", "{'metadata':{'name':'p'},'spec':{'hostname':'x'}}");
    assert_true(json_equal(before, obj));
    json_free(obj);
}

static void elements_are_merged_by_key_and_keep_their_order(void **state)
{
    struct json *obj = NULL;
    apply_as(&obj, "a", false,
             "{'spec':{'containers':[{'name':'x','image':'1'},{'name':'y','image':'1'}]}}", NULL);
    apply_as(&obj, "b", false,
             "{'spec':{'containers':[{'name':'n'},{'name':'y','tty':true},{'name':'m'}]}}", NULL);
    expect(
        json_path(obj, "spec", "containers", NULL),
        "[{'name':'x','image':'1'},{'name':'n'},{'name':'y','image':'1','tty':true},{'name':'m'}]");
    /* An element goes when its last owner lets go of it, and with another owner only the own fields do. */
    apply_as(&obj, "b", false, "{'spec':{'containers':[{'name':'m'}]}}", NULL);
    expect(json_path(obj, "spec", "containers", NULL),
           "[{'name':'x','image':'1'},{'name':'y','image':'1'},{'name':'m'}]");
    apply_as(&obj, "a", false, "{'spec':{'containers':[{'name':'x','image':'2'}]}}", NULL);
    expect(json_path(obj, "spec", "containers", NULL), "[{'name':'x','image':'2'},{'name':'m'}]");
    json_free(obj);
}

static void sets_and_atomic_values_have_their_own_rules(void **state)
{
    struct json *obj = NULL;
    apply_as(&obj, "a", false,
             "{'metadata':{'finalizers':['x/a','x/b']},'spec':{'nodeSelector':{'a':'1'}}}", NULL);
    apply_as(&obj, "b", false, "{'metadata':{'finalizers':['x/c','x/a']}}", NULL);
    expect(json_path(obj, "metadata", "finalizers", NULL), "['x/c','x/a','x/b']");
    apply_as(&obj, "a", false, "{'spec':{'nodeSelector':{'a':'1'}}}", NULL);
    expect(json_path(obj, "metadata", "finalizers", NULL), "['x/c','x/a']");
    /* A map that is atomic is one field. */
    apply_as(&obj, "b", false, "{'spec':{'nodeSelector':{'b':'2'}}}",
             "Apply failed with 1 conflict: conflict with \"a\": .spec.nodeSelector");
    apply_as(&obj, "b", true, "{'spec':{'nodeSelector':{'b':'2'}}}", NULL);
    expect(json_path(obj, "spec", "nodeSelector", NULL), "{'b':'2'}");
    json_free(obj);
}

static void ports_of_two_protocols_are_two(void **state)
{
    struct json *obj = NULL;
    apply_as(&obj, "a", false,
             "{'spec':{'containers':[{'name':'x','ports':[{'containerPort':53},{'containerPort':53,"
             "'protocol':'UDP'}]}]}}",
             NULL);
    apply_as(
        &obj, "a", false,
        "{'spec':{'containers':[{'name':'x','ports':[{'containerPort':53,'protocol':'UDP'}]}]}}",
        NULL);
    expect(json_path(obj, "spec", "containers", NULL),
           "[{'name':'x','ports':[{'containerPort':53,'protocol':'UDP'}]}]");
    json_free(obj);
}

static void what_kubectl_patched_it_may_apply(void **state)
{
    struct json *obj = NULL;
    update_as(&obj, "kubectl-client-side-apply", "",
              "{'metadata':{'name':'p','annotations':{'kubectl.kubernetes.io/"
              "last-applied-configuration':'{\\'apiVersion\\':\\'v1\\',\\'metadata\\':{"
              "\\'name\\':\\'p\\'},\\'spec\\':{\\'hostname\\':\\'h\\'}}'}},"
              "'spec':{'hostname':'h','subdomain':'s'}}");
    apply_as(&obj, "kubectl", false, "{'metadata':{'name':'p'},'spec':{'subdomain':'x'}}",
             "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using v1: "
             ".spec.subdomain");
    apply_as(&obj, "kubectl", false, "{'metadata':{'name':'p'},'spec':{'hostname':'x'}}", NULL);
    /* The annotation follows. */
    assert_string_equal(json_path_string(obj, "metadata", "annotations",
                                         "kubectl.kubernetes.io/last-applied-configuration", NULL),
                        "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"hostname\":\"x\"}}\n");
    /* It is of the object, not of a part. */
    apply_to(&obj, "status", "kubectl", false, "{'status':{'phase':'Running'}}", NULL);
    assert_string_equal(json_path_string(obj, "metadata", "annotations",
                                         "kubectl.kubernetes.io/last-applied-configuration", NULL),
                        "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"hostname\":\"x\"}}\n");
    json_free(obj);
}

/* The label and the image were applied by a patch, then changed by "ed"; the argument stayed. */
#define EDITED(annotation_version)                                                              \
    "{'metadata':{'name':'p','labels':{'l':'edited'},'annotations':{'kubectl.kubernetes.io/"    \
    "last-applied-configuration':'{\\'apiVersion\\':\\'" annotation_version                     \
    "\\',\\'metadata\\':{\\'name\\':\\'p\\',\\'labels\\':{\\'l\\':\\'x\\'}},\\'spec\\':{"       \
    "\\'containers\\':[{\\'name\\':\\'c\\',\\'image\\':\\'1\\',\\'tty\\':true},{\\'name\\':\\'" \
    "gone"                                                                                      \
    "\\',\\'image\\':\\'1\\'}]}}'}},'spec':{'containers':[{'name':'c','image':'2','tty':true}]}}"

static void kubectl_takes_over_only_what_is_still_as_it_applied_it(void **state)
{
    static const struct {
        const char *config, *conflict;
    } cases[] = {
        {"{'metadata':{'name':'p','labels':{'l':'x'}}}",
         "Apply failed with 1 conflict: conflict with \"ed\" using v1: .metadata.labels.l"},
        {"{'metadata':{'name':'p'},'spec':{'containers':[{'name':'c','image':'3'}]}}",
         "Apply failed with 1 conflict: conflict with \"ed\" using v1: "
         ".spec.containers[name=\"c\"].image"},
        {"{'metadata':{'name':'p'},'spec':{'containers':[{'name':'c','tty':false}]}}", NULL},
        {"{'metadata':{'name':'p'},'spec':{'containers':[{'name':'gone','image':'1'}]}}", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct json *obj = NULL;
        update_as(&obj, "ed", "", EDITED("v1"));
        apply_as(&obj, "kubectl", false, cases[i].config, cases[i].conflict);
        json_free(obj);
    }
    /* An annotation of another version says nothing about this version's fields. */
    struct json *obj = NULL;
    update_as(&obj, "ed", "", EDITED("v2"));
    apply_as(&obj, "kubectl", false, cases[2].config,
             "Apply failed with 1 conflict: conflict with \"ed\" using v1: "
             ".spec.containers[name=\"c\"].tty");
    json_free(obj);
}

static const struct json *fields_of(const struct json *obj, const char *manager)
{
    const struct json *entry;
    JSON_FOREACH (entry, json_path(obj, "metadata", "managedFields", NULL)) {
        if (streq_null(json_path_string(entry, "manager", NULL), manager)) {
            return json_get(entry, "fieldsV1");
        }
    }
    return NULL;
}

/* The spec is a value of Go's type, which is always there; the security context is a pointer. */
static void a_structure_that_an_update_adds_is_owned_itself(void **state)
{
    struct json *obj = NULL;
    update_as(&obj, "u", "",
              "{'metadata':{'name':'p'},'spec':{'securityContext':{'runAsUser':1}}}");
    expect(fields_of(obj, "u"), "{'f:spec':{'f:securityContext':{'.':{},'f:runAsUser':{}}}}");
    update_as(
        &obj, "v", "",
        "{'metadata':{'name':'p'},'spec':{'securityContext':{'runAsUser':1,'runAsGroup':2}}}");
    expect(fields_of(obj, "v"), "{'f:spec':{'f:securityContext':{'f:runAsGroup':{}}}}");
    json_free(obj);
}

static void an_applied_list_without_elements_is_not_owned(void **state)
{
    struct json *obj = NULL;
    apply_as(&obj, "a", false, "{'metadata':{'finalizers':[],'labels':{}},'spec':{'hostname':'h'}}",
             NULL);
    expect(fields_of(obj, "a"), "{'f:metadata':{'f:labels':{}},'f:spec':{'f:hostname':{}}}");
    json_free(obj);
}

static void a_map_that_an_apply_empties_vanishes(void **state)
{
    struct json *obj = NULL;
    apply_as(&obj, "a", false, "{'metadata':{'labels':{'x':'1'},'annotations':{}}}", NULL);
    apply_as(&obj, "b", false, "{'metadata':{'labels':{}}}", NULL);
    apply_as(&obj, "a", false, "{'metadata':{'annotations':{}}}", NULL);
    assert_null(json_path(obj, "metadata", "labels", NULL));
    expect(fields_of(obj, "b"), "{'f:metadata':{'f:labels':{}}}");
    /* One that was applied without members stays. */
    expect(json_path(obj, "metadata", "annotations", NULL), "{}");
    json_free(obj);
}

/* An empty list whose elements are owned one by one is in no set of fields. */
static void a_structure_that_an_apply_leaves_with_empty_lists_vanishes(void **state)
{
    struct json *obj = NULL;
    apply_as(&obj, "a", false, "{'spec':{'hostname':'h','containers':[]}}", NULL);
    apply_as(&obj, "a", false, "{'spec':{}}", NULL);
    assert_null(json_get(obj, "spec"));
    expect(fields_of(obj, "a"), "{'f:spec':{}}");
    /* A field of another manager keeps it. */
    apply_as(&obj, "a", false, "{'spec':{'hostname':'h','containers':[]}}", NULL);
    apply_as(&obj, "b", false, "{'spec':{'subdomain':'s'}}", NULL);
    apply_as(&obj, "a", false, "{'spec':{}}", NULL);
    expect(json_get(obj, "spec"), "{'containers':[],'subdomain':'s'}");
    json_free(obj);
    /* If there was nothing else before the apply, it stays. */
    obj = NULL;
    apply_as(&obj, "a", false, "{'spec':{}}", NULL);
    update_as(&obj, "u", "", "{'spec':{'containers':[]}}");
    apply_as(&obj, "a", false, "{'spec':{}}", NULL);
    expect(json_get(obj, "spec"), "{'containers':[]}");
    json_free(obj);
}

/* The applier still owns a structure that its last apply emptied, and so a part of the list. */
static void an_empty_list_stays_though_its_applier_had_elements(void **state)
{
    struct json *obj = NULL;
    apply_as(&obj, "a", false,
             "{'spec':{'containers':[{'name':'n','securityContext':{'runAsUser':1}}]}}", NULL);
    apply_as(&obj, "a", false, "{'spec':{'containers':[{'name':'n','securityContext':{}}]}}", NULL);
    update_as(&obj, "u", "", "{'spec':{'hostname':'h'}}");
    expect(fields_of(obj, "a"),
           "{'f:spec':{'f:containers':{'k:{\\'name\\':\\'n\\'}':{'f:securityContext':{}}}}}");
    apply_as(&obj, "a", false, "{'spec':{'containers':[]}}", NULL);
    expect(json_get(obj, "spec"), "{'hostname':'h','containers':[]}");
    json_free(obj);
}

static void structures_around_one_with_empty_lists_vanish_too(void **state)
{
    static const struct {
        const char *spec, *want;
    } cases[] = {
        {"{'template':{'spec':{'hostname':'h','containers':[]}}}", "{}"},
        {"{'template':{'metadata':{'finalizers':[]},'spec':{'hostname':'h','containers':[]}}}",
         "{}"},
        {"{'template':{'metadata':{'labels':{}},'spec':{'hostname':'h','containers':[]}}}",
         "{'spec':{'template':{'metadata':{'labels':{}}}}}"},
        {"{'replicas':1,'template':{'spec':{'hostname':'h','containers':[]}}}",
         "{'spec':{'replicas':1}}"},
        /* It has empty lists only, and no set has any of it. */
        {"{'template':{'spec':{'containers':[]}}}",
         "{'spec':{'template':{'spec':{'containers':[]}}}}"},
        /* A list that loses its elements is in a set until the object is written. */
        {"{'template':{'spec':{'hostname':'h','containers':[{'name':'a'}]}}}",
         "{'spec':{'template':{'spec':{'containers':[]}}}}"},
        /* A structure without any member is in a set. */
        {"{'template':{'spec':{'hostname':'h'}}}", "{'spec':{'template':{'spec':{}}}}"},
    };
    const struct api_schema *s = api_kind_schema(api_kind_find("apps", "v1", "deployments"));
    CLEANUP(json_free)
    struct json *last = parse("{'f:spec':{'f:template':{'f:spec':{'f:hostname':{},'f:containers':{"
                              "'k:{\\'name\\':\\'a\\'}':{}}}}}}");
    CLEANUP(json_free)
    struct json *owned = parse("{'f:spec':{'f:template':{'f:spec':{'f:containers':{}}}}}");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *obj = json_object();
        json_set(obj, "spec", parse(cases[i].spec));
        api_remove_fields(s, obj, last, owned);
        expect(obj, cases[i].want);
    }
}

static void an_element_that_others_own_only_in_part_goes_with_its_applier(void **state)
{
    struct json *obj = NULL;
    apply_as(&obj, "a", false, "{'spec':{'hostname':'h','containers':[{'name':'n','image':'1'}]}}",
             NULL);
    update_as(&obj, "u", "", "{'spec':{'hostname':'h','containers':[{'name':'n','image':'2'}]}}");
    apply_as(&obj, "a", false, "{'spec':{'hostname':'h'}}", NULL);
    expect(json_get(obj, "spec"), "{'hostname':'h'}");
    json_free(obj);
}

/* Its number comes where the kind has it. */
static void a_scale_is_owned_apart_from_the_object(void **state)
{
    struct json *obj = NULL;
    const char *more =
        "{'metadata':{'name':'p','labels':{'x':'y'}},'spec':{'terminationGracePeriodSeconds':5}}";
    apply_as(&obj, "a", false,
             "{'metadata':{'name':'p'},'spec':{'hostname':'h','terminationGracePeriodSeconds':3}}",
             NULL);
    apply_to(
        &obj, "scale", "b", false, more,
        "Apply failed with 1 conflict: conflict with \"a\": .spec.terminationGracePeriodSeconds");
    apply_to(&obj, "scale", "b", true, more, NULL);
    expect(json_get(obj, "spec"), "{'hostname':'h','terminationGracePeriodSeconds':5}");
    assert_null(json_path(obj, "metadata", "labels", NULL));
    expect_owned(obj, "a", "{'f:spec':{'f:hostname':{}}}");
    expect_owned(obj, "b", "{'f:spec':{'f:terminationGracePeriodSeconds':{}}}");
    apply_as(&obj, "a", false,
             "{'metadata':{'name':'p'},'spec':{'hostname':'h','terminationGracePeriodSeconds':3}}",
             "Apply failed with 1 conflict: conflict with \"b\" with subresource \"scale\": "
             ".spec.terminationGracePeriodSeconds");
    json_free(obj);
}

static void an_object_without_a_record_gets_one_when_it_is_first_applied_to(void **state)
{
    struct json *obj = parse("{'metadata':{'name':'p'},'spec':{'hostname':'h'}}");
    update_as(&obj, "u", "", "{'metadata':{'name':'p'},'spec':{'hostname':'i'}}");
    assert_null(json_path(obj, "metadata", "managedFields", NULL));
    apply_as(&obj, "a", false, "{'metadata':{'name':'p'},'spec':{'hostname':'x'}}",
             "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: "
             ".spec.hostname");
    json_free(obj);
}

static void who_applies_nothing_any_more_has_no_record(void **state)
{
    struct json *obj = NULL;
    apply_as(&obj, "a", false, "{'metadata':{'name':'p'},'spec':{'hostname':'h'}}", NULL);
    assert_int_equal(json_count(json_path(obj, "metadata", "managedFields", NULL)), 1);
    apply_as(&obj, "a", false, "{'metadata':{'name':'p'}}", NULL);
    assert_null(json_path(obj, "metadata", "managedFields", NULL));
    assert_null(json_path(obj, "spec", "hostname", NULL));
    json_free(obj);
}

static void a_client_can_clear_the_record(void **state)
{
    struct json *obj = NULL;
    update_as(&obj, "u", "", "{'metadata':{'name':'p'},'spec':{'hostname':'h'}}");
    assert_int_equal(json_count(json_path(obj, "metadata", "managedFields", NULL)), 1);
    update_as(&obj, "u", "",
              "{'metadata':{'name':'p','managedFields':[{}]},'spec':{'hostname':'i'}}");
    assert_null(json_path(obj, "metadata", "managedFields", NULL));
    json_free(obj);
}

static void status_and_object_are_recorded_apart(void **state)
{
    struct json *obj = NULL;
    update_as(&obj, "u", "", "{'metadata':{'name':'p'},'spec':{'hostname':'h'}}");
    update_as(&obj, "u", "status",
              "{'metadata':{'name':'p'},'spec':{'hostname':'h'},'status':{'phase':'Running'}}");
    const struct json *list = json_path(obj, "metadata", "managedFields", NULL);
    assert_int_equal(json_count(list), 2);
    assert_string_equal(json_path_string(json_at(list, 1), "subresource", NULL), "status");
    expect(json_get(json_at(list, 1), "fieldsV1"), "{'f:status':{'f:phase':{}}}");
    json_free(obj);
}

static void the_record_is_bounded(void **state)
{
    struct json *obj = NULL;
    for (int i = 0; i < 40; i++) {
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
        CLEANUP_FREE char *name = xasprintf("m%d", i);
        strbuf_adds(&text, "{'metadata':{'name':'p','labels':{");
        for (int j = 0; j <= i; j++) {
            strbuf_addf(&text, "%s'l%d':'x'", j ? "," : "", j);
        }
        strbuf_adds(&text, "}}}");
        update_as(&obj, name, "", text.data);
    }
    const struct json *list = json_path(obj, "metadata", "managedFields", NULL);
    assert_int_equal(json_count(list), API_MAX_UPDATERS);
    expect_owned(obj, "m39", "{'f:metadata':{'f:labels':{'f:l39':{}}}}");
    const struct json *entry;
    bool ancient = false;
    JSON_FOREACH (entry, list) {
        ancient |= streq_null(json_path_string(entry, "manager", NULL), "ancient-changes") &&
                   json_path(entry, "fieldsV1", "f:metadata", "f:labels", "f:l3", NULL);
    }
    assert_true(ancient);
    for (int i = 0; i < API_MAX_APPLIERS; i++) {
        CLEANUP_FREE char *name = xasprintf("a%d", i);
        apply_as(&obj, name, false, "{'metadata':{'name':'p'},'spec':{'hostname':'h'}}", NULL);
    }
    CLEANUP(json_free) struct json *config = parse("{'spec':{'hostname':'h'}}");
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    struct json *out = NULL;
    char *text = NULL;
    struct err e = {0};
    const struct api_manager m = {.name = "more", .applies = true, .subresource = ""};
    assert_int_equal(api_apply(pod(), obj, config, &m, false, &out, &causes, &text, &e), -E2BIG);
    json_free(obj);
}

static void what_cannot_be_applied_is_refused_by_name(void **state)
{
    static const char *const bad[][2] = {
        {"{'spec':{'containers':[{'name':'a'},{'name':'a'}]}}",
         "failed to create typed patch object: spec.containers[1].name: Duplicate value: "},
        {"{'spec':{'containers':[{'name':'a','env':[{'name':'A'},{'name':'A'}]}]}}",
         "spec.containers[0].env[1].name: Duplicate value: "},
        {"{'metadata':{'finalizers':['a/b','a/b']}}", "metadata.finalizers[1]: Duplicate value"},
        {"{'spec':{'hostNetwork':'yes'}}", "spec.hostNetwork: Invalid value: \"yes\""},
        {"{'metadata':{'managedFields':[{'manager':'x'}]}}", "managedFields must be nil"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CLEANUP(json_free) struct json *config = parse(bad[i][0]);
        CLEANUP(api_causes_done) struct api_causes causes = {0};
        struct json *out = NULL;
        char *text = NULL;
        struct err e = {0};
        const struct api_manager m = {.name = "a", .applies = true, .subresource = ""};
        assert_int_equal(api_apply(pod(), NULL, config, &m, true, &out, &causes, &text, &e),
                         -EINVAL);
        if (!strstr(e.text, bad[i][1])) {
            fail_msg("%s: %s", bad[i][0], e.text);
        }
    }
}

static void sets_add_and_subtract(void **state)
{
    CLEANUP(json_free) struct json *a = parse("{'f:a':{'.':{},'f:x':{}},'f:b':{}}");
    CLEANUP(json_free) struct json *b = parse("{'f:a':{'f:x':{},'f:y':{}},'f:b':{'f:z':{}}}");
    CLEANUP(json_free) struct json *both = fieldset_intersect(a, b);
    expect(both, "{'f:a':{'f:x':{}}}");
    CLEANUP(json_free) struct json *sum = json_clone(a);
    fieldset_add(sum, b);
    expect(sum, "{'f:a':{'.':{},'f:x':{},'f:y':{}},'f:b':{'.':{},'f:z':{}}}");
    fieldset_subtract(sum, b);
    expect(sum, "{'f:a':{},'f:b':{}}");
    fieldset_subtract(sum, a);
    expect(sum, "{}");
    assert_true(fieldset_is_empty(sum));
}

static void a_clients_record_is_checked(void **state)
{
    static const char *const bad[] = {
        "[{'manager':'a','operation':'Patch','fieldsType':'FieldsV1','fieldsV1':{}}]",
        "[{'manager':'a','operation':'Apply','fieldsType':'FieldsV2','fieldsV1':{}}]",
        "[{'manager':'a','operation':'Apply','fieldsType':'FieldsV1','fieldsV1':{'a':{}}}]",
        "[{'manager':'a','operation':'Apply','fieldsType':'FieldsV1','fieldsV1':{'k:x':{}}}]",
        "[{'manager':'a','operation':'Apply','fieldsType':'FieldsV1','fieldsV1':{'f:x':1}}]",
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CLEANUP(json_free) struct json *list = parse(bad[i]);
        CLEANUP(api_causes_done) struct api_causes causes = {0};
        api_managed_validate(list, &causes);
        assert_int_equal(causes.n, 1);
    }
    CLEANUP(json_free)
    struct json *good =
        parse("[{'manager':'a','operation':'Apply','fieldsType':'FieldsV1',"
              "'fieldsV1':{'f:x':{'.':{},'v:\\'a\\'':{},'i:3':{},'k:{\\'a\\':1}':{}}}}]");
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    api_managed_validate(good, &causes);
    assert_int_equal(causes.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_field_set_names_what_is_applied),
        cmocka_unit_test(two_managers_own_a_part_each),
        cmocka_unit_test(another_value_of_anothers_field_is_a_conflict),
        cmocka_unit_test(an_update_takes_what_it_changes),
        cmocka_unit_test(elements_are_merged_by_key_and_keep_their_order),
        cmocka_unit_test(sets_and_atomic_values_have_their_own_rules),
        cmocka_unit_test(ports_of_two_protocols_are_two),
        cmocka_unit_test(what_kubectl_patched_it_may_apply),
        cmocka_unit_test(kubectl_takes_over_only_what_is_still_as_it_applied_it),
        cmocka_unit_test(a_structure_that_an_update_adds_is_owned_itself),
        cmocka_unit_test(an_applied_list_without_elements_is_not_owned),
        cmocka_unit_test(a_map_that_an_apply_empties_vanishes),
        cmocka_unit_test(a_structure_that_an_apply_leaves_with_empty_lists_vanishes),
        cmocka_unit_test(an_empty_list_stays_though_its_applier_had_elements),
        cmocka_unit_test(structures_around_one_with_empty_lists_vanish_too),
        cmocka_unit_test(an_element_that_others_own_only_in_part_goes_with_its_applier),
        cmocka_unit_test(a_scale_is_owned_apart_from_the_object),
        cmocka_unit_test(an_object_without_a_record_gets_one_when_it_is_first_applied_to),
        cmocka_unit_test(who_applies_nothing_any_more_has_no_record),
        cmocka_unit_test(a_client_can_clear_the_record),
        cmocka_unit_test(status_and_object_are_recorded_apart),
        cmocka_unit_test(the_record_is_bounded),
        cmocka_unit_test(what_cannot_be_applied_is_refused_by_name),
        cmocka_unit_test(sets_add_and_subtract),
        cmocka_unit_test(a_clients_record_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
