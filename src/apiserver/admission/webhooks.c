/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/admission/webhooks.h"

#include "api/obj.h"
#include "apiserver/admission/admission.h"
#include "apiserver/admission/webhook_call.h"
#include "apiserver/admission/webhook_review.h"
#include "apiserver/cache/object.h"
#include "apiserver/request/metrics.h"
#include "apiserver/request/respond.h"
#include "base/log.h"
#include "base/random.h"
#include "base/timeutil.h"

LOG_MODULE("apiserver");

#define GROUP "admissionregistration.k8s.io"
#define MAX_RUNS 1000
#define MAX_RUN_MS 60000

/* The webhooks of one of the two kinds of configurations. */
struct hook_set {
    const struct cache_kind *kind;
    struct webhook_list *list;
    bool stale;
};

struct webhooks {
    struct apiserver *server;
    struct webhook_callers *callers;
    struct hook_set sets[2]; /* Validating, mutating. */
    struct list runs;
    size_t n_runs;
    struct cache_subscriber subscriber;
};

enum phase { PHASE_IDLE, PHASE_MUTATING, PHASE_MUTATED, PHASE_VALIDATING, PHASE_DONE };

/* A call of one webhook. */
struct step {
    struct webhook_run *run;
    const struct webhook *hook;
    const struct api_kind *kind; /* The version that the webhook is asked in. */
    struct webhook_call *call;   /* NULL: it has ended. */
    char uid[RANDOM_UUID_SIZE];
    uint64_t begin_ns;
    struct json *sent; /* The object as it was sent to a mutating webhook; NULL: none. */
    struct outcome refusal;
};

struct webhook_run {
    struct list node;
    struct webhooks *hooks;
    struct request *q;
    enum phase phase;
    enum webhook_operation operation;
    loop_fn *again;
    void *ctx;
    char *base; /* resourceVersion of the object that the write replaces; "": none. */
    struct json *obj, *old;
    struct webhook_part part;
    bool is_part;
    struct webhook_list *list;
    size_t at;      /* The mutating webhook that is called. */
    bool second;    /* The second round of mutating webhooks. */
    bool changed;   /* A mutating webhook has changed the object. */
    uint64_t *seen; /* Hashes of the object after the call of each webhook; 0: it was not called. */
    struct step *steps;
    size_t n_steps, pending;
    uint64_t deadline_ms;
    struct outcome refusal; /* Filled when the write is refused. */
};

/* ---- the sets ---- */

static void on_changed(void *ctx, struct cache_kind *ck, const struct cache_event *ev)
{
    struct webhooks *hs = ctx;
    for (size_t i = 0; i < ARRAY_SIZE(hs->sets); i++) {
        hs->sets[i].stale = hs->sets[i].stale || ck == hs->sets[i].kind;
    }
}

static void on_loaded(void *ctx)
{
    struct webhooks *hs = ctx;
    hs->sets[0].stale = hs->sets[1].stale = true;
}

static struct webhook_list *list_of_kind(struct webhooks *hs, bool mutates)
{
    struct hook_set *set = &hs->sets[mutates];
    const struct object *o;
    if (set->stale && set->kind) {
        webhook_list_unref(set->list);
        set->list = webhook_list_new(mutates);
        struct keyset_pos pos = keyset_seek(&set->kind->objects, "");
        while ((o = keyset_next(&set->kind->objects, &pos))) {
            webhook_list_add(set->list, object_parse(o));
        }
        set->stale = false;
    }
    return set->list;
}

struct webhooks *webhooks_new(struct apiserver *a)
{
    static const char *const plurals[] = {"validatingwebhookconfigurations",
                                          "mutatingwebhookconfigurations"};
    struct webhooks *hs = NEW(struct webhooks);
    hs->server = a;
    hs->callers = webhook_callers_new(a);
    list_init(&hs->runs);
    for (size_t i = 0; i < ARRAY_SIZE(hs->sets); i++) {
        hs->sets[i].kind = cache_find(&a->cache, api_kind_find(GROUP, "v1", plurals[i]));
        hs->sets[i].list = webhook_list_new(i);
        hs->sets[i].stale = true;
    }
    hs->subscriber = (struct cache_subscriber){
        .rank = CACHE_RANK_ADMISSION, .ctx = hs, .changed = on_changed, .loaded = on_loaded};
    cache_subscribe(&a->cache, &hs->subscriber);
    return hs;
}

struct webhooks *webhooks_free(struct webhooks *hs)
{
    if (hs) {
        cache_unsubscribe(&hs->subscriber);
        webhook_list_unref(hs->sets[0].list);
        webhook_list_unref(hs->sets[1].list);
        webhook_callers_free(hs->callers);
        free(hs);
    }
    return NULL;
}

bool webhooks_exist(struct webhooks *hs)
{
    return list_of_kind(hs, false)->n || list_of_kind(hs, true)->n;
}

/* ---- which webhooks a write concerns ---- */

static struct webhook_target target_of(const struct request *q, enum webhook_operation operation,
                                       const struct json *obj, const struct json *old,
                                       const struct webhook_part *part)
{
    bool is_namespace = api_kind_is_namespace(q->kind);
    const struct json *self = obj ? obj : old;
    const struct json *ns = is_namespace ? self : admission_namespace(q);
    return (struct webhook_target){
        .operation = operation,
        .subresource = q->subresource,
        .namespace = is_namespace ? obj_name(self) : q->namespace,
        .namespace_labels = json_path(ns, "metadata", "labels", NULL),
        .obj = part ? part->body : obj,
        .old = old,
    };
}

/* The kind in whose version the webhook is asked; NULL: it is not to be asked. */
static const struct api_kind *matched_kind(const struct request *q, const struct webhook *h,
                                           const struct webhook_target *t)
{
    const struct api_registry *r = &q->server->cache.registry;
    const struct api_kind *found = NULL;
    if (streq(q->kind->group, GROUP)) {
        return NULL;
    }
    if (webhook_has_rule(h, q->kind, t)) {
        found = q->kind;
    }
    for (size_t i = 0; !found && h->equivalent && i < r->n; i++) {
        if (r->list[i] != q->kind && q->ck && cache_find(&q->server->cache, r->list[i]) == q->ck &&
            webhook_has_rule(h, r->list[i], t)) {
            found = r->list[i];
        }
    }
    return found && webhook_selects(h, t) ? found : NULL;
}

static bool concerns(const struct webhook_list *l, const struct request *q,
                     const struct webhook_target *t)
{
    for (size_t i = 0; i < l->n; i++) {
        if (matched_kind(q, &l->hooks[i], t)) {
            return true;
        }
    }
    return false;
}

/* A copy of 'obj', of kind 'from', as an object of kind 'to'; owned. */
static struct json *converted(const struct json *obj, const struct api_kind *from,
                              const struct api_kind *to)
{
    struct json *o = json_clone(obj);
    CLEANUP_FREE char *version = api_kind_api_version(to);
    if (from != to && from->view) {
        from->view->store(o);
    }
    if (from != to && to->view) {
        to->view->show(o);
    }
    json_set_string(o, "apiVersion", version);
    json_set_string(o, "kind", to->kind);
    return o;
}

/* ---- a run ---- */

static void drop_steps(struct webhook_run *run)
{
    for (size_t i = 0; i < run->n_steps; i++) {
        struct step *s = &run->steps[i];
        if (s->call) {
            webhook_call_cancel(s->call);
        }
        json_free(s->sent);
        outcome_done(&s->refusal);
    }
    free(TAKE(run->steps));
    run->n_steps = run->pending = 0;
}

/* Forgets what was asked; the time that was spent counts further. */
static void run_reset(struct webhook_run *run)
{
    drop_steps(run);
    run->list = webhook_list_unref(run->list);
    run->obj = json_free(run->obj);
    run->old = json_free(run->old);
    free(TAKE(run->seen));
    free(TAKE(run->base));
    outcome_done(&run->refusal);
    run->refusal = (struct outcome){0};
    run->phase = PHASE_IDLE;
    run->at = 0;
    run->second = run->changed = false;
}

struct webhook_run *webhook_run_free(struct webhook_run *run)
{
    if (run) {
        run_reset(run);
        list_remove(&run->node);
        run->hooks->n_runs--;
        free(run);
    }
    return NULL;
}

static const char *base_of(const struct json *old)
{
    const char *version = json_path_string(old, "metadata", "resourceVersion", NULL);
    return version ? version : "";
}

/* NULL: too many writes wait; the outcome is filled. */
static struct webhook_run *run_begin(struct webhooks *hs, struct webhook_run **run,
                                     const struct webhook_question *question, bool mutates,
                                     struct outcome *outcome)
{
    struct webhook_run *r = *run;
    if (!r && hs->n_runs >= MAX_RUNS) {
        outcome_error(outcome, 429, "TooManyRequests",
                      "too many writes wait for admission webhooks, please try again later");
        return NULL;
    }
    if (!r) {
        r = *run = NEW(struct webhook_run);
        list_push_back(&hs->runs, &r->node);
        hs->n_runs++;
        r->hooks = hs;
        r->deadline_ms = time_mono_ns() / 1000000 + MAX_RUN_MS;
    }
    run_reset(r);
    r->q = question->q;
    r->operation = question->operation;
    r->again = question->again;
    r->ctx = question->ctx;
    r->is_part = question->part != NULL;
    r->part = question->part ? *question->part : (struct webhook_part){0};
    r->base = xstrdup(base_of(question->old));
    r->obj = question->obj ? json_clone(question->obj) : NULL;
    r->old = question->old ? json_clone(question->old) : NULL;
    r->list = webhook_list_ref(list_of_kind(hs, mutates));
    return r;
}

static bool is_refused(const struct webhook_run *run)
{
    return run->refusal.type != OUTCOME_NONE;
}

/* ---- a call ---- */

static void count(const struct step *s, bool rejected, const char *error_type, int code)
{
    const struct webhook_run *run = s->run;
    metrics_count_webhook(run->hooks->server->metrics,
                          &(struct webhook_count){
                              .name = s->hook->name,
                              .type = s->hook->mutates ? "admit" : "validating",
                              .operation = webhook_operation_names[run->operation],
                              .rejected = rejected,
                              .failed_open = !rejected && error_type != NULL,
                              .error_type = error_type,
                              .code = code,
                          },
                          time_mono_ns() - s->begin_ns);
}

/* The webhook gave no usable answer: its failurePolicy decides. */
static void fail(struct step *s, const char *why)
{
    static struct log_limit limit;
    const struct webhook *h = s->hook;
    struct request *q = s->run->q;
    log_limited(&limit, LOG_WARN, "webhook failed",
                "webhook=%s configuration=%s operation=%s resource=%s policy=%s error=\"%s\"",
                h->name, h->configuration, webhook_operation_names[s->run->operation],
                RESOURCE_TEXT(q->kind), h->ignores ? "Ignore" : "Fail", why);
    if (h->ignores) {
        CLEANUP_FREE char *key =
            xasprintf("failed-open.%s.webhook.admission.k8s.io/round_%d_index_%zu",
                      h->mutates ? "mutating" : "validating", s->run->second,
                      (size_t) (h - s->run->list->hooks));
        audit_annotate(q->audit, key, h->name);
        count(s, false, "calling_webhook_error", 0);
        return;
    }
    outcome_error(&s->refusal, 500, "InternalError",
                  "Internal error occurred: failed calling webhook \"%s\": failed to call webhook: "
                  "%s",
                  h->name, why);
    count(s, true, "calling_webhook_error", 500);
}

/* The answer cannot be carried out: the write is refused whatever the policy says. */
static void fail_closed(struct step *s, const char *why)
{
    static struct log_limit limit;
    log_limited(&limit, LOG_WARN, "webhook's answer refused",
                "webhook=%s configuration=%s error=\"%s\"", s->hook->name, s->hook->configuration,
                why);
    outcome_error(&s->refusal, 500, "InternalError",
                  "Internal error occurred: admission webhook \"%s\": %s", s->hook->name, why);
    count(s, true, "apiserver_internal_error", 500);
}

static void deny(struct step *s, const struct webhook_answer *a)
{
    outcome_error(&s->refusal, a->code, a->reason,
                  *a->message ? "admission webhook \"%s\" denied the request: %s"
                              : "admission webhook \"%s\" denied the request without "
                                "explanation%s",
                  s->hook->name, a->message);
    count(s, true, "no_error", a->code);
}

/* Puts the patched object in place of the run's. */
static int apply(struct step *s, const struct json *patch, struct err *e)
{
    struct webhook_run *run = s->run;
    const struct request *q = run->q;
    CLEANUP(json_free) struct json *made = NULL;
    if (run->is_part || !run->obj) {
        return err_set(e, -EINVAL, "it sent a patch, which is not accepted for %s of %s%s%s",
                       webhook_operation_names[run->operation], q->kind->plural,
                       *q->subresource ? "/" : "", q->subresource);
    }
    int r = webhook_patch(s->kind, q->subresource, s->sent, patch, &made, e);
    if (r < 0) {
        return r;
    }
    struct json *obj = converted(made, s->kind, q->kind);
    if (*q->subresource) {
        struct json *part = object_prepare_part(q->kind, q->subresource, run->old, obj);
        json_free(obj);
        obj = part;
    } else if (run->old) {
        object_prepare_update(q->kind, run->old, obj);
    }
    run->changed = run->changed || !json_equal(run->obj, obj);
    json_free(run->obj);
    run->obj = obj;
    return 0;
}

static void note(struct step *s, const struct webhook_answer *a)
{
    struct request *q = s->run->q;
    const struct json *w;
    JSON_FOREACH (w, a->warnings) {
        request_warn(q, "-", json_get_string(w));
    }
    for (size_t i = 0; i < json_count(a->annotations); i++) {
        CLEANUP_FREE char *key = xasprintf("%s/%s", s->hook->name, json_key_at(a->annotations, i));
        audit_annotate(q->audit, key, json_get_string(json_at(a->annotations, i)));
    }
    if (s->hook->mutates) {
        CLEANUP_FREE char *key =
            xasprintf("mutation.webhook.admission.k8s.io/round_%d_index_%zu", s->run->second,
                      (size_t) (s->hook - s->run->list->hooks));
        CLEANUP(json_free) struct json *v = json_object();
        json_set_string(v, "configuration", s->hook->configuration);
        json_set_string(v, "webhook", s->hook->name);
        json_set_bool(v, "mutated", a->allowed && json_count(a->patch) > 0);
        CLEANUP_FREE char *text = json_to_text(v);
        audit_annotate(q->audit, key, text);
    }
}

static void judge(struct step *s, const char *body, size_t size, const char *why)
{
    CLEANUP(webhook_answer_done) struct webhook_answer a = {0};
    struct err e = {0};
    if (!why && webhook_answer_read(body, size, s->uid, s->hook->mutates, &a, &e) < 0) {
        why = e.text;
    }
    if (why) {
        fail(s, why);
        return;
    }
    note(s, &a);
    if (!a.allowed) {
        deny(s, &a);
    } else if (a.patch && apply(s, a.patch, &e) < 0) {
        fail_closed(s, e.text);
    } else {
        count(s, false, NULL, 200);
    }
}

static void mutate_on(struct webhook_run *run);

/* Makes the attempt again, which finds the run's result. */
static void run_end(struct webhook_run *run, enum phase phase)
{
    run->phase = phase;
    run->again(run->ctx);
}

static void on_answer(void *ctx, const char *body, size_t size, const char *why)
{
    struct step *s = ctx;
    struct webhook_run *run = s->run;
    s->call = NULL;
    judge(s, body, size, why);
    if (--run->pending) {
        return;
    }
    for (size_t i = 0; i < run->n_steps && !is_refused(run); i++) {
        run->refusal = run->steps[i].refusal;
        run->steps[i].refusal = (struct outcome){0};
    }
    if (run->phase == PHASE_VALIDATING || is_refused(run)) {
        run_end(run, run->phase == PHASE_VALIDATING ? PHASE_DONE : PHASE_MUTATED);
        return;
    }
    drop_steps(run);
    mutate_on(run);
}

static struct json *options_of(const struct webhook_run *run)
{
    static const char *const kinds[VERB_MAX] = {[VERB_CREATE] = "CreateOptions",
                                                [VERB_UPDATE] = "UpdateOptions",
                                                [VERB_PATCH] = "PatchOptions",
                                                [VERB_DELETE] = "DeleteOptions",
                                                [VERB_DELETE_COLLECTION] = "DeleteOptions"};
    const struct request *q = run->q;
    if (run->operation == WEBHOOK_CONNECT || !kinds[q->verb]) {
        return NULL;
    }
    struct json *o = json_object();
    json_set_string(o, "kind", kinds[q->verb]);
    json_set_string(o, "apiVersion", "meta.k8s.io/v1");
    json_set_string(o, "fieldManager", q->manager);
    if (q->dry_run) {
        json_append(json_ensure_array(o, "dryRun"), json_string("All"));
    }
    return o;
}

static void call_begin(struct step *s)
{
    struct webhook_run *run = s->run;
    const struct request *q = run->q;
    const struct api_kind *k = s->kind;
    bool part = run->is_part;
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    CLEANUP(json_free) struct json *user = user_object(q->user);
    CLEANUP(json_free) struct json *options = options_of(run);
    CLEANUP(json_free)
    struct json *obj = run->obj && !part ? converted(run->obj, q->kind, k) : NULL;
    CLEANUP(json_free)
    struct json *old = run->old && !part ? converted(run->old, q->kind, k) : NULL;
    const char *name = q->name ? q->name : obj_name(run->obj ? run->obj : run->old);
    const struct webhook_review review = {
        .uid = s->uid,
        .group = part ? run->part.group : k->group,
        .version = part ? run->part.version : k->version,
        .kind = part ? run->part.kind : k->kind,
        .plural_group = k->group,
        .plural_version = k->version,
        .plural = k->plural,
        .request_group = part ? run->part.group : q->kind->group,
        .request_version = part ? run->part.version : q->kind->version,
        .request_kind = part ? run->part.kind : q->kind->kind,
        .request_plural_group = q->kind->group,
        .request_plural_version = q->kind->version,
        .request_plural = q->kind->plural,
        .subresource = q->subresource,
        .name = name ? name : "",
        .namespace = q->namespace ? q->namespace : "",
        .operation = run->operation,
        .user = user,
        .obj = part ? run->part.body : obj,
        .old = old,
        .options = options,
        .dry_run = q->dry_run,
    };
    random_uuid(s->uid);
    s->begin_ns = time_mono_ns();
    webhook_review_write(&review, &text);
    uint64_t now = s->begin_ns / 1000000;
    uint64_t left = run->deadline_ms > now ? run->deadline_ms - now : 1;
    s->sent = s->hook->mutates ? TAKE(obj) : NULL;
    s->call = webhook_call(run->hooks->callers, s->hook,
                           MIN(left, (uint64_t) s->hook->timeout_s * 1000), &text, on_answer, s);
}

/* Begins the calls of the steps that were added. */
static void calls_begin(struct webhook_run *run)
{
    run->pending = run->n_steps;
    for (size_t i = 0; i < run->n_steps; i++) {
        call_begin(&run->steps[i]);
    }
}

/* ---- mutating webhooks ---- */

static uint64_t hash_of(const struct json *obj)
{
    CLEANUP_FREE char *text = json_to_text(obj);
    uint64_t h = hash_bytes(text, strlen(text));
    return h ? h : 1;
}

/* Whether the webhook is to be called in this round. */
static bool is_due(const struct webhook_run *run, size_t i)
{
    return !run->second ||
           (run->list->hooks[i].reinvoked && run->seen[i] && run->seen[i] != hash_of(run->obj));
}

/* Calls the next mutating webhook.  Returns whether one is called. */
static bool call_next(struct webhook_run *run)
{
    for (; run->at < run->list->n; run->at++) {
        const struct webhook *h = &run->list->hooks[run->at];
        struct webhook_target t =
            target_of(run->q, run->operation, run->obj, run->old, run->is_part ? &run->part : NULL);
        const struct api_kind *k = is_due(run, run->at) ? matched_kind(run->q, h, &t) : NULL;
        if (k) {
            run->steps = xcalloc(1, sizeof *run->steps);
            run->n_steps = 1;
            run->steps[0] = (struct step){.run = run, .hook = h, .kind = k};
            calls_begin(run);
            return true;
        }
    }
    return false;
}

/* Continues after the answer of the webhook at 'at'. */
static void mutate_on(struct webhook_run *run)
{
    if (run->obj && !run->is_part && !run->second && run->list->hooks[run->at].reinvoked) {
        run->seen[run->at] = hash_of(run->obj);
    }
    run->at++;
    if (call_next(run)) {
        return;
    }
    if (run->changed && !run->second) {
        if (admission_admit(run->q, run->obj, run->old, &run->refusal) < 0) {
            run_end(run, PHASE_MUTATED);
            return;
        }
        run->second = true;
        run->at = 0;
        if (call_next(run)) {
            return;
        }
    }
    run_end(run, PHASE_MUTATED);
}

/* ---- the steps of a write ---- */

/* Moves the content of 'by' to 'obj'. */
static void replace(struct json *obj, const struct json *by)
{
    while (json_count(obj)) {
        json_remove_at(obj, 0);
    }
    for (size_t i = 0; i < json_count(by); i++) {
        json_set(obj, json_key_at(by, i), json_clone(json_at(by, i)));
    }
}

bool webhooks_is_stale(const struct webhook_run *run, const struct json *old)
{
    return !is_refused(run) && (run->phase < PHASE_MUTATED || !streq(run->base, base_of(old)));
}

static int refused(struct webhook_run **run, struct outcome *outcome)
{
    *outcome = (*run)->refusal;
    (*run)->refusal = (struct outcome){0};
    *run = webhook_run_free(*run);
    return -EACCES;
}

int webhooks_mutate(struct webhooks *hs, struct webhook_run **run,
                    const struct webhook_question *question, struct outcome *outcome)
{
    struct webhook_run *r = *run;
    if (r && is_refused(r)) {
        return refused(run, outcome);
    }
    if (r && r->phase >= PHASE_MUTATED && streq(r->base, base_of(question->old))) {
        if (question->obj && r->obj) {
            replace(question->obj, r->obj);
        }
        return 1;
    }
    const struct webhook_list *list = list_of_kind(hs, true);
    struct webhook_target t = {0};
    if (list->n) {
        t = target_of(question->q, question->operation, question->obj, question->old,
                      question->part);
    }
    if (!list->n || !concerns(list, question->q, &t)) {
        if (r) {
            run_reset(r);
        }
        return 0;
    }
    r = run_begin(hs, run, question, true, outcome);
    if (!r) {
        return -EBUSY;
    }
    r->phase = PHASE_MUTATING;
    r->seen = xcalloc(r->list->n, sizeof *r->seen);
    (void) call_next(r);
    return -EINPROGRESS;
}

int webhooks_validate(struct webhooks *hs, struct webhook_run **run,
                      const struct webhook_question *question, struct outcome *outcome)
{
    struct webhook_run *r = *run;
    const struct webhook_list *list = list_of_kind(hs, false);
    size_t n = 0;
    if (r && is_refused(r)) {
        return refused(run, outcome);
    }
    if (!list->n || (r && r->phase == PHASE_DONE)) {
        return 0;
    }
    struct webhook_target t =
        target_of(question->q, question->operation, question->obj, question->old, question->part);
    if (!concerns(list, question->q, &t)) {
        return 0;
    }
    r = run_begin(hs, run, question, false, outcome);
    if (!r) {
        return -EBUSY;
    }
    r->phase = PHASE_VALIDATING;
    r->steps = xcalloc(r->list->n, sizeof *r->steps);
    for (size_t i = 0; i < r->list->n; i++) {
        const struct api_kind *k = matched_kind(question->q, &r->list->hooks[i], &t);
        if (k) {
            r->steps[n++] = (struct step){.run = r, .hook = &r->list->hooks[i], .kind = k};
        }
    }
    r->n_steps = n;
    calls_begin(r);
    return -EINPROGRESS;
}

void webhooks_end_all(struct webhooks *hs)
{
    struct webhook_run *run;
    LIST_FOREACH (run, struct webhook_run, node, &hs->runs) {
        if (run->phase == PHASE_MUTATING || run->phase == PHASE_VALIDATING) {
            drop_steps(run);
            outcome_error(&run->refusal, 503, "ServiceUnavailable", "the server is shutting down");
            run_end(run, PHASE_MUTATED);
        }
    }
}

/* ---- requests that write no object of their kind ---- */

struct asked {
    struct request *q;
    request_fn *handler;
    struct json *body;
    struct webhook_part part;
    enum webhook_operation operation;
    struct webhook_run *run;
};

static struct asked *asked_free(struct asked *a)
{
    webhook_run_free(a->run);
    json_free(a->body);
    free(a);
    return NULL;
}

static void ask_on(struct asked *a, struct outcome *outcome);

static void ask_again(void *ctx)
{
    CLEANUP(outcome_done) struct outcome outcome = {0};
    struct asked *a = ctx;
    struct request *q = a->q;
    ask_on(a, &outcome);
    request_answer(q, &outcome);
}

/* Asks the next webhooks, or continues with the handler. */
static void ask_on(struct asked *a, struct outcome *outcome)
{
    struct webhooks *hs = a->q->server->webhooks;
    const struct webhook_question question = {
        .q = a->q, .operation = a->operation, .part = &a->part, .again = ask_again, .ctx = a};
    int r = webhooks_mutate(hs, &a->run, &question, outcome);
    if (r >= 0) {
        r = webhooks_validate(hs, &a->run, &question, outcome);
    }
    if (r == -EINPROGRESS) {
        outcome_take_over(outcome);
        return;
    }
    struct request *q = a->q;
    request_fn *handler = a->handler;
    asked_free(a);
    if (r >= 0) {
        handler(q, outcome);
    }
}

static void add_flag(const struct request *q, struct json *o, const char *key)
{
    if (request_flag(q, key)) {
        json_set_bool(o, key, true);
    }
}

/* The options of a connection, as PodExecOptions has them. */
static struct json *connect_options(const struct request *q, const char *kind)
{
    const char *name, *value, *container = http_query(q->x, "container");
    struct json *o = json_object();
    json_set_string(o, "kind", kind);
    json_set_string(o, "apiVersion", "v1");
    if (streq(q->subresource, "proxy")) {
        json_set_string(o, "path", q->attributes.rest);
    } else if (!streq(q->subresource, "portforward")) {
        add_flag(q, o, "stdin");
        add_flag(q, o, "stdout");
        add_flag(q, o, "stderr");
        add_flag(q, o, "tty");
        json_set_string(o, "container", container && *container ? container : NULL);
        for (size_t i = 0; http_query_at(q->x, i, &name, &value); i++) {
            if (streq(name, "command")) {
                json_append(json_ensure_array(o, "command"), json_string(value));
            }
        }
    }
    return o;
}

static const struct {
    const char *plural, *subresource, *group, *kind;
    bool connects;
} parts[] = {
    {"pods", "exec", "", "PodExecOptions", true},
    {"pods", "attach", "", "PodAttachOptions", true},
    {"pods", "portforward", "", "PodPortForwardOptions", true},
    {"pods", "proxy", "", "PodProxyOptions", true},
    {"services", "proxy", "", "ServiceProxyOptions", true},
    {"nodes", "proxy", "", "NodeProxyOptions", true},
    {"pods", "eviction", "policy", "Eviction", false},
    {"serviceaccounts", "token", "authentication.k8s.io", "TokenRequest", false},
};

void webhooks_then(struct request *q, request_fn *handler, struct outcome *outcome)
{
    size_t i = 0;
    struct err e = {0};
    while (i < ARRAY_SIZE(parts) && !(!*q->kind->group && streq(parts[i].plural, q->kind->plural) &&
                                      streq(parts[i].subresource, q->subresource))) {
        i++;
    }
    if (i == ARRAY_SIZE(parts) || !webhooks_exist(q->server->webhooks)) {
        handler(q, outcome);
        return;
    }
    struct json *body = NULL;
    if (parts[i].connects) {
        body = connect_options(q, parts[i].kind);
    } else if (request_body(q, &body, &e) < 0) {
        handler(q, outcome); /* It refuses the body, with the reason. */
        return;
    }
    struct asked *a = NEW(struct asked);
    *a = (struct asked){.q = q,
                        .handler = handler,
                        .body = body,
                        .part = {parts[i].group, "v1", parts[i].kind, body},
                        .operation = parts[i].connects ? WEBHOOK_CONNECT : WEBHOOK_CREATE};
    ask_on(a, outcome);
}
