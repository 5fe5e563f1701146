/* SPDX-License-Identifier: Apache-2.0 */
/* The rules by which a client's object becomes the server's: what of it counts, and what only the
 * server decides. */
#include "apiserver/cache/object.h"

#include "base/timeutil.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define NOW INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */

static struct json *parse(const char *text)
{
    CLEANUP_FREE char *quoted = xstrdup(text);
    struct json *v = NULL;
    struct err e = {0};
    for (char *p = quoted; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    if (json_parse(quoted, strlen(quoted), &v, &e) < 0) {
        fail_msg("%s: %s", text, e.text);
    }
    return v;
}

static const struct api_kind *kind(const char *plural)
{
    const struct api_kind *k = api_kind_find("", "v1", plural);
    return k ? k : api_kind_find("network.openshift.io", "v1", plural);
}

static void expect(const char *what, const struct json *got, const char *want_text)
{
    CLEANUP(json_free) struct json *want = parse(want_text);
    if (!json_equal(got, want)) {
        CLEANUP_FREE char *text = json_to_text(got);
        fail_msg("%s: %s, not %s", what, text, want_text);
    }
}

static void a_body_must_be_of_the_requests_kind_namespace_and_name(void **state)
{
#define VERSION "the API version in the data does not match the expected API version"
#define SPACE \
    "the namespace of the provided object does not match the namespace sent on the request"
#define NAME "does not match the name on the URL"
    static const struct {
        const char *plural, *namespace, *name, *body,
            *want; /* The metadata, or part of the error. */
    } cases[] = {
        {"pods", "red", NULL, "{}", "{'namespace':'red'}"},
        {"pods", "red", NULL, "{'kind':'Pod','apiVersion':'v1'}", "{'namespace':'red'}"},
        {"pods", "red", NULL, "{'kind':'','apiVersion':''}", "{'namespace':'red'}"},
        {"pods", "red", NULL, "{'kind':'Node'}", VERSION},
        {"pods", "red", NULL, "{'apiVersion':'v2'}", VERSION},
        {"pods", "red", NULL, "{'kind':'Pod','apiVersion':'apps/v1'}", VERSION},
        {"pods", "red", NULL, "[]", "the body is not an object"},
        {"pods", "red", NULL, "{'metadata':null}", "{'namespace':'red'}"},
        {"pods", "red", NULL, "{'metadata':[]}", "metadata is not an object"},
        {"pods", "red", NULL, "{'metadata':'x'}", "metadata is not an object"},
        {"pods", "red", NULL, "{'metadata':{'namespace':'red'}}", "{'namespace':'red'}"},
        {"pods", "red", NULL, "{'metadata':{'namespace':''}}", "{'namespace':'red'}"},
        {"pods", "red", NULL, "{'metadata':{'namespace':'blue'}}", SPACE},
        {"pods", NULL, NULL, "{'metadata':{'namespace':'blue'}}", SPACE},
        {"pods", "red", "a", "{'metadata':{'name':'a'}}", "{'name':'a','namespace':'red'}"},
        {"pods", "red", "a", "{}", "{'name':'a','namespace':'red'}"},
        {"pods", "red", "a", "{'metadata':{'name':''}}", "{'name':'a','namespace':'red'}"},
        {"pods", "red", "a", "{'metadata':{'name':'b'}}", NAME},
        {"pods", "red", NULL, "{'metadata':{'name':'b'}}", "{'name':'b','namespace':'red'}"},
        {"nodes", NULL, "n", "{'metadata':{'namespace':''}}", "{'name':'n'}"},
        /* For the validation to refuse. */
        {"nodes", NULL, "n", "{'metadata':{'namespace':'red'}}", "{'name':'n','namespace':'red'}"},
        {"nodes", NULL, "n", "{'metadata':{'namespace':7}}", "{'name':'n','namespace':7}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *o = parse(cases[i].body);
        struct object_target t = {
            .kind = kind(cases[i].plural), .namespace = cases[i].namespace, .name = cases[i].name};
        struct err e = {0};
        int r = object_check_target(o, &t, &e);
        if (*cases[i].want == '{') {
            assert_int_equal(r, 0);
            expect(cases[i].body, json_get(o, "metadata"), cases[i].want);
        } else if (r != -EINVAL || !strstr(e.text, cases[i].want)) {
            fail_msg("%s: %d: %s", cases[i].body, r, e.text);
        }
    }
}

/* Whether 'text' is a UUID of version 4. */
static bool is_uuid(const char *text)
{
    static const char hex[] = "0123456789abcdef";
    for (size_t i = 0; i < 36; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? text[i] != '-' : !text[i] || !strchr(hex, text[i])) {
            return false;
        }
    }
    return !text[36] && text[14] == '4' && strchr("89ab", text[19]);
}

static void a_new_object_has_what_the_server_decides(void **state)
{
    CLEANUP(json_free)
    struct json *o = parse(
        "{'metadata':{'name':'a','namespace':'red','uid':'mine','creationTimestamp':"
        "'2020-01-01T00:00:00Z','generation':7,'selfLink':'/x','resourceVersion':'5',"
        "'deletionTimestamp':'2020-01-01T00:00:00Z','deletionGracePeriodSeconds':5,'labels':null,"
        "'annotations':null,'finalizers':null,'ownerReferences':null,'generateName':null,"
        "'managedFields':[]},'data':{'k':'v'}}");
    object_prepare_create(kind("configmaps"), o, NOW);
    struct json *meta = json_get(o, "metadata");
    CLEANUP_FREE char *uid = xstrdup(json_path_string(meta, "uid", NULL));
    assert_true(is_uuid(uid));
    json_remove(meta, "uid");
    expect("metadata", meta,
           "{'name':'a','namespace':'red','creationTimestamp':'2026-01-01T00:00:00Z',"
           "'managedFields':[]}");
    /* No two have the same. */
    object_prepare_create(kind("configmaps"), o, NOW);
    assert_string_not_equal(json_path_string(meta, "uid", NULL), uid);
    /* Only some kinds count changes. */
    json_set_int(meta, "generation", 7);
    object_prepare_create(api_kind_find("discovery.k8s.io", "v1", "endpointslices"), o, NOW);
    assert_int_equal(json_get_int_or(json_get(meta, "generation"), 0), 1);
}

/* Defaults come from the schema and from the kind's code, which also sets what no client may
 * set. */
static void a_new_object_gets_the_defaults_of_its_kind(void **state)
{
    static const struct {
        const char *plural, *object, *member, *want;
    } cases[] = {
        {"pods", "{'containers':[{'name':'c'}]}", "spec",
         "{'containers':[{'name':'c','terminationMessagePath':'/dev/termination-log',"
         "'terminationMessagePolicy':'File','resources':{}}],"
         "'dnsPolicy':'ClusterFirst','restartPolicy':'Always',"
         "'schedulerName':'default-scheduler','terminationGracePeriodSeconds':30,"
         "'securityContext':{},'enableServiceLinks':true}"},
        {"pods", "{}", "status", "{'phase':'Pending','qosClass':'BestEffort'}"},
        {"services", "{'ports':[{'port':80}]}", "spec",
         "{'ports':[{'port':80,'targetPort':80,'protocol':'TCP'}],'sessionAffinity':'None',"
         "'type':'ClusterIP','ipFamilyPolicy':'SingleStack','ipFamilies':['IPv4'],"
         "'internalTrafficPolicy':'Cluster'}"},
        {"namespaces", "{}", "spec", "{'finalizers':['kubernetes']}"},
        {"namespaces", "{}", "status", "{'phase':'Active'}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *text = xasprintf("{'metadata':{'name':'a'},'spec':%s}", cases[i].object);
        CLEANUP(json_free) struct json *o = parse(text);
        CLEANUP(json_free) struct json *updated = json_clone(o);
        object_prepare_create(kind(cases[i].plural), o, NOW);
        expect(cases[i].plural, json_get(o, cases[i].member), cases[i].want);
        object_prepare_update(kind(cases[i].plural), o, updated);
        expect(cases[i].plural, json_get(updated, cases[i].member), cases[i].want);
    }
}

/* The byte of the UUID at the number 'i'. */
static unsigned byte_of(const char *uuid, size_t i)
{
    static const unsigned char at[16] = {0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34};
    unsigned v = 0;
    sscanf(uuid + at[i], "%2x", &v);
    return v;
}

#define SAMPLES 400

/* Whether bit 'bit' of byte 'i' has been 0 and 1. */
static bool is_random(char uids[SAMPLES][40], size_t i, unsigned bit)
{
    bool seen[2] = {false, false};
    for (size_t n = 0; n < SAMPLES; n++) {
        seen[byte_of(uids[n], i) >> bit & 1] = true;
    }
    return seen[0] && seen[1];
}

static void all_other_bits_of_a_uid_are_random(void **state)
{
    char uids[SAMPLES][40];
    for (size_t n = 0; n < SAMPLES; n++) {
        CLEANUP(json_free) struct json *o = parse("{'metadata':{'name':'a'}}");
        object_prepare_create(kind("configmaps"), o, NOW);
        snprintf(uids[n], sizeof uids[n], "%s", json_path_string(o, "metadata", "uid", NULL));
        assert_true(is_uuid(uids[n]));
    }
    for (size_t i = 0; i < 16; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            bool fixed = (i == 6 && bit >= 4) || (i == 8 && bit >= 6);
            assert_int_equal(is_random(uids, i, bit), !fixed);
        }
        for (size_t j = 0; j < i; j++) {
            size_t same = 0;
            for (size_t n = 0; n < SAMPLES; n++) {
                same += (byte_of(uids[n], i) & 0x0f) == (byte_of(uids[n], j) & 0x0f);
            }
            assert_true(same < SAMPLES / 2);
        }
    }
}

static void all_letters_of_a_made_name_are_used(void **state)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    bool seen[5][sizeof letters] = {{false}};
    for (size_t n = 0; n < 2000; n++) {
        CLEANUP(json_free) struct json *o = parse("{'metadata':{'generateName':'a-'}}");
        object_generate_name(o);
        const char *name = json_path_string(o, "metadata", "name", NULL);
        for (size_t i = 0; i < 5; i++) {
            seen[i][strchr(letters, name[2 + i]) - letters] = true;
        }
    }
    for (size_t i = 0; i < 5; i++) {
        for (size_t l = 0; l < sizeof letters - 1; l++) {
            assert_true(seen[i][l]);
        }
    }
}

static void a_name_is_made_only_when_there_is_none(void **state)
{
    static const struct {
        const char *metadata, *prefix;
        size_t size; /* Of the name; 0: there is none. */
    } cases[] = {
        {"{'name':'a','generateName':'b-'}", "a", 1},
        {"{'name':'','generateName':'b-'}", "b-", 7},
        {"{'generateName':'b-'}", "b-", 7},
        {"{'generateName':''}", "", 0},
        {"{'generateName':'0123456789012345678901234567890123456789012345678901234567890123456789'"
         "}",
         "0123456789012345678901234567890123456789012345678901234567", 63},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *text = xasprintf("{'metadata':%s}", cases[i].metadata);
        CLEANUP(json_free) struct json *o = parse(text);
        object_prepare_create(kind("configmaps"), o, NOW);
        const char *name = json_path_string(o, "metadata", "name", NULL);
        name = name ? name : "";
        if (strlen(name) != cases[i].size || !str_has_prefix(name, cases[i].prefix)) {
            fail_msg("%s: %s", cases[i].metadata, name);
        }
        for (const char *p = name + strlen(cases[i].prefix); *p; p++) {
            assert_non_null(strchr("bcdfghjklmnpqrstvwxz2456789", *p));
        }
    }
}

#define OLD                                                                                     \
    "{'metadata':{'name':'a','uid':'u','creationTimestamp':'2020-01-01T00:00:00Z','generation'" \
    ":3,'labels':{'x':'1'}%s},'spec':{'nodeName':'n'},'status':{'phase':'Running'}}"

static void an_update_changes_only_what_a_client_may_change(void **state)
{
    static const struct {
        const char *what, *old_more, *new_metadata, *want_more;
        const char *spec, *status;
        int generation;
    } cases[] = {
        {"nothing", "", "'uid':'u','generation':3", "", "{'nodeName':'n'}", "'Running'", 3},
        {"server's fields", "",
         "'uid':'v','creationTimestamp':'2021-01-01T00:00:00Z','generation':9,'deletionTimestamp':"
         "'2021-01-01T00:00:00Z','deletionGracePeriodSeconds':0,'selfLink':'/x','resourceVersion':"
         "'7'",
         "", "{'nodeName':'n'}", "'Running'", 3},
        {"deletion goes on", ",'deletionTimestamp':'T','deletionGracePeriodSeconds':30",
         "'deletionTimestamp':null", ",'deletionTimestamp':'T','deletionGracePeriodSeconds':30",
         "{'nodeName':'n'}", "'Running'", 3},
        {"status", "", "'uid':'u'", "", "{'nodeName':'n'}", "'Failed'", 3},
        {"spec", "", "'uid':'u'", "", "{'nodeName':'m'}", "'Running'", 4},
        {"spec added", "", "'uid':'u'", "", "{'nodeName':'n','hostname':'h'}", "'Running'", 4},
        {"spec removed", "", "'uid':'u'", "", "{}", "'Running'", 4},
        {"nulls", ",'annotations':{'a':'b'}",
         "'annotations':null,'finalizers':null,'ownerReferences':null", "", "{'nodeName':'n'}",
         "'Running'", 3},
        {"empty maps and lists", ",'annotations':{'a':'b'}",
         "'annotations':{},'finalizers':[],'ownerReferences':[],'generateName':''", "",
         "{'nodeName':'n'}", "'Running'", 3},
    };
    /* A kind with a status of its own, and nothing that the server fills in. */
    static const struct api_kind testee = {.group = "",
                                           .version = "v1",
                                           .kind = "Testee",
                                           .plural = "testees",
                                           .generation = true,
                                           .status_subresource = true};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *old_text = xasprintf(OLD, cases[i].old_more);
        CLEANUP_FREE char *text = xasprintf(
            "{'metadata':{'name':'a','labels':{'x':'1'},%s},'spec':%s,'status':{'phase':%s}}",
            cases[i].new_metadata, cases[i].spec, cases[i].status);
        CLEANUP_FREE char *want_text = xasprintf(
            "{'metadata':{'name':'a','uid':'u','creationTimestamp':'2020-01-01T00:00:00Z',"
            "'generation':%d,'labels':{'x':'1'}%s},'spec':%s,'status':{'phase':'Running'}}",
            cases[i].generation, cases[i].want_more, cases[i].spec);
        CLEANUP(json_free) struct json *old = parse(old_text);
        CLEANUP(json_free) struct json *o = parse(text);
        object_prepare_update(&testee, old, o);
        expect(cases[i].what, o, want_text);
    }
    /* A member that comes or goes is a change of the intent, the status and the metadata are
     * none. */
    static const struct {
        const char *before, *after;
        int generation;
    } members[] = {
        {"{'metadata':{'generation':1}}", "{'metadata':{},'data':{}}", 2},
        {"{'metadata':{'generation':1},'data':{}}", "{'metadata':{}}", 2},
        {"{'metadata':{'generation':1},'data':{}}", "{'metadata':{},'data':{'a':'b'}}", 2},
        {"{'metadata':{'generation':1},'data':{}}", "{'metadata':{'labels':{}},'data':{}}", 1},
        {"{'metadata':{'generation':1},'status':{}}", "{'metadata':{}}", 1},
        {"{'metadata':{},'data':{}}", "{'metadata':{}}",
         1}, /* From before generations were counted. */
    };
    for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
        CLEANUP(json_free) struct json *old = parse(members[i].before);
        CLEANUP(json_free) struct json *o = parse(members[i].after);
        object_prepare_update(&testee, old, o);
        assert_int_equal(json_get_int_or(json_path(o, "metadata", "generation", NULL), 0),
                         members[i].generation);
    }
    /* Without a status of its own it is a part of the object. */
    static const struct api_kind plain = {
        .group = "", .version = "v1", .kind = "Plain", .plural = "plains", .generation = true};
    CLEANUP_FREE char *old_text = xasprintf(OLD, "");
    CLEANUP(json_free) struct json *old = parse(old_text);
    CLEANUP(json_free) struct json *o = json_clone(old);
    json_set_string(json_get(o, "status"), "phase", "Failed");
    object_prepare_update(&plain, old, o);
    assert_string_equal(json_path_string(o, "status", "phase", NULL), "Failed");
    assert_int_equal(json_get_int_or(json_path(o, "metadata", "generation", NULL), 0), 4);
    /* What an older version counted goes with the next change. */
    object_prepare_update(kind("configmaps"), old, o);
    assert_null(json_path(o, "metadata", "generation", NULL));
}

static void a_subresource_changes_its_part_only(void **state)
{
    static const char old_text[] =
        "{'metadata':{'name':'a','uid':'u','labels':{'x':'1'},'resourceVersion':'3'},'spec':{"
        "'finalizers':['kubernetes'],'other':1},'status':{'phase':'Active'}}";
    static const struct {
        const char *subresource, *body, *want;
    } cases[] = {
        {"status",
         "{'metadata':{'name':'a','uid':'v','labels':{'x':'2'}},'spec':{'finalizers':[]},"
         "'status':{'phase':'Gone'}}",
         "{'metadata':{'name':'a','uid':'u','labels':{'x':'1'}},'spec':{'finalizers':['kubernetes'"
         "],'other':1},'status':{'phase':'Gone'}}"},
        {"status", "{'metadata':{'managedFields':[{'manager':'m'}]}}",
         "{'metadata':{'name':'a','uid':'u','labels':{'x':'1'},'managedFields':[{'manager':'m'}]},"
         "'spec':{'finalizers':['kubernetes'],'other':1}}"},
        {"finalize",
         "{'metadata':{'labels':{}},'spec':{'finalizers':[],'other':2},'status':{'phase':'Gone'}}",
         "{'metadata':{'name':'a','uid':'u','labels':{'x':'1'}},'spec':{'finalizers':[],'other':1},"
         "'status':{'phase':'Active'}}"},
        {"finalize", "{'metadata':{}}",
         "{'metadata':{'name':'a','uid':'u','labels':{'x':'1'}},'spec':{'other':1},"
         "'status':{'phase':'Active'}}"},
    };
    static const struct api_kind testee = {.group = "",
                                           .version = "v1",
                                           .kind = "Testee",
                                           .plural = "testees",
                                           .generation = true,
                                           .status_subresource = true};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *old = parse(old_text);
        CLEANUP(json_free) struct json *o = parse(cases[i].body);
        CLEANUP(json_free)
        struct json *got = object_prepare_part(&testee, cases[i].subresource, old, o);
        expect(cases[i].body, got, cases[i].want);
        expect("old", old, old_text);
    }
}

static void finalizers_and_time_hold_a_deletion_back(void **state)
{
    static const struct {
        const char *plural, *body;
        bool finalizers, finished;
        int64_t grace_s;
    } cases[] = {
        {"configmaps", "{'metadata':{}}", false, false, 0},
        {"configmaps", "{'metadata':{'deletionTimestamp':'T'}}", false, true, 0},
        {"configmaps", "{'metadata':{'deletionTimestamp':'T','finalizers':[]}}", false, true, 0},
        {"configmaps", "{'metadata':{'deletionTimestamp':'T','finalizers':['x']}}", true, false, 0},
        {"configmaps", "{'metadata':{'finalizers':['x']}}", true, false, 0},
        {"configmaps", "{'metadata':{'deletionTimestamp':'T','deletionGracePeriodSeconds':1}}",
         false, false, 1},
        {"configmaps", "{'metadata':{'deletionTimestamp':'T','deletionGracePeriodSeconds':0}}",
         false, true, 0},
        {"configmaps", "{'metadata':{'deletionTimestamp':'T','deletionGracePeriodSeconds':-1}}",
         false, true, 0},
        {"configmaps", "{'metadata':{'deletionTimestamp':'T'},'spec':{'finalizers':['x']}}", false,
         true, 0},
        {"namespaces", "{'metadata':{'deletionTimestamp':'T'},'spec':{'finalizers':['x']}}", true,
         false, 0},
        {"namespaces", "{'metadata':{'deletionTimestamp':'T'},'spec':{'finalizers':[]}}", false,
         true, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *o = parse(cases[i].body);
        const struct api_kind *k = kind(cases[i].plural);
        if (object_has_finalizers(k, o) != cases[i].finalizers ||
            object_is_finished(k, o) != cases[i].finished ||
            object_grace_s(o) != cases[i].grace_s) {
            fail_msg("%s", cases[i].body);
        }
    }
}

static void a_deletion_counts_from_when_it_was_first_asked_for(void **state)
{
    static const struct {
        const char *plural, *body;
        int64_t grace_s;
        const char *want;
    } cases[] = {
        {"configmaps", "{'metadata':{'generation':4}}", 0,
         "{'metadata':{'generation':5,'deletionTimestamp':'2026-01-01T00:00:00Z',"
         "'deletionGracePeriodSeconds':0}}"},
        {"configmaps", "{'metadata':{}}", 30,
         "{'metadata':{'deletionTimestamp':'2026-01-01T00:00:30Z',"
         "'deletionGracePeriodSeconds':30}}"},
        {"configmaps", "{'metadata':{}}", 7200,
         "{'metadata':{'deletionTimestamp':'2026-01-01T02:00:00Z',"
         "'deletionGracePeriodSeconds':7200}}"},
        /* Asked for ten seconds ago, with a minute; now with 20 seconds. */
        {"configmaps",
         "{'metadata':{'generation':4,'deletionTimestamp':'2026-01-01T00:00:50Z',"
         "'deletionGracePeriodSeconds':60}}",
         20,
         "{'metadata':{'generation':4,'deletionTimestamp':'2026-01-01T00:00:10Z',"
         "'deletionGracePeriodSeconds':20}}"},
        {"configmaps", "{'metadata':{'generation':4,'deletionTimestamp':'then'}}", 0,
         "{'metadata':{'generation':5,'deletionTimestamp':'2026-01-01T00:00:00Z',"
         "'deletionGracePeriodSeconds':0}}"},
        {"namespaces", "{'metadata':{'generation':1},'status':{'phase':'Active'}}", 0,
         "{'metadata':{'generation':2,'deletionTimestamp':'2026-01-01T00:00:00Z',"
         "'deletionGracePeriodSeconds':0},'status':{'phase':'Terminating'}}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *o = parse(cases[i].body);
        object_mark_deleted(kind(cases[i].plural), o, cases[i].grace_s, NOW);
        expect(cases[i].body, o, cases[i].want);
    }
}

static void what_an_earlier_release_has_stored_is_completed(void **state)
{
    static const struct {
        const char *group, *plural, *stored, *part, *want;
    } cases[] = {
        {"coordination.k8s.io", "leases",
         "{'metadata':{'name':'l'},'spec':{'renewTime':'2026-01-01T00:00:00.524Z'}}", "spec",
         "{'renewTime':'2026-01-01T00:00:00.524000Z'}"},
        {"coordination.k8s.io", "leases",
         "{'metadata':{'name':'l'},'spec':{'renewTime':'2026-01-01T00:00:00.524001Z'}}", "spec",
         "{'renewTime':'2026-01-01T00:00:00.524001Z'}"},
        {"discovery.k8s.io", "endpointslices",
         "{'metadata':{'name':'s'},'addressType':'IPv4','endpoints':null}", "ports", "[]"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct api_kind *k = api_kind_find(cases[i].group, "v1", cases[i].plural);
        CLEANUP(json_free) struct json *stored = parse(cases[i].stored);
        CLEANUP_FREE char *text = json_to_text(stored);
        CLEANUP(blob_unref) struct blob *value = blob_new(text, strlen(text));
        CLEANUP_FREE char *head = object_head(k);
        CLEANUP(object_unref) struct object *o = object_new(k, head, "red/x", value, 7);
        assert_non_null(o);
        CLEANUP(json_free) struct json *now = object_parse(o);
        expect(cases[i].stored, json_get(now, cases[i].part), cases[i].want);
    }
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_body_must_be_of_the_requests_kind_namespace_and_name),
        T(a_new_object_has_what_the_server_decides),
        T(a_new_object_gets_the_defaults_of_its_kind),
        T(all_other_bits_of_a_uid_are_random),
        T(all_letters_of_a_made_name_are_used),
        T(a_name_is_made_only_when_there_is_none),
        T(an_update_changes_only_what_a_client_may_change),
        T(a_subresource_changes_its_part_only),
        T(finalizers_and_time_hold_a_deletion_back),
        T(a_deletion_counts_from_when_it_was_first_asked_for),
        T(what_an_earlier_release_has_stored_is_completed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
