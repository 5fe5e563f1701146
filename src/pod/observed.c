/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/observed.h"

#include "base/str.h"
#include "pod/pod.h"

static char *copy(const char *s)
{
    return xstrdup(s ? s : "");
}

static void set_text(char **to, const char *s)
{
    char *old = *to;
    *to = s ? xstrdup(s) : NULL;
    free(old);
}

static const char *pair(const struct runtime_pairs *p, const char *key)
{
    for (size_t i = 0; i < p->n; i++) {
        if (streq(p->v[i].key, key)) {
            return p->v[i].value;
        }
    }
    return "";
}

static uint32_t number(const struct runtime_pairs *p, const char *key)
{
    uint64_t n;
    return str_to_u64(pair(p, key), UINT32_MAX, &n) == 0 ? (uint32_t) n : 0;
}

static void container_done(struct observed_container *c)
{
    free(c->id);
    free(c->sandbox_id);
    free(c->name);
    free(c->image);
    free(c->image_ref);
    free(c->reason);
    free(c->message);
    free(c->log_path);
    free(c->hash);
    free(c->message_path);
    free(c->message_policy);
}

void pod_observed_clear(struct pod_observed *o)
{
    for (size_t i = 0; i < o->n_sandboxes; i++) {
        free(o->sandboxes[i].id);
        free(o->sandboxes[i].ip);
    }
    for (size_t i = 0; i < o->n_containers; i++) {
        container_done(&o->containers[i]);
    }
    o->n_sandboxes = o->n_containers = 0;
}

void pod_observed_done(struct pod_observed *o)
{
    pod_observed_clear(o);
    for (size_t i = 0; i < o->n_facts; i++) {
        free(o->facts[i].name);
        free(o->facts[i].wait_reason);
        free(o->facts[i].wait_message);
        free(o->facts[i].id);
        free(o->facts[i].kill_message);
    }
    free(o->sandboxes);
    free(o->containers);
    free(o->facts);
    free(o->volumes_message);
    free(o->host_ip);
    free(o->refused_reason);
    free(o->refused_message);
    *o = (struct pod_observed){0};
}

struct observed_sandbox *pod_observed_add_sandbox(struct pod_observed *o,
                                                  const struct runtime_sandbox *s)
{
    o->sandboxes = grow(o->sandboxes, &o->cap_sandboxes, o->n_sandboxes + 1, sizeof *o->sandboxes);
    struct observed_sandbox *n = &o->sandboxes[o->n_sandboxes++];
    *n = (struct observed_sandbox){.id = copy(s->id),
                                   .attempt = s->attempt,
                                   .ready = s->ready,
                                   .created_ns = s->created_ns,
                                   .ip = s->ip && *s->ip ? xstrdup(s->ip) : NULL,
                                   .network = s->network};
    return n;
}

struct observed_container *pod_observed_add_container(struct pod_observed *o,
                                                      const struct runtime_container *c)
{
    o->containers =
        grow(o->containers, &o->cap_containers, o->n_containers + 1, sizeof *o->containers);
    struct observed_container *n = &o->containers[o->n_containers++];
    *n = (struct observed_container){
        .id = copy(c->id),
        .sandbox_id = copy(c->sandbox_id),
        .name = copy(c->name),
        .attempt = c->attempt,
        .state = c->state,
        .created_ns = c->created_ns,
        .image = copy(c->image),
        .image_ref = copy(c->image_ref),
        .reason = copy(""),
        .message = copy(""),
        .log_path = copy(c->log_path),
        .hash = copy(pair(&c->annotations, POD_NOTE_HASH)),
        .message_path = copy(pair(&c->annotations, POD_NOTE_MESSAGE_PATH)),
        .message_policy = copy(pair(&c->annotations, POD_NOTE_MESSAGE_POLICY)),
        .restarts = number(&c->annotations, POD_NOTE_RESTARTS),
        .level = number(&c->annotations, POD_NOTE_LEVEL),
    };
    return n;
}

void pod_observed_set_details(struct observed_container *c, const struct runtime_container *s)
{
    c->state = s->state;
    c->created_ns = s->created_ns ? s->created_ns : c->created_ns;
    c->started_ns = s->started_ns;
    c->finished_ns = s->finished_ns;
    c->exit_code = s->exit_code;
    set_text(&c->reason, s->reason ? s->reason : "");
    set_text(&c->message, s->message ? s->message : "");
    if (s->image && *s->image) {
        set_text(&c->image, s->image);
    }
    if (s->image_ref && *s->image_ref) {
        set_text(&c->image_ref, s->image_ref);
    }
    if (s->log_path && *s->log_path) {
        set_text(&c->log_path, s->log_path);
    }
    c->detailed = true;
}

struct observed_container *pod_observed_find(const struct pod_observed *o, const char *id)
{
    for (size_t i = 0; id && i < o->n_containers; i++) {
        if (streq(o->containers[i].id, id)) {
            return &o->containers[i];
        }
    }
    return NULL;
}

const struct observed_fact *pod_observed_find_fact(const struct pod_observed *o, const char *name)
{
    for (size_t i = 0; i < o->n_facts; i++) {
        if (streq(o->facts[i].name, name)) {
            return &o->facts[i];
        }
    }
    return NULL;
}

struct observed_fact *pod_observed_fact(struct pod_observed *o, const char *name)
{
    const struct observed_fact *f = pod_observed_find_fact(o, name);
    if (f) {
        return &o->facts[f - o->facts];
    }
    o->facts = grow(o->facts, &o->cap_facts, o->n_facts + 1, sizeof *o->facts);
    o->facts[o->n_facts] = (struct observed_fact){.name = xstrdup(name), .kill_grace_s = -1};
    return &o->facts[o->n_facts++];
}

void observed_fact_set_id(struct observed_fact *f, const char *id)
{
    if (streq_null(f->id, id)) {
        return;
    }
    set_text(&f->id, id);
    set_text(&f->kill_message, NULL);
    f->kill_grace_s = -1;
    f->hook = f->ready = f->started = f->probed = false;
}

void observed_fact_set_wait(struct observed_fact *f, const char *reason, const char *message)
{
    set_text(&f->wait_reason, reason);
    set_text(&f->wait_message, reason ? message : NULL);
}

const struct observed_sandbox *pod_observed_sandbox(const struct pod_observed *o)
{
    const struct observed_sandbox *newest = NULL;
    for (size_t i = 0; i < o->n_sandboxes; i++) {
        const struct observed_sandbox *s = &o->sandboxes[i];
        if (!newest || s->attempt > newest->attempt ||
            (s->attempt == newest->attempt && s->created_ns > newest->created_ns)) {
            newest = s;
        }
    }
    return newest;
}

bool observed_sandbox_is_usable(const struct observed_sandbox *s, bool host_network)
{
    return s && s->ready && (s->network == RUNTIME_NS_NODE) == host_network &&
           (host_network || s->ip);
}

/* Whether 'a' was made after 'b'. */
static bool is_newer(const struct observed_container *a, const struct observed_container *b)
{
    return a->restarts != b->restarts ? a->restarts > b->restarts : a->created_ns > b->created_ns;
}

const struct observed_container *pod_observed_newest(const struct pod_observed *o, const char *name)
{
    const struct observed_container *newest = NULL;
    for (size_t i = 0; i < o->n_containers; i++) {
        const struct observed_container *c = &o->containers[i];
        if (streq(c->name, name) && (!newest || is_newer(c, newest))) {
            newest = c;
        }
    }
    return newest;
}

const struct observed_container *pod_observed_before(const struct pod_observed *o,
                                                     const struct observed_container *c)
{
    const struct observed_container *found = NULL;
    for (size_t i = 0; i < o->n_containers; i++) {
        const struct observed_container *b = &o->containers[i];
        if (b != c && streq(b->name, c->name) && is_newer(c, b) && (!found || is_newer(b, found))) {
            found = b;
        }
    }
    return found;
}

bool observed_container_may_run(const struct observed_container *c)
{
    return c->state == RUNTIME_RUNNING || c->state == RUNTIME_UNKNOWN;
}
