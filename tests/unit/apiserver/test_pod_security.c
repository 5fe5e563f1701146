/* SPDX-License-Identifier: Apache-2.0 */
/* PodSecurity: what the labels of a namespace do to pods, templates of pods and the namespace, in
 * answers, warnings and the audit log.  In all bodies ' stands for ". */
#include "apiserver/access/audit.h"
#include "apiserver/access/security.h"
#include "apiserver/request/server_priv.h"
#include "harness.h"
#include "net/loop/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define NAMESPACES "/api/v1/namespaces"
#define PODS(ns) NAMESPACES "/" ns "/pods"
#define MERGE "application/merge-patch+json"
#define L(key, value) "'pod-security.kubernetes.io/" key "': '" value "'"
#define POD_BODY(name, more)                                                                       \
    "{'metadata': {'name': '" name "'}, 'spec': {'containers': [{'name': 'c', 'image': 'i:1'" more \
    "}]}}"
/* The message by which the level restricted refuses such a pod. */
#define OPEN_REASONS                                                                       \
    "allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, " \
    "seccompProfile"
#define OPEN_DETAILS                                                                             \
    "allowPrivilegeEscalation != false (container \"c\" must set "                               \
    "securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "     \
    "\"c\" must set securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or " \
    "container \"c\" must set securityContext.runAsNonRoot=true), seccompProfile (pod or "       \
    "container \"c\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or "     \
    "\"Localhost\")"
#define PRIVILEGED ", 'securityContext': {'privileged': true}"
#define PRIVILEGED_DETAILS \
    "privileged (container \"c\" must not set securityContext.privileged=true)"
#define CLOSED                                                                        \
    ", 'securityContext': {'allowPrivilegeEscalation': false, 'runAsNonRoot': true, " \
    "'capabilities': {'drop': ['ALL']}, 'seccompProfile': {'type': 'RuntimeDefault'}}"

static struct harness *h;

static int set_up(void **state)
{
    h = harness_new_secure((struct apiserver_security){0});
    return 0;
}

static int tear_down(void **state)
{
    harness_free(h);
    return 0;
}

/* ---- requests of the master itself, which belongs to system:masters ---- */

struct reply {
    int status;
    char *text, *message, *reason;
    size_t n_warnings;
};

static void reply_done(struct reply *r)
{
    free(r->text);
    free(r->message);
    free(r->reason);
}
#define CLEANUP_REPLY CLEANUP(reply_done)
static inline UNUSED void reply_donep(struct reply *r)
{
    reply_done(r);
}

static struct reply call(const char *method, const char *path, const char *type, const char *body)
{
    CLEANUP_FREE char *json = quoted(body);
    CLEANUP_FREE char *text =
        xasprintf("%s %s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " HARNESS_TOKEN
                  "\r\nContent-Type: %s\r\nContent-Length: "
                  "%zu\r\nConnection: close\r\n\r\n%s",
                  method, path, type ? type : "application/json", strlen(json), json);
    struct reply r = {.text = ask_raw(h, text)};
    CLEANUP(json_free) struct json *v = NULL;
    const char *end = strstr(r.text, "\r\n\r\n");
    if (end) {
        (void) json_parse(end + 4, strlen(end + 4), &v, NULL);
    }
    r.status = (int) strtol(r.text + strlen("HTTP/1.1 "), NULL, 10);
    r.message = xstrdup(json_get_text(v, "message"));
    r.reason = xstrdup(json_get_text(v, "reason"));
    for (const char *p = r.text; (p = strstr(p, "\r\nWarning: ")); p++) {
        r.n_warnings++;
    }
    return r;
}

/* Whether the reply has this warning. */
static bool warns(const struct reply *r, const char *text)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    strbuf_adds(&b, "\r\nWarning: 299 - \"");
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') {
            strbuf_addc(&b, '\\');
        }
        strbuf_addc(&b, *text);
    }
    strbuf_adds(&b, "\"\r\n");
    return strstr(r->text, strbuf_cstr(&b)) != NULL;
}

static void expect(const char *method, const char *path, const char *type, const char *body,
                   int status, const char *message)
{
    CLEANUP_REPLY struct reply r = call(method, path, type, body);
    if (r.status != status || (message && !streq(r.message, message))) {
        fail_msg("%s %s: %s\nwanted %d %s", method, path, r.text, status, message ? message : "");
    }
}

static void make_ns(const char *name, const char *labels, int want)
{
    CLEANUP_FREE char *body =
        xasprintf("{'metadata': {'name': '%s', 'labels': {%s}}}", name, labels);
    expect("POST", NAMESPACES, NULL, body, want, NULL);
    if (want == 201) {
        CLEANUP_FREE char *path = xasprintf(NAMESPACES "/%s/serviceaccounts", name);
        expect("POST", path, NULL, "{'metadata': {'name': 'default'}}", 201, NULL);
    }
}

/* ---- namespaces ---- */

static void wrong_labels_are_refused_when_they_are_new(void **state)
{
    static const struct {
        const char *labels, *why;
    } rows[] = {
        {L("enforce", "strict"),
         "metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"strict\": must be "
         "one of privileged, baseline, restricted"},
        {L("warn-version", "v2"),
         "metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: \"v2\": must be "
         "\"latest\" or \"v1.x\""},
        {L("audit", "") ", " L("enforce-version", "1.2"),
         "[metadata.labels[pod-security.kubernetes.io/enforce-version]: Invalid value: \"1.2\": "
         "must be \"latest\" or \"v1.x\", metadata.labels[pod-security.kubernetes.io/audit]: "
         "Invalid value: \"\": must be one of privileged, baseline, restricted]"},
    };
    make_ns("labels", L("enforce", "baseline"), 201);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_FREE char *body =
            xasprintf("{'metadata': {'name': 'new', 'labels': {%s}}}", rows[i].labels);
        CLEANUP_FREE char *patch = xasprintf("{'metadata': {'labels': {%s}}}", rows[i].labels);
        CLEANUP_FREE char *apply = xasprintf("{'apiVersion': 'v1', 'kind': 'Namespace', "
                                             "'metadata': {'name': 'labels', 'labels': {%s}}}",
                                             rows[i].labels);
        CLEANUP_FREE char *of_new = xasprintf("Namespace \"new\" is invalid: %s", rows[i].why);
        CLEANUP_FREE char *of_old = xasprintf("Namespace \"labels\" is invalid: %s", rows[i].why);
        expect("POST", NAMESPACES, NULL, body, 422, of_new);
        expect("POST", NAMESPACES "?dryRun=All", NULL, body, 422, of_new);
        expect("PATCH", NAMESPACES "/labels", MERGE, patch, 422, of_old);
        expect("PUT", NAMESPACES "/labels", NULL, apply, 422, of_old);
        expect("PATCH", NAMESPACES "/labels?fieldManager=x&force=true",
               "application/apply-patch+yaml", apply, 422, of_old);
        expect("PATCH", "/apis/project.openshift.io/v1/projects/labels", MERGE, patch, 422, NULL);
    }
    expect("GET", NAMESPACES "/new", NULL, "", 404, NULL);
}

static void done_storing(void *ctx, int error, uint64_t revision)
{
    assert_int_equal(error, 0);
    *(bool *) ctx = true;
}

/* Writes a namespace into the store that the API would refuse. */
static void store_ns(const char *name, const char *labels)
{
    bool done = false;
    const struct cache_kind *ck = cache_find(&h->api->cache, api_kind_find("", "v1", "namespaces"));
    CLEANUP_FREE char *key = cache_store_key(ck, name);
    CLEANUP_FREE char *text = xasprintf(
        "{'kind': 'Namespace', 'apiVersion': 'v1', 'metadata': {'name': '%s', 'uid': 'u-%s', "
        "'labels': {%s}}, 'spec': {'finalizers': ['kubernetes']}, 'status': {'phase': 'Active'}}",
        name, name, labels);
    CLEANUP_FREE char *json = quoted(text);
    CLEANUP(blob_unref) struct blob *b = blob_new(json, strlen(json));
    store_put(h->store, key, b, STORE_ANY, done_storing, &done);
    assert_int_equal(loop_run_until(h->loop, &done, 5000), 0);
    CLEANUP_FREE char *path = xasprintf(NAMESPACES "/%s", name);
    for (int i = 0; i < 100; i++) {
        CLEANUP_REPLY struct reply r = call("GET", path, NULL, "");
        if (r.status == 200) {
            break;
        }
    }
    CLEANUP_FREE char *accounts = xasprintf(NAMESPACES "/%s/serviceaccounts", name);
    expect("POST", accounts, NULL, "{'metadata': {'name': 'default'}}", 201, NULL);
}

static void wrong_labels_in_the_store_fail_closed_and_can_stay(void **state)
{
    store_ns("odd", L("enforce", "strict") ", " L("warn", "x"));
    expect("POST", PODS("odd"), NULL, POD_BODY("p", ""), 403,
           "pods \"p\" is forbidden: violates PodSecurity \"restricted:latest\": " OPEN_DETAILS);
    expect("POST", PODS("odd"), NULL, POD_BODY("ok", CLOSED), 201, NULL);
    expect("PATCH", NAMESPACES "/odd", MERGE, "{'metadata': {'labels': {'a': 'b'}}}", 200, NULL);
    expect("PATCH", NAMESPACES "/odd", MERGE,
           "{'metadata': {'labels': {" L("enforce", "other") "}}}", 422, NULL);
    expect("PATCH", NAMESPACES "/odd", MERGE,
           "{'metadata': {'labels': {" L("enforce", "privileged") ", " L("warn", "baseline") "}}}",
           200, NULL);
    expect("POST", PODS("odd"), NULL, POD_BODY("p", ""), 201, NULL);
    store_ns("odder", L("enforce", "baseline") ", " L("enforce-version", "x"));
    expect(
        "POST", PODS("odder"), NULL, POD_BODY("p", PRIVILEGED), 403,
        "pods \"p\" is forbidden: violates PodSecurity \"baseline:latest\": " PRIVILEGED_DETAILS);
}

/* ---- pods ---- */

static void a_level_refuses_pods_also_of_masters(void **state)
{
    make_ns("base", L("enforce", "baseline") ", " L("enforce-version", "v1.30"), 201);
    CLEANUP_REPLY struct reply r = call("POST", PODS("base"), NULL, POD_BODY("p", PRIVILEGED));
    assert_int_equal(r.status, 403);
    assert_string_equal(r.reason, "Forbidden");
    assert_string_equal(r.message, "pods \"p\" is forbidden: violates PodSecurity "
                                   "\"baseline:v1.30\": " PRIVILEGED_DETAILS);
    assert_int_equal(r.n_warnings, 0);
    expect("POST", PODS("base") "?dryRun=All", NULL, POD_BODY("p", PRIVILEGED), 403, r.message);
    expect("PATCH", PODS("base") "/p?fieldManager=x", "application/apply-patch+yaml",
           "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'p'}, 'spec': {'containers': "
           "[{'name': 'c', 'image': 'i'" PRIVILEGED "}]}}",
           403, r.message);
    CLEANUP_REPLY struct reply ok = call("POST", PODS("base"), NULL, POD_BODY("p", ""));
    assert_int_equal(ok.status, 201);
    assert_int_equal(ok.n_warnings, 0);
}

static void a_namespace_without_labels_takes_any_pod(void **state)
{
    make_ns("free", "", 201);
    CLEANUP_REPLY struct reply r = call("POST", PODS("free"), NULL, POD_BODY("p", PRIVILEGED));
    assert_int_equal(r.status, 201);
    assert_int_equal(r.n_warnings, 0);
}

/* A volume without a source is an emptyDir by the time that it is judged. */
static void defaults_come_before_the_judgement(void **state)
{
    make_ns("filled", L("enforce", "restricted"), 201);
    expect("POST", PODS("filled"), NULL,
           "{'metadata': {'name': 'v'}, 'spec': {'volumes': [{'name': 'v'}], 'containers': "
           "[{'name': 'c', 'image': 'i'" CLOSED "}]}}",
           201, NULL);
    CLEANUP_REPLY struct reply r = call(
        "POST", "/apis/batch/v1/namespaces/filled/jobs", NULL,
        "{'metadata': {'name': 'j'}, 'spec': {'template': {'spec': {'restartPolicy': 'Never', "
        "'volumes': [{'name': 'v'}], 'containers': [{'name': 'c', 'image': 'i'" CLOSED "}]}}}}");
    assert_int_equal(r.status, 201);
    assert_null(strstr(r.text, "would violate"));
}

/* Names are judged before they are validated: a long one must not fill the audit log. */
static void details_without_end_are_cut(void **state)
{
    enum { LONG = 100000 };
    CLEANUP_FREE char *name = xcalloc(LONG + 1, 1);
    for (size_t i = 0; i < LONG / 2; i++) {
        memcpy(name + 1 + 2 * i, "\xc3\xa4", 2); /* A character of two bytes. */
    }
    name[0] = 'a';
    name[LONG - 1] = 0;
    CLEANUP_FREE char *body = xasprintf("{'metadata': {'name': 'p'}, 'spec': {'containers': "
                                        "[{'name': '%s', 'image': 'i'}]}}",
                                        name);
    make_ns("long", L("enforce", "restricted"), 201);
    CLEANUP_REPLY struct reply r = call("POST", PODS("long"), NULL, body);
    assert_int_equal(r.status, 403);
    assert_non_null(strstr(r.message, "violates PodSecurity \"restricted:latest\": allow"));
    assert_true(str_has_suffix(r.message, "\xc3\xa4..."));
    assert_true(strlen(r.message) < 17 << 10);
}

static void warnings_accept_what_they_tell(void **state)
{
    make_ns("warned", L("warn", "restricted") ", " L("warn-version", "v1.28"), 201);
    CLEANUP_REPLY struct reply r = call("POST", PODS("warned"), NULL, POD_BODY("p", ""));
    assert_int_equal(r.status, 201);
    assert_int_equal(r.n_warnings, 1);
    assert_true(warns(&r, "would violate PodSecurity \"restricted:v1.28\": " OPEN_DETAILS));
}

static void updates_are_judged_when_an_image_changes(void **state)
{
#define IMAGE "{'spec': {'containers': [{'name': 'c', 'image': 'i:2'}]}}"
#define DEBUG(more) "{'spec': {'ephemeralContainers': [{'name': 'd', 'image': 'i'" more "}]}}"
#define STRATEGIC "application/strategic-merge-patch+json"
    static const char refusal[] =
        "pods \"p\" is forbidden: violates PodSecurity \"restricted:latest\": " OPEN_DETAILS;
    make_ns("later", "", 201);
    expect("POST", PODS("later"), NULL, POD_BODY("p", ""), 201, NULL);
    expect("POST", PODS("later"), NULL, POD_BODY("e", ""), 201, NULL);
    expect("PATCH", PODS("later") "/e/ephemeralcontainers", STRATEGIC, DEBUG(""), 200, NULL);
    expect("POST", PODS("later"), NULL, POD_BODY("good", CLOSED), 201, NULL);
    expect("PATCH", NAMESPACES "/later", MERGE,
           "{'metadata': {'labels': {" L("enforce", "restricted") "}}}", 200, NULL);
    expect("PATCH", PODS("later") "/p", MERGE, "{'metadata': {'labels': {'a': 'b'}}}", 200, NULL);
    expect("PATCH", PODS("later") "/e", MERGE, "{'metadata': {'labels': {'a': 'b'}}}", 200, NULL);
    expect("PATCH", PODS("later") "/p/status", MERGE, "{'status': {'message': 'm'}}", 200, NULL);
    expect("PATCH", PODS("later") "/p", STRATEGIC, IMAGE, 403, refusal);
    expect("PATCH", PODS("later") "/p?dryRun=All", STRATEGIC, IMAGE, 403, refusal);
    expect("PATCH", PODS("later") "/good", STRATEGIC, IMAGE, 200, NULL);
    /* A pod that is there can still get its node. */
    expect("POST", PODS("later") "/p/binding", NULL,
           "{'metadata': {'name': 'p'}, 'target': {'kind': 'Node', 'name': 'n'}}", 201, NULL);
    expect("DELETE", PODS("later") "/p?gracePeriodSeconds=0", NULL, "", 200, NULL);
}

static void ephemeral_containers_are_judged(void **state)
{
    make_ns("debug", L("enforce", "baseline"), 201);
    expect("POST", PODS("debug"), NULL, POD_BODY("p", ""), 201, NULL);
    expect("PATCH", PODS("debug") "/p/ephemeralcontainers", STRATEGIC, DEBUG(PRIVILEGED), 403,
           "pods \"p\" is forbidden: violates PodSecurity \"baseline:latest\": privileged "
           "(container \"d\" must not set securityContext.privileged=true)");
    expect("PATCH", PODS("debug") "/p/ephemeralcontainers", STRATEGIC,
           DEBUG(", 'securityContext': {'capabilities': {'add': ['SYS_PTRACE']}}"), 403,
           "pods \"p\" is forbidden: violates PodSecurity \"baseline:latest\": non-default "
           "capabilities (container \"d\" must not include \"SYS_PTRACE\" in "
           "securityContext.capabilities.add)");
    expect("PATCH", PODS("debug") "/p/ephemeralcontainers", STRATEGIC, DEBUG(""), 200, NULL);
}

/* ---- templates of pods ---- */

#define TEMPLATE                                                                         \
    "'template': {'metadata': {'labels': {'a': 'b'}}, 'spec': {'containers': [{'name': " \
    "'c', 'image': 'i'" PRIVILEGED "}]}}"
#define SELECTED "'selector': {'matchLabels': {'a': 'b'}}, " TEMPLATE
#define JOB                                                                                  \
    "'template': {'spec': {'restartPolicy': 'Never', 'containers': [{'name': 'c', 'image': " \
    "'i'" PRIVILEGED "}]}}"

static void templates_are_warned_about_and_never_refused(void **state)
{
    static const struct {
        const char *path, *body;
    } rows[] = {
        {"/api/v1/namespaces/made/podtemplates", TEMPLATE},
        {"/api/v1/namespaces/made/replicationcontrollers",
         "'spec': {'selector': {'a': 'b'}, " TEMPLATE "}"},
        {"/apis/apps/v1/namespaces/made/replicasets", "'spec': {" SELECTED "}"},
        {"/apis/apps/v1/namespaces/made/deployments", "'spec': {" SELECTED "}"},
        {"/apis/apps/v1/namespaces/made/daemonsets", "'spec': {" SELECTED "}"},
        {"/apis/apps/v1/namespaces/made/statefulsets",
         "'spec': {'serviceName': 's', " SELECTED "}"},
        {"/apis/batch/v1/namespaces/made/jobs", "'spec': {" JOB "}"},
        {"/apis/batch/v1/namespaces/made/cronjobs",
         "'spec': {'schedule': '@daily', 'jobTemplate': {'spec': {" JOB "}}}"},
    };
    static const char text[] = "would violate PodSecurity \"baseline:latest\": " PRIVILEGED_DETAILS;
    make_ns("made", L("enforce", "baseline"), 201);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_FREE char *body = xasprintf("{'metadata': {'name': 't'}, %s}", rows[i].body);
        CLEANUP_FREE char *own = xasprintf("%s/t", rows[i].path);
        CLEANUP_REPLY struct reply r = call("POST", rows[i].path, NULL, body);
        CLEANUP_REPLY struct reply again =
            call("PATCH", own, MERGE, "{'metadata': {'labels': {'x': 'y'}}}");
        if (r.status != 201 || !warns(&r, text) || again.status != 200 || !warns(&again, text)) {
            fail_msg("%s: %s\n%s", rows[i].path, r.text, again.text);
        }
    }
    /* A controller without a template has nothing to be judged. */
    CLEANUP_REPLY struct reply scale =
        call("PATCH", "/apis/apps/v1/namespaces/made/deployments/t/scale", MERGE,
             "{'spec': {'replicas': 0}}");
    assert_int_equal(scale.status, 200);
    assert_false(warns(&scale, text));
}

/* ---- the pods of a namespace that enforces more ---- */

static struct reply relabel(const char *path, const char *labels)
{
    CLEANUP_FREE char *body = xasprintf("{'metadata': {'labels': {%s}}}", labels);
    struct reply r = call("PATCH", path, MERGE, body);
    if (r.status != 200) {
        fail_msg("%s: %s", labels, r.text);
    }
    return r;
}

static void a_stricter_level_names_the_pods_that_stay(void **state)
{
#define OWNED(name, uid)                                                                          \
    "{'metadata': {'name': '" name "', 'ownerReferences': [{'apiVersion': 'apps/v1', 'kind': "    \
    "'ReplicaSet', 'name': 'r', 'uid': '" uid "', 'controller': true}]}, 'spec': {'containers': " \
    "[{'name': 'c', 'image': 'i'}]}}"
    static const char head[] = "existing pods in namespace \"stay\" violate the new PodSecurity "
                               "enforce level \"restricted:latest\"";
    static const char path[] = NAMESPACES "/stay";
    make_ns("stay", "", 201);
    expect("POST", PODS("stay"), NULL, OWNED("r1", "1"), 201, NULL);
    expect("POST", PODS("stay"), NULL, OWNED("r0", "1"), 201, NULL);
    expect("POST", PODS("stay"), NULL, OWNED("r2", "1"), 201, NULL);
    expect("POST", PODS("stay"), NULL, POD_BODY("good", CLOSED), 201, NULL);
    expect("POST", PODS("stay"), NULL, POD_BODY("bad", PRIVILEGED), 201, NULL);
    expect("POST", PODS("stay"), NULL, POD_BODY("worse", PRIVILEGED), 201, NULL);
    CLEANUP_REPLY struct reply r = relabel(path, L("enforce", "restricted"));
    assert_int_equal(r.n_warnings, 3);
    assert_true(warns(&r, head));
    assert_true(warns(&r, "bad (and 1 other pod): privileged, " OPEN_REASONS));
    assert_true(warns(&r, "r0 (and 2 other pods): " OPEN_REASONS));
    expect("GET", PODS("stay") "/bad", NULL, "", 200, NULL);
    /* The same level, and less of it, say nothing. */
    CLEANUP_REPLY struct reply same = relabel(path, "'x': 'y'");
    CLEANUP_REPLY struct reply less = relabel(path, L("enforce", "baseline"));
    assert_int_equal(same.n_warnings + less.n_warnings, 0);
    /* Another version does, and so does a level that comes back. */
    CLEANUP_REPLY struct reply version = relabel(path, L("enforce-version", "v1.5"));
    assert_true(warns(&version, "bad (and 1 other pod): privileged"));
    CLEANUP_REPLY struct reply open = relabel(path, L("enforce", "privileged"));
    assert_int_equal(open.n_warnings, 0);
    CLEANUP_REPLY struct reply tried =
        call("PATCH", NAMESPACES "/stay?dryRun=All", MERGE,
             "{'metadata': {'labels': {" L("enforce", "baseline") "}}}");
    assert_int_equal(tried.n_warnings, 2);
    /* By the Project it cannot be changed, and no pod is looked at. */
    CLEANUP_REPLY struct reply project =
        call("PATCH", "/apis/project.openshift.io/v1/projects/stay", MERGE,
             "{'metadata': {'labels': {" L("enforce", "restricted") "}}}");
    assert_int_equal(project.status, 422);
    assert_int_equal(project.n_warnings, 0);
}

static void many_warnings_are_cut(void **state)
{
    CLEANUP_STRBUF struct strbuf spec = STRBUF_INIT;
    make_ns("many", "", 201);
    /* Pods that violate baseline each in its own way: the bits of a number. */
    for (unsigned i = 1; i < 128; i++) {
        strbuf_reset(&spec);
        strbuf_addf(&spec,
                    "{'metadata': {'name': 'p%03u'}, 'spec': {'hostPID': %s, 'hostNetwork': false, "
                    "'volumes': [{'name': 'v', '%s': {%s}}], 'securityContext': {%s}, "
                    "'containers': [{'name': 'c', 'image': 'i', 'securityContext': {'privileged': "
                    "%s, 'procMount': '%s', 'capabilities': {'add': [%s]}, 'seLinuxOptions': {%s}, "
                    "'seccompProfile': {'type': '%s'}}}]}}",
                    i, i & 1 ? "true" : "false", i & 2 ? "hostPath" : "emptyDir",
                    i & 2 ? "'path': '/'" : "",
                    i & 4 ? "'sysctls': [{'name': 'kernel.msgmax', 'value': '1'}]" : "",
                    i & 8 ? "true" : "false", "Default", i & 16 ? "'NET_RAW'" : "",
                    i & 32 ? "'user': 'u'" : "", i & 64 ? "Unconfined" : "RuntimeDefault");
        expect("POST", PODS("many"), NULL, strbuf_cstr(&spec), 201, NULL);
    }
    CLEANUP_REPLY struct reply r = relabel(NAMESPACES "/many", L("enforce", "restricted"));
    assert_true(r.n_warnings > 10);
    assert_true(r.n_warnings <= 64);
    assert_true(strlen(r.text) < 16384);
    assert_true(warns(&r, "existing pods in namespace \"many\" violate the new PodSecurity enforce "
                          "level \"restricted:latest\""));
}

static void count_stored(void *ctx, int error, uint64_t revision)
{
    assert_int_equal(error, 0);
    ++*(size_t *) ctx;
}

/* More pods than are looked at: 3,000 in the time that there is for it, or fewer. */
static void the_review_of_pods_is_bounded(void **state)
{
    enum { PODS_STORED = 3010 };
    size_t n = 0;
    const struct cache_kind *ck = cache_find(&h->api->cache, api_kind_find("", "v1", "pods"));
    make_ns("full", "", 201);
    for (int i = 0; i < PODS_STORED; i++) {
        CLEANUP_FREE char *name = xasprintf("full/p%04d", i);
        CLEANUP_FREE char *key = cache_store_key(ck, name);
        CLEANUP_FREE char *text = xasprintf(
            "{'kind': 'Pod', 'apiVersion': 'v1', 'metadata': {'name': 'p%04d', 'namespace': "
            "'full', 'uid': 'u%d'}, 'spec': {'hostPID': true, 'containers': [{'name': 'c', "
            "'image': 'i'}]}}",
            i, i);
        CLEANUP_FREE char *json = quoted(text);
        CLEANUP(blob_unref) struct blob *b = blob_new(json, strlen(json));
        store_put(h->store, key, b, STORE_ANY, count_stored, &n);
    }
    for (bool done = false; n < PODS_STORED; done = false) {
        (void) loop_run_until(h->loop, &done, 10);
    }
    CLEANUP_REPLY struct reply r = relabel(NAMESPACES "/full", L("enforce", "baseline"));
    assert_int_equal(r.n_warnings, 3);
    const char *at =
        strstr(r.text, "new PodSecurity enforce level only checked against the first ");
    assert_non_null(at);
    assert_non_null(strstr(at, " of 3010 existing pods\"\r\n"));
    long checked = strtol(strpbrk(at, "0123456789"), NULL, 10);
    assert_in_range(checked, 1, 3000);
    CLEANUP_FREE char *text = xasprintf("p0000 (and %ld other pods): host namespaces", checked - 1);
    assert_true(checked < 3 || warns(&r, text));
}

/* ---- the audit log ---- */

static const char *note(const struct json *line, const char *key)
{
    CLEANUP_FREE char *name = xasprintf("pod-security.kubernetes.io/%s", key);
    return json_get_text(json_get(line, "annotations"), name);
}

static void the_audit_log_has_what_was_found(void **state)
{
    char dir[] = "/tmp/tenet-podsec-XXXXXX";
    struct audit_log *audit = NULL;
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    assert_non_null(mkdtemp(dir));
    CLEANUP_FREE char *path = xasprintf("%s/audit.log", dir);
    make_ns("seen", L("audit", "baseline") ", " L("enforce", "privileged"), 201);
    make_ns("none", "", 201);
    store_ns("torn", L("enforce", "x") ", " L("warn", "y"));
    store_ns("lost", L("enforce-version", "x"));
    struct audit_config cfg = {.path = path};
    assert_int_equal(audit_log_open(h->loop, &cfg, &audit, NULL), 0);
    h->api->security->audit = audit;
    expect("POST", PODS("seen"), NULL, POD_BODY("p", PRIVILEGED), 201, NULL);
    expect("POST", PODS("none"), NULL, POD_BODY("p", PRIVILEGED), 201, NULL);
    expect("POST", PODS("torn"), NULL, POD_BODY("p", ""), 403, NULL);
    expect("POST", "/apis/batch/v1/namespaces/seen/jobs", NULL,
           "{'metadata': {'name': 'j'}, 'spec': {" JOB "}}", 201, NULL);
    expect("PATCH", PODS("seen") "/p", MERGE, "{'metadata': {'labels': {'a': 'b'}}}", 200, NULL);
    expect("POST", PODS("lost"), NULL, POD_BODY("p", ""), 201, NULL);
    h->api->security->audit = NULL;
    audit_log_close(audit);
    assert_int_equal(file_read(path, 1 << 20, &text, NULL), 0);
    CLEANUP(json_free) struct json *lines = json_array();
    for (char *p = text.data; p && *p; p = strchr(p, '\n') + 1) {
        struct json *v = NULL;
        assert_int_equal(json_parse(p, strcspn(p, "\n"), &v, NULL), 0);
        json_append(lines, v);
    }
    assert_int_equal(json_count(lines), 6);
    static const struct {
        const char *policy, *violations, *error;
    } want[] = {
        {"privileged:latest", "would violate PodSecurity \"baseline:latest\": " PRIVILEGED_DETAILS,
         ""},
        {"privileged:latest", "", ""},
        {"restricted:latest", "",
         "Failed to parse policy: [metadata.labels[pod-security.kubernetes.io/enforce]: Invalid "
         "value: \"x\": must be one of privileged, baseline, restricted, "
         "metadata.labels[pod-security.kubernetes.io/warn]: Invalid value: \"y\": must be one of "
         "privileged, baseline, restricted]"},
        {"", "would violate PodSecurity \"baseline:latest\": " PRIVILEGED_DETAILS, ""},
        {"", "", ""},
        {"privileged:latest", "",
         "Failed to parse policy: metadata.labels[pod-security.kubernetes.io/enforce-version]: "
         "Invalid value: \"x\": must be \"latest\" or \"v1.x\""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
        const struct json *line = json_at(lines, i);
        assert_string_equal(note(line, "enforce-policy"), want[i].policy);
        assert_string_equal(note(line, "audit-violations"), want[i].violations);
        assert_string_equal(note(line, "error"), want[i].error);
    }
    assert_int_equal(dir_remove(dir, NULL), 0);
}

/* The versions are no other test's. */
static void each_judgement_is_counted(void **state)
{
    static const char *const lines[] = {
        "pod_security_evaluations_total{decision=\"deny\",mode=\"enforce\",policy_level="
        "\"baseline\","
        "policy_version=\"v1.29\",request_operation=\"create\",resource=\"pod\",subresource=\"\"} "
        "1",
        "pod_security_evaluations_total{decision=\"allow\",mode=\"enforce\",policy_level="
        "\"baseline\","
        "policy_version=\"v1.29\",request_operation=\"create\",resource=\"pod\",subresource=\"\"} "
        "1",
        "pod_security_evaluations_total{decision=\"deny\",mode=\"warn\",policy_level="
        "\"restricted\","
        "policy_version=\"future\",request_operation=\"create\",resource=\"pod\",subresource=\"\"} "
        "1",
    };
    make_ns("counted",
            "'pod-security.kubernetes.io/enforce': 'baseline', "
            "'pod-security.kubernetes.io/enforce-version': 'v1.29', "
            "'pod-security.kubernetes.io/warn': 'restricted', "
            "'pod-security.kubernetes.io/warn-version': 'v1.9999'",
            201);
    expect("POST", NAMESPACES "/counted/pods", NULL,
           "{'metadata': {'name': 'a'}, 'spec': {'hostNetwork': true, 'containers': [{'name': 'c', "
           "'image': 'i'}]}}",
           403, NULL);
    expect("POST", NAMESPACES "/counted/pods", NULL,
           "{'metadata': {'name': 'b'}, 'spec': {'containers': [{'name': 'c', 'image': 'i'}]}}",
           201, NULL);
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", "/metrics", NULL, 200);
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        if (!strstr(a.text, lines[i])) {
            fail_msg("no line %s in %s", lines[i],
                     strstr(a.text, "pod_security_evaluations_total"));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_labels_are_refused_when_they_are_new),
        cmocka_unit_test(wrong_labels_in_the_store_fail_closed_and_can_stay),
        cmocka_unit_test(a_level_refuses_pods_also_of_masters),
        cmocka_unit_test(a_namespace_without_labels_takes_any_pod),
        cmocka_unit_test(defaults_come_before_the_judgement),
        cmocka_unit_test(details_without_end_are_cut),
        cmocka_unit_test(warnings_accept_what_they_tell),
        cmocka_unit_test(updates_are_judged_when_an_image_changes),
        cmocka_unit_test(ephemeral_containers_are_judged),
        cmocka_unit_test(templates_are_warned_about_and_never_refused),
        cmocka_unit_test(a_stricter_level_names_the_pods_that_stay),
        cmocka_unit_test(many_warnings_are_cut),
        cmocka_unit_test(the_review_of_pods_is_bounded),
        cmocka_unit_test(the_audit_log_has_what_was_found),
        cmocka_unit_test(each_judgement_is_counted),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
