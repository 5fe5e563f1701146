/* SPDX-License-Identifier: Apache-2.0 */
/* PodSecurity: the Pod Security Standards (pod/standard.h) as the labels of a Namespace ask for
 * them, as kube-apiserver does it, with its words.
 *
 * Pods are refused by the level 'enforce'.  Pods and templates of pods are written into the audit
 * log by the level 'audit', and answered with a warning by the level 'warn'.  An update is judged
 * when it changes an image or the list of containers.  Wrong labels are refused when they are new;
 * labels that the store has in spite of that enforce restricted.  A Namespace that enforces more
 * than before is answered with warnings about its pods, which stay. */
#include "api/kinds/pod_restrictions.h"
#include "apiserver/admission/plugins.h"
#include "apiserver/cache/object.h"
#include "apiserver/request/metrics.h"
#include "apiserver/request/respond.h"
#include "base/timeutil.h"
#include "pod/standard.h"

#include <stdlib.h>

/* Pods that are looked at when a namespace enforces more; and the time for that, which the loop has
 * for nothing else. */
#define MAX_PODS 3000
#define MAX_POD_CHECK_NS UINT64_C(100000000)

/* ---- the audit log ---- */

static void annotate(const struct request *q, const char *key, const char *value)
{
    CLEANUP_FREE char *name = xasprintf(POD_STANDARD_PREFIX "%s", key);
    audit_annotate(q->audit, name, value);
}

/* Writes into the audit log that the labels of the namespace are wrong. */
static void annotate_causes(const struct request *q, const struct api_causes *causes)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    for (size_t i = 0; i < causes->n; i++) {
        strbuf_addf(&b, "%s%s: %s", i ? ", " : "", causes->list[i].field, causes->list[i].message);
    }
    const char *open = causes->n > 1 ? "[" : "", *close = causes->n > 1 ? "]" : "";
    CLEANUP_FREE char *text =
        xasprintf("Failed to parse policy: %s%s%s", open, strbuf_cstr(&b), close);
    if (causes->n) {
        annotate(q, "error", text);
    }
}

/* ---- metrics ---- */

/* The labels that all metrics share. */
static char *write_labels(const struct request *q, const struct json *old)
{
    return xasprintf("request_operation=\"%s\",resource=\"%s\",subresource=\"%s\"",
                     old ? "update" : "create",
                     streq(q->kind->plural, "pods") ? "pod" : "controller", q->subresource);
}

static void count_error(const struct request *q, const struct json *old, bool fatal)
{
    CLEANUP_FREE char *common = write_labels(q, old);
    CLEANUP_FREE char *labels = xasprintf("fatal=\"%s\",%s", fatal ? "true" : "false", common);
    metrics_count_pod_security(q->server->metrics, POD_SECURITY_ERROR, labels);
}

static void count_exemption(const struct request *q, const struct json *old)
{
    CLEANUP_FREE char *labels = write_labels(q, old);
    metrics_count_pod_security(q->server->metrics, POD_SECURITY_EXEMPTION, labels);
}

/* Versions that are later than Kubernetes' own are one value, as in Kubernetes: a user chooses the
 * number. */
static void count_evaluation(const struct request *q, const struct json *old, const char *mode,
                             const struct pod_standard *s, bool denies)
{
    uint64_t newest = strtoull(KUBERNETES_MINOR, NULL, 10);
    CLEANUP_FREE char *common = write_labels(q, old);
    CLEANUP_FREE char *standard = pod_standard_text(s);
    char *colon = strchr(standard, ':');
    *colon = '\0';
    bool future = s->minor != POD_STANDARD_LATEST && s->minor > newest;
    CLEANUP_FREE char *labels =
        xasprintf("decision=\"%s\",mode=\"%s\",policy_level=\"%s\",policy_version=\"%s\",%s",
                  denies ? "deny" : "allow", mode, standard, future ? "future" : colon + 1, common);
    metrics_count_pod_security(q->server->metrics, POD_SECURITY_EVALUATION, labels);
}

/* ---- pods and templates ---- */

/* Bytes of the details of violations: names come from users, are repeated by each check, and are
 * validated only later.  Larger details would crowd other lines out of the audit log. */
#define MAX_DETAILS ((size_t) 16 << 10)

/* Cuts the text to MAX_DETAILS, at the beginning of a character. */
static void cut(struct strbuf *text)
{
    size_t n = text->size;
    if (n > MAX_DETAILS) {
        for (n = MAX_DETAILS; n && ((unsigned char) text->data[n] & 0xc0) == 0x80; n--) {
        }
        text->size = n;
        strbuf_adds(text, "...");
    }
}

/* Judges the pod.  Returns 'VIOLATES PodSecurity "baseline:latest": DETAILS', owned; NULL: the pod
 * does not violate the standard. */
static char *violation(const struct pod_standard *s, const struct json *pod, const char *violates)
{
    CLEANUP_STRBUF struct strbuf details = STRBUF_INIT;
    if (!pod_standard_check(s, pod, NULL, &details)) {
        return NULL;
    }
    CLEANUP_FREE char *standard = pod_standard_text(s);
    cut(&details);
    return xasprintf("%s PodSecurity \"%s\": %s", violates, standard, strbuf_cstr(&details));
}

/* Judges 'pod', which is in 'obj'; 'enforced': the level enforce may refuse it. */
static int judge(struct request *q, const struct json *obj, const struct json *old,
                 const struct json *pod, const struct pod_policy *p, bool enforced,
                 struct outcome *outcome)
{
    CLEANUP_FREE char *audited = violation(&p->audit, pod, "would violate");
    CLEANUP_FREE char *why = enforced ? violation(&p->enforce, pod, "violates") : NULL;
    if (enforced) {
        CLEANUP_FREE char *standard = pod_standard_text(&p->enforce);
        annotate(q, "enforce-policy", standard);
        count_evaluation(q, old, "enforce", &p->enforce, why != NULL);
    }
    if (audited) {
        annotate(q, "audit-violations", audited);
        count_evaluation(q, old, "audit", &p->audit, true);
    }
    if (why) {
        return admission_refuse(q, obj, why, outcome);
    }
    CLEANUP_FREE char *warning = violation(&p->warn, pod, "would violate");
    if (warning) {
        request_warn(q, "-", warning);
        count_evaluation(q, old, "warn", &p->warn, true);
    }
    return 0;
}

/* Whether the containers of the list differ in number or in an image. */
static bool list_differs(const struct json *a, const struct json *b, const char *key)
{
    const struct json *x = json_path(a, "spec", key, NULL), *y = json_path(b, "spec", key, NULL);
    bool differs = json_count(x) != json_count(y);
    for (size_t i = 0; i < json_count(x) && !differs; i++) {
        differs =
            !streq(json_get_text(json_at(x, i), "image"), json_get_text(json_at(y, i), "image"));
    }
    return differs;
}

/* Whether the update adds an ephemeral container, or changes the image of one. */
static bool ephemeral_differs(const struct json *pod, const struct json *old)
{
    const struct json *c;
    struct smap before;
    bool differs = false;
    smap_init(&before, NULL);
    JSON_FOREACH (c, json_path(old, "spec", "ephemeralContainers", NULL)) {
        smap_set(&before, json_get_text(c, "name"), (void *) json_get_text(c, "image"));
    }
    JSON_FOREACH (c, json_path(pod, "spec", "ephemeralContainers", NULL)) {
        const char *was = smap_get(&before, json_get_text(c, "name"));
        differs |= !was || !streq(json_get_text(c, "image"), was);
    }
    smap_done(&before);
    return differs;
}

/* Whether an update can make a pod violate a standard that it did not violate before: all other
 * fields of a pod that are judged cannot change. */
static bool is_significant(const struct json *pod, const struct json *old)
{
    return list_differs(pod, old, "containers") || list_differs(pod, old, "initContainers") ||
           ephemeral_differs(pod, old);
}

/* The subresources of pods that do not write what is judged. */
static bool is_ignored(const char *subresource)
{
    static const char *const ignored[] = {"exec", "attach", "binding",     "eviction",
                                          "log",  "proxy",  "portforward", "status"};
    bool found = false;
    for (size_t i = 0; i < ARRAY_SIZE(ignored); i++) {
        found |= streq(subresource, ignored[i]);
    }
    return found;
}

/* 500 for a pod, which cannot be judged; a template is accepted: its pods will be judged. */
static int no_namespace(const struct request *q, const struct json *old, bool is_pod,
                        struct outcome *outcome)
{
    const char *name = q->namespace ? q->namespace : "";
    CLEANUP_FREE char *why = xasprintf("failed to lookup namespace \"%s\"", name);
    annotate(q, "error", why);
    count_error(q, old, is_pod);
    if (!is_pod) {
        return 0;
    }
    outcome_error(outcome, 500, "InternalError", "Internal error occurred: %s", why);
    return -ENOENT;
}

static bool is_listed(const char *const *list, const char *s)
{
    while (s && list && *list && !streq(*list, s)) {
        list++;
    }
    return s && list && *list;
}

/* Why the pod is not judged, as in Kubernetes' audit annotation ("user"); NULL: it is judged. */
static const char *exemption(const struct request *q, const struct json *pod)
{
    const struct pod_security_exemptions *x = &q->server->cfg.pod_security_exempt;
    const char *class = json_path_string(pod, "spec", "runtimeClassName", NULL);
    return is_listed(x->namespaces, q->namespace) ? "namespace"
           : is_listed(x->users, q->user->name)   ? "user"
           : is_listed(x->runtime_classes, class) ? "runtimeClass"
                                                  : NULL;
}

static int validate_pod(struct request *q, const struct json *obj, const struct json *old,
                        const char *path, struct outcome *outcome)
{
    bool is_pod = !*path;
    if (is_pod ? is_ignored(q->subresource) : *q->subresource != 0) {
        return 0;
    }
    const struct json *ns = admission_namespace(q);
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    struct pod_policy p;
    if (!ns) {
        return no_namespace(q, old, is_pod, outcome);
    }
    pod_policy_read(json_path(ns, "metadata", "labels", NULL), &p, &causes);
    if (!causes.n && pod_policy_is_privileged(&p)) {
        if (is_pod) {
            annotate(q, "enforce-policy", "privileged:latest");
            count_evaluation(q, old, "enforce", &p.enforce, false);
        }
        return 0;
    }
    const struct json *pod = pod_restrictions_find(obj, path);
    if (!pod || (is_pod && old && !is_significant(pod, old))) {
        return 0;
    }
    const char *exempt = exemption(q, pod);
    if (exempt) {
        annotate(q, "exempt", exempt);
        count_exemption(q, old);
        return 0;
    }
    annotate_causes(q, &causes);
    if (causes.n) {
        count_error(q, old, false);
    }
    return judge(q, obj, old, pod, &p, is_pod, outcome);
}

/* ---- the pods of a namespace that enforces more ---- */

/* Pods that violate the new level in the same way. */
struct group {
    char *reasons, *first; /* The first name in the order of names. */
    size_t n;
};

struct review {
    const struct pod_standard *standard;
    uint64_t end_ns;
    struct smap controllers; /* UIDs of the controllers with a pod that was looked at. */
    struct smap by_reasons;  /* struct group. */
    struct object **later;   /* Other pods of these controllers, which come at the end. */
    size_t n_later, cap_later, checked, all;
};

static void group_free(void *ctx)
{
    struct group *g = ctx;
    free(g->reasons);
    free(g->first);
    free(g);
}

static bool is_over(const struct review *r)
{
    return r->checked >= MAX_PODS || (r->checked && time_mono_ns() > r->end_ns);
}

static void review_pod(struct review *r, const struct json *pod)
{
    CLEANUP_STRBUF struct strbuf reasons = STRBUF_INIT;
    const char *name = json_path_string(pod, "metadata", "name", NULL);
    r->checked++;
    if (!pod_standard_check(r->standard, pod, &reasons, NULL)) {
        return;
    }
    struct group *g = smap_get(&r->by_reasons, strbuf_cstr(&reasons));
    if (!g) {
        g = NEW(struct group);
        g->reasons = xstrdup(strbuf_cstr(&reasons));
        g->first = xstrdup(name ? name : "");
        smap_set(&r->by_reasons, g->reasons, g);
    } else if (name && strcmp(name, g->first) < 0) {
        free(g->first);
        g->first = xstrdup(name);
    }
    g->n++;
}

/* The UID of the pod's controller; NULL: it has none. */
static const char *controller_of(const struct json *pod)
{
    const struct json *owner;
    JSON_FOREACH (owner, json_path(pod, "metadata", "ownerReferences", NULL)) {
        if (json_get_bool(json_get(owner, "controller"), false)) {
            return json_get_text(owner, "uid");
        }
    }
    return NULL;
}

/* Looks at the pod, unless one of the same controller was looked at: such a pod waits. */
static void meet_pod(struct review *r, struct object *o)
{
    static char present;
    r->all++;
    if (is_over(r)) {
        return;
    }
    CLEANUP(json_free) struct json *pod = object_parse(o);
    const char *controller = controller_of(pod);
    if (controller && smap_get(&r->controllers, controller)) {
        r->later = grow(r->later, &r->cap_later, r->n_later + 1, sizeof(struct object *));
        r->later[r->n_later++] = o;
        return;
    }
    if (controller) {
        smap_set(&r->controllers, controller, &present);
    }
    review_pod(r, pod);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *) a, *(char *const *) b);
}

/* A warning for each group, in the order of texts. */
static void warn_groups(struct request *q, struct review *r)
{
    struct smap_entry *e;
    size_t n = 0, all = smap_size(&r->by_reasons);
    CLEANUP_FREE char **texts = xcalloc(all + 1, sizeof *texts);
    SMAP_FOREACH (e, &r->by_reasons) {
        const struct group *g = e->value;
        CLEANUP_FREE char *others =
            g->n > 1 ? xasprintf(" (and %zu other pod%s)", g->n - 1, g->n > 2 ? "s" : "") : NULL;
        texts[n++] = xasprintf("%s%s: %s", g->first, others ? others : "", g->reasons);
    }
    qsort(texts, n, sizeof *texts, by_text);
    for (size_t i = 0; i < n; i++) {
        request_warn(q, "-", texts[i]);
        free(texts[i]);
    }
}

static void warn_of_pods(struct request *q, const char *ns, const struct pod_standard *standard)
{
    struct cache_kind *ck = cache_find(&q->server->cache, api_kind_find("", "v1", "pods"));
    struct review r = {.standard = standard, .end_ns = time_mono_ns() + MAX_POD_CHECK_NS};
    struct cache_range range = {.namespace = ns};
    struct cache_walk walk;
    struct object *o;
    smap_init(&r.controllers, NULL);
    smap_init(&r.by_reasons, group_free);
    cache_walk_init(&walk, ck, &range, q->server->cache.revision);
    while ((o = cache_walk_next(&walk))) {
        meet_pod(&r, o);
    }
    for (size_t i = 0; i < r.n_later && !is_over(&r); i++) {
        CLEANUP(json_free) struct json *pod = object_parse(r.later[i]);
        review_pod(&r, pod);
    }
    cache_walk_done(&walk);
    if (r.checked < r.all) {
        CLEANUP_FREE char *text =
            xasprintf("new PodSecurity enforce level only checked against the first %zu of %zu "
                      "existing pods",
                      r.checked, r.all);
        request_warn(q, "-", text);
    }
    if (smap_size(&r.by_reasons)) {
        CLEANUP_FREE char *level = pod_standard_text(standard);
        CLEANUP_FREE char *text =
            xasprintf("existing pods in namespace \"%s\" violate the new PodSecurity enforce level "
                      "\"%s\"",
                      ns, level);
        request_warn(q, "-", text);
        warn_groups(q, &r);
    }
    free(r.later);
    smap_done(&r.controllers);
    smap_done(&r.by_reasons);
}

/* ---- namespaces ---- */

static bool same_causes(const struct api_causes *a, const struct api_causes *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; i < a->n && same; i++) {
        same = streq(a->list[i].field, b->list[i].field) &&
               streq(a->list[i].message, b->list[i].message);
    }
    return same;
}

static int validate_namespace(struct request *q, const struct json *obj, const struct json *old,
                              struct outcome *outcome)
{
    CLEANUP(api_causes_done) struct api_causes causes = {0}, had = {0};
    const char *name = json_path_string(obj, "metadata", "name", NULL);
    struct pod_policy p, before;
    if (*q->subresource) {
        return 0;
    }
    pod_policy_read(json_path(obj, "metadata", "labels", NULL), &p, &causes);
    pod_policy_read(json_path(old, "metadata", "labels", NULL), &before, &had);
    if (causes.n && !same_causes(&causes, &had)) {
        outcome_invalid(outcome, q->kind, name ? name : "", &causes);
        return -EINVAL;
    }
    bool relaxed =
        p.enforce.minor == before.enforce.minor && p.enforce.level <= before.enforce.level;
    /* Validation refuses the change of a label by a Project. */
    bool changes = old && name && !q->kind->view && !relaxed;
    bool exempt = is_listed(q->server->cfg.pod_security_exempt.namespaces, name);
    if (changes && !exempt && p.enforce.level != POD_PRIVILEGED) {
        warn_of_pods(q, name, &p.enforce);
    }
    return 0;
}

int pod_security_validate(struct request *q, const struct json *obj, const struct json *old,
                          struct outcome *outcome)
{
    if (api_kind_is_namespace(q->kind)) {
        return validate_namespace(q, obj, old, outcome);
    }
    return validate_pod(q, obj, old, pod_restrictions_path(q->kind->group, q->kind->plural),
                        outcome);
}
