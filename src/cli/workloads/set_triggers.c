/* SPDX-License-Identifier: Apache-2.0 */
/* tenet set triggers: what starts rollouts. */
#include "base/mem.h"
#include "cli/kubectl/print.h"
#include "cli/workloads/set.h"
#include "cli/workloads/triggers.h"

#include <stdio.h>

struct trigger_change {
    const char *containers, *image; /* image: as typed, "[NAMESPACE/]NAME:TAG"; NULL: none. */
    bool config, remove, remove_all, automatic, manual, list;
};

enum {
    OPT_FROM_CONFIG = OPT_FIRST_FREE,
    OPT_FROM_IMAGE,
    OPT_REMOVE,
    OPT_REMOVE_ALL,
    OPT_AUTO,
    OPT_MANUAL
};

static const struct command_option options[] = {
    {"from-config", OPT_FROM_CONFIG, NULL, "the trigger by changes of the template"},
    {"from-image", OPT_FROM_IMAGE, "NAME:TAG", "the trigger by new images of an image stream's tag",
     .detail = "NAMESPACE/NAME:TAG names a stream of another namespace."},
    {"containers", 'c', "NAME[,NAME]", "with --from-image: the containers that get the image"},
    {"auto", OPT_AUTO, NULL, "the trigger, or all, start rollouts by themselves"},
    {"manual", OPT_MANUAL, NULL, "the trigger, or all, start no rollouts"},
    {"remove", OPT_REMOVE, NULL, "removes the trigger"},
    {"remove-all", OPT_REMOVE_ALL, NULL, "removes all triggers"},
    {0},
};

static int check(struct trigger_change *c)
{
    int n = c->config + (c->image != NULL);
    const char *colon = c->image ? strrchr(c->image, ':') : NULL;
    if (c->automatic && c->manual) {
        return session_error("you must specify at most one of --auto or --manual");
    }
    if (c->remove && c->remove_all) {
        return session_error("you must specify either --remove or --remove-all");
    }
    if (c->remove_all && (n || c->automatic || c->manual)) {
        return session_error("--remove-all may not be used with any other flag");
    }
    if (c->remove && n < 1) {
        return session_error("--remove requires a flag defining a trigger type to be specified");
    }
    if (n > 1) {
        return session_error("you may only set one trigger type at a time");
    }
    if (c->image && (!colon || !colon[1] || strchr(colon, '/') || colon == c->image)) {
        return session_error("the value of --from-image must include the tag you wish to pull "
                             "from");
    }
    c->list = n == 0 && !c->remove_all && !c->automatic && !c->manual;
    return 0;
}

/* Splits "[NAMESPACE/]NAME:TAG"; the namespace "" is that of the object. */
static const char *split_image(const struct trigger_change *c, const struct json *object,
                               char ns[256])
{
    const char *slash = strchr(c->image, '/');
    ns[0] = '\0';
    if (slash) {
        (void) snprintf(ns, 256, "%.*s", (int) (slash - c->image), c->image);
        if (streq(ns, json_get_text(json_get(object, "metadata"), "namespace"))) {
            ns[0] = '\0';
        }
    }
    return slash ? slash + 1 : c->image;
}

static struct json *container_names(const struct trigger_change *c, const struct api_kind *k,
                                    const struct json *object)
{
    struct json *names = json_array();
    const struct json *containers = json_path(template_of(k, object), "spec", "containers", NULL);
    if (!c->containers && json_count(containers) == 1) {
        json_append(names, json_string(json_get_text(json_at(containers, 0), "name")));
    }
    CLEANUP_FREE char *list = xstrdup(c->containers ? c->containers : "");
    for (char *p = list, *next; p && *p; p = next) {
        next = strchr(p, ',');
        if (next) {
            *next++ = '\0';
        }
        json_append(names, json_string(p));
    }
    return names;
}

static void change_image(const struct trigger_change *c, const struct api_kind *k,
                         const struct json *object, struct json *images)
{
    char ns[256];
    const char *from = split_image(c, object, ns);
    size_t i = 0;
    while (i < json_count(images) && (!streq(json_get_text(json_at(images, i), "from"), from) ||
                                      !streq(json_get_text(json_at(images, i), "namespace"), ns))) {
        i++;
    }
    if (c->remove) {
        json_remove_at(images, i);
        return;
    }
    struct json *image = json_at(images, i);
    if (!image) {
        image = json_append(images, json_object());
        json_set_string(image, "from", from);
        json_set_string(image, "namespace", ns[0] ? ns : NULL);
    }
    json_set_bool(image, "auto", !c->manual);
    if (c->containers || !json_get(image, "names")) {
        json_set(image, "names", container_names(c, k, object));
    }
}

static int change(void *ctx, const struct api_kind *k, struct json *object, struct err *e)
{
    const struct trigger_change *c = ctx;
    CLEANUP(json_free) struct json *triggers = triggers_read(k, object, e);
    struct json *image;
    if (!triggers) {
        return -EINVAL;
    }
    struct json *images = json_ensure_array(triggers, "images");
    if (c->remove_all) {
        json_set_bool(triggers, "config", false);
        json_set(triggers, "images", json_array());
    } else if (c->image) {
        change_image(c, k, object, images);
    } else if (c->config) {
        json_set_bool(triggers, "config", !c->remove && !c->manual);
    } else {
        json_set_bool(triggers, "config", c->automatic);
        JSON_FOREACH (image, images) {
            json_set_bool(image, "auto", c->automatic);
        }
    }
    return triggers_write(k, object, triggers, e);
}

/* ---- the list ---- */

static void add_row(struct json *rows, const struct target *g, const char *type, const char *value,
                    bool automatic)
{
    json_append(rows, json_stringf("%s/%s", g->kind->plural, target_name(g)));
    json_append(rows, json_string(type));
    json_append(rows, json_string(value));
    json_append(rows, json_string(automatic ? "true" : "false"));
}

static int print_list(const struct targets *t)
{
    CLEANUP(json_free) struct json *rows = json_array();
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    static const char *const head[] = {"NAME", "TYPE", "VALUE", "AUTO"};
    struct err e = {0};
    for (size_t i = 0; i < ARRAY_SIZE(head); i++) {
        json_append(rows, json_string(head[i]));
    }
    for (size_t i = 0; i < t->n; i++) {
        CLEANUP(json_free)
        struct json *triggers = triggers_read(t->list[i].kind, t->list[i].object, &e);
        const struct json *image, *name;
        if (!triggers) {
            return session_error("%s", e.text);
        }
        add_row(rows, &t->list[i], "config", "",
                json_get_bool(json_get(triggers, "config"), false));
        JSON_FOREACH (image, json_get(triggers, "images")) {
            CLEANUP_STRBUF struct strbuf value = STRBUF_INIT;
            const char *ns = json_get_text(image, "namespace");
            strbuf_addf(&value, "%s%s%s (", ns, *ns ? "/" : "", json_get_text(image, "from"));
            JSON_FOREACH (name, json_get(image, "names")) {
                strbuf_addf(&value, "%s%s", name_i ? ", " : "", json_get_string(name));
            }
            strbuf_addc(&value, ')');
            add_row(rows, &t->list[i], "image", strbuf_cstr(&value),
                    json_get_bool(json_get(image, "auto"), false));
        }
    }
    size_t n = json_count(rows);
    CLEANUP_FREE const char **cells = xcalloc(n, sizeof(*cells));
    for (size_t i = 0; i < n; i++) {
        cells[i] = json_get_string(json_at(rows, i));
    }
    print_columns(cells, ARRAY_SIZE(head), n / ARRAY_SIZE(head), "", &out);
    fputs(strbuf_cstr(&out), stdout);
    return 0;
}

static int run(int argc, char **argv)
{
    CLEANUP_TARGETS struct targets t = {0};
    struct trigger_change c = {0};
    int opt;
    while ((opt = targets_getopt(&t, &set_triggers, argc, argv)) != -1) {
        switch (opt) {
        case OPT_FROM_CONFIG:
            c.config = true;
            break;
        case OPT_FROM_IMAGE:
            c.image = optarg;
            break;
        case 'c':
            c.containers = optarg;
            break;
        case OPT_AUTO:
            c.automatic = true;
            break;
        case OPT_MANUAL:
            c.manual = true;
            break;
        case OPT_REMOVE:
            c.remove = true;
            break;
        case OPT_REMOVE_ALL:
            c.remove_all = true;
            break;
        default:
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    int status = check(&c);
    if (status == 0) {
        status = targets_load(&t, NULL, argc - optind, argv + optind);
    }
    if (status != 0 && t.n == 0) {
        return status;
    }
    return status | (c.list ? print_list(&t) : targets_change(&t, change, &c, "triggers updated"));
}

const struct command set_triggers = {
    .name = "set triggers",
    .summary = "what starts rollouts",
    .help = "usage: tenet set triggers KIND/NAME...\n"
            "       tenet set triggers KIND/NAME... (--from-config | --from-image NAME:TAG) "
            "[--auto | --manual | --remove] [OPTIONS]\n"
            "       tenet set triggers KIND/NAME... (--auto | --manual | --remove-all) [OPTIONS]\n"
            "\n"
            "Shows or changes the triggers of a DeploymentConfig, or the annotation\n"
            "image.openshift.io/triggers of another workload.\n",
    .options = options,
    .shared = target_options,
    .complete = COMPLETE_KIND,
    .run = run};
