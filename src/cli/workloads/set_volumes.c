/* SPDX-License-Identifier: Apache-2.0 */
/* tenet set volumes: volumes of pod templates, and where containers mount them. */
#include "api/quantity.h"
#include "base/mem.h"
#include "cli/workloads/set.h"

#include <stdio.h>

struct volume_change {
    const char *containers, *name, *type, *mount_path, *sub_path, *source;
    const char *claim_size, *claim_class, *claim_mode;
    bool add, remove, overwrite, read_only, confirm;
};

enum {
    OPT_ADD = OPT_FIRST_FREE,
    OPT_REMOVE,
    OPT_NAME,
    OPT_TYPE,
    OPT_CLAIM_NAME,
    OPT_SECRET_NAME,
    OPT_CONFIGMAP_NAME,
    OPT_PATH,
    OPT_SUB_PATH,
    OPT_READ_ONLY,
    OPT_OVERWRITE,
    OPT_CLAIM_SIZE,
    OPT_CLAIM_MODE,
    OPT_CLAIM_CLASS,
    OPT_CONFIRM
};

static const struct command_option options[] = {
    {"add", OPT_ADD, NULL, "adds a volume, and mounts it"},
    {"remove", OPT_REMOVE, NULL, "removes a volume and its mounts"},
    {"name", OPT_NAME, "NAME", "the volume"},
    {"type", 't', "TYPE", "default: emptyDir, or what the other options mean",
     "emptyDir persistentVolumeClaim secret configMap hostPath"},
    {"mount-path", 'm', "PATH", "where the containers mount it"},
    {"sub-path", OPT_SUB_PATH, "PATH", "the part of the volume that is mounted"},
    {"read-only", OPT_READ_ONLY, NULL, "the containers cannot write into it"},
    {"containers", 'c', "NAME", "the containers, such as web or web*; default: *"},
    {"claim-name", OPT_CLAIM_NAME, "NAME", "the persistent volume claim"},
    {"claim-size", OPT_CLAIM_SIZE, "SIZE", "makes that claim, of this size: 1Gi"},
    {"claim-mode", OPT_CLAIM_MODE, "MODE", "its access mode; default: rwo", "rwo rox rwx"},
    {"claim-class", OPT_CLAIM_CLASS, "CLASS", "its storage class; default: the cluster's"},
    {"secret-name", OPT_SECRET_NAME, "NAME", "the secret"},
    {"configmap-name", OPT_CONFIGMAP_NAME, "NAME", "the configmap"},
    {"path", OPT_PATH, "PATH", "the directory of the host"},
    {"overwrite", OPT_OVERWRITE, NULL, "replaces a volume of the same name, or at the same path"},
    {"confirm", OPT_CONFIRM, NULL, "with --remove and without --name: removes all volumes"},
    {0},
};

/* The types of volumes: the member of a volume, the member with the name of its source, and the
 * words of the list. */
static const struct volume_type {
    const char *member, *source, *words;
} types[] = {
    {"emptyDir", NULL, "empty directory"}, {"persistentVolumeClaim", "claimName", "pvc/"},
    {"secret", "secretName", "secret/"},   {"configMap", "name", "configMap/"},
    {"hostPath", "path", "host path "},
};

static const struct volume_type *find_type(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        if (streq(types[i].member, name) || (i == 1 && streq(name, "pvc"))) {
            return &types[i];
        }
    }
    return NULL;
}

/* ---- changes ---- */

static struct json *make_volume(const struct volume_change *c, const struct volume_type *type)
{
    struct json *volume = json_object();
    json_set_string(volume, "name", c->name);
    struct json *source = json_ensure_object(volume, type->member);
    if (type->source) {
        json_set_string(source, type->source, c->source);
    }
    return volume;
}

static int mount(void *ctx, struct json *container, struct err *e)
{
    const struct volume_change *c = ctx;
    struct json *mounts = json_ensure_array(container, "volumeMounts");
    for (size_t i = 0; i < json_count(mounts); i++) {
        const struct json *m = json_at(mounts, i);
        bool path = streq(json_get_text(m, "mountPath"), c->mount_path);
        if (path && !c->overwrite && !streq(json_get_text(m, "name"), c->name)) {
            return err_set(e, -EINVAL,
                           "volume mount '%.100s' already exists for container '%.63s'; use "
                           "--overwrite to replace it",
                           c->mount_path, json_get_text(container, "name"));
        }
        if (path || (c->overwrite && streq(json_get_text(m, "name"), c->name))) {
            json_remove_at(mounts, i--);
        }
    }
    struct json *m = json_append(mounts, json_object());
    json_set_string(m, "name", c->name);
    json_set_string(m, "mountPath", c->mount_path);
    json_set_string(m, "subPath", c->sub_path);
    if (c->read_only) {
        json_set_bool(m, "readOnly", true);
    }
    return 0;
}

static int unmount(void *ctx, struct json *container, struct err *e)
{
    const struct volume_change *c = ctx;
    struct json *mounts = json_get(container, "volumeMounts");
    for (size_t i = json_count(mounts); i > 0; i--) {
        if (!c->name || streq(json_get_text(json_at(mounts, i - 1), "name"), c->name)) {
            json_remove_at(mounts, i - 1);
        }
    }
    return 0;
}

static int add(struct volume_change *c, struct json *template, struct err *e)
{
    struct json *spec = json_ensure_object(template, "spec");
    struct json *volumes = json_ensure_array(spec, "volumes");
    if (template_named(volumes, c->name) && !c->overwrite) {
        return err_set(e, -EINVAL, "volume '%.63s' already exists; use --overwrite to replace it",
                       c->name);
    }
    template_remove_named(volumes, c->name);
    json_append(volumes, make_volume(c, find_type(c->type)));
    int r = c->mount_path ? template_each_container(template, c->containers, true, mount, c, e) : 1;
    return r == 0 ? set_no_container(c->containers, e) : MIN(r, 0);
}

static int take_away(struct volume_change *c, struct json *template, struct err *e)
{
    struct json *spec = json_ensure_object(template, "spec");
    struct json *volumes = json_get(spec, "volumes");
    if (c->name && !template_named(volumes, c->name)) {
        return err_set(e, -EINVAL, "volume '%.63s' not found", c->name);
    }
    int r = template_each_container(template, "*", true, unmount, c, e);
    if (c->name) {
        template_remove_named(volumes, c->name);
    } else {
        json_remove(spec, "volumes");
    }
    return MIN(r, 0);
}

static int change(void *ctx, const struct api_kind *k, struct json *object, struct err *e)
{
    struct volume_change *c = ctx;
    struct json *template = template_of(k, object);
    if (!template) {
        return set_no_template(k, object, e);
    }
    return c->add ? add(c, template, e) : take_away(c, template, e);
}

/* ---- claims ---- */

static int create_claim(struct targets *t, const struct volume_change *c)
{
    static const struct {
        const char *word, *mode;
    } modes[] = {{"rwo", "ReadWriteOnce"}, {"rox", "ReadOnlyMany"}, {"rwx", "ReadWriteMany"}};
    CLEANUP(json_free) struct json *o = json_object();
    const char *mode = NULL;
    for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
        bool chosen = streq(c->claim_mode, modes[i].word) || streq(c->claim_mode, modes[i].mode);
        mode = chosen ? modes[i].mode : mode;
    }
    if (!mode) {
        return session_error("--claim-mode: \"%s\" is not rwo, rox or rwx", c->claim_mode);
    }
    json_set_string(o, "apiVersion", "v1");
    json_set_string(o, "kind", "PersistentVolumeClaim");
    json_set_string(json_ensure_object(o, "metadata"), "name", c->source);
    struct json *spec = json_ensure_object(o, "spec");
    json_append(json_ensure_array(spec, "accessModes"), json_string(mode));
    json_set_string(spec, "storageClassName", c->claim_class);
    struct json *resources = json_ensure_object(spec, "resources");
    json_set_string(json_ensure_object(resources, "requests"), "storage", c->claim_size);
    return targets_create(t, api_kind_find("", "v1", "persistentvolumeclaims"), o, "created");
}

/* ---- the list ---- */

static void list_volume(const struct json *template, const struct json *volume)
{
    static const char *const lists[] = {"containers", "initContainers"};
    const char *name = json_get_text(volume, "name");
    const char *words = "unknown", *source = "";
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        const struct json *v = json_get(volume, types[i].member);
        if (v) {
            words = types[i].words;
            source = types[i].source ? json_get_text(v, types[i].source) : "";
        }
    }
    printf("  %s%s as %s\n", words, source, name);
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        const struct json *c, *m;
        JSON_FOREACH (c, json_path(template, "spec", lists[i], NULL)) {
            JSON_FOREACH (m, json_get(c, "volumeMounts")) {
                if (streq(json_get_text(m, "name"), name)) {
                    printf("    mounted at %s%s%s\n", json_get_text(m, "mountPath"),
                           json_count(json_path(template, "spec", lists[i], NULL)) > 1
                               ? " in container "
                               : "",
                           json_count(json_path(template, "spec", lists[i], NULL)) > 1
                               ? json_get_text(c, "name")
                               : "");
                }
            }
        }
    }
}

static int print_list(const struct targets *t)
{
    struct err e = {0};
    for (size_t i = 0; i < t->n; i++) {
        const struct json *template = template_of(t->list[i].kind, t->list[i].object), *v;
        if (!template) {
            (void) set_no_template(t->list[i].kind, t->list[i].object, &e);
            return session_error("%s", e.text);
        }
        printf("%s/%s\n", t->list[i].kind->plural, target_name(&t->list[i]));
        JSON_FOREACH (v, json_path(template, "spec", "volumes", NULL)) {
            list_volume(template, v);
        }
    }
    return 0;
}

/* ---- the command ---- */

/* Stores the value of an option that names the source of the volume, whose type is 'type'. */
static void set_source(struct volume_change *c, const char *type)
{
    c->source = optarg;
    c->type = c->type ? c->type : type;
}

static int parse_source(struct volume_change *c, int opt)
{
    switch (opt) {
    case OPT_CLAIM_NAME:
        set_source(c, "persistentVolumeClaim");
        return -1;
    case OPT_SECRET_NAME:
        set_source(c, "secret");
        return -1;
    case OPT_CONFIGMAP_NAME:
        set_source(c, "configMap");
        return -1;
    case OPT_PATH:
        set_source(c, "hostPath");
        return -1;
    case OPT_CLAIM_SIZE:
        c->claim_size = optarg;
        return -1;
    case OPT_CLAIM_MODE:
        c->claim_mode = optarg;
        return -1;
    case OPT_CLAIM_CLASS:
        c->claim_class = optarg;
        return -1;
    default:
        return opt == OPT_HELP ? 0 : 2;
    }
}

/* Returns -1 to go on, else the exit status. */
static int parse_options(struct targets *t, struct volume_change *c, int argc, char **argv)
{
    int opt, status = -1;
    while (status < 0 && (opt = targets_getopt(t, &set_volumes, argc, argv)) != -1) {
        switch (opt) {
        case OPT_ADD:
            c->add = true;
            break;
        case OPT_REMOVE:
            c->remove = true;
            break;
        case OPT_NAME:
            c->name = optarg;
            break;
        case 't':
            c->type = optarg;
            break;
        case 'm':
            c->mount_path = optarg;
            break;
        case OPT_SUB_PATH:
            c->sub_path = optarg;
            break;
        case OPT_READ_ONLY:
            c->read_only = true;
            break;
        case 'c':
            c->containers = optarg;
            break;
        case OPT_OVERWRITE:
            c->overwrite = true;
            break;
        case OPT_CONFIRM:
            c->confirm = true;
            break;
        default:
            status = parse_source(c, opt);
        }
    }
    return status;
}

static int check(struct volume_change *c)
{
    CLEANUP_STRBUF struct strbuf size = STRBUF_INIT;
    struct err e = {0};
    if (c->add && c->remove) {
        return session_error("only one of --add and --remove is allowed");
    }
    if (c->remove && !c->name && !c->confirm) {
        return session_error("must provide --confirm for removing more than one volume");
    }
    if (!c->add) {
        return 0;
    }
    const struct volume_type *type = find_type(c->type ? c->type : "emptyDir");
    if (!type) {
        return session_error("volume type \"%s\" is not emptyDir, persistentVolumeClaim, secret, "
                             "configMap or hostPath",
                             c->type);
    }
    c->type = type->member;
    if (type->source && !c->source) {
        return session_error("a volume of type %s needs the option that names its source", c->type);
    }
    if (!c->name) {
        return session_error("--name is required with --add");
    }
    if (c->claim_size && (!streq(c->type, "persistentVolumeClaim") ||
                          api_quantity_format(c->claim_size, false, &size, &e) < 0)) {
        return session_error("--claim-size: \"%s\" is not a size of a persistent volume claim",
                             c->claim_size);
    }
    return 0;
}

static int run(int argc, char **argv)
{
    CLEANUP_TARGETS struct targets t = {0};
    struct volume_change c = {.containers = "*", .claim_mode = "rwo"};
    int status = parse_options(&t, &c, argc, argv);
    if (status >= 0) {
        return status;
    }
    status = check(&c);
    if (status == 0) {
        status = targets_load(&t, NULL, argc - optind, argv + optind);
    }
    if (status == 0 && c.claim_size) {
        status = create_claim(&t, &c);
    }
    if (status != 0) {
        return status;
    }
    return c.add || c.remove ? targets_change(&t, change, &c, "volume updated") : print_list(&t);
}

const struct command set_volumes = {
    .name = "set volumes",
    .summary = "volumes and their mounts",
    .help = "usage: tenet set volumes KIND/NAME...\n"
            "       tenet set volumes KIND/NAME... --add --name NAME [--mount-path PATH] "
            "[OPTIONS]\n"
            "       tenet set volumes KIND/NAME... --remove (--name NAME | --confirm)\n"
            "\n"
            "Shows, adds or removes volumes of pod templates.\n",
    .options = options,
    .shared = target_options,
    .complete = COMPLETE_KIND,
    .run = run};
