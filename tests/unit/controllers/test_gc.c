/* SPDX-License-Identifier: Apache-2.0 */
/* The garbage collector against an API server: owners, orphans, and objects that go while it
 * works. */
#include "controllers/lifecycle/gc.h"

#include "front.h"
#include "json_text.h"
#include "rig.h"

#define MAPS "/api/v1/namespaces/default/configmaps"

static struct harness *h;
static struct front *front;
static struct api_client *client;
static struct rig_controller *gc;

static int set_up(void **state)
{
    h = harness_new(NULL, NULL);
    front = front_new(h);
    client = front_client(front);
    gc = rig_start(h, client, &gc_controller, NULL);
    return 0;
}

static int tear_down(void **state)
{
    rig_stop(gc);
    api_client_free(client);
    front_free(front);
    harness_free(h);
    return 0;
}

/* Makes the ConfigMap 'name', owned by the ConfigMap 'owner' with this uid (NULL: by none); returns
 * its uid, owned. */
static char *make(const char *name, const char *owner, const char *uid, const char *more)
{
    CLEANUP_FREE char *owners =
        owner ? xasprintf(", 'ownerReferences': [{'apiVersion': 'v1', 'kind': 'ConfigMap', 'name':"
                          "'%s', 'uid': '%s'%s}]",
                          owner, uid, more)
              : xstrdup("");
    CLEANUP_FREE char *body = xasprintf("{'metadata': {'name': '%s'%s}}", name, owners);
    return make_object(h, MAPS, body);
}

static void delete_by(const char *name, const char *policy)
{
    CLEANUP_FREE char *path = xasprintf(MAPS "/%s", name);
    CLEANUP_FREE char *body = xasprintf("{'propagationPolicy': '%s'}", policy);
    put_in(h, "DELETE", path, body, 200);
}

static void dependents_go_with_their_owner(void **state)
{
    CLEANUP_FREE char *owner = make("owner", NULL, NULL, "");
    CLEANUP_FREE char *other = make("other", NULL, NULL, "");
    free(make("dependent", "owner", owner, ""));
    free(make("kept", "other", other, ""));
    free(make("stale", "other", "00000000-0000-4000-8000-000000000000", ""));
    free(make("lost", "absent", owner, ""));
    rig_expect(h, MAPS "/stale", NULL, "404"); /* Its owner has another uid. */
    rig_expect(h, MAPS "/lost", NULL, "404");
    rig_expect(h, MAPS "/dependent", NULL, "200");
    /* An owner that the watch has shown is not read. */
    assert_int_equal(front_asked(front, "GET", MAPS "/owner"), 0);
    delete_by("owner", "Background");
    rig_expect(h, MAPS "/dependent", NULL, "404");
    rig_expect(h, MAPS "/kept", NULL, "200");
}

static void an_owner_that_is_orphaning_goes_after_its_dependents_were_freed(void **state)
{
    CLEANUP_FREE char *owner = make("parent", NULL, NULL, "");
    free(make("child", "parent", owner, ""));
    delete_by("parent", "Orphan");
    rig_expect(h, MAPS "/parent", NULL, "404");
    rig_expect(h, MAPS "/child", "metadata.ownerReferences.0.name", "");
    rig_expect(h, MAPS "/child", NULL, "200");
}

/* The answers that a dependent gives which is deleted, made anew, or changed by another while the
 * collector reads it. */
static void an_orphan_that_changes_meanwhile_holds_nothing_up(void **state)
{
    static const struct {
        const char *name, *method;
        int code;
        const char *reason;
        bool freed; /* The request is made again, and the reference goes. */
    } cases[] = {
        {"gone-at-reading", "GET", 404, "NotFound", false},
        {"gone-at-writing", "PATCH", 404, "NotFound", false},
        {"changed-at-writing", "PATCH", 409, "Conflict", true},
        {"failing-at-reading", "GET", 500, "InternalError", true},
        {"failing-at-writing", "PATCH", 500, "InternalError", true},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *name = xasprintf("owner-of-%s", cases[i].name);
        CLEANUP_FREE char *path = xasprintf(MAPS "/%s", name);
        CLEANUP_FREE char *child = xasprintf(MAPS "/%s", cases[i].name);
        CLEANUP_FREE char *owner = make(name, NULL, NULL, "");
        free(make(cases[i].name, name, owner, ""));
        rig_expect(h, path, NULL, "200");
        front_answer(front, cases[i].method, child, cases[i].code, cases[i].reason, 1);
        delete_by(name, "Orphan");
        rig_expect(h, path, NULL, "404");
        /* Where the answer was that the dependent has gone, it is one without an owner now, and
         * goes. */
        rig_expect(h, child, NULL, cases[i].freed ? "200" : "404");
        front_forget(front, child);
    }
}

static void an_owner_in_the_foreground_waits_for_the_dependents_that_block_it(void **state)
{
    CLEANUP_FREE char *owner = make("front-owner", NULL, NULL, "");
    free(make("blocking", "front-owner", owner, ", 'blockOwnerDeletion': true"));
    rig_expect(h, MAPS "/blocking", NULL, "200");
    front_answer(front, "DELETE", MAPS "/blocking", 500, "InternalError", 2);
    delete_by("front-owner", "Foreground");
    rig_expect(h, MAPS "/blocking", NULL, "404");
    rig_expect(h, MAPS "/front-owner", NULL, "404");
    front_expect(front, "DELETE", MAPS "/blocking", 3);
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(dependents_go_with_their_owner),
        T(an_owner_that_is_orphaning_goes_after_its_dependents_were_freed),
        T(an_orphan_that_changes_meanwhile_holds_nothing_up),
        T(an_owner_in_the_foreground_waits_for_the_dependents_that_block_it),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
