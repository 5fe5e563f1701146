/* SPDX-License-Identifier: Apache-2.0 */
/* The triggers of DeploymentConfigs: when a rollout begins, and why. */
#include "api/condition.h"
#include "api/obj.h"
#include "base/mem.h"
#include "workload/deployment_config_priv.h"

#define CONFIG_CHANGE "ConfigChange"
#define IMAGE_CHANGE "ImageChange"

static const char *const container_lists[] = {"containers", "initContainers"};

static const struct json *triggers_of(const struct json *config)
{
    return json_path(config, "spec", "triggers", NULL);
}

static bool is_type(const struct json *trigger, const char *type)
{
    return streq(json_get_text(trigger, "type"), type);
}

bool config_has_trigger(const struct json *config, const char *type)
{
    const struct json *t;
    JSON_FOREACH (t, triggers_of(config)) {
        if (type ? is_type(t, type) : is_type(t, CONFIG_CHANGE) || is_type(t, IMAGE_CHANGE)) {
            return true;
        }
    }
    return false;
}

/* ---- images that are not there yet ---- */

static const struct json *trigger_of_container(const struct json *config, const char *container)
{
    const struct json *t, *name;
    JSON_FOREACH (t, triggers_of(config)) {
        JSON_FOREACH (name, json_path(t, "imageChangeParams", "containerNames", NULL)) {
            if (is_type(t, IMAGE_CHANGE) && streq_null(json_get_string(name), container)) {
                return t;
            }
        }
    }
    return NULL;
}

static bool is_blank(const char *s)
{
    return s[strspn(s, " \t\r\n")] == '\0';
}

/* The condition that says which image the rollout waits for. */
static void say_waiting(struct config *c, const char *container, const struct json *trigger)
{
    const struct json *from = json_path(trigger, "imageChangeParams", "from", NULL);
    const char *ns = json_get_text(from, "namespace");
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    c->waits = true;
    if (container) {
        strbuf_addf(&b, "container \"%s\" has no image, ", container);
    } else {
        strbuf_adds(&b, "the first rollout has no image, ");
    }
    if (trigger) {
        strbuf_addf(
            &b,
            "and waits for image stream tag \"%s/%s\"; no component of Tenet sets the images "
            "of triggers yet",
            *ns ? ns : obj_namespace(c->config), json_get_text(from, "name"));
    } else {
        strbuf_adds(&b, "and no trigger names it");
    }
    const struct json *was = condition_find(c->o, CONFIG_PROGRESSING);
    bool again = was && !streq(json_get_text(was, "message"), strbuf_cstr(&b));
    condition_renew(c->o, CONFIG_PROGRESSING, "False", CONFIG_NO_IMAGE, strbuf_cstr(&b), again,
                    c->now_ms);
}

bool config_waits_for_image(struct config *c)
{
    const struct json *spec = json_path(c->config, "spec", "template", "spec", NULL), *ct, *t;
    for (size_t i = 0; i < ARRAY_SIZE(container_lists); i++) {
        JSON_FOREACH (ct, json_get(spec, container_lists[i])) {
            const char *name = json_get_text(ct, "name");
            if (is_blank(json_get_text(ct, "image"))) {
                say_waiting(c, name, trigger_of_container(c->config, name));
                return true;
            }
        }
    }
    JSON_FOREACH (t, c->version == 0 ? triggers_of(c->config) : NULL) {
        const struct json *params = json_get(t, "imageChangeParams");
        if (is_type(t, IMAGE_CHANGE) && !*json_get_text(params, "lastTriggeredImage")) {
            say_waiting(c, NULL, t);
            return true;
        }
    }
    return false;
}

/* ---- causes ---- */

static struct json *set_details(struct config *c, const char *message)
{
    struct json *details = json_object();
    json_set_string(details, "message", message);
    json_set(json_ensure_object(c->o, "status"), "details", details);
    return json_ensure_array(details, "causes");
}

static void cause_config(struct config *c)
{
    struct json *causes = set_details(c, "config change");
    json_set_string(json_append(causes, json_object()), "type", CONFIG_CHANGE);
}

static void cause_images(struct config *c, const struct json *images)
{
    struct json *causes = set_details(c, "image change");
    const struct json *image;
    JSON_FOREACH (image, images) {
        struct json *cause = json_append(causes, json_object());
        json_set_string(cause, "type", IMAGE_CHANGE);
        struct json *from = json_ensure_object(json_ensure_object(cause, "imageTrigger"), "from");
        json_set_string(from, "kind", "DockerImage");
        json_set_string(from, "name", json_get_string(image));
    }
}

/* ---- changes ---- */

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

/* Appends the images that the containers of the same name in the latest rollout do not have.  The
 * original compares sets of images of plain containers, and misses two that are swapped, and init
 * containers. */
static void add_new_images(const struct config *c, const char *list, struct json *images)
{
    const struct json *now = json_path(c->config, "spec", "template", "spec", list, NULL), *ct;
    const struct json *was = json_path(c->latest, "spec", "template", "spec", list, NULL);
    JSON_FOREACH (ct, now) {
        const struct json *old = find_named(was, json_get_text(ct, "name"));
        const char *image = json_get_text(ct, "image");
        if (!old || !streq(json_get_text(old, "image"), image)) {
            json_append(images, json_string(image));
        }
    }
}

static bool template_has_changed(struct config *c)
{
    CLEANUP(json_free) struct json *was = NULL;
    struct err e = {0};
    if (rollout_decode(c->latest, &was, &e) < 0) {
        workload_plan_say(c->plan, true, "DeploymentDecodeFailed",
                          "Couldn't compare the template with that of replication controller "
                          "\"%s\": %s",
                          obj_name(c->latest), e.text);
        return false;
    }
    const struct json *now = json_path(c->config, "spec", "template", NULL);
    const struct json *before = json_path(was, "spec", "template", NULL);
    return !before || !json_equal(now, before);
}

bool config_is_triggered(struct config *c)
{
    bool on_image = config_has_trigger(c->config, IMAGE_CHANGE);
    bool on_change = config_has_trigger(c->config, CONFIG_CHANGE);
    if (!on_image && !on_change) {
        return false;
    }
    if (c->version == 0) {
        cause_config(c); /* As in the original, also when it is an image that was waited for. */
        return true;
    }
    if (!c->latest) {
        return false;
    }
    CLEANUP(json_free) struct json *images = json_array();
    for (size_t i = 0; on_image && i < ARRAY_SIZE(container_lists); i++) {
        add_new_images(c, container_lists[i], images);
    }
    if (json_count(images)) {
        cause_images(c, images);
        return true;
    }
    if (on_change && template_has_changed(c)) {
        cause_config(c);
        return true;
    }
    return false;
}
