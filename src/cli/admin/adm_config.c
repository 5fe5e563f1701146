/* SPDX-License-Identifier: Apache-2.0 */
/* tenet adm config: judges a configuration file of a daemon, and makes Tenet's from OpenShift's. */
#include "base/mem.h"
#include "cli/admin/adm.h"
#include "cli/admin/config_file_kind.h"
#include "net/loop/config_file.h"
#include "net/loop/process.h"
#include "wire/yaml.h"

#include <getopt.h>
#include <stdio.h>
#include <sys/stat.h>

#define MAX_FILE ((size_t) 1 << 20)

static const char help[] =
    "usage: tenet adm config check FILE [--kind KIND]\n"
    "       tenet adm config convert FILE [--kind KIND] [-o DIR]\n"
    "\n"
    "Configuration files of the master, the node and the kubelet, those of OpenShift 3 included.\n"
    "\n"
    "  check      prints each key that is wrong or has no effect, with its line and the reason\n"
    "  convert    prints the file with Tenet's keys; comments name the keys that were dropped\n";

enum { OPT_KIND = OPT_FIRST_FREE };

static const struct command_option options[] = {
    {"kind", OPT_KIND, "KIND",
     "what a file without \"kind\" is: MasterConfig, NodeConfig or KubeletConfiguration",
     "MasterConfig NodeConfig KubeletConfiguration"},
    {"output-dir", 'o', "DIR",
     "convert: where master-config.yaml, or node-config.yaml and kubelet-config.yaml, are made; "
     "files that exist stay",
     COMPLETE_FILE},
    {0},
};

struct input {
    const char *path, *kind_name, *dir;
    struct strbuf text;
    struct json *doc;
    char *folder; /* Of the file. */
    const struct config_file_kind *kind;
};

static void input_done(struct input *in)
{
    strbuf_done(&in->text);
    json_free(in->doc);
    free(in->folder);
}

/* Reads the file and finds its kind.  Returns 0 or the exit status. */
static int load(struct input *in)
{
    struct err e = {0};
    if (file_read(in->path, MAX_FILE, &in->text, &e) < 0) {
        return command_fail(&e, NULL);
    }
    if (yaml_parse(strbuf_cstr(&in->text), in->text.size, &in->doc, &e) < 0) {
        printf("%s: error: %s\n", in->path, e.text);
        return 1;
    }
    in->folder = realpath(in->path, NULL);
    char *slash = in->folder ? strrchr(in->folder, '/') : NULL;
    if (slash) {
        slash[slash == in->folder] = '\0';
    }
    const char *name = json_get_string(json_get(in->doc, "kind"));
    name = name ? name : in->kind_name;
    in->kind = name ? config_file_kind_find(name) : NULL;
    return in->kind ? 0
           : name   ? command_usage(&adm_config,
                                    "the kind \"%.80s\" is not one of MasterConfig, NodeConfig, "
                                      "KubeletConfiguration",
                                    name)
                    : command_usage(&adm_config, "%s has no \"kind\": give it by --kind", in->path);
}

static void print_findings(FILE *to, const struct input *in, const struct option_findings *f)
{
    for (size_t i = 0; i < f->n; i++) {
        const struct option_finding *x = &f->list[i];
        size_t line = yaml_find_line(strbuf_cstr(&in->text), in->text.size, x->path);
        fputs(in->path, to);
        if (line) {
            fprintf(to, ":%zu", line);
        }
        fprintf(to, ": %s: %s%s%s\n", x->is_error ? "error" : "warning", x->path,
                *x->path ? ": " : "", x->text);
    }
}

static size_t count_errors(const struct option_findings *f)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++) {
        n += f->list[i].is_error;
    }
    return n;
}

static void check_readers(const struct input *in, struct option_findings *f)
{
    struct stat st;
    CLEANUP_FREE char *secret = config_file_secret(in->doc);
    if (secret && stat(in->path, &st) == 0 && st.st_mode & S_IROTH) {
        option_findings_add(f, true, secret,
                            "every user of this host can read this secret: chmod o= the file");
    }
}

static int check(struct input *in)
{
    __attribute__((cleanup(option_findings_done))) struct option_findings f = {0};
    in->kind->check(in->doc, in->folder, &f);
    check_readers(in, &f);
    print_findings(stdout, in, &f);
    size_t errors = count_errors(&f);
    printf("%s: %zu errors, %zu warnings\n", in->path, errors, f.n - errors);
    return errors ? 1 : 0;
}

/* Writes a file that did not exist.  Returns 0 or the exit status. */
static int write_new(const char *dir, const char *name, const struct strbuf *text)
{
    struct err e = {0};
    CLEANUP_FREE char *path = xasprintf("%s/%s", dir, name);
    struct stat st;
    if (lstat(path, &st) == 0) {
        return command_fail(NULL, "%s exists: move it away first", path);
    }
    if (dir_make(dir, 0755, &e) < 0 ||
        file_write_atomic(path, strbuf_cstr(text), text->size, 0600, &e) < 0) {
        return command_fail(&e, NULL);
    }
    printf("%s\n", path);
    return 0;
}

static int convert(struct input *in)
{
    __attribute__((cleanup(option_findings_done))) struct option_findings f = {0};
    int status = 0;
    struct strbuf texts[CONFIG_FILES_MAX] = {{0}};
    const char *names[CONFIG_FILES_MAX] = {0};
    size_t n = config_file_convert(in->kind, in->doc, in->folder, in->path, texts, names, &f);
    if (count_errors(&f)) {
        print_findings(stderr, in, &f);
        status = command_fail(NULL, "%s is not converted: mend the errors first", in->path);
    }
    for (size_t i = 0; i < n && status == 0; i++) {
        if (in->dir) {
            status = write_new(in->dir, names[i], &texts[i]);
        } else {
            printf("%s%s", i ? "---\n" : "", strbuf_cstr(&texts[i]));
        }
    }
    for (size_t i = 0; i < n; i++) {
        strbuf_done(&texts[i]);
    }
    return status;
}

static int run(int argc, char **argv)
{
    __attribute__((cleanup(input_done))) struct input in = {.text = STRBUF_INIT_MAX(MAX_FILE)};
    int opt;
    optind = 0;
    while ((opt = command_getopt(&adm_config, argc, argv, NULL)) != -1) {
        if (opt == OPT_KIND) {
            in.kind_name = optarg;
        } else if (opt == 'o') {
            in.dir = optarg;
        } else {
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    const char *action = optind < argc ? argv[optind++] : "";
    bool converts = streq(action, "convert");
    if (!converts && !streq(action, "check")) {
        return command_usage(&adm_config, "%s \"%s\"",
                             *action ? "unknown command" : "check or convert is missing", action);
    }
    if (optind == argc) {
        return command_usage(&adm_config, "a file is missing");
    }
    in.path = argv[optind++];
    int status = command_expect_end(&adm_config, argc, argv);
    status = status >= 0 ? status : load(&in);
    return status ? status : converts ? convert(&in) : check(&in);
}

const struct command adm_config = {
    .name = "adm config",
    .summary = "judge a configuration file, or convert one of OpenShift",
    .help = help,
    .notes =
        "Exit status of check: 0 no error, 1 errors, 2 wrong usage. Warnings are keys that the\n"
        "daemon reads without effect.\n",
    .options = options,
    .complete = "check convert",
    .run = run};
