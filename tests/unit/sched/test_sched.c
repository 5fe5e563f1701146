/* SPDX-License-Identifier: Apache-2.0 */
/* The words, the scores, preemption and the policy file; test_oracle.c compares the filters with a
 * plain implementation. */
#include "base/mem.h"
#include "sched/sched.h"

#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

/* Parses a text in which ' stands for ". */
static struct json *parse(const char *text)
{
    CLEANUP_FREE char *s = xstrdup(text);
    struct json *o = NULL;
    struct err e = {0};
    for (char *p = s; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    if (json_parse(s, strlen(s), &o, &e) < 0) {
        fail_msg("%s: %s", e.text, s);
    }
    return o;
}

/* A node with these labels and members of its spec. */
static void add_node(struct sched *s, const char *name, const char *labels, const char *spec)
{
    CLEANUP_FREE char *text =
        xasprintf("{'metadata':{'name':'%s','labels':{%s}},'spec':{%s},'status':{"
                  "'allocatable':{'cpu':'4','memory':'8Gi','pods':'10'},"
                  "'nodeInfo':{'containerRuntimeVersion':'containerd://1.6.20'},"
                  "'conditions':[{'type':'Ready','status':'True'}]}}",
                  name, labels, spec);
    CLEANUP(json_free) struct json *o = parse(text);
    (void) sched_set_node(s, o);
}

/* A pod of namespace "n" with these labels, members of its container and members of its spec. */
static struct json *pod(const char *name, const char *labels, const char *container,
                        const char *spec)
{
    CLEANUP_FREE char *text =
        xasprintf("{'metadata':{'name':'%s','namespace':'n','labels':{%s}},"
                  "'spec':{'containers':[{'name':'c'%s%s}]%s%s}}",
                  name, labels, *container ? "," : "", container, *spec ? "," : "", spec);
    return parse(text);
}

static void add_pod(struct sched *s, const char *node, struct json *o)
{
    sched_set_pod(s, o, node);
    json_free(o);
}

#define REQUESTS(cpu, memory) "'resources':{'requests':{'cpu':'" cpu "','memory':'" memory "'}}"

/* Decides; the pod is taken over.  The result is the node's name, or the text why not. */
static char *decide(struct sched *s, struct json *o)
{
    struct sched_decision d;
    sched_decide(s, o, &d);
    char *text = xstrdup(d.node ? d.node : d.why);
    sched_decision_done(&d);
    json_free(o);
    return text;
}

#define ASSERT_DECIDES(s, o, want)              \
    do {                                        \
        CLEANUP_FREE char *got_ = decide(s, o); \
        assert_string_equal(got_, want);        \
    } while (0)

/* ---- requests ---- */

static const char init_containers[] =
    "{'spec':{'containers':[{" REQUESTS("100m", "1") "},{" REQUESTS(
        "200m", "1") "}],"
                     "'initContainers':[{" REQUESTS(
                         "250m",
                         "1") "},"
                              "{'restartPolicy':'Always'," REQUESTS("50m", "1") "},{" REQUESTS(
                                  "400m", "1") "}],"
                                               "'overhead':{'cpu':'10m'}}}";

static void init_containers_share_their_room(void **state)
{
    CLEANUP(json_free) struct json *o = parse(init_containers);
    /* The second init container stays beside the last one: 50 + 400, more than 100 + 200 + 50. */
    assert_int_equal(sched_pod_request(o, "cpu"), 460);
    assert_int_equal(sched_pod_request(o, "memory"), 3);
}

/* ---- words ---- */

static void words_count_causes_and_say_what_helps(void **state)
{
    CLEANUP(sched_free) struct sched *s = sched_new(1);
    ASSERT_DECIDES(s, pod("a", "", "", ""), "no nodes available to schedule pods: start a kubelet");
    add_node(s, "n1", "", "'taints':[{'key':'k','value':'v','effect':'NoSchedule'}]");
    add_node(s, "n2", "", "'taints':[{'key':'k','value':'v','effect':'NoExecute'}]");
    add_node(s, "n3", "", "");
    ASSERT_DECIDES(s, pod("a", "", REQUESTS("5", "1Gi"), ""),
                   "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint "
                   "{k: v}. What helps: tolerate or remove the taint; or add a node, end other "
                   "pods, or request less.");
    ASSERT_DECIDES(
        s, pod("a", "", REQUESTS("5", "9Gi"), "'tolerations':[{'operator':'Exists'}]"),
        "0/3 nodes are available: 3 Insufficient cpu, 3 Insufficient memory. What helps: "
        "add a node, end other pods, or request less.");
    ASSERT_DECIDES(s, pod("a", "", "'resources':{'limits':{'x.com/y':'1'}}", "'nodeName':'n3'"),
                   "0/3 nodes are available: 1 Insufficient x.com/y, 2 node(s) didn't match the "
                   "requested node name. What helps: add a node, end other pods, or request less.");
    ASSERT_DECIDES(s,
                   pod("a", "", "",
                       "'nodeSelector':{'disk':'ssd'},"
                       "'tolerations':[{'operator':'Exists'}]"),
                   "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector. "
                   "What helps: label a node as the pod asks.");
    ASSERT_DECIDES(s, pod("a", "", "", ""), "n3");
}

static void nodes_without_kubelet_get_no_pods(void **state)
{
    static const char *const nodes[] = {
        "{'metadata':{'name':'a'},'status':{'conditions':[{'type':'Ready','status':'True'}]}}",
        "{'metadata':{'name':'b'},'status':{'allocatable':{'cpu':'4','memory':'1Gi','pods':'9'},"
        "'conditions':[{'type':'Ready','status':'True'}]}}",
        "{'metadata':{'name':'c'},'status':{'allocatable':{'cpu':'4','memory':'1Gi'},"
        "'nodeInfo':{'containerRuntimeVersion':'x'},"
        "'conditions':[{'type':'Ready','status':'True'}]}}",
    };
    CLEANUP(sched_free) struct sched *s = sched_new(1);
    for (size_t i = 0; i < ARRAY_SIZE(nodes); i++) {
        CLEANUP(json_free) struct json *o = parse(nodes[i]);
        (void) sched_set_node(s, o);
    }
    assert_int_equal(sched_node_count(s), 0);
    ASSERT_DECIDES(s, pod("a", "", "", "'tolerations':[{'operator':'Exists'}]"),
                   "0/3 nodes are available: 3 node(s) run no containers. What helps: start a "
                   "kubelet on them.");
    /* A node that is not ready is as good as tainted. */
    CLEANUP(json_free)
    struct json *late = parse("{'metadata':{'name':'d'},'status':{'allocatable':{'cpu':'4',"
                              "'memory':'1Gi','pods':'9'},'nodeInfo':{'containerRuntimeVersion':"
                              "'x'},'conditions':[{'type':'Ready','status':'Unknown'}]}}");
    (void) sched_set_node(s, late);
    assert_int_equal(sched_node_count(s), 1);
    CLEANUP_FREE char *why = decide(s, pod("a", "", "", ""));
    assert_non_null(
        strstr(why, "1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }"));
}

static void cordon_and_pod_count(void **state)
{
    CLEANUP(sched_free) struct sched *s = sched_new(1);
    add_node(s, "n1", "", "'unschedulable':true");
    ASSERT_DECIDES(s, pod("a", "", "", ""),
                   "0/1 nodes are available: 1 node(s) were unschedulable. What helps: uncordon a "
                   "node.");
    ASSERT_DECIDES(s,
                   pod("a", "", "",
                       "'tolerations':[{'key':'node.kubernetes.io/unschedulable',"
                       "'operator':'Exists'}]"),
                   "n1");
    add_node(s, "n1", "", "");
    for (unsigned i = 0; i < 10; i++) {
        CLEANUP_FREE char *name = xasprintf("p%u", i);
        add_pod(s, "n1", pod(name, "", "", ""));
    }
    ASSERT_DECIDES(s, pod("a", "", "", ""),
                   "0/1 nodes are available: 1 Too many pods. What helps: add a node, end other "
                   "pods, or request less.");
    /* A pod that has ended, or is gone, takes no room. */
    add_pod(s, "n1",
            parse("{'metadata':{'name':'p0','namespace':'n'},"
                  "'status':{'phase':'Succeeded'}}"));
    ASSERT_DECIDES(s, pod("a", "", "", ""), "n1");
}

static void volumes(void **state)
{
    static const char claim[] = "'volumes':[{'name':'v','persistentVolumeClaim':{"
                                "'claimName':'c'}}]";
    CLEANUP(sched_free) struct sched *s = sched_new(1);
    add_node(s, "n1", "'zone':'a'", "");
    add_node(s, "n2", "'zone':'b'", "");
    ASSERT_DECIDES(s, pod("a", "", "", claim),
                   "0/2 nodes are available: persistentvolumeclaim \"c\" not found.");
    CLEANUP(json_free)
    struct json *open = parse("{'metadata':{'name':'c','namespace':'n'},'spec':{}}");
    sched_set(s, SCHED_CLAIM, open);
    CLEANUP_FREE char *why = decide(s, pod("a", "", "", claim));
    assert_non_null(strstr(why, "pod has unbound immediate PersistentVolumeClaims: \"c\""));
    CLEANUP(json_free)
    struct json *bound =
        parse("{'metadata':{'name':'c','namespace':'n','annotations':{'pv.kubernetes.io/"
              "bind-completed':'yes'}},'spec':{'volumeName':'v'}}");
    CLEANUP(json_free)
    struct json *volume =
        parse("{'metadata':{'name':'v'},'spec':{'nodeAffinity':{'required':{'nodeSelectorTerms':["
              "{'matchExpressions':[{'key':'zone','operator':'In','values':['b']}]}]}}}}");
    sched_set(s, SCHED_CLAIM, bound);
    CLEANUP_FREE char *lost = decide(s, pod("a", "", "", claim));
    assert_non_null(
        strstr(lost, "persistentvolume \"v\" of persistentvolumeclaim \"c\" not found"));
    sched_set(s, SCHED_VOLUME, volume);
    ASSERT_DECIDES(s, pod("a", "", "", claim), "n2");
    sched_remove(s, SCHED_VOLUME, "v");
    sched_remove_node(s, "n2");
    sched_set(s, SCHED_VOLUME, volume);
    CLEANUP_FREE char *conflict = decide(s, pod("a", "", "", claim));
    assert_non_null(strstr(conflict, "1 node(s) had volume node affinity conflict"));
}

static void too_many_terms(void **state)
{
    CLEANUP(sched_free) struct sched *s = sched_new(1);
    CLEANUP_STRBUF struct strbuf spec = STRBUF_INIT;
    strbuf_adds(&spec, "'affinity':{'podAntiAffinity':{"
                       "'requiredDuringSchedulingIgnoredDuringExecution':[");
    for (unsigned i = 0; i < 65; i++) {
        strbuf_addf(&spec, "%s{'topologyKey':'k%u','labelSelector':{}}", i ? "," : "", i);
    }
    strbuf_adds(&spec, "]}}");
    add_node(s, "n1", "'k0':'1'", "");
    ASSERT_DECIDES(s, pod("a", "", "", strbuf_cstr(&spec)),
                   "0/1 nodes are available: the pod has more than 64 terms of affinity and "
                   "spreading.");
    /* One that was put on a node all the same refuses nobody. */
    add_pod(s, "n1", pod("a", "", "", strbuf_cstr(&spec)));
    ASSERT_DECIDES(s, pod("b", "", "", ""), "n1");
}

/* ---- scores ---- */

static void scores(void **state)
{
    static const struct {
        const char *what, *labels[2], *spec[2]; /* Of the two nodes. */
        const char *there;                      /* A pod on the first node: its container. */
        const char *pod;
    } cases[] = {
        {"least allocated", {"", ""}, {"", ""}, REQUESTS("1", "1Gi"), ""},
        {"taint", {"", ""}, {"'taints':[{'key':'k','effect':'PreferNoSchedule'}]", ""}, NULL, ""},
        {"node affinity",
         {"", "'disk':'ssd'"},
         {"", ""},
         NULL,
         "'affinity':{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{"
         "'weight':1,'preference':{'matchExpressions':[{'key':'disk','operator':'Exists'}]}}]}}"},
        {"apart from others",
         {"'h':'1'", "'h':'2'"},
         {"", ""},
         "",
         "'affinity':{'podAntiAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{"
         "'weight':1,'podAffinityTerm':{'topologyKey':'h','labelSelector':{}}}]}}"},
        {"spreading",
         {"'h':'1'", "'h':'2'"},
         {"", ""},
         "",
         "'topologySpreadConstraints':[{'topologyKey':'h','maxSkew':1,"
         "'whenUnsatisfiable':'ScheduleAnyway','labelSelector':{}}]"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        for (uint64_t seed = 0; seed < 8; seed++) {
            CLEANUP(sched_free) struct sched *s = sched_new(seed);
            add_node(s, "n1", cases[i].labels[0], cases[i].spec[0]);
            add_node(s, "n2", cases[i].labels[1], cases[i].spec[1]);
            if (cases[i].there) {
                add_pod(s, "n1", pod("t", "'app':'t'", cases[i].there, ""));
            }
            CLEANUP_FREE char *got = decide(s, pod("a", "'app':'t'", "", cases[i].pod));
            if (!streq(got, "n2")) {
                fail_msg("%s: %s", cases[i].what, got);
            }
        }
    }
}

static void pods_are_drawn_to_their_company(void **state)
{
    for (uint64_t seed = 0; seed < 8; seed++) {
        CLEANUP(sched_free) struct sched *s = sched_new(seed);
        add_node(s, "n1", "'h':'1'", "");
        add_node(s, "n2", "'h':'2'", "");
        add_pod(s, "n1",
                pod("t", "'app':'t'", "",
                    "'affinity':{'podAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':"
                    "[{'weight':100,'podAffinityTerm':{'topologyKey':'h','labelSelector':"
                    "{'matchLabels':{'app':'web'}}}}]}}"));
        ASSERT_DECIDES(s, pod("a", "'app':'web'", "", ""), "n1");
    }
}

static void ties_depend_on_the_seed_alone(void **state)
{
    size_t first = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        CLEANUP(sched_free) struct sched *s = sched_new(seed), *same = sched_new(seed);
        for (unsigned i = 0; i < 2; i++) {
            add_node(i ? same : s, "n1", "", "");
            add_node(i ? same : s, "n2", "", "");
        }
        CLEANUP_FREE char *got = decide(s, pod("a", "", "", ""));
        ASSERT_DECIDES(same, pod("a", "", "", ""), got);
        first += streq(got, "n1");
    }
    assert_in_range(first, 20, 80);
}

static void large_clusters_are_sampled_in_turns(void **state)
{
    CLEANUP(sched_free) struct sched *s = sched_new(1);
    for (unsigned i = 0; i < 1000; i++) {
        CLEANUP_FREE char *name = xasprintf("n%u", i);
        add_node(s, name,
                 i % 2 ? "'topology.kubernetes.io/zone':'a'" : "'topology.kubernetes.io/zone':'b'",
                 "");
    }
    CLEANUP(json_free) struct json *o = pod("a", "", "", "");
    struct sched_decision d;
    for (unsigned i = 0; i < 3; i++) {
        sched_decide(s, o, &d);
        assert_int_equal(d.n_checked, 420);
        assert_int_equal(d.n_fit, 420);
        sched_decision_done(&d);
    }
    /* A pod that only one node suits finds it wherever the search begins. */
    ASSERT_DECIDES(s,
                   pod("b", "", "",
                       "'affinity':{'nodeAffinity':{"
                       "'requiredDuringSchedulingIgnoredDuringExecution':{"
                       "'nodeSelectorTerms':[{'matchFields':[{'key':"
                       "'metadata.name','operator':'In','values':['n7']}]}]}}}"),
                   "n7");
}

/* ---- preemption ---- */

static struct json *important(const char *name, int priority, const char *container)
{
    CLEANUP_FREE char *spec = xasprintf("'priority':%d", priority);
    return pod(name, "'app':'v'", container, spec);
}

static void assert_preempts(struct sched *s, struct json *o, const char *node, const char *victims)
{
    struct sched_preemption p;
    CLEANUP_STRBUF struct strbuf list = STRBUF_INIT;
    sched_preempt(s, o, &p);
    assert_string_equal(p.node ? p.node : p.why, node);
    for (size_t i = 0; i < p.n_victims; i++) {
        strbuf_addf(&list, "%s%s", i ? " " : "", p.victims[i]);
    }
    assert_string_equal(strbuf_cstr(&list), victims);
    sched_preemption_done(&p);
    json_free(o);
}

static void preemption_chooses_what_disturbs_least(void **state)
{
    CLEANUP(sched_free) struct sched *s = sched_new(1);
    add_node(s, "n1", "", "");
    add_node(s, "n2", "", "");
    add_pod(s, "n1", important("a", 5, REQUESTS("3", "1Gi")));
    add_pod(s, "n1", important("b", 1, REQUESTS("1", "1Gi")));
    add_pod(s, "n2", important("c", 3, REQUESTS("2", "1Gi")));
    add_pod(s, "n2", important("d", 2, REQUESTS("2", "1Gi")));
    /* One cpu: b alone is the least important victim. */
    assert_preempts(s, important("x", 9, REQUESTS("1", "1Gi")), "n1", "n/b");
    /* Three: on n1 the victim is a (5), on n2 both (3 at most). */
    assert_preempts(s, important("x", 9, REQUESTS("3", "1Gi")), "n2", "n/c n/d");
    /* A budget that allows none outweighs the priority. */
    CLEANUP(json_free)
    struct json *budget = parse("{'metadata':{'name':'p','namespace':'n'},'spec':{'selector':{"
                                "'matchLabels':{'app':'v'}}},'status':{'disruptionsAllowed':1}}");
    sched_set(s, SCHED_BUDGET, budget);
    assert_preempts(s, important("x", 9, REQUESTS("3", "1Gi")), "n1", "n/a");
    /* Equal priority displaces nothing, nor does a pod that may not. */
    assert_preempts(s, important("x", 1, REQUESTS("1", "1Gi")),
                    "preemption: 0/2 nodes are available: 2 No preemption victims found for "
                    "incoming pod.",
                    "");
    assert_preempts(s,
                    pod("x", "", REQUESTS("1", "1Gi"), "'priority':9,'preemptionPolicy':'Never'"),
                    "preemption: not eligible due to preemptionPolicy=Never.", "");
    /* Preemption does not help against a selector. */
    assert_preempts(s, pod("x", "", "", "'priority':9,'nodeSelector':{'a':'b'}"),
                    "preemption: 0/2 nodes are available: 2 Preemption is not helpful for "
                    "scheduling.",
                    "");
    /* Afterwards the model is as before. */
    ASSERT_DECIDES(s, important("x", 9, REQUESTS("1", "1Gi")),
                   "0/2 nodes are available: 2 Insufficient cpu. What helps: add a node, end other "
                   "pods, or request less.");
}

static void preemption_for_anti_affinity(void **state)
{
    CLEANUP(sched_free) struct sched *s = sched_new(1);
    add_node(s, "n1", "'h':'1'", "");
    add_pod(s, "n1", important("a", 1, ""));
    add_pod(s, "n1", pod("b", "'app':'w'", "", "'priority':1"));
    assert_preempts(s,
                    pod("x", "", "",
                        "'priority':9,'affinity':{'podAntiAffinity':{"
                        "'requiredDuringSchedulingIgnoredDuringExecution':[{'topologyKey':'h',"
                        "'labelSelector':{'matchLabels':{'app':'v'}}}]}}"),
                    "n1", "n/a");
}

static void room_of_a_nominee_is_kept(void **state)
{
    CLEANUP(sched_free) struct sched *s = sched_new(1);
    CLEANUP(json_free) struct json *x = important("x", 9, REQUESTS("3", "1Gi"));
    add_node(s, "n1", "", "");
    sched_nominate(s, x, "n1");
    CLEANUP_FREE char *why = decide(s, important("y", 1, REQUESTS("2", "1Gi")));
    assert_non_null(strstr(why, "1 Insufficient cpu"));
    ASSERT_DECIDES(s, important("y", 1, REQUESTS("1", "1Gi")), "n1");
    ASSERT_DECIDES(s, important("y", 10, REQUESTS("2", "1Gi")), "n1");
    ASSERT_DECIDES(s, json_clone(x), "n1");
    sched_nominate(s, x, NULL);
    ASSERT_DECIDES(s, important("y", 1, REQUESTS("2", "1Gi")), "n1");
}

/* ---- OpenShift's policy file ---- */

static void set_policy(struct sched *s, const char *text)
{
    CLEANUP_SCHED_POLICY struct sched_policy p = {0};
    CLEANUP(json_free) struct json *o = parse(text);
    CLEANUP_FREE char *json = json_to_text(o);
    struct err e = {0};
    if (sched_policy_parse(json, strlen(json), &p, NULL, &e) < 0) {
        fail_msg("%s", e.text);
    }
    sched_set_policy(s, &p);
}

static void openshift_default_policy(void **state)
{
    /* Region and zone, as the advanced installation wrote them. */
    static const char policy[] =
        "{'apiVersion':'v1','kind':'Policy','predicates':[{'name':'NoVolumeZoneConflict'},"
        "{'name':'MaxEBSVolumeCount'},{'name':'MatchInterPodAffinity'},{'name':'NoDiskConflict'},"
        "{'name':'GeneralPredicates'},{'name':'PodToleratesNodeTaints'},"
        "{'argument':{'serviceAffinity':{'labels':['region']}},'name':'Region'}],"
        "'priorities':[{'name':'SelectorSpreadPriority','weight':1},"
        "{'name':'LeastRequestedPriority','weight':1},"
        "{'argument':{'serviceAntiAffinity':{'label':'zone'}},'name':'Zone','weight':2}]}";
    CLEANUP(sched_free) struct sched *s = sched_new(1);
    CLEANUP(json_free)
    struct json *service = parse("{'metadata':{'name':'w','namespace':'n'},"
                                 "'spec':{'selector':{'app':'w'}}}");
    set_policy(s, policy);
    sched_set(s, SCHED_SERVICE, service);
    add_node(s, "n1", "'region':'r1','zone':'a'", "");
    add_node(s, "n2", "'region':'r1','zone':'b'", "");
    add_node(s, "n3", "'region':'r2','zone':'c'", "");
    add_pod(s, "n1", pod("t", "'app':'w','i':'1'", "", ""));
    /* The second pod of the service: the same region, another zone. */
    ASSERT_DECIDES(s, pod("a", "'app':'w','i':'2'", "", ""), "n2");
    CLEANUP(json_free) struct json *third = pod("a", "'app':'w'", "", "");
    assert_int_equal(sched_check(s, third, "n3"), SCHED_SERVICE_AFFINITY);
    /* A pod that names its region is not bound to the others. */
    ASSERT_DECIDES(s, pod("a", "'app':'w'", "", "'nodeSelector':{'region':'r2'}"), "n3");
}

static void policy_arguments(void **state)
{
    CLEANUP(sched_free) struct sched *s = sched_new(1);
    add_node(s, "n1", "'retiring':'1'", "");
    add_node(s, "n2", "'rack':'1'", "");
    set_policy(s, "{'kind':'Policy','predicates':[{'name':'R','argument':{'labelsPresence':{"
                  "'labels':['retiring'],'presence':false}}}],'priorities':[]}");
    CLEANUP(json_free) struct json *o = pod("a", "", REQUESTS("9", "1"), "");
    assert_int_equal(sched_check(s, o, "n1"), SCHED_LABEL_PRESENCE);
    /* The file replaces the defaults: nothing compares resources. */
    assert_int_equal(sched_check(s, o, "n2"), SCHED_FITS);
    set_policy(s, "{'kind':'Policy','priorities':[{'name':'P','weight':1,'argument':{"
                  "'labelPreference':{'label':'rack','presence':true}}}]}");
    assert_int_equal(sched_check(s, o, "n2"), SCHED_RESOURCES);
    ASSERT_DECIDES(s, pod("a", "", "", ""), "n2");
    set_policy(s, "{'kind':'Policy','priorities':[{'name':'MostRequestedPriority','weight':1}]}");
    add_pod(s, "n1", pod("t", "", REQUESTS("1", "1Gi"), ""));
    ASSERT_DECIDES(s, pod("a", "", "", ""), "n1");
}

static void wrong_policies(void **state)
{
    static const char *const cases[][2] = {
        {"{}", "its kind is \"\", not \"Policy\""},
        {"{\"kind\":\"Policy\",\"predicates\":[{\"name\":\"X\"}]}",
         "predicate \"X\" is not known, and has no argument serviceAffinity or labelsPresence"},
        {"{\"kind\":\"Policy\",\"priorities\":[{\"name\":\"EqualPriority\"}]}",
         "priority \"EqualPriority\": weight is not in 1-1000000"},
        {"{\"kind\":\"Policy\",\"priorities\":[{\"name\":\"X\",\"weight\":1}]}",
         "priority \"X\" is not known, and has no argument serviceAntiAffinity or labelPreference"},
        {"{\"kind\":\"Policy\",\"predicates\":[{\"name\":\"R\",\"argument\":{\"serviceAffinity\":"
         "{\"labels\":[]}}}]}",
         "predicate \"R\": argument.labels is empty"},
        {"{\"kind\":\"Policy\",\"extenders\":[{}]}",
         "extenders are not supported: run a scheduler of your own and name it in "
         "spec.schedulerName of the pods"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct sched_policy p = {0};
        struct err e = {0};
        assert_true(sched_policy_parse(cases[i][0], strlen(cases[i][0]), &p, NULL, &e) < 0);
        assert_string_equal(e.text, cases[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(init_containers_share_their_room),
        cmocka_unit_test(words_count_causes_and_say_what_helps),
        cmocka_unit_test(nodes_without_kubelet_get_no_pods),
        cmocka_unit_test(cordon_and_pod_count),
        cmocka_unit_test(volumes),
        cmocka_unit_test(too_many_terms),
        cmocka_unit_test(scores),
        cmocka_unit_test(pods_are_drawn_to_their_company),
        cmocka_unit_test(ties_depend_on_the_seed_alone),
        cmocka_unit_test(large_clusters_are_sampled_in_turns),
        cmocka_unit_test(preemption_chooses_what_disturbs_least),
        cmocka_unit_test(preemption_for_anti_affinity),
        cmocka_unit_test(room_of_a_nominee_is_kept),
        cmocka_unit_test(openshift_default_policy),
        cmocka_unit_test(policy_arguments),
        cmocka_unit_test(wrong_policies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
