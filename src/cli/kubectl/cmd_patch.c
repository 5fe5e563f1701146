/* SPDX-License-Identifier: Apache-2.0 */
/* tenet patch and edit: changes objects by a patch, or in an editor. */
#include "base/mem.h"
#include "cli/kubectl/print.h"
#include "cli/kubectl/target.h"
#include "net/loop/process.h"
#include "wire/yaml.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX_SIZE (16u << 20)

/* ---- patch ---- */

struct patch {
    const char *type, *subresource; /* type: a media type. */
    struct json *body;
};

enum { OPT_PATCH_FILE = OPT_FIRST_FREE, OPT_TYPE, OPT_SUBRESOURCE };

static const struct command_option patch_options[] = {
    {"patch", 'p', "TEXT", "the patch, as JSON or YAML"},
    {"patch-file", OPT_PATCH_FILE, "FILE", "the patch from a file", COMPLETE_FILE},
    {"type", OPT_TYPE, "TYPE", "the form of the patch; default: strategic", "strategic merge json"},
    {"subresource", OPT_SUBRESOURCE, "NAME", "patches this part of the object", "status scale"},
    {0},
};

static const char *media_type(const char *name)
{
    return streq(name, "strategic") ? PATCH_STRATEGIC
           : streq(name, "merge")   ? PATCH_MERGE
           : streq(name, "json")    ? PATCH_JSON
                                    : NULL;
}

static int send(struct targets *t, const struct target *g, const struct patch *p)
{
    CLEANUP_FREE char *path = target_path(g, p->subresource);
    CLEANUP_FREE char *query = xasprintf("%s%s", path, target_query(t));
    CLEANUP(json_free) struct json *now = NULL;
    struct err e = {0};
    if (t->dry_run == DRY_RUN_CLIENT) {
        return target_print(t, g->kind, g->object, "patched");
    }
    /* Strategic merge needs the type, which the server does not have for kinds of CRDs. */
    const char *type = g->kind->custom && streq(p->type, PATCH_STRATEGIC) && !g->kind->schema
                           ? PATCH_MERGE
                           : p->type;
    if (api_request_sync(t->s.client, "PATCH", query, NULL, type, p->body, &now, &e) < 0) {
        return session_fail(&t->s, &e, NULL);
    }
    bool same = streq_null(json_path_string(now, "metadata", "resourceVersion", NULL),
                           json_path_string(g->object, "metadata", "resourceVersion", NULL));
    return target_print(t, g->kind, p->subresource ? g->object : now,
                        same && !p->subresource ? "patched (no change)" : "patched");
}

static void patch_done(struct patch *p)
{
    json_free(p->body);
}

static int read_patch(struct patch *p, const char *text, const char *file)
{
    CLEANUP_STRBUF struct strbuf buf = STRBUF_INIT;
    CLEANUP(json_free) struct json *docs = NULL;
    struct err e = {0};
    if (file && file_read(file, FILE_MAX_SIZE, &buf, &e) < 0) {
        return session_error("%s", e.text);
    }
    text = file ? strbuf_cstr(&buf) : text;
    if (yaml_parse_all(text, strlen(text), &docs, &e) < 0 || json_count(docs) != 1) {
        return session_error("unable to parse \"%.200s\": %s", text,
                             e.text[0] ? e.text : "one document is expected");
    }
    p->body = json_take_at(docs, 0);
    return 0;
}

static int run_patch(int argc, char **argv)
{
    CLEANUP_TARGETS struct targets t = {0};
    __attribute__((cleanup(patch_done))) struct patch p = {.type = PATCH_STRATEGIC};
    const char *text = NULL, *file = NULL;
    int opt;
    while ((opt = targets_getopt(&t, &cmd_patch, argc, argv)) != -1) {
        switch (opt) {
        case 'p':
            text = optarg;
            break;
        case OPT_PATCH_FILE:
            file = optarg;
            break;
        case OPT_TYPE:
            p.type = media_type(optarg);
            if (!p.type) {
                return session_error("--type must be one of [json merge strategic], not \"%s\"",
                                     optarg);
            }
            break;
        case OPT_SUBRESOURCE:
            p.subresource = optarg;
            break;
        default:
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    if (!text == !file) {
        return session_error("must specify --patch or --patch-file containing the contents of the "
                             "patch");
    }
    int status = read_patch(&p, text, file);
    if (status == 0) {
        status = targets_load(&t, NULL, argc - optind, argv + optind);
    }
    for (size_t i = 0; i < t.n; i++) {
        status |= send(&t, &t.list[i], &p);
    }
    return status;
}

/* ---- edit ---- */

static const char edit_head[] =
    "# Please edit the object below. Lines beginning with a '#' will be ignored,\n"
    "# and an empty file will abort the edit. If an error occurs while saving, this file is kept.\n"
    "#\n";

static int run_editor(const char *path)
{
    const char *names[] = {getenv("KUBE_EDITOR"), getenv("EDITOR"), "vi"};
    const char *editor = NULL;
    for (size_t i = 0; !editor && i < ARRAY_SIZE(names); i++) {
        editor = names[i] && *names[i] ? names[i] : NULL;
    }
    /* The variable may hold options: "code --wait". */
    const char *argv[18] = {NULL};
    CLEANUP_FREE char *words = xstrdup(editor);
    size_t n = 0;
    for (char *p = words, *save = NULL; n < 16 && (p = strtok_r(p, " ", &save)); p = NULL) {
        argv[n++] = p;
    }
    argv[n] = path;
    struct process_spec spec = PROCESS_SPEC_INIT;
    struct err e = {0};
    int status = 0;
    spec.argv = argv;
    spec.stdin_fd = STDIN_FILENO;
    if (process_run(&spec, 0, NULL, NULL, &status, &e) < 0) {
        return session_error("%s", e.text);
    }
    return status ? session_error("there was a problem with the editor \"%s\"", editor) : 0;
}

/* The object in the file; NULL in '*ret': the file is empty. */
static int read_edited(const char *path, struct json **ret, struct err *e)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    CLEANUP(json_free) struct json *docs = NULL;
    int r = file_read(path, FILE_MAX_SIZE, &text, e);
    if (r == 0) {
        r = yaml_parse_all(strbuf_cstr(&text), text.size, &docs, e);
    }
    if (r < 0) {
        return r;
    }
    *ret = json_count(docs) == 1 && json_is(json_at(docs, 0), JSON_OBJECT) ? json_take_at(docs, 0)
                                                                           : NULL;
    return 0;
}

static int replace(void *ctx, const struct api_kind *k, struct json *object, struct err *e)
{
    CLEANUP(json_free)
    struct json *managed = json_clone(json_path(object, "metadata", "managedFields", NULL));
    struct json *edited = json_clone(ctx);
    if (json_path(object, "metadata", "managedFields", NULL)) {
        json_set(json_ensure_object(edited, "metadata"), "managedFields", TAKE(managed));
    }
    while (json_count(object) > 0) {
        json_remove_at(object, 0);
    }
    for (size_t i = 0; i < json_count(edited); i++) {
        json_set(object, json_key_at(edited, i), json_clone(json_at(edited, i)));
    }
    json_free(edited);
    return 0;
}

static int edit_file(struct targets *t, const struct target *g, const char *path)
{
    CLEANUP(json_free) struct json *edited = NULL;
    CLEANUP(json_free) struct json *now = NULL;
    struct err e = {0};
    bool changed = false;
    if (run_editor(path) != 0) {
        return 1;
    }
    if (read_edited(path, &edited, &e) < 0) {
        return session_error("the edited file is not valid: %s", e.text);
    }
    if (!edited) {
        puts("Edit cancelled, saved file was empty.");
        return 0;
    }
    if (target_change(t, g, replace, edited, &now, &changed) != 0) {
        return 1;
    }
    if (!changed) {
        puts("Edit cancelled, no changes made.");
        return 0;
    }
    return target_print(t, g->kind, now, "edited");
}

static int edit(struct targets *t, const struct target *g)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    char path[] = "/tmp/tenet-edit-XXXXXX.yaml";
    CLEANUP(fd_close) int fd = mkstemps(path, 5);
    strbuf_adds(&text, edit_head);
    print_yaml(g->object, &text);
    if (fd < 0 || write(fd, text.data, text.size) != (ssize_t) text.size) {
        return session_error("cannot write %s: %s", path, strerror(errno));
    }
    int status = edit_file(t, g, path);
    if (status == 0) {
        unlink(path);
    } else {
        fprintf(stderr, "A copy of your changes has been stored to \"%s\"\n", path);
    }
    return status;
}

static int run_edit(int argc, char **argv)
{
    CLEANUP_TARGETS struct targets t = {0};
    int opt = targets_getopt(&t, &cmd_edit, argc, argv);
    if (opt != -1) {
        return opt == OPT_HELP ? 0 : 2;
    }
    int status = targets_load(&t, NULL, argc - optind, argv + optind);
    for (size_t i = 0; i < t.n; i++) {
        status |= edit(&t, &t.list[i]);
    }
    return status;
}

const struct command cmd_patch = {
    .name = "patch",
    .summary = "change objects by a patch",
    .help = "usage: tenet patch KIND/NAME... -p TEXT [OPTIONS]\n"
            "       tenet patch KIND/NAME... --patch-file FILE [OPTIONS]\n"
            "\n"
            "Changes objects by a strategic merge patch, a merge patch (RFC 7386) or a JSON patch\n"
            "(RFC 6902).\n",
    .options = patch_options,
    .shared = target_options,
    .complete = COMPLETE_KIND,
    .run = run_patch};
const struct command cmd_edit = {
    .name = "edit",
    .summary = "change objects in an editor",
    .help = "usage: tenet edit KIND/NAME... [OPTIONS]\n"
            "\n"
            "Opens objects as YAML in the editor that $KUBE_EDITOR or $EDITOR names, and stores\n"
            "what was changed.\n",
    .shared = target_options,
    .complete = COMPLETE_KIND,
    .run = run_edit};
