/* SPDX-License-Identifier: Apache-2.0 */
/* From services and pods to Endpoints and EndpointSlices, over random histories. */
#include "base/mem.h"
#include "controller/obj.h"
#include "controllers/services/endpoint_index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct json *parse(const char *text)
{
    struct json *v = NULL;
    struct err e = {0};
    if (json_parse(text, strlen(text), &v, &e) < 0) {
        fail_msg("%s: %s", text, e.text);
    }
    return v;
}

static uint64_t state = 88172645463325252;
static unsigned random_below(unsigned n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned) (state % n);
}

static struct endpoint_pod *pod(const char *text)
{
    CLEANUP(json_free) struct json *v = parse(text);
    CLEANUP(json_free)
    struct json *anywhere = parse("{\"hostIP\":\"192.0.2.1\",\"subnet\":\"10.128.0.0/14\"}");
    struct endpoint_pod *p = endpoint_pod_new(v);
    (void) endpoint_pod_settle(p, anywhere, NULL, NULL);
    return p;
}

#define POD(name, ip, ready, more)                                                                 \
    "{\"metadata\":{\"namespace\":\"red\",\"name\":\"" name "\",\"uid\":\"u-" name                 \
    "\",\"labels\":{\"app\":\"web\",\"v\":\"1\"}},\"spec\":{\"nodeName\":\"n1\",\"containers\":[{" \
    "\"name\":\"c\",\"ports\":[{\"name\":\"http\",\"containerPort\":8080,\"protocol\":\"TCP\"}]}]" \
    "},\"status\":{\"phase\":\"Running\",\"podIP\":\"" ip                                          \
    "\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"" ready                                   \
    "\",\"lastTransitionTime\":\"2026-01-01T00:00:05Z\"}]" more "}}"

#define SERVICE                                                                                    \
    "{\"metadata\":{\"namespace\":\"red\",\"name\":\"web\",\"uid\":\"s\",\"labels\":{\"team\":"    \
    "\"a\""                                                                                        \
    "},\"creationTimestamp\":\"2026-01-01T00:00:01Z\"},\"spec\":{\"clusterIP\":\"172.30.0.9\","    \
    "\"selector\":{\"app\":\"web\"},\"ports\":[{\"name\":\"a\",\"port\":80,\"protocol\":\"TCP\","  \
    "\"targetPort\":\"http\"},{\"name\":\"b\",\"port\":81,\"protocol\":\"UDP\",\"targetPort\":53}" \
    "]}}"

static void expect(struct json *got, const char *want_text)
{
    CLEANUP(json_free) struct json *want = parse(want_text);
    if (!json_equal(got, want)) {
        CLEANUP_FREE char *text = json_to_text(got);
        fail_msg("got %s, want %s", text, want_text);
    }
}

static void endpoints_list_the_pods_with_their_ports(void **unused)
{
    CLEANUP(json_free) struct json *service = parse(SERVICE);
    struct endpoint_pod *pods[] = {
        pod(POD("b", "10.128.0.6", "False", "")),
        pod(POD("a", "10.128.0.5", "True", "")),
        pod("{\"metadata\":{\"namespace\":\"red\",\"name\":\"c\",\"uid\":\"u-c\",\"labels\":{"
            "\"app\":\"web\"}},\"status\":{\"podIP\":\"10.128.0.7\",\"conditions\":[{\"type\":"
            "\"Ready\",\"status\":\"True\"}]}}"),
        pod(POD("d", "", "True", "")),
        pod("{\"metadata\":{\"namespace\":\"red\",\"name\":\"e\",\"uid\":\"u-e\",\"labels\":{"
            "\"app\":\"web\"}},\"status\":{\"phase\":\"Succeeded\",\"podIP\":\"10.128.0.8\"}}"),
    };
    CLEANUP(json_free) struct json *ep = endpoints_plan(service, pods, ARRAY_SIZE(pods));
    expect(json_get(ep, "subsets"),
           "[{\"ports\":[{\"name\":\"a\",\"protocol\":\"TCP\",\"port\":8080},{\"name\":\"b\","
           "\"protocol\":\"UDP\",\"port\":53}],\"addresses\":[{\"ip\":\"10.128.0.5\",\"nodeName\":"
           "\"n1\",\"targetRef\":{\"kind\":\"Pod\",\"namespace\":\"red\",\"name\":\"a\",\"uid\":"
           "\"u-a\"}}],\"notReadyAddresses\":[{\"ip\":\"10.128.0.6\",\"nodeName\":\"n1\","
           "\"targetRef\":{\"kind\":\"Pod\",\"namespace\":\"red\",\"name\":\"b\",\"uid\":\"u-b\"}}]"
           "},{\"ports\":[{\"name\":\"b\",\"protocol\":\"UDP\",\"port\":53}],\"addresses\":[{"
           "\"ip\":\"10.128.0.7\",\"targetRef\":{\"kind\":\"Pod\",\"namespace\":\"red\",\"name\":"
           "\"c\",\"uid\":\"u-c\"}}]}]");
    assert_string_equal(obj_annotation(ep, TRIGGER_TIME_ANNOTATION), "2026-01-01T00:00:05Z");
    assert_string_equal(json_path_string(ep, "metadata", "labels", "team", NULL), "a");
    /* What is there is changed only where it differs, and the rest of it stays. */
    CLEANUP(json_free) struct json *have = json_clone(ep);
    obj_set_annotation(have, "mine", "1");
    assert_null(endpoints_apply_plan(have, ep));
    json_set(have, "subsets", json_array());
    CLEANUP(json_free) struct json *next = endpoints_apply_plan(have, ep);
    assert_true(json_equal(json_get(next, "subsets"), json_get(ep, "subsets")));
    assert_string_equal(obj_annotation(next, "mine"), "1");
    CLEANUP(json_free) struct json *groups = slices_plan(service, pods, ARRAY_SIZE(pods));
    assert_int_equal(json_count(groups), 2);
    expect(json_at(json_get(json_at(groups, 0), "endpoints"), 1),
           "{\"addresses\":[\"10.128.0.6\"],\"conditions\":{\"ready\":false,\"serving\":false,"
           "\"terminating\":false},\"targetRef\":{\"kind\":\"Pod\",\"namespace\":\"red\",\"name\":"
           "\"b\",\"uid\":\"u-b\"},\"nodeName\":\"n1\"}");
    for (size_t i = 0; i < ARRAY_SIZE(pods); i++) {
        endpoint_pod_free(pods[i]);
    }
}

static void of_too_many_pods_endpoints_have_those_that_are_ready(void **unused)
{
    enum { N = ENDPOINTS_MAX + 50 };
    CLEANUP(json_free) struct json *service = parse(SERVICE);
    struct endpoint_pod *pods[N];
    for (unsigned i = 0; i < N; i++) {
        CLEANUP_FREE char *text = xasprintf(
            "{\"metadata\":{\"namespace\":\"red\",\"name\":\"p%u\",\"uid\":\"u%u\"},\"status\":{"
            "\"podIP\":\"10.128.%u.%u\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"%s\"}]}}",
            i, i, i / 200, i % 200 + 2, i < 60 ? "False" : "True");
        pods[i] = pod(text);
    }
    CLEANUP(json_free) struct json *ep = endpoints_plan(service, pods, N);
    const struct json *subset = json_at(json_get(ep, "subsets"), 0);
    assert_int_equal(json_count(json_get(subset, "addresses")), N - 60);
    assert_int_equal(json_count(json_get(subset, "notReadyAddresses")), 10);
    assert_string_equal(obj_annotation(ep, "endpoints.kubernetes.io/over-capacity"), "truncated");
    CLEANUP(json_free) struct json *groups = slices_plan(service, pods, N);
    assert_int_equal(json_count(json_get(json_at(groups, 0), "endpoints")), N);
    for (unsigned i = 0; i < N; i++) {
        endpoint_pod_free(pods[i]);
    }
}

/* Absent and empty are the same, also where the server leaves out what is empty. */
static void endpoints_without_pods_are_not_written_again(void **unused)
{
    CLEANUP(json_free) struct json *service = parse(SERVICE);
    CLEANUP(json_free) struct json *plan = endpoints_plan(service, NULL, 0);
    CLEANUP(json_free) struct json *have = json_clone(plan);
    assert_null(endpoints_apply_plan(have, plan));
    json_remove(have, "subsets");
    assert_null(endpoints_apply_plan(have, plan));
    json_remove(json_get(plan, "metadata"), "labels");
    CLEANUP(json_free) struct json *labels = endpoints_apply_plan(have, plan);
    assert_non_null(labels);
    json_set(json_get(have, "metadata"), "labels", json_object());
    assert_null(endpoints_apply_plan(have, plan));
}

static void a_pod_equals_only_one_with_the_same_members(void **unused)
{
#define TWIN(uid, ip, node, host, sub, labels, ready, phase, more, ports)                         \
    "{\"metadata\":{\"namespace\":\"red\",\"name\":\"p\",\"uid\":\"" uid "\",\"labels\":{" labels \
    "}" more "},\"spec\":{\"nodeName\":\"" node "\",\"hostname\":\"" host                         \
    "\",\"subdomain\":\"" sub "\",\"containers\":[{\"ports\":[" ports                             \
    "]}]},\"status\":{\"phase\":\"" phase "\",\"podIP\":\"" ip                                    \
    "\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"" ready "\"}]}}"
#define PORT(name, protocol, number) \
    "{\"name\":\"" name "\",\"protocol\":\"" protocol "\",\"containerPort\":" number "}"
#define A "\"a\":\"1\""
#define HTTP PORT("http", "TCP", "80")
#define GOING ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\""
#define BASE TWIN("u", "10.128.0.5", "n", "h", "s", A, "True", "Running", "", HTTP)
    static const char *const others[] = {
        TWIN("v", "10.128.0.5", "n", "h", "s", A, "True", "Running", "", HTTP),
        TWIN("u", "10.128.0.6", "n", "h", "s", A, "True", "Running", "", HTTP),
        TWIN("u", "", "n", "h", "s", A, "True", "Running", "", HTTP),
        TWIN("u", "10.128.0.5", "m", "h", "s", A, "True", "Running", "", HTTP),
        TWIN("u", "10.128.0.5", "n", "g", "s", A, "True", "Running", "", HTTP),
        TWIN("u", "10.128.0.5", "n", "h", "t", A, "True", "Running", "", HTTP),
        TWIN("u", "10.128.0.5", "n", "h", "s", "\"a\":\"2\"", "True", "Running", "", HTTP),
        TWIN("u", "10.128.0.5", "n", "h", "s", "\"b\":\"1\"", "True", "Running", "", HTTP),
        TWIN("u", "10.128.0.5", "n", "h", "s", A ",\"b\":\"1\"", "True", "Running", "", HTTP),
        TWIN("u", "10.128.0.5", "n", "h", "s", "", "True", "Running", "", HTTP),
        TWIN("u", "10.128.0.5", "n", "h", "s", A, "False", "Running", "", HTTP),
        TWIN("u", "10.128.0.5", "n", "h", "s", A, "True", "Failed", "", HTTP),
        TWIN("u", "10.128.0.5", "n", "h", "s", A, "True", "Running", GOING, HTTP),
        TWIN("u", "10.128.0.5", "n", "h", "s", A, "True", "Running", "", PORT("web", "TCP", "80")),
        TWIN("u", "10.128.0.5", "n", "h", "s", A, "True", "Running", "", PORT("http", "UDP", "80")),
        TWIN("u", "10.128.0.5", "n", "h", "s", A, "True", "Running", "", PORT("http", "TCP", "81")),
        TWIN("u", "10.128.0.5", "n", "h", "s", A, "True", "Running", "",
             HTTP "," PORT("x", "TCP", "1")),
        TWIN("u", "10.128.0.5", "n", "h", "s", A, "True", "Running", "", ""),
    };
    struct endpoint_pod *base = pod(BASE), *twin = pod(BASE);
    assert_true(endpoint_pod_equal(base, twin));
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        struct endpoint_pod *other = pod(others[i]);
        if (endpoint_pod_equal(base, other) || endpoint_pod_equal(other, base)) {
            fail_msg("%s", others[i]);
        }
        endpoint_pod_free(other);
    }
    endpoint_pod_free(base);
    endpoint_pod_free(twin);
}

static void terminating_pods_serve_in_slices_only(void **unused)
{
    CLEANUP(json_free) struct json *service = parse(SERVICE);
    struct endpoint_pod *p = pod(POD("a", "10.128.0.5", "True", ""));
    p->terminating = true;
    CLEANUP(json_free) struct json *ep = endpoints_plan(service, &p, 1);
    assert_int_equal(json_count(json_get(ep, "subsets")), 0);
    CLEANUP(json_free) struct json *groups = slices_plan(service, &p, 1);
    expect(json_path(json_at(json_get(json_at(groups, 0), "endpoints"), 0), "conditions", NULL),
           "{\"ready\":false,\"serving\":true,\"terminating\":true}");
    /* Whether ready or not, as some clusters of databases want it. */
    json_set_bool(json_get(service, "spec"), "publishNotReadyAddresses", true);
    p->ready = false;
    CLEANUP(json_free) struct json *all = endpoints_plan(service, &p, 1);
    assert_int_equal(json_count(json_path(json_at(json_get(all, "subsets"), 0), "addresses", NULL)),
                     1);
    CLEANUP(json_free) struct json *published = slices_plan(service, &p, 1);
    expect(json_path(json_at(json_get(json_at(published, 0), "endpoints"), 0), "conditions", NULL),
           "{\"ready\":true,\"serving\":false,\"terminating\":true}");
    endpoint_pod_free(p);
}

static void a_pod_has_a_name_below_its_headless_service(void **unused)
{
    CLEANUP(json_free) struct json *service = parse(SERVICE);
    struct endpoint_pod *p = pod(POD("a", "10.128.0.5", "True", ""));
    p->hostname = xstrdup("db-0");
    p->subdomain = xstrdup("other");
    CLEANUP(json_free) struct json *no = slices_plan(service, &p, 1);
    assert_null(json_get(json_at(json_get(json_at(no, 0), "endpoints"), 0), "hostname"));
    free(p->subdomain);
    p->subdomain = xstrdup("web");
    CLEANUP(json_free) struct json *yes = slices_plan(service, &p, 1);
    assert_string_equal(
        json_path_string(json_at(json_get(json_at(yes, 0), "endpoints"), 0), "hostname", NULL),
        "db-0");
    json_set_string(json_get(service, "spec"), "clusterIP", "None");
    json_remove(json_get(service, "spec"), "ports");
    CLEANUP(json_free) struct json *ep = endpoints_plan(service, &p, 1);
    const struct json *subset = json_at(json_get(ep, "subsets"), 0);
    assert_null(json_get(subset, "ports"));
    assert_string_equal(
        json_path_string(json_at(json_get(subset, "addresses"), 0), "hostname", NULL), "db-0");
    endpoint_pod_free(p);
}

static void endpoints_made_by_hand_are_mirrored(void **unused)
{
    CLEANUP(json_free)
    struct json *service =
        parse("{\"metadata\":{\"name\":\"x\",\"namespace\":\"red\"},\"spec\":{}}");
    CLEANUP(json_free)
    struct json *ep =
        parse("{\"metadata\":{\"name\":\"x\",\"namespace\":\"red\",\"uid\":\"e\"},\"subsets\":[{"
              "\"addresses\":[{\"ip\":\"80.1.2.3\",\"hostname\":\"h\"},{\"ip\":\"2001:db8::1\"}],"
              "\"notReadyAddresses\":[{\"ip\":\"80.1.2.4\"}],\"ports\":[{\"port\":443}]}]}");
    assert_true(service_mirrors(service, ep));
    assert_false(service_mirrors(NULL, ep));
    CLEANUP(json_free) struct json *groups = slices_plan_mirror(ep);
    expect(
        groups,
        "[{\"addressType\":\"IPv4\",\"ports\":[{\"name\":\"\",\"protocol\":\"TCP\",\"port\":443}]"
        ",\"endpoints\":[{\"addresses\":[\"80.1.2.3\"],\"conditions\":{\"ready\":true},"
        "\"hostname\":\"h\"},{\"addresses\":[\"80.1.2.4\"],\"conditions\":{\"ready\":false}}]},{"
        "\"addressType\":\"IPv6\",\"ports\":[{\"name\":\"\",\"protocol\":\"TCP\",\"port\":443}],"
        "\"endpoints\":[{\"addresses\":[\"2001:db8::1\"],\"conditions\":{\"ready\":true}}]}]");
    json_set_string(json_ensure_object(json_get(ep, "metadata"), "labels"), SLICE_SKIP_MIRROR_LABEL,
                    "true");
    assert_false(service_mirrors(service, ep));
}

/* ---- slices over time ---- */

#define MAX_SLICES 64
#define MAX_PODS 700

struct slices {
    struct json *list[MAX_SLICES];
    size_t n;
    unsigned made;
    unsigned writes;
};

static size_t slice_by_name(const struct slices *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++) {
        if (streq(obj_name(s->list[i]), name)) {
            return i;
        }
    }
    fail_msg("no slice %s", name);
    return 0;
}

/* Does what the controller would have the server do. */
static void apply(struct slices *s, const struct json *steps)
{
    const struct json *step;
    JSON_FOREACH (step, steps) {
        const char *verb = json_path_string(step, "verb", NULL);
        const struct json *object = json_get(step, "object");
        s->writes++;
        assert_true(json_count(json_get(object, "endpoints")) <= SLICE_MAX ||
                    streq(verb, "DELETE"));
        if (streq(verb, "POST")) {
            assert_true(s->n < MAX_SLICES);
            s->list[s->n] = json_clone(object);
            json_set(json_get(s->list[s->n++], "metadata"), "name",
                     json_stringf("web-%u", s->made++));
        } else {
            size_t i = slice_by_name(s, obj_name(object));
            json_free(s->list[i]);
            if (streq(verb, "PUT")) {
                s->list[i] = json_clone(object);
            } else {
                s->list[i] = s->list[--s->n];
            }
        }
    }
}

/* The slices together are what was planned, each endpoint once. */
static void expect_plan(const struct slices *s, const struct json *groups)
{
    size_t want = 0, have = 0;
    const struct json *g, *ep, *other;
    JSON_FOREACH (g, groups) {
        want += json_count(json_get(g, "endpoints"));
        JSON_FOREACH (ep, json_get(g, "endpoints")) {
            unsigned found = 0;
            for (size_t i = 0; i < s->n; i++) {
                if (json_equal(json_get(s->list[i], "ports"), json_get(g, "ports"))) {
                    JSON_FOREACH (other, json_get(s->list[i], "endpoints")) {
                        found += json_equal(other, ep);
                    }
                }
            }
            assert_int_equal(found, 1);
        }
    }
    for (size_t i = 0; i < s->n; i++) {
        have += json_count(json_get(s->list[i], "endpoints"));
    }
    assert_int_equal(have, want);
}

static struct endpoint_pod *make_pod(unsigned i)
{
    CLEANUP_FREE char *text = xasprintf(
        "{\"metadata\":{\"namespace\":\"red\",\"name\":\"p%u\",\"uid\":\"u%u\",\"labels\":{\"app\":"
        "\"web\"}},\"spec\":{\"containers\":[{\"ports\":[{\"name\":\"http\",\"containerPort\":%u,"
        "\"protocol\":\"TCP\"}]}]},\"status\":{\"podIP\":\"10.128.%u.%u\",\"conditions\":[{"
        "\"type\":"
        "\"Ready\",\"status\":\"True\"}]}}",
        i, i, i % 5 ? 8080 : 9090, i / 200, i % 200 + 2);
    return pod(text);
}

static void random_histories_lead_to_the_plan_in_small_steps(void **unused)
{
    CLEANUP(json_free) struct json *service = parse(SERVICE);
    CLEANUP(json_free) struct json *template = slice_template(service, SLICE_MANAGER, service);
    struct endpoint_pod *pods[MAX_PODS];
    size_t n = 0;
    unsigned next = 0;
    struct slices s = {0};
    for (unsigned round = 0; round < 60; round++) {
        /* Many change now and then, mostly one does. */
        unsigned changes = round % 10 == 0 ? random_below(200) : 1;
        for (unsigned k = 0; k < changes; k++) {
            unsigned what = random_below(4);
            if ((what < 2 || !n) && n < MAX_PODS) {
                pods[n++] = make_pod(next++);
            } else if (what == 2) {
                size_t i = random_below((unsigned) n);
                endpoint_pod_free(pods[i]);
                pods[i] = pods[--n];
            } else {
                pods[random_below((unsigned) n)]->ready ^= true;
            }
        }
        CLEANUP(json_free) struct json *groups = slices_plan(service, pods, n);
        CLEANUP(json_free)
        struct json *steps =
            slices_diff(groups, (const struct json *const *) s.list, s.n, template);
        s.writes = 0;
        apply(&s, steps);
        expect_plan(&s, groups);
        if (changes == 1) {
            assert_true(s.writes <= 2); /* A slice, and the empty one that it makes superfluous. */
        }
        CLEANUP(json_free)
        struct json *again =
            slices_diff(groups, (const struct json *const *) s.list, s.n, template);
        assert_int_equal(json_count(again), 0);
        /* Not many more than there must be. */
        assert_true(s.n <= n / SLICE_MAX + 6);
    }
    while (n) {
        endpoint_pod_free(pods[--n]);
    }
    CLEANUP(json_free) struct json *none = json_array();
    CLEANUP(json_free)
    struct json *steps = slices_diff(none, (const struct json *const *) s.list, s.n, template);
    apply(&s, steps);
    assert_int_equal(s.n, 1);
    assert_int_equal(json_count(json_get(s.list[0], "endpoints")), 0);
    json_free(s.list[0]);
}

/* ---- the index ---- */

static void found(void *ctx, const char *service)
{
    smap_set(ctx, service, ctx);
}

static void the_index_finds_what_a_scan_finds(void **unused)
{
    enum { N_PODS = 60, N_SERVICES = 40, N_ROUNDS = 400 };
    struct endpoint_index x;
    struct json *selectors[N_SERVICES] = {0};
    endpoint_index_init(&x);
    for (unsigned round = 0; round < N_ROUNDS; round++) {
        unsigned i = random_below(N_SERVICES), k = random_below(N_PODS);
        char key[32];
        snprintf(key, sizeof key, "ns%u/s%u", i % 2, i);
        struct json *selector = json_object();
        for (unsigned l = random_below(3); l > 0; l--) {
            char name[8], value[8];
            snprintf(name, sizeof name, "k%u", random_below(3));
            snprintf(value, sizeof value, "%u", random_below(3));
            json_set_string(selector, name, value);
        }
        endpoint_index_select(&x, key, selectors[i], selector);
        json_free(selectors[i]);
        selectors[i] = selector;
        char pod_key[32];
        snprintf(pod_key, sizeof pod_key, "ns%u/p%u", k % 2, k);
        struct endpoint_pod *p = NULL;
        if (random_below(4)) {
            CLEANUP_FREE char *text =
                xasprintf("{\"metadata\":{\"namespace\":\"ns%u\",\"name\":\"p%u\",\"labels\":{"
                          "\"k0\":\"%u\",\"k1\":\"%u\",\"k2\":\"%u\"}}}",
                          k % 2, k, random_below(3), random_below(3), random_below(3));
            p = pod(text);
        }
        endpoint_pod_free(endpoint_index_put(&x, pod_key, p));
        /* Pods of a service. */
        struct endpoint_pod **list = NULL;
        char ns[8];
        snprintf(ns, sizeof ns, "ns%u", i % 2);
        size_t n = endpoint_index_pods(&x, ns, selector, &list), want = 0;
        struct smap_entry *se;
        SMAP_FOREACH (se, &x.pods) {
            const struct endpoint_pod *other = se->value;
            want += streq(other->namespace, ns) && endpoint_pod_matches(other, selector);
        }
        assert_int_equal(n, want);
        free(list);
        /* Services of a pod: all that select it. */
        if (p) {
            struct smap services;
            smap_init(&services, NULL);
            endpoint_index_services(&x, p, found, &services);
            for (unsigned s = 0; s < N_SERVICES; s++) {
                char name[32];
                snprintf(name, sizeof name, "ns%u/s%u", s % 2, s);
                if (selectors[s] && s % 2 == k % 2 && endpoint_pod_matches(p, selectors[s])) {
                    assert_non_null(smap_get(&services, name));
                }
            }
            smap_done(&services);
        }
    }
    for (unsigned i = 0; i < N_SERVICES; i++) {
        json_free(selectors[i]);
    }
    endpoint_index_done(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(endpoints_list_the_pods_with_their_ports),
        cmocka_unit_test(of_too_many_pods_endpoints_have_those_that_are_ready),
        cmocka_unit_test(endpoints_without_pods_are_not_written_again),
        cmocka_unit_test(a_pod_equals_only_one_with_the_same_members),
        cmocka_unit_test(terminating_pods_serve_in_slices_only),
        cmocka_unit_test(a_pod_has_a_name_below_its_headless_service),
        cmocka_unit_test(endpoints_made_by_hand_are_mirrored),
        cmocka_unit_test(random_histories_lead_to_the_plan_in_small_steps),
        cmocka_unit_test(the_index_finds_what_a_scan_finds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
