/* SPDX-License-Identifier: Apache-2.0 */
/* Security context constraints: order, the values of projects, filling in and judging, one case a
 * strategy.  In all texts ' stands for ". */
#include "pod/scc.h"
#include "pod/scc_block.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define ANY                                                                 \
    "'seLinuxContext':{'type':'RunAsAny'},'runAsUser':{'type':'RunAsAny'}," \
    "'fsGroup':{'type':'RunAsAny'},'supplementalGroups':{'type':'RunAsAny'}"
#define PROJECT                                                     \
    "{'openshift.io/sa.scc.uid-range':'1000/10',"                   \
    "'openshift.io/sa.scc.supplemental-groups':'2000/5,3000-3001'," \
    "'openshift.io/sa.scc.mcs':'s0:c1,c0'}"

static struct json *parse(const char *text)
{
    CLEANUP_FREE char *s = xstrdup(text);
    struct json *v = NULL;
    struct err e = {0};
    for (char *p = s; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    if (json_parse(s, strlen(s), &v, &e) < 0) {
        fail_msg("%s: %s", text, e.text);
    }
    return v;
}

/* Constraints with the members. */
static struct scc *scc_of(const char *name, const char *members)
{
    CLEANUP_FREE char *text = xasprintf("{'metadata':{'name':'%s'},%s}", name, members);
    CLEANUP(json_free) struct json *obj = parse(text);
    return scc_new(obj);
}

/* ---- order ---- */

struct weighed {
    const char *members;
    unsigned points;
};

/* The original's table of capabilities and volumes, above user and SELinux of RunAsAny. */
static void points_are_the_originals(void **state)
{
    enum { BASE = 40000 + 40000, NONE = BASE + 5000 };
    static const struct weighed cases[] = {
        {ANY, NONE},
        {ANY ",'allowPrivilegedContainer':true", NONE + 1600000},
        {ANY ",'allowHostPorts':true", NONE + 800000},
        {ANY ",'allowHostNetwork':true", NONE + 400000},
        {ANY ",'volumes':['*']", NONE + 200000},
        {ANY ",'volumes':['hostPath','secret','nfs']", NONE + 200000},
        {ANY ",'volumes':['awsElasticBlockStore','secret']", NONE + 100000},
        {ANY ",'volumes':['secret','configMap','emptyDir','downwardAPI','projected','none']", NONE},
        {ANY ",'volumes':[]", NONE},
        {ANY ",'defaultAddCapabilities':['KILL','MKNOD']", NONE + 600},
        {ANY ",'allowedCapabilities':['KILL','MKNOD']", NONE + 20},
        {ANY ",'allowedCapabilities':['*']", NONE + 4000},
        {ANY ",'allowedCapabilities':['All']", NONE + 4000},
        {ANY ",'requiredDropCapabilities':['KILL','MKNOD']", NONE - 100},
        {ANY ",'requiredDropCapabilities':['all']", NONE - 3000},
        {ANY ",'requiredDropCapabilities':['*']", NONE - 50},
        {ANY ",'defaultAddCapabilities':['SETUID','SETGID'],'allowedCapabilities':['*'],"
             "'requiredDropCapabilities':['SYS_CHROOT']",
         NONE + 600 + 4000 - 50},
        {"'seLinuxContext':{'type':'MustRunAs'},'runAsUser':{'type':'MustRunAs'}", 25000},
        {"'seLinuxContext':{'type':'MustRunAs'},'runAsUser':{'type':'MustRunAsRange'}", 35000},
        {"'seLinuxContext':{'type':'MustRunAs'},'runAsUser':{'type':'MustRunAsNonRoot'}", 45000},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(scc_free) struct scc *s = scc_of("x", cases[i].members);
        if (scc_points(s) != cases[i].points) {
            fail_msg("%s: %u instead of %u", cases[i].members, scc_points(s), cases[i].points);
        }
    }
    /* Capabilities never weigh as much as a strategy. */
    CLEANUP_STRBUF struct strbuf many = STRBUF_INIT;
    for (int i = 0; i < 40; i++) {
        strbuf_addf(&many, "%s'C%d'", i ? "," : "", i);
    }
    CLEANUP_FREE char *members =
        xasprintf(ANY ",'defaultAddCapabilities':[%s]", strbuf_cstr(&many));
    CLEANUP(scc_free) struct scc *s = scc_of("x", members);
    assert_int_equal(scc_points(s), BASE + 9999);
}

static void priority_counts_before_points_and_points_before_names(void **state)
{
    CLEANUP(scc_free) struct scc *high = scc_of("z", ANY ",'priority':1");
    CLEANUP(scc_free)
    struct scc *strict =
        scc_of("y", "'seLinuxContext':{'type':'MustRunAs'},'runAsUser':{'type':'MustRunAs'}");
    CLEANUP(scc_free) struct scc *a = scc_of("a", ANY);
    CLEANUP(scc_free) struct scc *b = scc_of("b", ANY ",'priority':0");
    struct scc *const order[] = {high, strict, a, b};
    for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
        for (size_t k = 0; k < ARRAY_SIZE(order); k++) {
            int way = scc_compare(order[i], order[k]);
            assert_int_equal((way > 0) - (way < 0), (i > k) - (i < k));
        }
    }
}

static void subjects_are_named_by_user_or_group(void **state)
{
    char group[] = "g", other[] = "h", *groups[] = {other, group};
    CLEANUP(scc_free) struct scc *s = scc_of("x", ANY ",'users':['u'],'groups':['g']");
    assert_true(scc_names_subject(s, "u", NULL, 0));
    assert_false(scc_names_subject(s, "g", NULL, 0));
    assert_true(scc_names_subject(s, "v", groups, 2));
    assert_false(scc_names_subject(s, "v", groups, 1));
    CLEANUP(scc_free) struct scc *none = scc_of("x", ANY);
    assert_false(scc_names_subject(none, "", NULL, 0));
}

/* ---- the values of a project ---- */

static void blocks_have_two_forms(void **state)
{
    static const struct {
        const char *text;
        int64_t min, max;
    } good[] = {{"1/3", 1, 3},
                {"1-3", 1, 3},
                {"5/1", 5, 5},
                {"0-0", 0, 0},
                {"1000000000/10000", 1000000000, 1000009999}};
    static const char *const bad[] = {"",
                                      "1",
                                      "1/",
                                      "/1",
                                      "1/0",
                                      "3-1",
                                      "a/b",
                                      "-1/2",
                                      "1/2/3",
                                      "1-2,",
                                      "1 / 2",
                                      "+1/2",
                                      "1/99999999999999999999"};
    struct scc_range r;
    struct err e = {0};
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        assert_int_equal(scc_parse_block(good[i].text, &r, NULL), 0);
        assert_int_equal(r.min, good[i].min);
        assert_int_equal(r.max, good[i].max);
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        if (scc_parse_block(bad[i], &r, &e) != -EINVAL) {
            fail_msg("%s was accepted", bad[i]);
        }
    }
}

#define MUST_USER "'runAsUser':{'type':'MustRunAsRange'}"
#define MUST_LEVEL "'seLinuxContext':{'type':'MustRunAs'}"
#define REST(a, b) a ",'fsGroup':{'type':'RunAsAny'},'supplementalGroups':{'type':'RunAsAny'}," b

static void a_missing_annotation_is_named(void **state)
{
    static const struct {
        const char *members, *annotations, *want;
    } cases[] = {
        {REST(MUST_USER, "'seLinuxContext':{'type':'RunAsAny'}"), "{}",
         "unable to find pre-allocated uid annotation for namespace red while trying to configure "
         "SCC x: unable to find annotation openshift.io/sa.scc.uid-range"},
        {REST(MUST_USER, "'seLinuxContext':{'type':'RunAsAny'}"),
         "{'openshift.io/sa.scc.uid-range':''}",
         "found annotation openshift.io/sa.scc.uid-range but it was empty"},
        {REST(MUST_USER, "'seLinuxContext':{'type':'RunAsAny'}"),
         "{'openshift.io/sa.scc.uid-range':'1'}", "START/LENGTH or START-END"},
        {REST(MUST_USER, "'seLinuxContext':{'type':'RunAsAny'}"),
         "{'openshift.io/sa.scc.uid-range':'1/2,3/4'}", "START/LENGTH or START-END"},
        {REST("'runAsUser':{'type':'RunAsAny'}", MUST_LEVEL), "{}",
         "unable to find pre-allocated mcs annotation for namespace red"},
        {"'runAsUser':{'type':'RunAsAny'},'seLinuxContext':{'type':'RunAsAny'},'fsGroup':{'type':"
         "'MustRunAs'},'supplementalGroups':{'type':'RunAsAny'}",
         "{}", "unable to find pre-allocated group annotation for namespace red"},
        {"'runAsUser':{'type':'RunAsAny'},'seLinuxContext':{'type':'RunAsAny'},'fsGroup':{'type':"
         "'RunAsAny'},'supplementalGroups':{'type':'MustRunAs'}",
         "{'openshift.io/sa.scc.supplemental-groups':'1/2,'}", "group annotation"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct scc_provider p = {0};
        struct err e = {0};
        CLEANUP(scc_free) struct scc *s = scc_of("x", cases[i].members);
        CLEANUP(json_free) struct json *annotations = parse(cases[i].annotations);
        assert_int_equal(scc_provider_init(&p, s, "red", annotations, &e), -EINVAL);
        if (!strstr(e.text, cases[i].want)) {
            fail_msg("%s: %s", cases[i].want, e.text);
        }
    }
}

static void groups_fall_back_to_the_user_ids(void **state)
{
    static const char members[] = "'runAsUser':{'type':'RunAsAny'},'seLinuxContext':{'type':"
                                  "'RunAsAny'},'fsGroup':{'type':'MustRunAs'},"
                                  "'supplementalGroups':{'type':'MustRunAs'}";
    CLEANUP(scc_free) struct scc *s = scc_of("x", members);
    CLEANUP(json_free) struct json *both = parse(PROJECT);
    CLEANUP(json_free) struct json *users = parse("{'openshift.io/sa.scc.uid-range':'1/3'}");
    CLEANUP(scc_provider_done) struct scc_provider p = {0}, q = {0};
    assert_int_equal(scc_provider_init(&p, s, "red", both, NULL), 0);
    assert_int_equal(p.groups.n, 2);
    assert_int_equal(p.groups.at[1].max, 3001);
    assert_int_equal(p.file_groups.n, 1); /* Only the first ID of the first block. */
    assert_int_equal(p.file_groups.at[0].min, 2000);
    assert_int_equal(p.file_groups.at[0].max, 2000);
    assert_int_equal(scc_provider_init(&q, s, "red", users, NULL), 0);
    assert_int_equal(q.groups.at[0].max, 3);
    assert_int_equal(q.file_groups.at[0].max, 1);
}

static void annotations_of_blocks_are_the_originals(void **state)
{
    static const char *const levels[] = {"s0:c1,c0", "s0:c3,c2", "s0:c5,c0", "s0:c6,c0",
                                         "s0:c6,c5", "s0:c7,c4", "s0:c8,c2"};
    struct scc_blocks b;
    uint32_t block;
    scc_blocks_defaults(&b);
    assert_int_equal(scc_blocks_check(&b, NULL), 0);
    for (uint32_t i = 0; i < ARRAY_SIZE(levels); i++) {
        CLEANUP(json_free) struct json *o = json_object();
        CLEANUP_FREE char *range = xasprintf("%u/10000", 1000000000 + i * 10000);
        scc_block_annotate(&b, i, o);
        assert_string_equal(json_get_text(o, SCC_UIDS_ANNOTATION), range);
        assert_string_equal(json_get_text(o, SCC_GROUPS_ANNOTATION), range);
        assert_string_equal(json_get_text(o, SCC_LEVEL_ANNOTATION), levels[i]);
        assert_int_equal(scc_block_find(&b, range, &block), 0);
        assert_int_equal(block, i);
    }
    /* The last one exists, and no two have the same level. */
    CLEANUP(json_free) struct json *last = json_object();
    scc_block_annotate(&b, b.n - 1, last);
    assert_string_equal(json_get_text(last, SCC_UIDS_ANNOTATION), "1999990000/10000");
    assert_int_equal(scc_block_find(&b, "2000000000/10000", &block), -ENOENT);
    assert_int_equal(scc_block_find(&b, "999999999/1", &block), -ENOENT);
    assert_int_equal(scc_block_find(&b, "1000000000-1000000001", &block), 0);
    assert_int_equal(scc_block_find(&b, NULL, &block), -ENOENT);
    /* What is there stays. */
    CLEANUP(json_free) struct json *own = parse("{'openshift.io/sa.scc.mcs':'s0:c9,c8'}");
    scc_block_annotate(&b, 0, own);
    assert_string_equal(json_get_text(own, SCC_LEVEL_ANNOTATION), "s0:c9,c8");
}

static void all_levels_of_a_range_differ(void **state)
{
    struct scc_blocks b;
    scc_blocks_defaults(&b);
    assert_int_equal(scc_blocks_parse_uids("1-40/2", &b, NULL), 0);
    assert_int_equal(scc_blocks_parse_levels("s1:/3,9", &b, NULL), 0);
    b.per_project = 4;
    assert_int_equal(b.n, 20);
    assert_int_equal(scc_blocks_check(&b, NULL), 0); /* 84 levels for 80. */
    CLEANUP(json_free) struct json *seen = json_object();
    for (uint32_t i = 0; i < b.n; i++) {
        CLEANUP(json_free) struct json *o = json_object();
        scc_block_annotate(&b, i, o);
        const char *level = json_get_text(o, SCC_LEVEL_ANNOTATION);
        assert_int_equal(strncmp(level, "s1:c", 4), 0);
        assert_null(json_get(seen, level));
        json_set_bool(seen, level, true);
    }
    b.per_project = 5;
    assert_int_equal(scc_blocks_check(&b, NULL), -EINVAL);
}

static void wrong_ranges_of_the_configuration_are_refused(void **state)
{
    static const char *const uids[] = {"",      "1-2", "1/2",   "2-1/1",          "1-2/0",
                                       "1-2/3", "a/b", "1/2/3", "0-4294967295/1", "1-2/x"};
    static const char *const levels[] = {"",      "s0",     "s0:",     "s0:/0",      "s0:/6",
                                         "/2",    "s0:x/2", "s0:/2,0", "s0:/2,1025", "s0:/3,2",
                                         "t0:/2", "s0/2",   "s0:/2,x", ":/2"};
    struct scc_blocks b, before;
    scc_blocks_defaults(&b);
    before = b;
    for (size_t i = 0; i < ARRAY_SIZE(uids); i++) {
        struct err e = {0};
        if (scc_blocks_parse_uids(uids[i], &b, &e) != -EINVAL || !*e.text) {
            fail_msg("%s was accepted", uids[i]);
        }
    }
    for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
        struct err e = {0};
        if (scc_blocks_parse_levels(levels[i], &b, &e) != -EINVAL || !*e.text) {
            fail_msg("%s was accepted", levels[i]);
        }
    }
    assert_memory_equal(&b, &before, sizeof b);
}

/* ---- filling in and judging ---- */

/* Constraints ('scc': their members), the spec of a pod, what becomes of it (NULL: the same), and
 * a cause (NULL: it is allowed). */
struct judged {
    const char *scc, *spec, *filled, *field, *why;
};

#define ONE "'containers':[{'name':'c'}]"
#define C(context) "'containers':[{'name':'c','securityContext':{" context "}}]"
/* All strategies but one are RunAsAny. */
#define USER(u)                                                           \
    "'seLinuxContext':{'type':'RunAsAny'},'fsGroup':{'type':'RunAsAny'}," \
    "'supplementalGroups':{'type':'RunAsAny'},'runAsUser':{" u "}"
#define LABELS(l)                                                    \
    "'runAsUser':{'type':'RunAsAny'},'fsGroup':{'type':'RunAsAny'}," \
    "'supplementalGroups':{'type':'RunAsAny'},'seLinuxContext':{" l "}"
#define FILE_GROUP(g)                                                       \
    "'runAsUser':{'type':'RunAsAny'},'seLinuxContext':{'type':'RunAsAny'}," \
    "'supplementalGroups':{'type':'RunAsAny'},'fsGroup':{" g "}"
#define GROUPS(g)                                                           \
    "'runAsUser':{'type':'RunAsAny'},'seLinuxContext':{'type':'RunAsAny'}," \
    "'fsGroup':{'type':'RunAsAny'},'supplementalGroups':{" g "}"
#define AT "spec.containers[0].securityContext."
#define POD_AT "spec.securityContext."

static const struct judged of_users[] = {
    {USER("'type':'RunAsAny'"), C("'runAsUser':0"), NULL, NULL, NULL},
    {USER("'type':'RunAsAny'"), ONE, NULL, NULL, NULL},
    {USER("'type':'MustRunAs','uid':7"), ONE, C("'runAsUser':7,'runAsNonRoot':true"), NULL, NULL},
    {USER("'type':'MustRunAs','uid':0"), ONE, C("'runAsUser':0"), NULL, NULL},
    {USER("'type':'MustRunAs','uid':7"), C("'runAsUser':8"), NULL, AT "runAsUser", "must be: 7"},
    {USER("'type':'MustRunAsRange'"), ONE, C("'runAsUser':1000,'runAsNonRoot':true"), NULL, NULL},
    {USER("'type':'MustRunAsRange'"), C("'runAsUser':1009"), NULL, NULL, NULL},
    {USER("'type':'MustRunAsRange'"), C("'runAsUser':1010"), NULL, AT "runAsUser",
     "Invalid value: 1010: must be in the ranges: [1000, 1009]"},
    {USER("'type':'MustRunAsRange'"), C("'runAsUser':0"), NULL, AT "runAsUser", "[1000, 1009]"},
    {USER("'type':'MustRunAsRange'"), C("'runAsUser':'x'"), NULL, AT "runAsUser", "[1000, 1009]"},
    {USER("'type':'MustRunAsRange','uidRangeMin':5,'uidRangeMax':6"), ONE,
     C("'runAsUser':5,'runAsNonRoot':true"), NULL, NULL},
    {USER("'type':'MustRunAsRange','uidRangeMin':5,'uidRangeMax':6"), C("'runAsUser':7"), NULL,
     AT "runAsUser", "[5, 6]"},
    /* The pod's value is that of a container without one. */
    {USER("'type':'MustRunAsRange'"), "'securityContext':{'runAsUser':1001}," ONE, NULL, NULL,
     NULL},
    {USER("'type':'MustRunAsRange'"), "'securityContext':{'runAsUser':1}," ONE, NULL,
     AT "runAsUser", "[1000, 1009]"},
    {USER("'type':'MustRunAsRange'"), "'securityContext':{'runAsUser':1}," C("'runAsUser':1000"),
     NULL, NULL, NULL},
    {USER("'type':'MustRunAsNonRoot'"), ONE, C("'runAsNonRoot':true"), NULL, NULL},
    {USER("'type':'MustRunAsNonRoot'"), C("'runAsUser':1"), C("'runAsUser':1,'runAsNonRoot':true"),
     NULL, NULL},
    {USER("'type':'MustRunAsNonRoot'"), C("'runAsUser':0"), NULL, AT "runAsUser",
     "running with the root UID is forbidden"},
    {USER("'type':'MustRunAsNonRoot'"), C("'runAsNonRoot':false"), NULL, AT "runAsNonRoot",
     "must be true"},
    {USER("'type':'MustRunAsNonRoot'"), C("'runAsNonRoot':false,'runAsUser':5"), NULL,
     AT "runAsNonRoot", "must be true"},
    {USER("'type':'MustRunAsNonRoot'"), "'securityContext':{'runAsNonRoot':true}," ONE, NULL, NULL,
     NULL},
    {USER("'type':'MustRunAsRange'"),
     "'containers':[{'name':'c','securityContext':{'runAsUser':1000}},"
     "{'name':'d','securityContext':{'runAsUser':1}}]",
     NULL, "spec.containers[1].securityContext.runAsUser", "[1000, 1009]"},
    {USER("'type':'MustRunAsRange'"),
     C("'runAsUser':1000") ",'initContainers':[{'name':'d',"
                           "'securityContext':{'runAsUser':1}}]",
     NULL, "spec.initContainers[0].securityContext.runAsUser", "[1000, 1009]"},
    {USER("'type':'MustRunAsRange'"),
     C("'runAsUser':1000") ",'ephemeralContainers':[{'name':'d',"
                           "'securityContext':{'runAsUser':1}}]",
     NULL, "spec.ephemeralContainers[0].securityContext.runAsUser", "[1000, 1009]"},
};

static const struct judged of_labels[] = {
    {LABELS("'type':'RunAsAny'"), "'securityContext':{'seLinuxOptions':{'type':'spc_t'}}," ONE,
     NULL, NULL, NULL},
    {LABELS("'type':'MustRunAs'"), ONE,
     "'securityContext':{'seLinuxOptions':{'level':'s0:c1,c0'}}," ONE, NULL, NULL},
    {LABELS("'type':'MustRunAs','seLinuxOptions':{'user':'u','role':'r','type':'t','level':'s1'}"),
     ONE,
     "'securityContext':{'seLinuxOptions':{'level':'s1','user':'u','role':'r','type':'t'}}," ONE,
     NULL, NULL},
    {LABELS("'type':'MustRunAs'"), "'securityContext':{'seLinuxOptions':{'level':'s0:c0,c1'}}," ONE,
     NULL, NULL, NULL},
    {LABELS("'type':'MustRunAs'"), "'securityContext':{'seLinuxOptions':{'level':'s0:c0,c2'}}," ONE,
     NULL, POD_AT "seLinuxOptions.level", "must be s0:c1,c0"},
    {LABELS("'type':'MustRunAs'"), "'securityContext':{'seLinuxOptions':{'level':'s1:c1,c0'}}," ONE,
     NULL, POD_AT "seLinuxOptions.level", "must be s0:c1,c0"},
    {LABELS("'type':'MustRunAs'"),
     "'securityContext':{'seLinuxOptions':{'level':'s0:c1,c0,c0'}}," ONE, NULL,
     POD_AT "seLinuxOptions.level", "must be s0:c1,c0"},
    {LABELS("'type':'MustRunAs'"), "'securityContext':{'seLinuxOptions':{}}," ONE, NULL,
     POD_AT "seLinuxOptions.level", "must be s0:c1,c0"},
    {LABELS("'type':'MustRunAs'"),
     "'securityContext':{'seLinuxOptions':{'level':'s0:c1,c0','type':'spc_t'}}," ONE, NULL,
     POD_AT "seLinuxOptions.type", "Invalid value: \"spc_t\": must be "},
    {LABELS("'type':'MustRunAs'"), C("'seLinuxOptions':{'level':'s0'}"), NULL,
     AT "seLinuxOptions.level", "must be s0:c1,c0"},
};

static const struct judged of_groups[] = {
    {FILE_GROUP("'type':'RunAsAny'"), "'securityContext':{'fsGroup':0}," ONE, NULL, NULL, NULL},
    {FILE_GROUP("'type':'MustRunAs'"), ONE, "'securityContext':{'fsGroup':2000}," ONE, NULL, NULL},
    {FILE_GROUP("'type':'MustRunAs'"), "'securityContext':{'fsGroup':2001}," ONE, NULL,
     POD_AT "fsGroup", "Invalid value: [2001]: 2001 is not an allowed group"},
    {FILE_GROUP("'type':'MustRunAs','ranges':[{'min':5,'max':6},{'min':9,'max':9}]"),
     "'securityContext':{'fsGroup':9}," ONE, NULL, NULL, NULL},
    {FILE_GROUP("'type':'MustRunAs','ranges':[{'min':5,'max':6}]"), ONE,
     "'securityContext':{'fsGroup':5}," ONE, NULL, NULL},
    {FILE_GROUP("'type':'MustRunAs','ranges':[{'min':5,'max':6}]"),
     "'securityContext':{'fsGroup':7}," ONE, NULL, POD_AT "fsGroup", "7 is not an allowed group"},
    {GROUPS("'type':'MustRunAs'"), ONE, "'securityContext':{'supplementalGroups':[2000]}," ONE,
     NULL, NULL},
    {GROUPS("'type':'MustRunAs'"), "'securityContext':{'supplementalGroups':[2004,3001]}," ONE,
     NULL, NULL, NULL},
    {GROUPS("'type':'MustRunAs'"), "'securityContext':{'supplementalGroups':[2000,0]}," ONE, NULL,
     POD_AT "supplementalGroups", "0 is not an allowed group"},
    {GROUPS("'type':'RunAsAny'"), "'securityContext':{'supplementalGroups':[0]}," ONE, NULL, NULL,
     NULL},
};

static const struct judged of_capabilities[] = {
    {ANY ",'requiredDropCapabilities':['MKNOD','KILL']", ONE,
     C("'capabilities':{'drop':['KILL','MKNOD']}"), NULL, NULL},
    {ANY ",'requiredDropCapabilities':['KILL']", C("'capabilities':{'drop':['KILL','A']}"), NULL,
     NULL, NULL},
    {ANY ",'requiredDropCapabilities':['KILL']", C("'capabilities':{'drop':['ALL']}"), NULL, NULL,
     NULL},
    {ANY ",'requiredDropCapabilities':['KILL']", C("'capabilities':{'add':['KILL']}"), NULL,
     AT "capabilities.add[0]", "capability may not be added"},
    {ANY ",'defaultAddCapabilities':['A','B']", ONE, C("'capabilities':{'add':['A','B']}"), NULL,
     NULL},
    {ANY ",'defaultAddCapabilities':['A','B']", C("'capabilities':{'drop':['A']}"),
     C("'capabilities':{'drop':['A'],'add':['B']}"), NULL, NULL},
    {ANY ",'defaultAddCapabilities':['A'],'allowedCapabilities':['B']",
     C("'capabilities':{'add':['B']}"), C("'capabilities':{'add':['A','B']}"), NULL, NULL},
    {ANY ",'defaultAddCapabilities':['A']", C("'capabilities':{'drop':['ALL']}"), NULL, NULL, NULL},
    {ANY, C("'capabilities':{'add':['A']}"), NULL, AT "capabilities.add[0]",
     "capability may not be added"},
    {ANY ",'allowedCapabilities':['A']", C("'capabilities':{'add':['A','ALL']}"), NULL,
     AT "capabilities.add[1]", "Invalid value: \"ALL\": capability may not be added"},
    {ANY ",'allowedCapabilities':['*']", C("'capabilities':{'add':['SYS_ADMIN','ALL']}"), NULL,
     NULL, NULL},
};

static const struct judged of_switches[] = {
    {ANY, C("'privileged':true"), NULL, AT "privileged", "Privileged containers are not allowed"},
    {ANY, C("'privileged':'yes'"), NULL, AT "privileged", "Privileged containers are not allowed"},
    {ANY ",'allowPrivilegedContainer':true", C("'privileged':true"), NULL, NULL, NULL},
    {ANY ",'readOnlyRootFilesystem':true", ONE, C("'readOnlyRootFilesystem':true"), NULL, NULL},
    {ANY ",'readOnlyRootFilesystem':true", C("'readOnlyRootFilesystem':false"), NULL,
     AT "readOnlyRootFilesystem", "ReadOnlyRootFilesystem must be set to true"},
    {ANY, C("'readOnlyRootFilesystem':false"), NULL, NULL, NULL},
    {ANY ",'allowPrivilegeEscalation':false", ONE, C("'allowPrivilegeEscalation':false"), NULL,
     NULL},
    {ANY ",'allowPrivilegeEscalation':false", C("'allowPrivilegeEscalation':true"), NULL,
     AT "allowPrivilegeEscalation", "Allowing privilege escalation for containers is not allowed"},
    {ANY, C("'allowPrivilegeEscalation':true"), NULL, NULL, NULL},
    {ANY ",'defaultAllowPrivilegeEscalation':false", ONE, C("'allowPrivilegeEscalation':false"),
     NULL, NULL},
    {ANY ",'defaultAllowPrivilegeEscalation':false", C("'allowPrivilegeEscalation':true"), NULL,
     NULL, NULL},
    {ANY ",'defaultAllowPrivilegeEscalation':false,'allowPrivilegedContainer':true",
     C("'privileged':true"), NULL, NULL, NULL},
    {ANY, "'hostNetwork':true," ONE, NULL, "spec.hostNetwork",
     "Host network is not allowed to be used"},
    {ANY, "'hostPID':true," ONE, NULL, "spec.hostPID", "Host PID is not allowed to be used"},
    {ANY, "'hostIPC':true," ONE, NULL, "spec.hostIPC", "Host IPC is not allowed to be used"},
    {ANY ",'allowHostNetwork':true", "'hostNetwork':true," ONE, NULL, NULL, NULL},
    {ANY ",'allowHostPID':true", "'hostPID':true," ONE, NULL, NULL, NULL},
    {ANY ",'allowHostIPC':true", "'hostIPC':true," ONE, NULL, NULL, NULL},
    {ANY ",'allowHostPID':true", "'hostIPC':true," ONE, NULL, "spec.hostIPC", "Host IPC"},
    {ANY, "'containers':[{'name':'c','ports':[{'containerPort':1},{'hostPort':2}]}]", NULL,
     "spec.containers[0].ports[1].hostPort", "Host ports are not allowed to be used"},
    {ANY ",'allowHostPorts':true", "'containers':[{'name':'c','ports':[{'hostPort':2}]}]", NULL,
     NULL, NULL},
    {ANY ",'userNamespaceLevel':'RequirePodLevel'", ONE, NULL, "spec.hostUsers", "must be false"},
    {ANY ",'userNamespaceLevel':'RequirePodLevel'", "'hostUsers':true," ONE, NULL, "spec.hostUsers",
     "must be false"},
    {ANY ",'userNamespaceLevel':'RequirePodLevel'", "'hostUsers':false," ONE, NULL, NULL, NULL},
    {ANY ",'userNamespaceLevel':'AllowHostLevel'", "'hostUsers':true," ONE, NULL, NULL, NULL},
};

#define PROFILE(p) "'securityContext':{'seccompProfile':" p "}," ONE
static const struct judged of_profiles[] = {
    {ANY, ONE, NULL, NULL, NULL},
    {ANY, PROFILE("{'type':'RuntimeDefault'}"), NULL, POD_AT "seccompProfile",
     "Forbidden: seccomp may not be set"},
    {ANY, C("'seccompProfile':{'type':'RuntimeDefault'}"), NULL, AT "seccompProfile",
     "seccomp may not be set"},
    {ANY ",'seccompProfiles':['*']", PROFILE("{'type':'Unconfined'}"), NULL, NULL, NULL},
    {ANY ",'seccompProfiles':['*']", ONE, NULL, NULL, NULL},
    {ANY ",'seccompProfiles':['*','runtime/default']", ONE, PROFILE("{'type':'RuntimeDefault'}"),
     NULL, NULL},
    {ANY ",'seccompProfiles':['docker/default']", ONE, PROFILE("{'type':'RuntimeDefault'}"), NULL,
     NULL},
    {ANY ",'seccompProfiles':['localhost/a','unconfined']", ONE,
     PROFILE("{'type':'Localhost','localhostProfile':'a'}"), NULL, NULL},
    {ANY ",'seccompProfiles':['unconfined']", ONE, PROFILE("{'type':'Unconfined'}"), NULL, NULL},
    {ANY ",'seccompProfiles':['localhost/a']",
     PROFILE("{'type':'Localhost','localhostProfile':'b'}"), NULL, POD_AT "seccompProfile",
     "localhost/b is not an allowed seccomp profile. Valid values are [localhost/a]"},
    {ANY ",'seccompProfiles':['localhost/a']", PROFILE("{'type':'Localhost'}"), NULL,
     POD_AT "seccompProfile", "not an allowed seccomp profile"},
    {ANY ",'seccompProfiles':['runtime/default','x']", C("'seccompProfile':{'type':'Unconfined'}"),
     NULL, AT "seccompProfile",
     "unconfined is not an allowed seccomp profile. Valid values are [runtime/default x]"},
};

#define SYSCTL(name) "'securityContext':{'sysctls':[{'name':'" name "','value':'1'}]}," ONE
static const struct judged of_sysctls[] = {
    {ANY, SYSCTL("net.ipv4.tcp_syncookies"), NULL, NULL, NULL},
    {ANY, SYSCTL("kernel.msgmax"), NULL, POD_AT "sysctls[0]",
     "Forbidden: unsafe sysctl \"kernel.msgmax\" is not allowed"},
    {ANY ",'allowedUnsafeSysctls':['kernel.msg*']", SYSCTL("kernel.msgmax"), NULL, NULL, NULL},
    {ANY ",'allowedUnsafeSysctls':['kernel.msgmax']", SYSCTL("kernel.msgmax2"), NULL,
     POD_AT "sysctls[0]", "unsafe"},
    {ANY ",'allowedUnsafeSysctls':['*']", SYSCTL("vm.swappiness"), NULL, NULL, NULL},
    {ANY ",'forbiddenSysctls':['net.*']", SYSCTL("net.ipv4.tcp_syncookies"), NULL,
     POD_AT "sysctls[0]", "Forbidden: sysctl \"net.ipv4.tcp_syncookies\" is not allowed"},
    {ANY ",'allowedUnsafeSysctls':['net/*'],'forbiddenSysctls':['net.ipv4.*']",
     SYSCTL("net/ipv4/x"), NULL, POD_AT "sysctls[0]", "is not allowed"},
};

#define VOLUME(v) "'volumes':[{'name':'v'," v "}]," ONE
static const struct judged of_volumes[] = {
    {ANY ",'volumes':['*']", VOLUME("'nfs':{}"), NULL, NULL, NULL},
    {ANY ",'volumes':['*']", VOLUME("'hostPath':{}"), NULL, "spec.volumes[0]",
     "hostPath volumes are not allowed"},
    {ANY ",'volumes':['*'],'allowHostDirVolumePlugin':true", VOLUME("'hostPath':{}"), NULL, NULL,
     NULL},
    {ANY ",'volumes':['hostPath']", VOLUME("'hostPath':{}"), NULL, "spec.volumes[0]",
     "hostPath volumes"},
    {ANY ",'volumes':['none']", VOLUME("'emptyDir':{}"), NULL, "spec.volumes[0]",
     "Invalid value: \"emptyDir\": emptyDir volumes are not allowed to be used"},
    {ANY ",'volumes':['none']", ONE, NULL, NULL, NULL},
    {ANY ",'volumes':['emptyDir']", "'volumes':[{'name':'v'}]," ONE, NULL, NULL, NULL},
    {ANY ",'volumes':['secret']", "'volumes':[{'name':'v'}]," ONE, NULL, "spec.volumes[0]",
     "emptyDir volumes"},
    {ANY ",'volumes':['emptyDir','projected']", VOLUME("'projected':{},'hostPath':{'path':'/'}"),
     NULL, "spec.volumes[0]", "hostPath volumes"},
    {ANY ",'volumes':['cephFS','vsphere','storageOS']",
     "'volumes':[{'name':'a','cephfs':{}},{'name':'b','vsphereVolume':{}},{'name':'c','storageos':{"
     "}}]," ONE,
     NULL, NULL, NULL},
    {ANY ",'volumes':['secret']",
     VOLUME("'projected':{'sources':[{'serviceAccountToken':{'path':'token'}},{'configMap':{'name':"
            "'kube-root-ca.crt'}},"
            "{'downwardAPI':{'items':[{'path':'namespace','fieldRef':{'fieldPath':'metadata."
            "namespace'}}]}}]}"),
     NULL, NULL, NULL},
    {ANY ",'volumes':['secret']",
     VOLUME("'projected':{'sources':[{'configMap':{'name':'other'}}]}"), NULL, "spec.volumes[0]",
     "projected volumes"},
    {ANY ",'volumes':['secret']",
     VOLUME("'projected':{'sources':[{'serviceAccountToken':{'path':'t'},'secret':{'name':'s'}}]}"),
     NULL, "spec.volumes[0]", "projected volumes"},
    {ANY ",'volumes':['emptyDir']",
     VOLUME("'projected':{'sources':[{'serviceAccountToken':{'path':'t'}}]}"), NULL,
     "spec.volumes[0]", "projected volumes"},
    {ANY ",'volumes':['flexVolume']", VOLUME("'flexVolume':{'driver':'a'}"), NULL, NULL, NULL},
    {ANY ",'volumes':['flexVolume'],'allowedFlexVolumes':[{'driver':'b'}]",
     VOLUME("'flexVolume':{'driver':'a'}"), NULL, "spec.volumes[0].driver",
     "Flexvolume driver is not allowed to be used"},
    {ANY ",'volumes':['*'],'allowedFlexVolumes':[{'driver':'a'}]",
     VOLUME("'flexVolume':{'driver':'a'}"), NULL, NULL, NULL},
};

static void check_case(const struct judged *t)
{
    CLEANUP(scc_free) struct scc *s = scc_of("x", t->scc);
    CLEANUP(json_free) struct json *annotations = parse(PROJECT);
    CLEANUP_FREE char *text = xasprintf("{'spec':{%s}}", t->spec);
    CLEANUP_FREE char *after = xasprintf("{'spec':{%s}}", t->filled ? t->filled : t->spec);
    CLEANUP(json_free) struct json *pod = parse(text);
    CLEANUP(json_free) struct json *want = parse(after);
    CLEANUP(scc_provider_done) struct scc_provider p = {0};
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    assert_int_equal(scc_provider_init(&p, s, "red", annotations, NULL), 0);
    bool changed = scc_fill(&p, pod, SCC_WHOLE_POD);
    if (!t->field && t->filled) {
        CLEANUP_FREE char *has = json_to_text(pod);
        if (!changed || !json_equal(pod, want)) {
            fail_msg("%s: %s became %s, not %s", t->scc, t->spec, has, after);
        }
    }
    if (scc_fill(&p, pod, SCC_WHOLE_POD)) {
        fail_msg("%s: %s is filled in twice", t->scc, t->spec);
    }
    scc_check(&p, pod, "", &causes);
    bool found = !t->field && !causes.n;
    for (size_t i = 0; t->field && i < causes.n; i++) {
        found |= streq(causes.list[i].field, t->field) && strstr(causes.list[i].message, t->why);
    }
    if (!found) {
        fail_msg("%s: %s: not %s: %s, but %s: %s", t->scc, t->spec, t->field ? t->field : "",
                 t->why ? t->why : "allowed", causes.n ? causes.list[0].field : "allowed",
                 causes.n ? causes.list[0].message : "");
    }
}

static void each_strategy_fills_in_and_judges(void **state)
{
    const struct {
        const struct judged *list;
        size_t n;
    } tables[] = {
        {of_users, ARRAY_SIZE(of_users)},       {of_labels, ARRAY_SIZE(of_labels)},
        {of_groups, ARRAY_SIZE(of_groups)},     {of_capabilities, ARRAY_SIZE(of_capabilities)},
        {of_switches, ARRAY_SIZE(of_switches)}, {of_profiles, ARRAY_SIZE(of_profiles)},
        {of_sysctls, ARRAY_SIZE(of_sysctls)},   {of_volumes, ARRAY_SIZE(of_volumes)},
    };
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        for (size_t k = 0; k < tables[i].n; k++) {
            check_case(&tables[i].list[k]);
        }
    }
}

static void only_ephemeral_containers_are_filled_in_on_demand(void **state)
{
    CLEANUP(scc_free)
    struct scc *s =
        scc_of("x", USER("'type':'MustRunAsRange'") ",'requiredDropCapabilities':['A']");
    CLEANUP(json_free) struct json *annotations = parse(PROJECT);
    CLEANUP(json_free)
    struct json *pod = parse("{'spec':{" ONE ",'ephemeralContainers':[{'name':'d'}]}}");
    CLEANUP(scc_provider_done) struct scc_provider p = {0};
    assert_int_equal(scc_provider_init(&p, s, "red", annotations, NULL), 0);
    assert_true(scc_fill(&p, pod, SCC_EPHEMERAL_CONTAINERS));
    CLEANUP(json_free)
    struct json *want = parse(
        "{'spec':{" ONE ",'ephemeralContainers':[{'name':'d','securityContext':{'runAsUser':1000,"
        "'capabilities':{'drop':['A']},'runAsNonRoot':true}}]}}");
    assert_true(json_equal(pod, want));
}

/* What is of a wrong type is never allowed, and breaks nothing. */
static void values_of_wrong_types_are_refused(void **state)
{
    static const char strict[] =
        MUST_USER "," MUST_LEVEL ",'fsGroup':{'type':'MustRunAs'},'supplementalGroups':{'type':"
                  "'MustRunAs'},'requiredDropCapabilities':['A'],'volumes':['secret'],"
                  "'allowPrivilegeEscalation':false,'readOnlyRootFilesystem':true";
    static const char *const specs[] = {
        "5",
        "[]",
        "{'securityContext':5}",
        "{'securityContext':[]}",
        "{'containers':[5,[],'x']}",
        "{'containers':[{'securityContext':7}]}",
        "{'containers':[{'securityContext':{'capabilities':5}}]}",
        "{'containers':[{'securityContext':{'capabilities':{'add':'A','drop':{}}}}]}",
        "{'securityContext':{'fsGroup':'x','supplementalGroups':5,'seLinuxOptions':[]}}",
        "{'securityContext':{'sysctls':[5,{},{'name':5}]}}",
        "{'volumes':[5,{'hostPath':5}]}",
        "{'hostPID':'true','hostIPC':5,'hostNetwork':{}}",
        "{'volumes':[['hostPath'],[[]]]}",
        "{'volumes':[{'projected':{'sources':[[1],5]}}]}",
    };
    CLEANUP(scc_free) struct scc *s = scc_of("x", strict);
    CLEANUP(json_free) struct json *annotations = parse(PROJECT);
    CLEANUP(scc_provider_done) struct scc_provider p = {0};
    assert_int_equal(scc_provider_init(&p, s, "red", annotations, NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(specs); i++) {
        CLEANUP_FREE char *text =
            xasprintf("{'metadata':{'annotations':['seccomp']},'spec':%s}", specs[i]);
        CLEANUP(json_free) struct json *pod = parse(text);
        CLEANUP(api_causes_done) struct api_causes causes = {0};
        scc_check(&p, pod, "", &causes);
        (void) scc_fill(&p, pod, SCC_WHOLE_POD);
        if (!causes.n) {
            fail_msg("%s is allowed", specs[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_are_the_originals),
        cmocka_unit_test(priority_counts_before_points_and_points_before_names),
        cmocka_unit_test(subjects_are_named_by_user_or_group),
        cmocka_unit_test(blocks_have_two_forms),
        cmocka_unit_test(a_missing_annotation_is_named),
        cmocka_unit_test(groups_fall_back_to_the_user_ids),
        cmocka_unit_test(annotations_of_blocks_are_the_originals),
        cmocka_unit_test(all_levels_of_a_range_differ),
        cmocka_unit_test(wrong_ranges_of_the_configuration_are_refused),
        cmocka_unit_test(each_strategy_fills_in_and_judges),
        cmocka_unit_test(only_ephemeral_containers_are_filled_in_on_demand),
        cmocka_unit_test(values_of_wrong_types_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
