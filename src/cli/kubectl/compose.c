/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/kubectl/compose.h"

#include "base/mem.h"

char *compose_container_name(const char *image)
{
    const char *slash = strrchr(image, '/');
    const char *base = slash ? slash + 1 : image;
    char *name = xstrndup(base, strcspn(base, ":@"));
    for (char *p = name; *p; p++) {
        bool letter = (*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9') || *p == '-';
        *p = *p >= 'A' && *p <= 'Z' ? (char) (*p - 'A' + 'a') : letter ? *p : '-';
    }
    return name;
}

static struct json *labels_of(const struct compose_options *o, const char *key)
{
    if (o->labels) {
        return json_clone(o->labels);
    }
    struct json *labels = json_object();
    json_set_string(labels, key, o->name);
    return labels;
}

static void add_command(struct json *container, const struct compose_options *o)
{
    for (int i = 0; i < o->n_command; i++) {
        json_append(json_ensure_array(container, o->arguments ? "args" : "command"),
                    json_string(o->command[i]));
    }
}

/* The spec of the pods.  'name' NULL: containers are called as their images. */
static struct json *pod_spec(const struct compose_options *o, const char *name, const char *restart)
{
    struct json *spec = json_object();
    for (size_t i = 0; o->images[i]; i++) {
        struct json *c = json_append(json_ensure_array(spec, "containers"), json_object());
        CLEANUP_FREE char *own = compose_container_name(o->images[i]);
        json_set_string(c, "name", name ? name : own);
        json_set_string(c, "image", o->images[i]);
        add_command(c, o);
        if (json_count(o->env)) {
            json_set(c, "env", json_clone(o->env));
        }
        if (o->port > 0) {
            struct json *port = json_append(json_ensure_array(c, "ports"), json_object());
            json_set_int(port, "containerPort", o->port);
        }
    }
    json_set_string(spec, "restartPolicy", restart);
    return spec;
}

static struct json *object_new(const char *version, const char *kind, const char *name)
{
    struct json *o = json_object();
    json_set_string(o, "apiVersion", version);
    json_set_string(o, "kind", kind);
    json_set_string(json_ensure_object(o, "metadata"), "name", name);
    return o;
}

static struct json *make_deployment(const struct compose_options *o, bool config)
{
    struct json *made = config ? object_new("apps.openshift.io/v1", "DeploymentConfig", o->name)
                               : object_new("apps/v1", "Deployment", o->name);
    struct json *spec = json_ensure_object(made, "spec");
    struct json *labels = labels_of(o, config ? "deployment-config.name" : "app");
    json_set(json_get(made, "metadata"), "labels", json_clone(labels));
    json_set_int(spec, "replicas", o->replicas >= 0 ? o->replicas : 1);
    if (config) {
        json_set(spec, "selector", json_clone(labels));
    } else {
        json_set(json_ensure_object(spec, "selector"), "matchLabels", json_clone(labels));
    }
    struct json *template = json_ensure_object(spec, "template");
    json_set(json_ensure_object(template, "metadata"), "labels", labels);
    json_set(template, "spec", pod_spec(o, config ? "default-container" : NULL, NULL));
    return made;
}

static struct json *make_job(const struct compose_options *o)
{
    struct json *made = object_new("batch/v1", "Job", o->name);
    struct json *template = json_ensure_object(json_ensure_object(made, "spec"), "template");
    json_set(template, "spec", pod_spec(o, o->name, o->restart ? o->restart : "Never"));
    return made;
}

static struct json *make_cron_job(const struct compose_options *o)
{
    struct json *made = object_new("batch/v1", "CronJob", o->name);
    struct json *spec = json_ensure_object(made, "spec");
    json_set_string(spec, "schedule", o->schedule);
    struct json *job = json_ensure_object(spec, "jobTemplate");
    json_set_string(json_ensure_object(job, "metadata"), "name", o->name);
    struct json *template = json_ensure_object(json_ensure_object(job, "spec"), "template");
    json_set(template, "spec", pod_spec(o, o->name, o->restart ? o->restart : "OnFailure"));
    return made;
}

static struct json *make_pod(const struct compose_options *o)
{
    struct json *made = object_new("v1", "Pod", o->name);
    json_set(json_get(made, "metadata"), "labels", labels_of(o, "run"));
    json_set(made, "spec", pod_spec(o, o->name, o->restart));
    return made;
}

struct json *compose_object(const char *kind, const struct compose_options *o, struct err *e)
{
    bool config = streq(kind, "DeploymentConfig");
    size_t n = 0;
    while (o->images && o->images[n]) {
        n++;
    }
    if (n == 0) {
        err_set(e, -EINVAL, "required flag(s) \"image\" not set");
        return NULL;
    }
    if (n > 1 && (o->n_command > 0 || !streq(kind, "Deployment"))) {
        err_set(e, -EINVAL, "cannot specify multiple --image options and command");
        return NULL;
    }
    if (streq(kind, "CronJob") && !o->schedule) {
        err_set(e, -EINVAL, "required flag(s) \"schedule\" not set");
        return NULL;
    }
    return streq(kind, "Job")       ? make_job(o)
           : streq(kind, "CronJob") ? make_cron_job(o)
           : streq(kind, "Pod")     ? make_pod(o)
                                    : make_deployment(o, config);
}

struct json *compose_job_from(const char *name, const struct json *cron_job)
{
    struct json *made = object_new("batch/v1", "Job", name);
    struct json *meta = json_get(made, "metadata");
    const struct json *template = json_path(cron_job, "spec", "jobTemplate", NULL);
    const struct json *labels = json_path(template, "metadata", "labels", NULL);
    const struct json *annotations = json_path(template, "metadata", "annotations", NULL);
    if (labels) {
        json_set(meta, "labels", json_clone(labels));
    }
    json_set(meta, "annotations", annotations ? json_clone(annotations) : json_object());
    json_set_string(json_get(meta, "annotations"), "cronjob.kubernetes.io/instantiate", "manual");
    struct json *owner = json_append(json_ensure_array(meta, "ownerReferences"), json_object());
    json_set_string(owner, "apiVersion", "batch/v1");
    json_set_string(owner, "kind", "CronJob");
    json_set_string(owner, "name", json_path_string(cron_job, "metadata", "name", NULL));
    json_set_string(owner, "uid", json_path_string(cron_job, "metadata", "uid", NULL));
    json_set_bool(owner, "controller", true);
    const struct json *spec = json_get(template, "spec");
    json_set(made, "spec", spec ? json_clone(spec) : json_object());
    return made;
}
