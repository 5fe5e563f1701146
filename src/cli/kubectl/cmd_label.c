/* SPDX-License-Identifier: Apache-2.0 */
/* tenet label and annotate: changes labels and annotations. */
#include "base/mem.h"
#include "cli/kubectl/print.h"
#include "cli/kubectl/target.h"

#include <stdio.h>

struct pairs_change {
    const char *member;  /* "labels", "annotations" */
    const char *version; /* --resource-version; NULL: any. */
    struct json *set;    /* KEY: VALUE */
    struct json *remove; /* Keys. */
    bool overwrite, list;
};

enum { OPT_OVERWRITE = OPT_FIRST_FREE, OPT_LIST, OPT_VERSION };

static const struct command_option options[] = {
    {"overwrite", OPT_OVERWRITE, "[=false]", "also changes values that exist", "true false"},
    {"list", OPT_LIST, NULL, "prints them"},
    {"resource-version", OPT_VERSION, "VERSION", "fails when the object has changed since"},
    {0},
};

/* "KEY=VALUE" and "KEY-"; other arguments name objects. */
static bool is_pair(const char *arg)
{
    return strchr(arg, '=') || (str_has_suffix(arg, "-") && arg[1]);
}

static int take(struct pairs_change *c, const char *arg)
{
    const char *equals = strchr(arg, '=');
    size_t n = equals ? (size_t) (equals - arg) : strlen(arg) - 1;
    CLEANUP_FREE char *key = xstrndup(arg, n);
    if (n == 0) {
        return session_error("invalid %.*s spec: \"%s\"", (int) strlen(c->member) - 1, c->member,
                             arg);
    }
    if (equals) {
        json_set_string(c->set, key, equals + 1);
    } else {
        json_append(c->remove, json_string(key));
    }
    return 0;
}

static int check_values(const struct pairs_change *c, const struct json *now, struct err *e)
{
    CLEANUP_STRBUF struct strbuf taken = STRBUF_INIT;
    bool labels = streq(c->member, "labels");
    for (size_t i = 0; !c->overwrite && i < json_count(c->set); i++) {
        const char *key = json_key_at(c->set, i);
        const char *was = json_get_string(json_get(now, key));
        if (was && !streq(was, json_get_string(json_at(c->set, i)))) {
            strbuf_addf(&taken, "%s'%s' already has a value (%s)", taken.size ? "; " : "", key,
                        was);
        }
    }
    if (!taken.size) {
        return 0;
    }
    return labels ? err_set(e, -EINVAL, "%s, and --overwrite is false", strbuf_cstr(&taken))
                  : err_set(e, -EINVAL,
                            "--overwrite is false but found the following declared annotation(s): "
                            "%s",
                            strbuf_cstr(&taken));
}

static int change(void *ctx, const struct api_kind *k, struct json *object, struct err *e)
{
    const struct pairs_change *c = ctx;
    struct json *meta = json_ensure_object(object, "metadata");
    struct json *pairs = json_ensure_object(meta, c->member);
    const char *version = json_get_text(meta, "resourceVersion");
    const struct json *key;
    int r = check_values(c, pairs, e);
    if (r < 0) {
        return r;
    }
    if (c->version && !streq(version, c->version)) {
        return err_set(e, -EINVAL, "the object has resource version %s, not %s", version,
                       c->version);
    }
    for (size_t i = 0; i < json_count(c->set); i++) {
        json_set(pairs, json_key_at(c->set, i), json_clone(json_at(c->set, i)));
    }
    JSON_FOREACH (key, c->remove) {
        if (!json_remove(pairs, json_get_string(key)) && streq(c->member, "labels")) {
            printf("label \"%s\" not found.\n", json_get_string(key));
        }
    }
    if (json_count(pairs) == 0) {
        json_remove(meta, c->member);
    }
    return 0;
}

static int change_one(struct targets *t, const struct target *g, struct pairs_change *c)
{
    CLEANUP(json_free) struct json *now = NULL;
    bool changed = false;
    if (target_change(t, g, change, c, &now, &changed) != 0) {
        return 1;
    }
    const char *said = streq(c->member, "annotations") ? "annotated"
                       : !changed                      ? "not labeled"
                       : json_count(c->set) == 0       ? "unlabeled"
                                                       : "labeled";
    return target_print(t, g->kind, now, said);
}

static void print_pairs(const struct targets *t, const struct pairs_change *c)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct json *pairs = json_path(t->list[i].object, "metadata", c->member, NULL);
        size_t n = 0;
        CLEANUP_FREE const char **keys = print_sorted_keys(pairs, &n);
        if (t->n > 1) {
            printf("Listing %s for %s.%s/%s:\n", c->member, t->list[i].kind->kind,
                   t->list[i].kind->group, target_name(&t->list[i]));
        }
        for (size_t k = 0; k < n; k++) {
            printf("%s%s=%s\n", t->n > 1 ? " " : "", keys[k], json_get_text(pairs, keys[k]));
        }
    }
}

static void change_done(struct pairs_change *c)
{
    json_free(c->set);
    json_free(c->remove);
}

static int run_pairs(const struct command *command, const char *member, int argc, char **argv)
{
    CLEANUP_TARGETS struct targets t = {0};
    __attribute__((cleanup(change_done))) struct pairs_change c = {
        .member = member, .set = json_object(), .remove = json_array()};
    int opt, status = 0, objects = 0;
    while ((opt = targets_getopt(&t, command, argc, argv)) != -1) {
        switch (opt) {
        case OPT_OVERWRITE:
            c.overwrite = !optarg || !streq(optarg, "false");
            break;
        case OPT_LIST:
            c.list = true;
            break;
        case OPT_VERSION:
            c.version = optarg;
            break;
        default:
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    int n = argc - optind;
    while (objects < n && !is_pair(argv[optind + objects])) {
        objects++;
    }
    for (int i = objects; i < n && status == 0; i++) {
        status = take(&c, argv[optind + i]);
    }
    if (status == 0 && objects == n && !c.list) {
        status =
            session_error("at least one %.*s update is required", (int) strlen(member) - 1, member);
    }
    if (status != 0) {
        return status;
    }
    status = targets_load(&t, NULL, objects, argv + optind);
    if (c.list) {
        print_pairs(&t, &c);
        return status;
    }
    for (size_t i = 0; i < t.n; i++) {
        status |= change_one(&t, &t.list[i], &c);
    }
    return status;
}

static int run_label(int argc, char **argv)
{
    return run_pairs(&cmd_label, "labels", argc, argv);
}

static int run_annotate(int argc, char **argv)
{
    return run_pairs(&cmd_annotate, "annotations", argc, argv);
}

const struct command cmd_label = {
    .name = "label",
    .summary = "set or remove labels of objects",
    .help = "usage: tenet label KIND/NAME... KEY=VALUE... KEY-... [OPTIONS]\n"
            "       tenet label KIND (-l SEL | --all) KEY=VALUE... KEY-... [OPTIONS]\n"
            "\n"
            "Sets labels, and removes them (KEY-).\n",
    .options = options,
    .shared = target_options,
    .complete = COMPLETE_KIND,
    .run = run_label};
const struct command cmd_annotate = {
    .name = "annotate",
    .summary = "set or remove annotations of objects",
    .help = "usage: tenet annotate KIND/NAME... KEY=VALUE... KEY-... [OPTIONS]\n"
            "       tenet annotate KIND (-l SEL | --all) KEY=VALUE... KEY-... [OPTIONS]\n"
            "\n"
            "Sets annotations, and removes them (KEY-).\n",
    .options = options,
    .shared = target_options,
    .complete = COMPLETE_KIND,
    .run = run_annotate};
