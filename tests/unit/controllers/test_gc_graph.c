/* SPDX-License-Identifier: Apache-2.0 */
/* Who owns whom: the graph against a model, and the decisions of the garbage collector. */
#include "controllers/lifecycle/gc_graph.h"

#include "controller/obj.h"
#include "json_text.h"

static struct json *object(unsigned i, unsigned owner, bool foreground)
{
    CLEANUP_FREE char *refs =
        owner ? xasprintf(",'ownerReferences':[{'apiVersion':'v1','kind':'Pod','name':'p%u',"
                          "'uid':'uid-%u','blockOwnerDeletion':%s}]",
                          owner, owner, owner % 2 ? "true" : "false")
              : xstrdup("");
    CLEANUP_FREE char *text = xasprintf(
        "{'metadata':{'name':'p%u','namespace':'red','uid':'uid-%u'%s%s}}", i, i, refs,
        foreground
            ? ",'deletionTimestamp':'2026-11-21T00:00:00Z','finalizers':['foregroundDeletion']"
            : "");
    return from(text);
}

static void count(void *ctx, const struct gc_ref *ref)
{
    assert_string_equal(ref->dependent->more->ns, "red");
    ++*(unsigned *) ctx;
}

static void the_graph_agrees_with_a_model(void **state)
{
    enum { N = 40, STEPS = 20000 };
    unsigned owners[N] = {0}; /* Of object i: its owner, plus 1; 0: is not there, 1: has none. */
    struct gc_graph g;
    uint64_t seed = 88172645463325252u;
    gc_graph_init(&g);
    for (unsigned step = 0; step < STEPS; step++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        unsigned i = 1 + (unsigned) (seed >> 20) % (N - 1), owner = (unsigned) (seed >> 40) % N;
        CLEANUP_FREE char *uid = xasprintf("uid-%u", i);
        struct gc_node *n = gc_graph_find(&g, uid);
        assert_int_equal(n != NULL, owners[i] != 0);
        if (owner % 4 == 0 && n) {
            gc_graph_remove(&g, n);
            owners[i] = 0;
            continue;
        }
        CLEANUP(json_free) struct json *o = object(i, owner, owner == 7);
        n = gc_graph_set(&g, state, o);
        owners[i] = owner + 1;
        assert_ptr_equal(n->kind, state);
        assert_int_equal(n->place, gc_place("red", obj_name(o)));
        assert_int_equal(n->more != NULL, owner != 0);
        assert_true(!n->more || n->more->foreground == (owner == 7));
        unsigned want = 0, got = 0;
        for (unsigned k = 1; k < N; k++) {
            want += owners[k] == i + 1;
        }
        gc_graph_dependents(&g, uid, count, &got);
        assert_int_equal(got, want);
        assert_int_equal(gc_graph_is_blocked(&g, uid, NULL), want > 0 && i % 2);
    }
    gc_graph_done(&g);
}

static void plain_objects_cost_little(void **state)
{
    struct gc_graph g;
    gc_graph_init(&g);
    CLEANUP(json_free) struct json *plain = object(1, 0, false);
    CLEANUP(json_free) struct json *nothing = from("{'metadata':{'name':'x'}}");
    assert_null(gc_graph_set(&g, NULL, plain)->more);
    assert_null(gc_graph_set(&g, NULL, nothing));
    assert_int_equal(g.nodes.n, 1);
    gc_graph_done(&g);
}

static void only_dependents_of_the_owners_namespace_block_it(void **state)
{
    static const struct {
        const char *owner, *ns, *name;
        bool blocks;
    } cases[] = {
        {"'name':'o','namespace':'red'", "red", "o", true},
        {"'name':'o','namespace':'red'", "blue", "o", false},
        {"'name':'o','namespace':'red'", "red", "other", false},
        {"'name':'n'", "red", "n", true}, /* The owner has no namespace. */
        {"'name':'n'", "red", "m", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct gc_graph g;
        gc_graph_init(&g);
        CLEANUP_FREE char *a = xasprintf("{'metadata':{%s,'uid':'owner'}}", cases[i].owner);
        CLEANUP_FREE char *b = xasprintf(
            "{'metadata':{'name':'d','namespace':'%s','uid':'dependent','ownerReferences':["
            "{'apiVersion':'v1','kind':'Pod','name':'%s','uid':'owner','blockOwnerDeletion':true"
            "}]}}",
            cases[i].ns, cases[i].name);
        CLEANUP(json_free) struct json *owner = from(a);
        CLEANUP(json_free) struct json *dependent = from(b);
        gc_graph_set(&g, NULL, owner);
        gc_graph_set(&g, NULL, dependent);
        assert_int_equal(gc_graph_is_blocked(&g, "owner", NULL), cases[i].blocks);
        gc_graph_done(&g);
    }
}

static void an_owner_is_known_by_its_uid(void **state)
{
    CLEANUP(json_free) struct json *solid = object(1, 0, false);
    CLEANUP(json_free) struct json *waiting = object(1, 0, true);
    assert_int_equal(gc_owner_state(NULL, "uid-1"), GC_OWNER_ABSENT);
    assert_int_equal(gc_owner_state(solid, "uid-2"), GC_OWNER_ABSENT);
    assert_int_equal(gc_owner_state(solid, "uid-1"), GC_OWNER_SOLID);
    assert_int_equal(gc_owner_state(waiting, "uid-1"), GC_OWNER_WAITING);
}

static void patches_are_bound_to_what_was_seen(void **state)
{
    static const char *const gone[] = {"b"};
    CLEANUP(json_free)
    struct json *o =
        from("{'metadata':{'name':'x','uid':'u','resourceVersion':'7','finalizers':"
             "['orphan','a/b'],'ownerReferences':[{'uid':'a','blockOwnerDeletion':true},"
             "{'uid':'b'}]}}");
    CLEANUP(json_free) struct json *owners = gc_patch_owners(o, gone, 1);
    CLEANUP(json_free) struct json *finalizer = gc_patch_finalizer(o, GC_ORPHAN);
    CLEANUP(json_free) struct json *unblock = gc_patch_unblock(o);
    CLEANUP(json_free) struct json *options = gc_delete_options(o, NULL);
    CLEANUP(json_free) struct json *foreground = gc_delete_options(o, "Foreground");
    assert_json(owners, "{'metadata':{'uid':'u','resourceVersion':'7','ownerReferences':"
                        "[{'uid':'a','blockOwnerDeletion':true}]}}");
    assert_json(finalizer, "{'metadata':{'uid':'u','resourceVersion':'7','finalizers':['a/b']}}");
    assert_json(unblock, "{'metadata':{'uid':'u','resourceVersion':'7','ownerReferences':"
                         "[{'uid':'a','blockOwnerDeletion':false},{'uid':'b'}]}}");
    assert_json(options, "{'kind':'DeleteOptions','apiVersion':'v1','propagationPolicy':'Orphan',"
                         "'preconditions':{'uid':'u','resourceVersion':'7'}}");
    assert_string_equal(json_path_string(foreground, "propagationPolicy", NULL), "Foreground");
    /* The last of a list takes the list along. */
    CLEANUP(json_free)
    struct json *one =
        from("{'metadata':{'uid':'u','resourceVersion':'7','finalizers':['orphan']}}");
    CLEANUP(json_free) struct json *none = gc_patch_finalizer(one, GC_ORPHAN);
    assert_json(none, "{'metadata':{'uid':'u','resourceVersion':'7','finalizers':null}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_graph_agrees_with_a_model),
        cmocka_unit_test(plain_objects_cost_little),
        cmocka_unit_test(only_dependents_of_the_owners_namespace_block_it),
        cmocka_unit_test(an_owner_is_known_by_its_uid),
        cmocka_unit_test(patches_are_bound_to_what_was_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
