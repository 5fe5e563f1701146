/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/workloads/triggers.h"

#include "base/mem.h"
#include "cli/workloads/template.h"

static const char *own_namespace(const struct json *object)
{
    return json_get_text(json_get(object, "metadata"), "namespace");
}

static struct json *add_image(struct json *triggers, const struct json *object,
                              const struct json *from, bool automatic)
{
    struct json *image = json_append(json_ensure_array(triggers, "images"), json_object());
    const char *ns = json_get_text(from, "namespace");
    json_set_string(image, "from", json_get_text(from, "name"));
    if (*ns && !streq(ns, own_namespace(object))) {
        json_set_string(image, "namespace", ns);
    }
    json_set_bool(image, "auto", automatic);
    return json_ensure_array(image, "names");
}

static struct json *read_dc(const struct json *object)
{
    struct json *triggers = json_object();
    const struct json *t, *name;
    json_set_bool(triggers, "config", false);
    json_ensure_array(triggers, "images");
    JSON_FOREACH (t, json_path(object, "spec", "triggers", NULL)) {
        const struct json *p = json_get(t, "imageChangeParams");
        if (streq(json_get_text(t, "type"), "ConfigChange")) {
            json_set_bool(triggers, "config", true);
        } else if (streq(json_get_text(t, "type"), "ImageChange")) {
            struct json *names = add_image(triggers, object, json_get(p, "from"),
                                           json_get_bool(json_get(p, "automatic"), false));
            JSON_FOREACH (name, json_get(p, "containerNames")) {
                json_append(names, json_clone(name));
            }
        }
    }
    return triggers;
}

/* The name in a path such as 'spec.template.spec.containers[?(@.name=="web")].image'; owned, NULL:
 * it is no such path. */
static char *container_of(const char *path)
{
    static const char *const heads[] = {"containers[?(@.name==\"", "containers[?(@.name=='"};
    for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
        const char *p = strstr(path, heads[i]);
        p = p ? p + strlen(heads[i]) : NULL;
        if (p && str_has_suffix(p, ")].image")) {
            return xstrndup(p, strcspn(p, "\"'"));
        }
    }
    return NULL;
}

static struct json *read_annotation(const struct api_kind *k, const struct json *object,
                                    struct err *e)
{
    CLEANUP(json_free) struct json *list = NULL;
    const char *text = annotation_of(object, TRIGGERS_ANNOTATION);
    const struct json *t;
    if (text && json_parse(text, strlen(text), &list, e) < 0) {
        err_prefix(e, "annotation %s", TRIGGERS_ANNOTATION);
        return NULL;
    }
    struct json *triggers = json_object();
    bool paused = kind_is(k, "apps", "Deployment") &&
                  json_get_bool(json_path(object, "spec", "paused", NULL), false);
    json_set_bool(triggers, "config", !paused);
    json_ensure_array(triggers, "images");
    JSON_FOREACH (t, list) {
        CLEANUP_FREE char *name = container_of(json_get_text(t, "fieldPath"));
        if (name) {
            struct json *names = add_image(triggers, object, json_get(t, "from"),
                                           !json_get_bool(json_get(t, "paused"), false));
            json_append(names, json_string(name));
        }
    }
    return triggers;
}

struct json *triggers_read(const struct api_kind *k, const struct json *object, struct err *e)
{
    if (kind_is_dc(k)) {
        return read_dc(object);
    }
    if (!template_of(k, object) || kind_is(k, "", "Pod")) {
        err_set(e, -EINVAL, "%s/%s does not support triggers", k->plural,
                json_get_text(json_get(object, "metadata"), "name"));
        return NULL;
    }
    return read_annotation(k, object, e);
}

/* Requires that each named container exists, and has one trigger. */
static int check_names(const struct api_kind *k, const struct json *object,
                       const struct json *triggers, struct err *e)
{
    CLEANUP(json_free) struct json *seen = json_object();
    struct json *template = template_of(k, object);
    const struct json *image, *name;
    JSON_FOREACH (image, json_get(triggers, "images")) {
        if (json_count(json_get(image, "names")) == 0) {
            return err_set(e, -EINVAL, "you must specify --containers when setting --from-image");
        }
        JSON_FOREACH (name, json_get(image, "names")) {
            const char *text = json_get_string(name) ? json_get_string(name) : "";
            if (!template_named(json_path(template, "spec", "containers", NULL), text) &&
                !template_named(json_path(template, "spec", "initContainers", NULL), text)) {
                return err_set(e, -EINVAL, "not all container names exist: %.100s", text);
            }
            if (json_get(seen, text)) {
                return err_set(e, -EINVAL, "only one trigger may reference each container: %.100s",
                               text);
            }
            json_set_bool(seen, text, true);
        }
    }
    return 0;
}

static struct json *reference(const struct json *image)
{
    struct json *from = json_object();
    json_set_string(from, "kind", "ImageStreamTag");
    json_set_string(from, "name", json_get_text(image, "from"));
    json_set_string(from, "namespace", json_get_string(json_get(image, "namespace")));
    return from;
}

/* The image that the trigger of the same stream tag used last; NULL: none. */
static const char *last_image(const struct json *object, const struct json *image)
{
    const struct json *t;
    JSON_FOREACH (t, json_path(object, "spec", "triggers", NULL)) {
        const struct json *p = json_get(t, "imageChangeParams");
        const char *ns = json_get_text(json_get(p, "from"), "namespace");
        const char *wanted = json_get_text(image, "namespace");
        const char *own = own_namespace(object);
        if (streq(json_get_text(json_get(p, "from"), "name"), json_get_text(image, "from")) &&
            streq(*ns ? ns : own, *wanted ? wanted : own)) {
            return json_get_string(json_get(p, "lastTriggeredImage"));
        }
    }
    return NULL;
}

static void write_dc(struct json *object, const struct json *triggers)
{
    struct json *list = json_array();
    const struct json *image;
    if (json_get_bool(json_get(triggers, "config"), false)) {
        json_set_string(json_append(list, json_object()), "type", "ConfigChange");
    }
    JSON_FOREACH (image, json_get(triggers, "images")) {
        struct json *t = json_append(list, json_object());
        json_set_string(t, "type", "ImageChange");
        struct json *p = json_ensure_object(t, "imageChangeParams");
        json_set_bool(p, "automatic", json_get_bool(json_get(image, "auto"), false));
        json_set(p, "containerNames", json_clone(json_get(image, "names")));
        json_set(p, "from", reference(image));
        json_set_string(p, "lastTriggeredImage", last_image(object, image));
    }
    json_set(json_ensure_object(object, "spec"), "triggers", list);
}

static void write_annotation(const struct api_kind *k, struct json *object,
                             const struct json *triggers)
{
    CLEANUP(json_free) struct json *list = json_array();
    const struct json *image, *name;
    JSON_FOREACH (image, json_get(triggers, "images")) {
        JSON_FOREACH (name, json_get(image, "names")) {
            struct json *template = template_of(k, object);
            bool init = !template_named(json_path(template, "spec", "containers", NULL),
                                        json_get_string(name));
            struct json *t = json_append(list, json_object());
            json_set(t, "from", reference(image));
            json_set(t, "fieldPath",
                     json_stringf("%s.spec.%s[?(@.name==\"%s\")].image", template_path(k),
                                  init ? "initContainers" : "containers", json_get_string(name)));
            if (!json_get_bool(json_get(image, "auto"), false)) {
                json_set_bool(t, "paused", true);
            }
        }
    }
    struct json *meta = json_ensure_object(object, "metadata");
    struct json *annotations = json_ensure_object(meta, "annotations");
    if (json_count(list) > 0) {
        CLEANUP_FREE char *text = json_to_text(list);
        json_set_string(annotations, TRIGGERS_ANNOTATION, text);
    } else {
        json_remove(annotations, TRIGGERS_ANNOTATION);
    }
    if (kind_is(k, "apps", "Deployment")) {
        struct json *spec = json_ensure_object(object, "spec");
        if (json_get_bool(json_get(triggers, "config"), false)) {
            json_remove(spec, "paused");
        } else {
            json_set_bool(spec, "paused", true);
        }
    }
}

int triggers_write(const struct api_kind *k, struct json *object, const struct json *triggers,
                   struct err *e)
{
    int r = check_names(k, object, triggers, e);
    if (r < 0) {
        return r;
    }
    if (kind_is_dc(k)) {
        write_dc(object, triggers);
    } else {
        write_annotation(k, object, triggers);
    }
    return 0;
}
