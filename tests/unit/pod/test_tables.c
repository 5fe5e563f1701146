/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of restarts, resources, probes, and security settings. */
#include "api/condition.h"
#include "api/kinds/kind_pod.h"
#include "pod/plan.h"
#include "pod/probe.h"
#include "pod/resources.h"
#include "pod/restart.h"
#include "pod/security.h"
#include "pod/spec.h"
#include "pod/status.h"

#include "json_text.h"

#define S INT64_C(1000000000)

/* ---- restarts ---- */

static void delays_double_up_to_five_minutes(void **state)
{
    static const int64_t want[] = {0, 10, 20, 40, 80, 160, 300, 300, 300};
    for (uint32_t i = 0; i < ARRAY_SIZE(want); i++) {
        assert_int_equal(pod_backoff_s(i), want[i]);
    }
    assert_int_equal(pod_backoff_s(UINT32_MAX), 300);
}

static void the_policy_says_what_is_started_again(void **state)
{
    static const struct {
        enum pod_restart_policy policy;
        enum pod_container_kind kind;
        int32_t code;
        bool want;
    } rows[] = {
        {POD_RESTART_ALWAYS, POD_MAIN, 0, true},      {POD_RESTART_ALWAYS, POD_MAIN, 1, true},
        {POD_RESTART_ON_FAILURE, POD_MAIN, 0, false}, {POD_RESTART_ON_FAILURE, POD_MAIN, 1, true},
        {POD_RESTART_NEVER, POD_MAIN, 1, false},      {POD_RESTART_ALWAYS, POD_INIT, 0, false},
        {POD_RESTART_ALWAYS, POD_INIT, 1, true},      {POD_RESTART_NEVER, POD_INIT, 1, false},
        {POD_RESTART_NEVER, POD_SIDECAR, 0, true},    {POD_RESTART_ALWAYS, POD_EPHEMERAL, 1, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        assert_int_equal(pod_restarts(rows[i].policy, rows[i].kind, rows[i].code), rows[i].want);
    }
}

static void a_delay_begins_at_the_end_and_is_forgotten_after_ten_minutes(void **state)
{
    struct observed_container c = {
        .started_ns = 1000 * S, .finished_ns = 1005 * S, .level = 2, .hash = (char *) "a"};
    assert_int_equal(pod_restart_at(&c, "a"), 1025 * S);
    assert_int_equal(pod_next_level(&c, "a"), 3);
    assert_int_equal(pod_restart_at(&c, "b"), 0);
    assert_int_equal(pod_next_level(&c, "b"), 1);
    c.finished_ns = 1600 * S;
    assert_int_equal(pod_restart_at(&c, "a"), 0);
    assert_int_equal(pod_next_level(&c, "a"), 1);
}

/* ---- resources ---- */

static struct json *pod_of(const char *containers)
{
    CLEANUP_FREE char *text = xasprintf(
        "{'metadata': {'name': 'p', 'namespace': 'n', 'uid': 'a-b'}, 'spec': %s}", containers);
    return from(text);
}

static void classes_of_service(void **state)
{
    static const struct {
        const char *spec, *qos;
        int64_t oom;
        const char *parent, *slice;
    } rows[] = {
        {"{'containers': [{'name': 'c'}]}", "BestEffort", 1000, "/kubepods/besteffort/poda-b",
         "kubepods-besteffort-poda_b.slice"},
        {"{'containers': [{'name': 'c', 'resources': {'limits': {'cpu': '1', 'memory': '1Gi'}}}]}",
         "Guaranteed", -997, "/kubepods/poda-b", "kubepods-poda_b.slice"},
        {"{'containers': [{'name': 'c', 'resources': {'limits': {'cpu': '1', 'memory': '1Gi'},"
         "'requests': {'cpu': '500m'}}}]}",
         "Burstable", 750, "/kubepods/burstable/poda-b", "kubepods-burstable-poda_b.slice"},
        {"{'containers': [{'name': 'c', 'resources': {'requests': {'memory': '1Mi'}}}]}",
         "Burstable", 999, "/kubepods/burstable/poda-b", "kubepods-burstable-poda_b.slice"},
        {"{'containers': [{'name': 'c', 'resources': {'limits': {'cpu': '1', 'memory': '1Gi'}}}],"
         "'initContainers': [{'name': 'i'}]}",
         "Burstable", 750, "/kubepods/burstable/poda-b", "kubepods-burstable-poda_b.slice"},
        {"{'containers': [{'name': 'c', 'resources': {'requests': {'memory': '8Gi'}}}]}",
         "Burstable", 3, "/kubepods/burstable/poda-b", "kubepods-burstable-poda_b.slice"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(json_free) struct json *pod = pod_of(rows[i].spec);
        CLEANUP_ARENA struct arena a = {0};
        const struct json *c = json_at(json_path(pod, "spec", "containers", NULL), 0);
        assert_string_equal(pod_qos_class(json_get(pod, "spec")), rows[i].qos);
        assert_int_equal(pod_oom_score_adj(pod, c, INT64_C(4) << 30), rows[i].oom);
        assert_string_equal(pod_cgroup_parent(pod, "/", false, &a), rows[i].parent);
        assert_string_equal(pod_cgroup_parent(pod, "/", true, &a), rows[i].slice);
    }
}

static void amounts_of_cpu(void **state)
{
    static const struct {
        int64_t milli, shares, weight, quota;
    } rows[] = {
        {0, 2, 1, -1},
        {1, 2, 1, 1000},
        {100, 102, 17, 10000},
        {500, 512, 59, 50000},
        {1000, 1024, 100, 100000},
        {2000, 2048, 174, 200000},
        {1000000, 262144, 10000, 100000000},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        assert_int_equal(pod_cpu_shares(rows[i].milli), rows[i].shares);
        assert_int_equal(pod_cpu_quota(rows[i].milli), rows[i].quota);
        assert_in_range(pod_cpu_weight(rows[i].shares), rows[i].weight, rows[i].weight + 1);
    }
}

static void a_pod_needs_the_larger_of_its_containers_and_its_init_containers(void **state)
{
    CLEANUP(json_free)
    struct json *pod = pod_of(
        "{'overhead': {'cpu': '10m'}, 'containers': ["
        "{'name': 'a', 'resources': {'requests': {'cpu': '100m'}, 'limits': {'cpu': '1'}}},"
        "{'name': 'b', 'resources': {'requests': {'cpu': '200m'}, 'limits': {'cpu': '1'}}}],"
        "'initContainers': ["
        "{'name': 's', 'restartPolicy': 'Always', 'resources': {'requests': {'cpu': '50m'}}},"
        "{'name': 'i', 'resources': {'requests': {'cpu': '500m'}}}]}");
    assert_int_equal(pod_amount(pod, "requests", "cpu"), 560);
    assert_int_equal(pod_amount(pod, "limits", "cpu"), -1);
    json_remove(json_get(pod, "spec"), "initContainers");
    assert_int_equal(pod_amount(pod, "requests", "cpu"), 310);
    assert_int_equal(pod_amount(pod, "limits", "cpu"), 2010);
}

static const char *value_of(const struct pod_cgroup_value *v, size_t n, const char *file)
{
    for (size_t i = 0; i < n; i++) {
        if (streq(v[i].file, file)) {
            return v[i].value;
        }
    }
    return "";
}

static void values_of_a_pods_control_group(void **state)
{
    CLEANUP(json_free)
    struct json *pod =
        pod_of("{'containers': [{'name': 'c', 'resources': {'limits': {'cpu': '500m',"
               "'memory': '64Mi'}}}]}");
    CLEANUP_ARENA struct arena a = {0};
    struct pod_cgroup_value *v;
    size_t n = pod_cgroup_values(pod, false, 100, &a, &v);
    assert_string_equal(value_of(v, n, "cpu.shares"), "512");
    assert_string_equal(value_of(v, n, "cpu.cfs_quota_us"), "50000");
    assert_string_equal(value_of(v, n, "memory.limit_in_bytes"), "67108864");
    assert_string_equal(value_of(v, n, "pids.max"), "100");
    n = pod_cgroup_values(pod, true, 0, &a, &v);
    assert_string_equal(value_of(v, n, "cpu.max"), "50000 100000");
    assert_string_equal(value_of(v, n, "memory.max"), "67108864");
    assert_string_equal(value_of(v, n, "pids.max"), "");
}

static void values_of_the_groups_of_classes(void **state)
{
#define REQUESTS(cpu) \
    "{'containers': [{'name': 'c', 'resources': {'requests': {'cpu': '" cpu "'}}}]}"
    CLEANUP(json_free) struct json *one = pod_of(REQUESTS("250m"));
    CLEANUP(json_free) struct json *two = pod_of(REQUESTS("750m"));
    CLEANUP(json_free) struct json *none = pod_of("{'containers': [{'name': 'c'}]}");
    CLEANUP(json_free)
    struct json *guaranteed = pod_of("{'containers': [{'name': 'c', 'resources': {'limits': "
                                     "{'cpu': '2', 'memory': '1Gi'}}}]}");
    const struct json *pods[] = {one, none, guaranteed, two};
    static const struct {
        enum pod_class_group group;
        bool v2;
        const char *name, *file, *value, *memory;
    } rows[] = {
        {POD_GROUP_ALL, false, "", "cpu.shares", "4096", "1000"},
        {POD_GROUP_BURSTABLE, false, "/burstable", "cpu.shares", "1024", ""},
        {POD_GROUP_BEST_EFFORT, false, "/besteffort", "cpu.shares", "2", ""},
        {POD_GROUP_BURSTABLE, true, "/burstable", "cpu.weight", "100", ""},
        {POD_GROUP_BEST_EFFORT, true, "/besteffort", "cpu.weight", "1", ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_ARENA struct arena a = {0};
        struct pod_cgroup_value *v;
        size_t n = pod_class_group_values(rows[i].group, pods, ARRAY_SIZE(pods), 4000, 1000,
                                          rows[i].v2, &a, &v);
        assert_string_equal(pod_class_group(rows[i].group), rows[i].name);
        assert_string_equal(value_of(v, n, rows[i].file), rows[i].value);
        assert_string_equal(value_of(v, n, rows[i].v2 ? "memory.max" : "memory.limit_in_bytes"),
                            rows[i].memory);
    }
}

/* ---- probes ---- */

static void verdicts_come_at_thresholds(void **state)
{
    CLEANUP(json_free)
    struct json *c = from("{'readinessProbe': {'successThreshold': 2},"
                          "'livenessProbe': {'failureThreshold': 2}}");
    struct pod_probe p;
    struct pod_probe_state s = {0};
    assert_true(pod_probe_read(c, POD_PROBE_READINESS, &p));
    assert_int_equal(p.period_s, 10);
    assert_int_equal(p.timeout_s, 1);
    static const struct {
        bool success;
        enum pod_probe_verdict want;
    } rows[] = {{true, POD_PROBE_SAME},  {true, POD_PROBE_GOOD},  {true, POD_PROBE_SAME},
                {false, POD_PROBE_SAME}, {false, POD_PROBE_SAME}, {true, POD_PROBE_SAME},
                {false, POD_PROBE_SAME}, {false, POD_PROBE_SAME}, {false, POD_PROBE_BAD},
                {false, POD_PROBE_SAME}};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        assert_int_equal(pod_probe_count(&p, POD_PROBE_READINESS, &s, rows[i].success),
                         rows[i].want);
    }
    assert_false(pod_probe_read(c, POD_PROBE_STARTUP, &p));
    assert_true(pod_probe_read(c, POD_PROBE_LIVENESS, &p));
    s = (struct pod_probe_state){0};
    assert_int_equal(pod_probe_count(&p, POD_PROBE_LIVENESS, &s, false), POD_PROBE_SAME);
    assert_int_equal(pod_probe_count(&p, POD_PROBE_LIVENESS, &s, false), POD_PROBE_BAD);
}

static void the_first_probe_waits_for_its_delay_and_spreads_after_a_restart(void **state)
{
    struct pod_probe p = {.initial_delay_s = 5, .period_s = 10};
    assert_int_equal(pod_probe_first_ms(&p, 100 * S, 100 * S, 777), 5000);
    assert_int_equal(pod_probe_first_ms(&p, 100 * S, 107 * S, 777), 0);
    assert_int_equal(pod_probe_first_ms(&p, 100 * S, 500 * S, 777), 777);
}

/* ---- security ---- */

static const struct pod_security_config node = {.seccomp_dir = "/profiles"};

static void a_containers_settings_come_before_the_pods(void **state)
{
    CLEANUP(json_free)
    struct json *pod = pod_of(
        "{'securityContext': {'runAsUser': 5, 'runAsGroup': 6, 'fsGroup': 7,"
        "'supplementalGroups': [8], 'seccompProfile': {'type': 'RuntimeDefault'}}, 'containers': ["
        "{'name': 'c', 'securityContext': {'runAsUser': 9, 'allowPrivilegeEscalation': false,"
        "'capabilities': {'add': ['CAP_SYS_TIME'], 'drop': ['ALL']},"
        "'seccompProfile': {'type': 'Localhost', 'localhostProfile': 'a/b.json'}}}]}");
    CLEANUP_ARENA struct arena a = {0};
    struct runtime_security s;
    const struct json *c = json_at(json_path(pod, "spec", "containers", NULL), 0);
    assert_int_equal(pod_security(pod, c, NULL, &node, &a, &s, NULL), 0);
    assert_int_equal(s.user, 9);
    assert_int_equal(s.group, 6);
    assert_int_equal(s.n_groups, 2);
    assert_int_equal(s.groups[1], 7);
    assert_true(s.no_new_privs);
    assert_string_equal(s.add_capabilities.v[0], "SYS_TIME");
    assert_string_equal(s.drop_capabilities.v[0], "ALL");
    assert_string_equal(s.seccomp.localhost, "/profiles/a/b.json");
    assert_int_equal(s.namespaces.pid, RUNTIME_NS_CONTAINER);
    assert_true(s.masked_paths.n > 0 && s.readonly_paths.n > 0);
    assert_int_equal(pod_security(pod, NULL, NULL, &node, &a, &s, NULL), 0);
    assert_int_equal(s.user, 5);
    assert_int_equal(s.seccomp.type, RUNTIME_PROFILE_DEFAULT);
}

static void profiles_outside_of_their_directory_are_refused(void **state)
{
    static const char *const files[] = {"../x", "/etc/x", "a/../../x", "", "a/.."};
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        CLEANUP_FREE char *spec =
            xasprintf("{'containers': [{'name': 'c', 'securityContext': {'seccompProfile': {'type':"
                      "'Localhost', 'localhostProfile': '%s'}}}]}",
                      files[i]);
        CLEANUP(json_free) struct json *pod = pod_of(spec);
        CLEANUP_ARENA struct arena a = {0};
        struct runtime_security s;
        struct err e = {0};
        const struct json *c = json_at(json_path(pod, "spec", "containers", NULL), 0);
        assert_int_equal(pod_security(pod, c, NULL, &node, &a, &s, &e), -EINVAL);
        assert_true(*e.text);
    }
}

static void root_is_found_out(void **state)
{
    CLEANUP(json_free)
    struct json *pod =
        pod_of("{'securityContext': {'runAsNonRoot': true}, 'containers': [{'name': 'c'}]}");
    struct json *c = json_at(json_path(pod, "spec", "containers", NULL), 0);
    struct runtime_image root = {.has_user = true}, none = {0},
                         user = {.has_user = true, .user = 5}, name = {.username = "www"};
    assert_int_equal(pod_check_non_root(pod, c, &root, NULL), -EPERM);
    assert_int_equal(pod_check_non_root(pod, c, &none, NULL), -EPERM);
    assert_int_equal(pod_check_non_root(pod, c, &name, NULL), -EPERM);
    assert_int_equal(pod_check_non_root(pod, c, &user, NULL), 0);
    json_set_int(json_ensure_object(c, "securityContext"), "runAsUser", 0);
    assert_int_equal(pod_check_non_root(pod, c, &user, NULL), -EPERM);
    json_set_int(json_ensure_object(c, "securityContext"), "runAsUser", 1);
    assert_int_equal(pod_check_non_root(pod, c, &root, NULL), 0);
}

static void only_safe_or_allowed_sysctls_pass(void **state)
{
    static const char *const allowed[] = {"kernel.msg*", NULL};
    static const struct {
        const char *name, *extra;
        bool with, without;
    } rows[] = {
        {"net.ipv4.tcp_syncookies", "", true, true},
        {"net/ipv4/tcp_syncookies", "", true, true},
        {"kernel.msgmax", "", true, false},
        {"kernel.shmmax", "", false, false},
        {"net.ipv4.tcp_syncookies", "'hostNetwork': true,", false, false},
        {"kernel.shm_rmid_forced", "'hostIPC': true,", false, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_FREE char *spec =
            xasprintf("{%s 'securityContext': {'sysctls': [{'name': '%s', 'value': '1'}]}}",
                      rows[i].extra, rows[i].name);
        CLEANUP(json_free) struct json *pod = pod_of(spec);
        CLEANUP_ARENA struct arena a = {0};
        struct runtime_pairs p;
        struct pod_security_config more = {.allowed_sysctls = allowed};
        assert_int_equal(pod_sysctls(pod, &node, &a, &p, NULL) == 0, rows[i].without);
        assert_int_equal(pod_sysctls(pod, &more, &a, &p, NULL) == 0, rows[i].with);
    }
}

/* ---- specifications ---- */

static void a_sandbox_has_the_labels_that_tools_know(void **state)
{
    CLEANUP(json_free)
    struct json *pod = pod_of(
        "{'containers': [{'name': 'c', 'ports': [{'containerPort': 80, 'hostPort': 8080}]}]}");
    static const char *const servers[] = {"10.0.0.10"};
    struct pod_node n = {.log_dir = "/logs",
                         .cgroup_root = "/",
                         .cluster_domain = "cluster.local",
                         .cluster_dns = {servers, 1}};
    CLEANUP_ARENA struct arena a = {0};
    struct runtime_sandbox_spec s;
    assert_int_equal(pod_sandbox_spec(pod, 3, &n, &a, &s, NULL), 0);
    assert_int_equal(s.attempt, 3);
    assert_string_equal(s.hostname, "p");
    assert_string_equal(s.log_directory, "/logs/n_p_a-b");
    assert_int_equal(s.n_ports, 1);
    assert_int_equal(s.ports[0].host_port, 8080);
    assert_string_equal(s.dns_servers.v[0], "10.0.0.10");
    assert_string_equal(s.dns_searches.v[0], "n.svc.cluster.local");
    assert_string_equal(s.dns_options.v[0], "ndots:5");
    assert_int_equal(s.labels.n, 3);
    assert_int_equal(s.security.namespaces.pid, RUNTIME_NS_CONTAINER);
    json_set_bool(json_get(pod, "spec"), "hostNetwork", true);
    json_set_string(json_get(pod, "spec"), "dnsPolicy", "ClusterFirst");
    CLEANUP_ARENA struct arena b = {0};
    assert_int_equal(pod_sandbox_spec(pod, 0, &n, &b, &s, NULL), 0);
    assert_null(s.hostname);
    assert_int_equal(s.n_ports, 0);
    assert_int_equal(s.dns_servers.n, 0);
    assert_int_equal(s.security.namespaces.network, RUNTIME_NS_NODE);
}

static void a_name_with_its_domain_must_fit(void **state)
{
    struct pod_node n = {.log_dir = "/logs", .cgroup_root = "/", .cluster_domain = "cluster.local"};
    static const struct {
        const char *host, *want; /* NULL: too long. */
    } rows[] = {
        {"h", "h.sub.n.svc.cluster.local"},
        {"a23456789012345678901234567890123456789", /* 64 characters with the domain ... */
         "a23456789012345678901234567890123456789.sub.n.svc.cluster.local"},
        {"a234567890123456789012345678901234567890123", NULL}, /* ... and more. */
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(json_free)
        struct json *pod = pod_of("{'subdomain': 'sub', 'setHostnameAsFQDN': true}");
        json_set_string(json_get(pod, "spec"), "hostname", rows[i].host);
        CLEANUP_ARENA struct arena a = {0};
        struct runtime_sandbox_spec s;
        struct err e = {0};
        int r = pod_sandbox_spec(pod, 0, &n, &a, &s, &e);
        assert_int_equal(r, rows[i].want ? 0 : -ENAMETOOLONG);
        if (rows[i].want) {
            assert_string_equal(s.hostname, rows[i].want);
        } else {
            assert_non_null(strstr(e.text, "is too long (64 characters is the max, "));
        }
        json_remove(json_get(pod, "spec"), "setHostnameAsFQDN");
        assert_int_equal(pod_sandbox_spec(pod, 0, &n, &a, &s, NULL), 0);
        assert_string_equal(s.hostname, rows[i].host);
    }
}

static void what_a_resolver_cannot_take_is_left_out_and_told(void **state)
{
    static const char *const servers[] = {"10.0.0.10"}, *const own[] = {"node.example"};
    struct pod_node n = {
        .cluster_domain = "cluster.local", .cluster_dns = {servers, 1}, .dns_searches = {own, 1}};
    CLEANUP(json_free)
    struct json *pod = pod_of("{'dnsConfig': {'nameservers': ['10.0.0.10', '1.1.1.1', '2.2.2.2'],"
                              "'searches': ['node.example', 'a']}}");
    CLEANUP_ARENA struct arena a = {0};
    struct runtime_sandbox_spec s = {0};
    assert_int_equal(pod_dns_left_out(pod, &n, &a).n, 0); /* Three servers; one came twice. */
    json_append(json_path(pod, "spec", "dnsConfig", "nameservers", NULL), json_string("3.3.3.3"));
    struct json *searches = json_path(pod, "spec", "dnsConfig", "searches", NULL);
    for (int i = 0; i < 30; i++) {
        CLEANUP_FREE char *name = xasprintf("s%d", i);
        json_append(searches, json_string(name));
    }
    struct runtime_texts left = pod_dns_left_out(pod, &n, &a);
    assert_int_equal(left.n, 2);
    assert_string_equal(left.v[0],
                        "Nameserver limits were exceeded, some nameservers have been omitted, the "
                        "applied nameserver line is: 10.0.0.10 1.1.1.1 2.2.2.2");
    assert_non_null(strstr(left.v[1], "the applied search line is: n.svc.cluster.local "
                                      "svc.cluster.local cluster.local node.example a s0 "));
    pod_dns(pod, &n, &a, &s);
    assert_int_equal(s.dns_servers.n, 3);
    assert_int_equal(s.dns_searches.n, 32);
    /* The characters are limited, too. */
    CLEANUP_STRBUF struct strbuf longer = STRBUF_INIT;
    for (int i = 0; i < 2048; i++) {
        strbuf_addc(&longer, 'a');
    }
    CLEANUP(json_free)
    struct json *wide = pod_of("{'dnsPolicy': 'None', 'dnsConfig': {'searches': ['b']}}");
    json_append(json_path(wide, "spec", "dnsConfig", "searches", NULL),
                json_string(strbuf_cstr(&longer)));
    left = pod_dns_left_out(wide, &n, &a);
    assert_int_equal(left.n, 1);
    pod_dns(wide, &n, &a, &s);
    assert_int_equal(s.dns_searches.n, 1);
}

static void a_status_patch_has_the_uid_and_only_what_differs(void **state)
{
    CLEANUP(json_free)
    struct json *old = from(
        "{'phase': 'Pending', 'podIP': '1.1.1.1', 'podIPs': [{'ip': '1.1.1.1'}], 'conditions': ["
        "{'type': 'Ready', 'status': 'False', 'reason': 'X'}, {'type': 'other', 'status': "
        "'True'}]}");
    CLEANUP(json_free)
    struct json *now = from(
        "{'phase': 'Running', 'podIP': '1.1.1.2', 'podIPs': [{'ip': '1.1.1.2'}], 'conditions': ["
        "{'type': 'Ready', 'status': 'True'}]}");
    CLEANUP(json_free) struct json *patch = pod_status_patch(old, now, "u");
    assert_json(patch, "{'status': {'phase': 'Running', 'podIP': '1.1.1.2', 'podIPs': ["
                       "{'$patch': 'replace'}, {'ip': '1.1.1.2'}], 'conditions': [{'type': 'Ready',"
                       "'status': 'True', 'reason': null, 'message': null}]},"
                       "'metadata': {'uid': 'u'}}");
    assert_null(pod_status_patch(now, now, "u"));
    CLEANUP(json_free) struct json *merged = pod_status_merge(now, old);
    assert_int_equal(json_count(json_get(merged, "conditions")), 2);
}

/* A container that is being started when the pod must end is not in the runtime's list yet. */
static void a_pod_has_not_failed_while_a_container_may_be_starting(void **state)
{
    CLEANUP(json_free)
    struct json *pod = from("{'metadata': {'name': 'p', 'uid': 'u'}, 'spec': {'containers': ["
                            "{'name': 'c', 'image': 'i'}]}}");
    struct pod_observed o = {.refused_reason = xstrdup("Evicted"), .refused_message = xstrdup("")};
    const struct pod_status_facts facts = {.runtime = "containerd", .work = POD_ENDING};
    pod_observed_fact(&o, "c")->busy = true;
    CLEANUP(json_free) struct json *before = pod_status(pod, NULL, &o, &facts, 1000 * S);
    assert_string_equal(json_get_text(before, "phase"), "Pending");
    pod_observed_fact(&o, "c")->busy = false;
    CLEANUP(json_free) struct json *after = pod_status(pod, before, &o, &facts, 1001 * S);
    assert_string_equal(json_get_text(after, "phase"), "Failed");
    assert_string_equal(json_get_text(after, "reason"), "Evicted");
    pod_observed_done(&o);
}

/* A container may be known as ended while the call that stops it is under way. */
static void an_evicted_pod_never_succeeds(void **state)
{
    CLEANUP(json_free)
    struct json *pod = from("{'metadata': {'name': 'p', 'uid': 'u'}, 'spec': {'restartPolicy': "
                            "'Never', 'containers': [{'name': 'c', 'image': 'i'}]}}");
    struct pod_observed o = {.refused_reason = xstrdup("Evicted"), .refused_message = xstrdup("")};
    const struct pod_status_facts facts = {.runtime = "containerd", .work = POD_ENDING};
    struct runtime_container c = {
        .id = "1", .sandbox_id = "s", .name = "c", .state = RUNTIME_EXITED, .finished_ns = 999 * S};
    pod_observed_set_details(pod_observed_add_container(&o, &c), &c);
    pod_observed_fact(&o, "c")->busy = true;
    CLEANUP(json_free) struct json *before = pod_status(pod, NULL, &o, &facts, 1000 * S);
    assert_string_equal(json_get_text(before, "phase"), "Running");
    pod_observed_fact(&o, "c")->busy = false;
    CLEANUP(json_free) struct json *after = pod_status(pod, before, &o, &facts, 1001 * S);
    assert_string_equal(json_get_text(after, "phase"), "Failed");
    pod_observed_done(&o);
}

/* The runtime keeps the first container, which failed, and loses the second, which ended well. */
static void the_end_of_a_lost_container_counts_more_than_that_of_an_older_one(void **state)
{
    CLEANUP(json_free)
    struct json *pod = from("{'metadata': {'name': 'p', 'uid': 'u'}, 'spec': {'restartPolicy': "
                            "'OnFailure', 'containers': [{'name': 'c', 'image': 'i'}]}}");
    CLEANUP(json_free)
    struct json *told =
        from("{'phase': 'Running', 'containerStatuses': [{'name': 'c', 'restartCount': 1,"
             "'containerID': 'containerd://2', 'state': {'terminated': {'exitCode': 0}}}]}");
    struct runtime_container c = {.id = "1",
                                  .sandbox_id = "s",
                                  .name = "c",
                                  .state = RUNTIME_EXITED,
                                  .exit_code = 3,
                                  .finished_ns = 999 * S};
    const struct pod_status_facts facts = {.runtime = "containerd", .work = POD_SYNC};
    struct pod_observed o = {0};
    struct pod_last last;
    pod_observed_set_details(pod_observed_add_container(&o, &c), &c);
    pod_last_of(&o, told, "c", &last);
    assert_null(last.c);
    assert_int_equal(last.state, POD_EXITED);
    assert_int_equal(last.exit_code, 0);
    assert_int_equal(last.restarts, 2);
    CLEANUP(json_free) struct json *status = pod_status(pod, told, &o, &facts, 1000 * S);
    assert_string_equal(json_get_text(status, "phase"), "Succeeded");
    const struct json *one = json_at(json_get(status, "containerStatuses"), 0);
    assert_string_equal(json_get_text(one, "containerID"), "containerd://2");
    pod_observed_done(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delays_double_up_to_five_minutes),
        cmocka_unit_test(the_policy_says_what_is_started_again),
        cmocka_unit_test(a_delay_begins_at_the_end_and_is_forgotten_after_ten_minutes),
        cmocka_unit_test(classes_of_service),
        cmocka_unit_test(amounts_of_cpu),
        cmocka_unit_test(a_pod_needs_the_larger_of_its_containers_and_its_init_containers),
        cmocka_unit_test(values_of_a_pods_control_group),
        cmocka_unit_test(values_of_the_groups_of_classes),
        cmocka_unit_test(verdicts_come_at_thresholds),
        cmocka_unit_test(the_first_probe_waits_for_its_delay_and_spreads_after_a_restart),
        cmocka_unit_test(a_containers_settings_come_before_the_pods),
        cmocka_unit_test(profiles_outside_of_their_directory_are_refused),
        cmocka_unit_test(root_is_found_out),
        cmocka_unit_test(only_safe_or_allowed_sysctls_pass),
        cmocka_unit_test(a_sandbox_has_the_labels_that_tools_know),
        cmocka_unit_test(a_name_with_its_domain_must_fit),
        cmocka_unit_test(what_a_resolver_cannot_take_is_left_out_and_told),
        cmocka_unit_test(a_status_patch_has_the_uid_and_only_what_differs),
        cmocka_unit_test(a_pod_has_not_failed_while_a_container_may_be_starting),
        cmocka_unit_test(an_evicted_pod_never_succeeds),
        cmocka_unit_test(the_end_of_a_lost_container_counts_more_than_that_of_an_older_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
