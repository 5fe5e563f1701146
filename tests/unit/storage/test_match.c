/* SPDX-License-Identifier: Apache-2.0 */
/* Which volume a claim gets: a table of 12 volumes and 8 claims, and random ones, against a model
 * that is written another way. */
#include "api/obj.h"
#include "json_text.h"
#include "rng.h"
#include "storage/match.h"

/* ---- a volume or claim in a few words ---- */

enum { RWO = 1, ROX = 2, RWX = 4 };

struct item {
    const char *name;
    unsigned modes;
    int gib;
    const char *class;
    const char *label; /* Of a volume; what a claim selects; NULL: none. */
    bool block;
    const char *reserved; /* The name of a claim; NULL: none. */
    int age;              /* Of a volume: minutes. */
};

static const char *const mode_names[] = {"ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"};

static struct json *make(const struct item *it, bool claim)
{
    struct json *o = obj_new("v1", claim ? "PersistentVolumeClaim" : "PersistentVolume",
                             claim ? "ns" : NULL, it->name);
    struct json *spec = json_ensure_object(o, "spec");
    CLEANUP_FREE char *size = xasprintf("%dGi", it->gib);
    for (size_t i = 0; i < ARRAY_SIZE(mode_names); i++) {
        if (it->modes & 1u << i) {
            json_append(json_ensure_array(spec, "accessModes"), json_string(mode_names[i]));
        }
    }
    json_set_string(spec, "storageClassName", it->class);
    json_set_string(spec, "volumeMode", it->block ? "Block" : "Filesystem");
    if (claim) {
        struct json *r = json_ensure_object(json_ensure_object(spec, "resources"), "requests");
        json_set_string(r, "storage", size);
        if (it->label) {
            struct json *labels =
                json_ensure_object(json_ensure_object(spec, "selector"), "matchLabels");
            json_set_string(labels, "is", it->label);
        }
        json_set_string(json_get(o, "metadata"), "uid", it->name);
        return o;
    }
    json_set_string(json_ensure_object(spec, "capacity"), "storage", size);
    if (it->label) {
        json_set_string(json_ensure_object(json_get(o, "metadata"), "labels"), "is", it->label);
    }
    if (it->reserved) {
        struct json *ref = json_ensure_object(spec, "claimRef");
        json_set_string(ref, "namespace", "ns");
        json_set_string(ref, "name", it->reserved);
    }
    CLEANUP_FREE char *created = xasprintf("2026-01-01T00:%02d:00Z", 59 - it->age);
    json_set_string(json_get(o, "metadata"), "creationTimestamp", created);
    return o;
}

/* ---- the model: it removes volumes one rule after the other, and sorts nothing ---- */

static unsigned bits(unsigned m)
{
    return (m & 1) + (m >> 1 & 1) + (m >> 2 & 1);
}

static const char *model(const struct item *claim, const struct item *volumes, size_t n)
{
    bool in[64];
    for (size_t i = 0; i < n; i++) {
        const struct item *v = &volumes[i];
        bool ours = v->reserved && streq(v->reserved, claim->name);
        in[i] = v->block == claim->block && v->gib >= claim->gib && (!v->reserved || ours);
        if (!ours) {
            in[i] = in[i] && streq(v->class, claim->class) && !(claim->modes & ~v->modes) &&
                    (!claim->label || streq_null(v->label, claim->label));
        }
    }
    bool any_ours = false;
    for (size_t i = 0; i < n; i++) {
        any_ours = any_ours || (in[i] && volumes[i].reserved);
    }
    for (size_t i = 0; i < n; i++) {
        in[i] = in[i] && (!any_ours || volumes[i].reserved);
    }
    for (size_t i = 0; i < n; i++) {
        bool first = in[i];
        for (size_t k = 0; k < n && first; k++) {
            const struct item *a = &volumes[i], *b = &volumes[k];
            if (!in[k] || k == i) {
                continue;
            }
            /* 'b' goes before 'a' by the first rule that tells them apart. */
            int order[] = {(int) bits(b->modes) - (int) bits(a->modes),
                           (int) b->modes - (int) a->modes, b->gib - a->gib, a->age - b->age,
                           strcmp(b->name, a->name)};
            for (size_t r = 0; r < ARRAY_SIZE(order); r++) {
                if (order[r]) {
                    first = order[r] > 0;
                    break;
                }
            }
        }
        if (first) {
            return volumes[i].name;
        }
    }
    return NULL;
}

static const char *matched(const struct item *claim, const struct item *volumes, size_t n,
                           struct storage_misses *misses)
{
    struct json *list[64];
    static char name[64];
    CLEANUP(json_free) struct json *c = make(claim, true);
    for (size_t i = 0; i < n; i++) {
        list[i] = make(&volumes[i], false);
    }
    struct storage_search search = {0};
    const struct json *v = storage_match(c, (const struct json *const *) list, n, &search, misses);
    snprintf(name, sizeof name, "%s", v ? obj_name(v) : "");
    for (size_t i = 0; i < n; i++) {
        json_free(list[i]);
    }
    return v ? name : NULL;
}

/* ---- the table ---- */

static const struct item volumes[] = {
    {"big-rwo", RWO, 100, "", NULL, false, NULL, 9},
    {"small-wide", RWO | ROX | RWX, 5, "", NULL, false, NULL, 9},
    {"tiny-rwo", RWO, 1, "", NULL, false, NULL, 9},
    {"rox-two", RWO | ROX, 10, "", NULL, false, NULL, 9},
    {"gold-10", RWO, 10, "gold", NULL, false, NULL, 9},
    {"gold-20", RWO, 20, "gold", "fast", false, NULL, 9},
    {"gold-20-old", RWO, 20, "gold", "fast", false, NULL, 20},
    {"block-5", RWO, 5, "", NULL, true, NULL, 9},
    {"kept", RWO, 50, "", NULL, false, "reserver", 9},
    {"rwx-big", RWX, 500, "", NULL, false, NULL, 9},
    {"silver-b", RWO, 7, "silver", NULL, false, NULL, 9},
    {"silver-a", RWO, 7, "silver", NULL, false, NULL, 9},
};

static void a_table_of_volumes_and_claims(void **state)
{
    static const struct {
        struct item claim;
        const char *gets;
    } rows[] = {
        /* The exact mode wins over the better size. */
        {{"exact", RWO, 3, "", NULL, false, NULL, 0}, "big-rwo"},
        {{"contained", ROX, 3, "", NULL, false, NULL, 0}, "rox-two"},
        {{"many", RWX, 5, "", NULL, false, NULL, 0}, "rwx-big"},
        {{"all", RWO | RWX, 5, "", NULL, false, NULL, 0}, "small-wide"},
        {{"selects", RWO, 10, "gold", "fast", false, NULL, 0}, "gold-20-old"},
        {{"reserver", RWO | ROX, 20, "gold", NULL, false, NULL, 0}, "kept"},
        {{"too-big", RWO, 101, "", NULL, false, NULL, 0}, NULL},
        {{"equal", RWO, 7, "silver", NULL, false, NULL, 0}, "silver-a"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const char *got = matched(&rows[i].claim, volumes, ARRAY_SIZE(volumes), NULL);
        const char *want = model(&rows[i].claim, volumes, ARRAY_SIZE(volumes));
        if (!streq(got ? got : "-", rows[i].gets ? rows[i].gets : "-") ||
            !streq(want ? want : "-", rows[i].gets ? rows[i].gets : "-")) {
            fail_msg("%s: got %s, the model %s, want %s", rows[i].claim.name, got ? got : "-",
                     want ? want : "-", rows[i].gets ? rows[i].gets : "-");
        }
    }
}

static void random_ones_agree_with_the_model(void **state)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
    static const char *const classes[] = {"", "", "gold"};
    static const char *const labels[] = {NULL, NULL, "fast", "slow"};
    static const char *const reserved[] = {NULL, NULL, NULL, NULL, "claim", "other"};
    uint64_t rounds = rng_setting("STORAGE_ROUNDS", 20000);
    uint64_t seed = rng_first_seed("STORAGE_SEED", rounds, "matches");
    size_t found = 0;
    for (uint64_t r = 0; r < rounds; r++) {
        struct item list[10];
        rng_start(seed + r);
        size_t n = below(ARRAY_SIZE(list) + 1);
        for (size_t i = 0; i < n; i++) {
            list[i] = (struct item){names[i],     1 + below(7), 1 + (int) below(5), PICK(classes),
                                    PICK(labels), chance(10),   PICK(reserved),     (int) below(3)};
        }
        struct item claim = {"claim",
                             1 + below(7),
                             1 + (int) below(5),
                             PICK(classes),
                             PICK(labels),
                             chance(10),
                             NULL,
                             0};
        const char *got = matched(&claim, list, n, NULL), *want = model(&claim, list, n);
        found += got != NULL;
        if (!streq(got ? got : "-", want ? want : "-")) {
            fail_msg("seed %llu: got %s, want %s", (unsigned long long) (seed + r), got ? got : "-",
                     want ? want : "-");
        }
    }
    assert_true(found > rounds / 20); /* The search finds something often enough to mean it. */
}

/* ---- what does not suit, and fields ---- */

static void the_nearest_misses_are_named(void **state)
{
    struct storage_misses m = {0};
    struct item claim = {"c", RWO, 200, "", NULL, false, NULL, 0};
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    assert_null(matched(&claim, volumes, ARRAY_SIZE(volumes), &m));
    storage_misses_write(&m, &b);
    assert_string_equal(strbuf_cstr(&b),
                        "4 volumes are too small, 1 volume lacks an access mode, 1 volume has "
                        "another volumeMode, 5 volumes have another class, 1 volume belongs to "
                        "another claim");
}

static void a_volume_in_deletion_or_failed_is_not_given(void **state)
{
    CLEANUP(json_free)
    struct json *claim = make(&(struct item){"c", RWO, 1, "", NULL, false, NULL, 0}, true);
    CLEANUP(json_free)
    struct json *v = make(&(struct item){"v", RWO, 1, "", NULL, false, NULL, 0}, false);
    assert_int_equal(storage_check(claim, v, NULL), STORAGE_FITS);
    json_set_string(json_ensure_object(v, "status"), "phase", "Failed");
    assert_int_equal(storage_check(claim, v, NULL), STORAGE_LEAVING);
    json_set_string(json_get(v, "status"), "phase", "Available");
    json_set_string(json_get(v, "metadata"), "deletionTimestamp", "2026-01-01T00:00:00Z");
    assert_int_equal(storage_check(claim, v, NULL), STORAGE_LEAVING);
}

#define ON_NODE                                                                     \
    "'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':[{'key':" \
    "'kubernetes.io/hostname','operator':'In','values':['n1']}]}]}}"

static void a_volume_is_looked_for_on_a_node(void **state)
{
    CLEANUP(json_free) struct json *labels = from("{'kubernetes.io/hostname':'n1'}");
    CLEANUP(json_free) struct json *others = from("{'kubernetes.io/hostname':'n2'}");
    CLEANUP(json_free)
    struct json *claim = make(&(struct item){"c", RWO, 1, "", NULL, false, NULL, 0}, true);
    CLEANUP(json_free)
    struct json *v = from("{'metadata':{'name':'v'},'spec':{'capacity':{'storage':'1Gi'},"
                          "'accessModes':['ReadWriteOnce']," ON_NODE "}}");
    struct storage_node n1 = {"n1", labels}, n2 = {"n2", others};
    assert_int_equal(storage_check(claim, v, &n1), STORAGE_FITS);
    assert_int_equal(storage_check(claim, v, &n2), STORAGE_NODE);
    assert_string_equal(storage_volume_node(v), "n1");
    json_remove(json_get(v, "spec"), "nodeAffinity");
    assert_int_equal(storage_check(claim, v, &n2), STORAGE_FITS);
}

/* Only an affinity that names one host, and nothing else, makes a volume one of a node. */
static void other_affinities_name_no_node(void **state)
{
#define AFFINITY(expressions, more)                                                               \
    "{'spec':{'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':[" expressions \
    "]" more "}]}}}}"
#define HOST(key, operator, values) \
    "{'key':'" key "','operator':'" operator"','values':[" values "]}"
    static const char *const rows[] = {
        AFFINITY(HOST("zone", "In", "'n1'"), ""),
        AFFINITY(HOST("kubernetes.io/hostname", "NotIn", "'n1'"), ""),
        AFFINITY(HOST("kubernetes.io/hostname", "In", "'n1','n2'"), ""),
        AFFINITY(HOST("kubernetes.io/hostname", "In", "'n1'") "," HOST("a", "In", "'b'"), ""),
        AFFINITY(HOST("kubernetes.io/hostname", "In", "'n1'"),
                 ",'matchFields':[{'key':'metadata.name','operator':'In','values':['n2']}]"),
        "{'spec':{'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':[" HOST(
            "kubernetes.io/hostname", "In", "'n1'") "]},{}]}}}}",
        "{'spec':{}}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(json_free) struct json *v = from(rows[i]);
        assert_null(storage_volume_node(v));
    }
    CLEANUP(json_free)
    struct json *own = from(AFFINITY(HOST("kubernetes.io/hostname", "In", "'n1'"), ""));
    assert_string_equal(storage_volume_node(own), "n1");
}

static void the_older_annotation_wins(void **state)
{
    CLEANUP(json_free)
    struct json *both = from("{'metadata':{'annotations':{'volume.beta.kubernetes.io/"
                             "storage-class':'old'}},'spec':{'storageClassName':'new'}}");
    CLEANUP(json_free) struct json *nothing = from("{'spec':{}}");
    CLEANUP(json_free) struct json *none = from("{'spec':{'storageClassName':''}}");
    assert_string_equal(storage_claim_class(both), "old");
    assert_string_equal(storage_volume_class(both), "old");
    assert_null(storage_claim_class(nothing));
    assert_string_equal(storage_claim_class(none), "");
    assert_string_equal(storage_volume_class(nothing), "");
}

static void the_newest_default_class_wins(void **state)
{
#define CLASS(name, note, time)                                                         \
    "{'metadata':{'name':'" name "','creationTimestamp':'2026-01-01T00:0" time ":00Z'," \
    "'annotations':{'" note "':'true'}}}"
    CLEANUP(json_free) struct json *a = from(CLASS("a", STORAGE_DEFAULT_CLASS, "1"));
    CLEANUP(json_free) struct json *b = from(CLASS("b", STORAGE_DEFAULT_CLASS_BETA, "2"));
    CLEANUP(json_free) struct json *c = from(CLASS("c", "other", "3"));
    const struct json *list[] = {a, b, c};
    assert_ptr_equal(storage_default_class(list, 3), b);
    assert_ptr_equal(storage_default_class(list, 1), a);
    assert_null(storage_default_class(list + 2, 1));
}

static void a_pod_names_its_claims(void **state)
{
    CLEANUP(json_free)
    struct json *pod = from("{'metadata':{'name':'p'},'spec':{'volumes':[{'name':'a',"
                            "'persistentVolumeClaim':{'claimName':'x'}},{'name':'b','ephemeral':"
                            "{}},{'name':'c','emptyDir':{}}]}}");
    static const char *const want[] = {"x", "p-b", NULL};
    for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
        CLEANUP_FREE char *name =
            storage_pod_claim(pod, json_at(json_path(pod, "spec", "volumes", NULL), i));
        assert_true(want[i] ? streq_null(name, want[i]) : name == NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_of_volumes_and_claims),
        cmocka_unit_test(random_ones_agree_with_the_model),
        cmocka_unit_test(the_nearest_misses_are_named),
        cmocka_unit_test(a_volume_in_deletion_or_failed_is_not_given),
        cmocka_unit_test(a_volume_is_looked_for_on_a_node),
        cmocka_unit_test(other_affinities_name_no_node),
        cmocka_unit_test(the_older_annotation_wins),
        cmocka_unit_test(the_newest_default_class_wins),
        cmocka_unit_test(a_pod_names_its_claims),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
