/* SPDX-License-Identifier: Apache-2.0 */
/* Claims that wait for their pod, capacities, limits of nodes, and claims of one pod. */
#include "api/obj.h"
#include "json_text.h"
#include "sched/sched.h"

static void set(struct sched *s, enum sched_kind kind, const char *text)
{
    CLEANUP(json_free) struct json *o = from(text);
    sched_set(s, kind, o);
}

static struct sched *cluster(size_t nodes)
{
    struct sched *s = sched_new(1);
    for (size_t i = 1; i <= nodes; i++) {
        CLEANUP_FREE char *text =
            xasprintf("{'metadata':{'name':'n%zu','labels':{'kubernetes.io/hostname':'n%zu',"
                      "'zone':'z%zu'}},'status':{'allocatable':{'cpu':'4','memory':'8Gi','pods':"
                      "'10'},'nodeInfo':{'containerRuntimeVersion':'containerd://1.6.20'},"
                      "'conditions':[{'type':'Ready','status':'True'}]}}",
                      i, i, i);
        CLEANUP(json_free) struct json *o = from(text);
        (void) sched_set_node(s, o);
    }
    return s;
}

static struct json *pod_of(const char *name, const char *claims)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    strbuf_addf(&b, "{'metadata':{'name':'%s','namespace':'n','uid':'%s'},'spec':{'volumes':[",
                name, name);
    for (const char *c = claims; *c; c++) {
        strbuf_addf(&b, "%s{'name':'%c','persistentVolumeClaim':{'claimName':'%c'}}",
                    c == claims ? "" : ",", *c, *c);
    }
    strbuf_adds(&b, "]}}");
    return from(strbuf_cstr(&b));
}

#define WAITING(name, size, notes)                                                            \
    "{'metadata':{'name':'" name "','namespace':'n','uid':'u-" name "','annotations':{" notes \
    "}},'spec':{'accessModes':['ReadWriteOnce'],'storageClassName':'c','resources':{"         \
    "'requests':{'storage':'" size "'}}}}"
#define CLASS(provisioner, more)                                                    \
    "{'metadata':{'name':'c'},'provisioner':'" provisioner "','volumeBindingMode':" \
    "'WaitForFirstConsumer'" more "}"
#define DISK(name, node, size)                                                                \
    "{'metadata':{'name':'" name "','uid':'u-" name "'},'spec':{'capacity':{'storage':'" size \
    "'},'accessModes':['ReadWriteOnce'],'storageClassName':'c','local':{},'nodeAffinity':{"   \
    "'required':{'nodeSelectorTerms':[{'matchExpressions':[{'key':'kubernetes.io/hostname',"  \
    "'operator':'In','values':['" node "']}]}]}}}}"
#define CAPACITY(name, node, room)                                                             \
    "{'metadata':{'name':'" name "','namespace':'k'},'storageClassName':'c','capacity':'" room \
    "','nodeTopology':{'matchLabels':{'kubernetes.io/hostname':'" node "'}}}"

/* The node, or the text why there is none; owned. */
static char *decided(struct sched *s, const char *claims)
{
    CLEANUP(json_free) struct json *pod = pod_of("p", claims);
    struct sched_decision d;
    sched_decide(s, pod, &d);
    char *text = xstrdup(d.node ? d.node : d.why);
    sched_decision_done(&d);
    return text;
}

static void assert_decides(struct sched *s, const char *claims, const char *want)
{
    CLEANUP_FREE char *got = decided(s, claims);
    if (!strstr(got, want)) {
        fail_msg("got %s, want %s", got, want);
    }
}

/* "CLAIM:VOLUME" for each step, "-": a volume has to be made, "*": the node is selected; owned. */
static char *steps(struct sched *s, const char *claims, const char *node)
{
    CLEANUP(json_free) struct json *pod = pod_of("p", claims);
    struct sched_volume_step *list;
    struct strbuf b = STRBUF_INIT;
    size_t n = sched_volumes(s, pod, node, &list);
    strbuf_adds(&b, "");
    for (size_t i = 0; i < n; i++) {
        strbuf_addf(&b, "%s%s:%s%s", i ? " " : "", list[i].claim,
                    list[i].volume ? list[i].volume : "-", list[i].is_selected ? "*" : "");
    }
    free(list);
    return strbuf_steal(&b);
}

static void assert_steps(struct sched *s, const char *claims, const char *node, const char *want)
{
    CLEANUP_FREE char *got = steps(s, claims, node);
    assert_string_equal(got, want);
}

static void a_waiting_claim_chooses_among_nodes_with_volumes(void **state)
{
    CLEANUP(sched_free) struct sched *s = cluster(3);
    set(s, SCHED_CLASS, CLASS("kubernetes.io/no-provisioner", ""));
    set(s, SCHED_CLAIM, WAITING("a", "1Gi", ""));
    assert_decides(s, "a", "3 node(s) didn't find available persistent volumes to bind");
    set(s, SCHED_VOLUME, DISK("small", "n1", "1Mi"));
    assert_decides(s, "a", "3 node(s) didn't find");
    set(s, SCHED_VOLUME, DISK("d", "n2", "2Gi"));
    assert_decides(s, "a", "n2");
    assert_steps(s, "a", "n2", "a:d");
    assert_steps(s, "a", "n1", "");
    set(s, SCHED_CLAIM, WAITING("b", "1Gi", ""));
    assert_decides(s, "ab", "3 node(s) didn't find");
    set(s, SCHED_VOLUME, DISK("e", "n2", "1Gi"));
    /* The smallest claim chooses first, and takes the smallest volume. */
    set(s, SCHED_CLAIM, WAITING("b", "2Gi", ""));
    assert_decides(s, "ab", "n2");
    assert_steps(s, "ba", "n2", "a:e b:d");
}

static void a_provisioner_makes_volumes_where_its_class_may(void **state)
{
    CLEANUP(sched_free) struct sched *s = cluster(2);
    set(s, SCHED_CLASS,
        CLASS("p", ",'allowedTopologies':[{'matchLabelExpressions':[{'key':'zone','values':["
                   "'z2']}]}]"));
    set(s, SCHED_CLAIM, WAITING("a", "1Gi", ""));
    assert_decides(s, "a", "n2");
    assert_steps(s, "a", "n2", "a:-");
    /* A volume that exists is taken before one is made. */
    set(s, SCHED_VOLUME, DISK("d", "n2", "5Gi"));
    assert_steps(s, "a", "n2", "a:d");
}

static void capacity_counts_where_it_is_told(void **state)
{
    CLEANUP(sched_free) struct sched *s = cluster(2);
    set(s, SCHED_CLASS, CLASS("tenet.io/local", ""));
    set(s, SCHED_CLAIM, WAITING("a", "2Gi", ""));
    set(s, SCHED_CLAIM, WAITING("b", "2Gi", ""));
    set(s, SCHED_CAPACITY, CAPACITY("x", "n1", "1Gi"));
    assert_decides(s, "a", "n2");
    set(s, SCHED_CAPACITY, CAPACITY("y", "n2", "3Gi"));
    assert_decides(s, "a", "n2");
    assert_decides(s, "ab", "2 node(s) did not have enough free storage");
    set(s, SCHED_CAPACITY, CAPACITY("x", "n1", "4Gi"));
    assert_decides(s, "ab", "n1");
    sched_remove(s, SCHED_CAPACITY, "k/x");
    set(s, SCHED_DRIVER, "{'metadata':{'name':'tenet.io/local'},'spec':{'storageCapacity':true}}");
    assert_decides(s, "ab", "2 node(s) did not have enough free storage");
}

static void the_selected_node_stays_as_long_as_it_suits(void **state)
{
    CLEANUP(sched_free) struct sched *s = cluster(3);
    set(s, SCHED_CLASS, CLASS("p", ""));
    for (int i = 0; i < 5; i++) {
        set(s, SCHED_CLAIM, WAITING("a", "1Gi", "'volume.kubernetes.io/selected-node':'n3'"));
        assert_decides(s, "a", "n3");
    }
    assert_steps(s, "a", "n3", "a:-*");
    sched_remove_node(s, "n3");
    CLEANUP_FREE char *other = decided(s, "a");
    assert_true(streq(other, "n1") || streq(other, "n2"));
    CLEANUP_FREE char *step = steps(s, "a", other);
    assert_string_equal(step, "a:-");
}

static void a_claim_that_does_not_wait_holds_the_pod_up(void **state)
{
    CLEANUP(sched_free) struct sched *s = cluster(1);
    set(s, SCHED_CLASS,
        "{'metadata':{'name':'c'},'provisioner':'p','volumeBindingMode':"
        "'Immediate'}");
    set(s, SCHED_CLAIM, WAITING("a", "1Gi", ""));
    assert_decides(s, "a", "pod has unbound immediate PersistentVolumeClaims");
    /* A volume's name alone is no binding. */
    set(s, SCHED_CLAIM, "{'metadata':{'name':'a','namespace':'n'},'spec':{'volumeName':'v'}}");
    set(s, SCHED_VOLUME, "{'metadata':{'name':'v'},'spec':{}}");
    assert_decides(s, "a", "pod has unbound immediate PersistentVolumeClaims");
}

#define BOUND(name, modes)                                                             \
    "{'metadata':{'name':'" name "','namespace':'n','annotations':{'pv.kubernetes.io/" \
    "bind-completed':'yes'}},'spec':{'accessModes':['" modes "'],'volumeName':'v" name "'}}"
#define CSI(name) \
    "{'metadata':{'name':'v" name "'},'spec':{'csi':{'driver':'d','volumeHandle':'" name "'}}}"

static void a_claim_of_one_pod_takes_one(void **state)
{
    CLEANUP(sched_free) struct sched *s = cluster(2);
    set(s, SCHED_CLAIM, BOUND("a", "ReadWriteOncePod"));
    set(s, SCHED_VOLUME, CSI("a"));
    CLEANUP(json_free) struct json *first = pod_of("first", "a");
    sched_set_pod(s, first, "n1");
    assert_decides(s, "a", "ReadWriteOncePod access mode: \"a\"");
    sched_remove_pod(s, "n/first");
    CLEANUP_FREE char *node = decided(s, "a");
    assert_true(streq(node, "n1") || streq(node, "n2"));
}

static void a_node_has_so_many_volumes_of_a_driver(void **state)
{
    CLEANUP(sched_free) struct sched *s = cluster(1);
    set(s, SCHED_CSI_NODE,
        "{'metadata':{'name':'n1'},'spec':{'drivers':[{'name':'d',"
        "'allocatable':{'count':2}},{'name':'other'}]}}");
    set(s, SCHED_CLAIM, BOUND("a", "ReadWriteOnce"));
    set(s, SCHED_CLAIM, BOUND("b", "ReadWriteOnce"));
    set(s, SCHED_CLAIM, BOUND("c", "ReadWriteOnce"));
    set(s, SCHED_VOLUME, CSI("a"));
    set(s, SCHED_VOLUME, CSI("b"));
    set(s, SCHED_VOLUME, CSI("c"));
    CLEANUP(json_free) struct json *first = pod_of("first", "a");
    sched_set_pod(s, first, "n1");
    assert_decides(s, "ab", "n1"); /* A volume of two pods counts once. */
    assert_decides(s, "bc", "1 node(s) exceed max volume count");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_waiting_claim_chooses_among_nodes_with_volumes),
        cmocka_unit_test(a_provisioner_makes_volumes_where_its_class_may),
        cmocka_unit_test(capacity_counts_where_it_is_told),
        cmocka_unit_test(the_selected_node_stays_as_long_as_it_suits),
        cmocka_unit_test(a_claim_that_does_not_wait_holds_the_pod_up),
        cmocka_unit_test(a_claim_of_one_pod_takes_one),
        cmocka_unit_test(a_node_has_so_many_volumes_of_a_driver),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
