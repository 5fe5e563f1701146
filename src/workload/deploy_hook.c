/* SPDX-License-Identifier: Apache-2.0 */
/* The hooks of rollouts: a command in a pod of its own. */
#include "api/obj.h"
#include "base/mem.h"
#include "base/str.h"
#include "workload/deploy_priv.h"

#define CONTAINER "lifecycle"
#define GRACE_S 10

enum { RUNNING, ENDED, RETRIED };

static void say(struct deploy *d, enum deployer_hook which, unsigned kind, const char *text)
{
    deploy_say(d, SAY_HOOK + 3 * (unsigned) which + kind, "--> %s: %s", deployer_hook_name(which),
               text);
}

static void event(struct deploy *d, bool warning, const char *reason, const char *format, ...)
    PRINTF_LIKE(4, 5);
static void event(struct deploy *d, bool warning, const char *reason, const char *format, ...)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    va_list ap;
    va_start(ap, format);
    strbuf_vaddf(&b, format, ap);
    va_end(ap);
    workload_plan_say(d->plan, warning, reason, "%s", strbuf_cstr(&b));
}

/* ---- the pod ---- */

static const struct json *find_named(const struct json *list, const char *name)
{
    const struct json *item;
    JSON_FOREACH (item, list) {
        if (streq(json_get_text(item, "name"), name)) {
            return item;
        }
    }
    return NULL;
}

static bool has_text(const struct json *list, const char *text)
{
    const struct json *item;
    JSON_FOREACH (item, list) {
        if (streq_null(json_get_string(item), text)) {
            return true;
        }
    }
    return false;
}

static void copy_members(struct json *to, const struct json *from, const char *const *keys)
{
    for (; *keys; keys++) {
        const struct json *v = json_get(from, *keys);
        if (v) {
            json_set(to, *keys, json_clone(v));
        }
    }
}

static void add_variable(struct json *env, const char *name, const char *value)
{
    struct json *v = json_append(env, json_object());
    json_set_string(v, "name", name);
    json_set_string(v, "value", value);
}

/* The variables of the container in their order, those of the hook in place of those of the same
 * name, and then the rest of the hook's. */
static struct json *make_env(const struct deploy *d, const struct json *exec,
                             const struct json *base)
{
    struct json *env = json_array();
    const struct json *v, *more = json_get(exec, "env");
    JSON_FOREACH (v, json_get(base, "env")) {
        const struct json *own = find_named(more, json_get_text(v, "name"));
        json_append(env, json_clone(own ? own : v));
    }
    JSON_FOREACH (v, more) {
        if (!find_named(json_get(base, "env"), json_get_text(v, "name"))) {
            json_append(env, json_clone(v));
        }
    }
    add_variable(env, "OPENSHIFT_DEPLOYMENT_NAME", obj_name(d->in->to));
    add_variable(env, "OPENSHIFT_DEPLOYMENT_NAMESPACE", obj_namespace(d->in->to));
    return env;
}

static void add_volumes(struct json *spec, struct json *ct, const struct json *template,
                        const struct json *exec, const struct json *base)
{
    const struct json *v, *wanted = json_get(exec, "volumes");
    JSON_FOREACH (v, json_get(template, "volumes")) {
        if (has_text(wanted, json_get_text(v, "name"))) {
            json_append(json_ensure_array(spec, "volumes"), json_clone(v));
        }
    }
    JSON_FOREACH (v, json_get(base, "volumeMounts")) {
        if (has_text(wanted, json_get_text(v, "name"))) {
            json_append(json_ensure_array(ct, "volumeMounts"), json_clone(v));
        }
    }
}

static struct json *make_pod(const struct deploy *d, const struct json *hook, const char *name,
                             const char *type, const struct json *base)
{
    static const char *const of_container[] = {"image",     "imagePullPolicy", "workingDir",
                                               "resources", "securityContext", NULL};
    static const char *const of_pod[] = {
        "dnsPolicy",    "dnsConfig", "securityContext", "imagePullSecrets", "tolerations",
        "nodeSelector", NULL};
    const struct json *rc = d->in->to, *exec = json_get(hook, "execNewPod");
    const struct json *template = json_path(rc, "spec", "template", "spec", NULL);
    struct json *pod =
        obj_new(workload_pods.api_version, workload_pods.kind, obj_namespace(rc), name);
    struct json *meta = json_get(pod, "metadata"), *spec = json_ensure_object(pod, "spec");
    struct json *labels = json_ensure_object(meta, "labels"), *ct = json_object();
    int64_t spent_s = (d->in->now_ms - d->m->started_ms) / 1000;
    obj_set_annotation(pod, ROLLOUT_NAME, obj_name(rc));
    json_set_string(labels, ROLLOUT_POD_FOR, obj_name(rc));
    json_set_string(labels, ROLLOUT_POD_TYPE, type);
    json_append(json_ensure_array(meta, "ownerReferences"), deployer_owner_ref(rc));
    deployer_decorate(pod, d->strategy);
    json_set_string(ct, "name", CONTAINER);
    copy_members(ct, base, of_container);
    json_set(ct, "command", json_clone(json_get(exec, "command")));
    json_set(ct, "env", make_env(d, exec, base));
    copy_members(spec, template, of_pod);
    add_volumes(spec, ct, template, exec, base);
    json_append(json_ensure_array(spec, "containers"), ct);
    json_set_int(spec, "activeDeadlineSeconds", MAX(rollout_deadline_s(d->strategy) - spent_s, 1));
    json_set_int(spec, "terminationGracePeriodSeconds", GRACE_S);
    json_set_string(spec, "restartPolicy",
                    streq(json_get_text(hook, "failurePolicy"), "Retry") ? "OnFailure" : "Never");
    return pod;
}

/* ---- one hook ---- */

static bool is_noted(const struct deploy *d, enum deployer_hook which)
{
    const char *noted = obj_annotation(d->in->to, ROLLOUT_HOOKS);
    return (d->m->hooks_ended & 1U << which) || (noted && strstr(noted, deployer_hook_name(which)));
}

/* Notes the end in the ReplicationController, so that no deployer runs the hook again. */
static void note(struct deploy *d, enum deployer_hook which)
{
    const char *noted = obj_annotation(d->in->to, ROLLOUT_HOOKS);
    struct json *patch = json_object(), *meta = json_ensure_object(patch, "metadata");
    CLEANUP_FREE char *text = noted && *noted
                                  ? xasprintf("%.40s,%s", noted, deployer_hook_name(which))
                                  : xstrdup(deployer_hook_name(which));
    d->m->hooks_ended |= 1U << which;
    d->m->progress_ms =
        d->in->now_ms; /* The time of the hook is none in which pods did not come. */
    json_set_string(meta, "uid", obj_uid(d->in->to));
    json_set_string(json_ensure_object(meta, "annotations"), ROLLOUT_HOOKS, text);
    (void) workload_plan_add(d->plan, WORKLOAD_MAIN, WORKLOAD_PATCH,
                             &workload_replication_controllers, obj_name(d->in->to), patch);
}

static enum deploy_state succeeded(struct deploy *d, enum deployer_hook which)
{
    event(d, false, "Completed", "The %s-hook for rc %s/%s completed successfully",
          deployer_hook_name(which), obj_namespace(d->in->to), obj_name(d->in->to));
    note(d, which);
    return DEPLOY_GOES_ON; /* When the note is seen. */
}

static enum deploy_state failed(struct deploy *d, const struct json *hook, enum deployer_hook which,
                                const char *why)
{
    const char *name = deployer_hook_name(which), *rc = obj_name(d->in->to);
    const char *ns = obj_namespace(d->in->to);
    if (streq(json_get_text(hook, "failurePolicy"), "Ignore")) {
        event(d, true, "Failed", "The %s-hook failed: %s (ignore), rollout of %s/%s will continue",
              name, why, ns, rc);
        note(d, which);
        return DEPLOY_GOES_ON;
    }
    event(d, true, "Failed", "The %s-hook failed: %s, aborting rollout of %s/%s", name, why, ns,
          rc);
    return deploy_fail(d, "%s hook failed: the %s hook failed: %s, aborting rollout of %s/%s", name,
                       name, why, ns, rc);
}

static enum deploy_state create(struct deploy *d, const struct json *hook, const char *name,
                                const char *type, enum deployer_hook which)
{
    const struct json *exec = json_get(hook, "execNewPod"), *word;
    const char *container = json_get_text(exec, "containerName");
    const struct json *base =
        find_named(json_path(d->in->to, "spec", "template", "spec", "containers", NULL), container);
    CLEANUP_STRBUF struct strbuf command = STRBUF_INIT;
    if (!base) {
        CLEANUP_FREE char *why =
            xasprintf("no container named '%.63s' found in rc template", container);
        return failed(d, hook, which, why);
    }
    JSON_FOREACH (word, json_get(exec, "command")) {
        const char *s = json_get_string(word);
        strbuf_addf(&command, "%s%s", command.size ? " " : "", s ? s : "");
    }
    /* Said once, though the creation may be tried again. */
    if (!(d->m->said & 1U << (SAY_HOOK + 3 * which + RUNNING))) {
        event(d, false, "Started", "Running %s-hook (\"%.500s\") for rc %s/%s",
              deployer_hook_name(which), strbuf_cstr(&command), obj_namespace(d->in->to),
              obj_name(d->in->to));
    }
    (void) workload_plan_add(d->plan, WORKLOAD_MAIN, WORKLOAD_CREATE, &workload_pods, name,
                             make_pod(d, hook, name, type, base));
    say(d, which, RUNNING, "Running hook pod ...");
    return DEPLOY_GOES_ON;
}

/* The pod of the hook is there. */
static enum deploy_state follow(struct deploy *d, const struct json *hook, enum deployer_hook which,
                                const struct workload_child *pod)
{
    const char *message = json_get_text(json_get(pod->obj, "status"), "message");
    int64_t restarts = workload_pod_restarts(pod->obj);
    bool seen = d->m->hooks_seen & 1U << which;
    d->m->hooks_seen |= 1U << which;
    if (!deployer_owns(d->in->to, pod->obj)) {
        if (pod->going) {
            return DEPLOY_GOES_ON; /* One of an earlier ReplicationController of this name. */
        }
        return failed(d, hook, which, "an unrelated pod has the name of the hook's pod");
    }
    if (workload_pod_has_phase(pod->obj, "Succeeded")) {
        say(d, which, ENDED, seen ? "Success" : "Hook pod already succeeded");
        return succeeded(d, which);
    }
    if (workload_pod_has_phase(pod->obj, "Failed")) {
        say(d, which, ENDED, "Failed");
        return failed(d, hook, which, message);
    }
    say(d, which, RUNNING, "Hook pod is already running ...");
    if (restarts > 0) {
        CLEANUP_FREE char *text =
            xasprintf("Retrying hook pod (retry #%lld)", (long long) restarts);
        say(d, which, RETRIED, text);
    }
    return DEPLOY_GOES_ON;
}

enum deploy_state deploy_run_hook(struct deploy *d, const struct json *hook,
                                  enum deployer_hook which)
{
    const struct workload_child *pod = d->in->hooks[which];
    if (!hook || is_noted(d, which)) {
        return DEPLOY_DONE;
    }
    if (json_count(json_get(hook, "tagImages"))) {
        return failed(d, hook, which, "no component of Tenet serves image stream tags yet");
    }
    if (d->m->refused[which]) {
        return failed(d, hook, which, d->m->refused[which]);
    }
    if (pod) {
        return follow(d, hook, which, pod);
    }
    CLEANUP_FREE char *type = xasprintf("hook-%s", deployer_hook_name(which));
    CLEANUP_FREE char *name = rollout_pod_name(obj_name(d->in->to), type);
    if (d->m->hooks_seen & 1U << which) {
        CLEANUP_FREE char *why =
            xasprintf("%s: pod/%s[%s] unexpectedly deleted", deployer_hook_name(which), name,
                      obj_namespace(d->in->to));
        return failed(d, hook, which, why);
    }
    return create(d, hook, name, type, which);
}

void deploy_refused(struct deploy_memory *m, const struct workload_write *w, int error,
                    const char *why)
{
    if (w->verb != WORKLOAD_CREATE || w->kind != &workload_pods ||
        (error != -EACCES && error != -EINVAL)) {
        return;
    }
    const char *type = json_path_string(w->body, "metadata", "labels", ROLLOUT_POD_TYPE, NULL);
    for (int i = 0; i < N_HOOKS; i++) {
        if (type && str_has_prefix(type, "hook-") &&
            streq(type + 5, deployer_hook_name((enum deployer_hook) i)) && !m->refused[i]) {
            m->refused[i] = xasprintf("couldn't create lifecycle pod: %s", why);
        }
    }
}
