/* SPDX-License-Identifier: Apache-2.0 */
/* tenet process: makes the list of objects of a template, from a file or from the server.
 *
 * A template is processed here, by the function that the API server has for processedtemplates. */
#include "api/schema.h"
#include "base/mem.h"
#include "base/random.h"
#include "cli/kubectl/manifest.h"
#include "cli/kubectl/print.h"
#include "cli/session.h"
#include "net/loop/process.h"
#include "workload/template_process.h"

#include <stdio.h>

#define MAX_PARAMETERS (1u << 20) /* Bytes of a file of parameters. */

struct processing {
    struct session s;
    struct manifests m;
    const char *file, *output;
    struct json *params;      /* Name to value, of the command line. */
    struct json *file_params; /* The same, of files. */
    struct json *labels;
    bool local, raw, ignore_unknown, only_parameters;
    bool for_processing; /* An option was given that --parameters has no use for. */
};

static const char help[] =
    "usage: tenet process (TEMPLATE | -f FILE) [-p NAME=VALUE]... [OPTIONS]\n"
    "       tenet process --parameters (TEMPLATE | -f FILE) [OPTIONS]\n"
    "\n"
    "Prints the objects of a template with the values of its parameters, as a List for tenet\n"
    "create -f -. TEMPLATE is the name of a template on the server, or NAMESPACE//NAME for one of\n"
    "another project, such as openshift//NAME. Arguments NAME=VALUE are parameters, too.\n";

enum {
    OPT_PARAM_FILE = OPT_FIRST_FREE,
    OPT_RAW,
    OPT_PARAMETERS,
    OPT_IGNORE_UNKNOWN,
    OPT_LOCAL,
};

static const struct command_option options[] = {
    {"filename", 'f', "FILE", "the template of a file, or - for standard input", COMPLETE_FILE},
    {"param", 'p', "NAME=VALUE", "the value of a parameter",
     .detail = "May be repeated. It takes precedence over the template's own value and its "
               "generator."},
    {"param-file", OPT_PARAM_FILE, "FILE", "a file with lines NAME=VALUE", COMPLETE_FILE,
     .detail = "May be repeated. Empty lines and lines that begin with # are skipped; quotes "
               "around a value are left out. --param takes precedence."},
    {"labels", 'l', "LABELS", "labels for all objects: NAME=VALUE[,NAME=VALUE]..."},
    {"output", 'o', "FORMAT", "json (the default), yaml or name", "json yaml name"},
    {"raw", OPT_RAW, NULL, "the objects one after the other, not as a List"},
    {"parameters", OPT_PARAMETERS, NULL, "only lists the template's parameters"},
    {"ignore-unknown-parameters", OPT_IGNORE_UNKNOWN, NULL,
     "no error for a value whose parameter the template does not have"},
    {"local", OPT_LOCAL, NULL, "no server: the template must be a file's"},
    {0},
};

static void process_done(struct processing *o)
{
    manifests_done(&o->m);
    json_free(o->params);
    json_free(o->file_params);
    json_free(o->labels);
    session_done(&o->s);
}

/* ---- parameters ---- */

/* Adds "NAME=VALUE".  -EINVAL: it is not one; -EEXIST: NAME is there already. */
static int add_pair(struct json *map, const char *text)
{
    const char *equal = strchr(text, '=');
    if (!equal || equal == text) {
        return -EINVAL;
    }
    CLEANUP_FREE char *name = xstrndup(text, (size_t) (equal - text));
    if (json_get(map, name)) {
        return -EEXIST;
    }
    json_set_string(map, name, equal + 1);
    return 0;
}

static int add_parameter(struct processing *o, const char *text)
{
    int r = add_pair(o->params, text);
    if (r == -EEXIST) {
        return command_usage(&cmd_process,
                             "the following parameters were provided more than once: %.*s",
                             (int) strcspn(text, "="), text);
    }
    return r < 0 ? command_usage(&cmd_process, "invalid parameter assignment: \"%s\"", text) : 0;
}

/* Leaves out quotes around the value of "NAME=VALUE", in place. */
static void unquote(char *line)
{
    char *value = strchr(line, '=');
    size_t n = value ? strlen(value + 1) : 0;
    if (n >= 2 && (value[1] == '"' || value[1] == '\'') && value[n] == value[1]) {
        value[n] = '\0';
        memmove(value + 1, value + 2, n - 1);
    }
}

/* Exit status, or 0. */
static int read_parameters(struct processing *o, const char *path)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT_MAX(MAX_PARAMETERS);
    struct err e = {0};
    size_t number = 0;
    if (file_read(path, MAX_PARAMETERS, &text, &e) < 0) {
        return session_error("%s", e.text);
    }
    char *next = text.data;
    for (char *line; (line = strsep(&next, "\n"));) {
        number++;
        line += strspn(line, " \t");
        size_t n = strlen(line);
        while (n && strchr(" \t\r", line[n - 1])) {
            line[--n] = '\0';
        }
        if (!n || *line == '#') {
            continue;
        }
        unquote(line);
        int r = add_pair(o->file_params, line);
        if (r < 0) {
            return session_error("%s:%zu: %s", path, number,
                                 r == -EEXIST ? "the parameter is there twice"
                                              : "a line is not NAME=VALUE");
        }
    }
    return 0;
}

static int set_parameters(const struct processing *o, struct json *template)
{
    for (size_t i = 0; i < json_count(o->file_params); i++) {
        const char *name = json_key_at(o->file_params, i);
        if (json_get(o->params, name)) {
            fprintf(stderr,
                    "warning: Template parameter \"%s\" already defined, ignoring value from "
                    "file\n",
                    name);
        } else {
            json_set(o->params, name, json_clone(json_at(o->file_params, i)));
        }
    }
    for (size_t i = 0; i < json_count(o->params); i++) {
        const char *name = json_key_at(o->params, i);
        if (!template_set_parameter(template, name, json_get_string(json_at(o->params, i))) &&
            !o->ignore_unknown) {
            return session_error("unknown parameter name \"%s\"", name);
        }
    }
    return 0;
}

static int add_labels(struct processing *o, char *text)
{
    for (char *item; (item = strsep(&text, ","));) {
        (void) json_remove(o->labels, item);
        if (add_pair(o->labels, item) < 0) {
            return command_usage(&cmd_process, "unexpected label spec: \"%s\"", item);
        }
    }
    return 0;
}

/* ---- the template ---- */

static bool is_template(const struct json *obj)
{
    const char *version = json_get_text(obj, "apiVersion");
    return streq(json_get_text(obj, "kind"), "Template") &&
           (streq(version, "v1") || streq(version, TEMPLATE_VERSION));
}

static int read_template(struct processing *o, struct json **ret)
{
    struct err e = {0};
    if (manifests_read(&o->m, o->file, &e) < 0) {
        return session_error("%s", e.text);
    }
    if (o->m.n != 1 || !is_template(o->m.list[0].object)) {
        return session_error("unable to parse \"%s\", not a valid Template: it has %zu objects, "
                             "the first of the kind %s",
                             o->file, o->m.n,
                             o->m.n ? json_get_text(o->m.list[0].object, "kind") : "none");
    }
    *ret = TAKE(o->m.list[0].object);
    return 0;
}

/* "NAME", "template/NAME" or "NAMESPACE//NAME" of the server. */
static int get_template(struct processing *o, const char *name, struct json **ret)
{
    static const char *const prefixes[] = {"template/", "templates/"};
    int status = session_open(&o->s);
    if (status != 0) {
        return status;
    }
    const char *slashes = strstr(name, "//");
    CLEANUP_FREE char *ns = slashes ? xstrndup(name, (size_t) (slashes - name)) : xstrdup(o->s.ns);
    name = slashes ? slashes + 2 : name;
    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
        name += str_has_prefix(name, prefixes[i]) ? strlen(prefixes[i]) : 0;
    }
    if (!*name || !*ns || strchr(name, '/')) {
        return session_error("invalid value syntax \"%s\"", name);
    }
    CLEANUP_FREE char *path = api_path(TEMPLATE_VERSION, "templates", ns, name, NULL);
    struct err e = {0};
    int r = api_request_sync(o->s.client, "GET", path, NULL, NULL, NULL, ret, &e);
    return r == -ENOENT ? session_error("template \"%s\" could not be found", name)
           : r < 0      ? session_fail(&o->s, &e, NULL)
                        : 0;
}

/* Whether the fields have the types of a template, as the API server would check them. */
static int check_template(const struct json *template)
{
    const struct api_kind *k = api_kind_find(TEMPLATE_GROUP, "v1", "templates");
    CLEANUP(api_causes_done) struct api_causes c = {0};
    api_schema_validate(api_kind_schema(k), template, &c);
    if (!c.n) {
        k->validate(template, NULL, &c);
    }
    return c.n ? session_error("the template is invalid: %s: %s", c.list[0].field,
                               c.list[0].message)
               : 0;
}

/* ---- output ---- */

static void print_parameters(const struct json *template)
{
    const struct json *list = json_get(template, "parameters"), *p;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    CLEANUP_FREE const char **cells = xcalloc((json_count(list) + 1) * 4, sizeof *cells);
    static const char *const head[] = {"NAME", "DESCRIPTION", "GENERATOR", "VALUE"};
    memcpy(cells, head, sizeof head);
    size_t n = 4;
    JSON_FOREACH (p, list) {
        const char *generator = json_get_text(p, "generate");
        cells[n++] = json_get_text(p, "name");
        cells[n++] = json_get_text(p, "description");
        cells[n++] = generator;
        cells[n++] = json_get_text(p, *generator ? "from" : "value");
    }
    print_columns(cells, 4, n / 4, "", &out);
    fwrite(strbuf_cstr(&out), 1, out.size, stdout);
}

static void print_one(const struct processing *o, const struct json *v, struct strbuf *out)
{
    if (o->output && streq(o->output, "yaml")) {
        strbuf_adds(out, o->raw && out->size ? "---\n" : "");
        print_yaml(v, out);
    } else {
        print_json(v, out);
    }
}

static void add_name(const struct json *obj, struct strbuf *out)
{
    const char *version = json_get_text(obj, "apiVersion"), *slash = strchr(version, '/');
    for (const char *p = json_get_text(obj, "kind"); *p; p++) {
        strbuf_addc(out, (char) (*p >= 'A' && *p <= 'Z' ? *p - 'A' + 'a' : *p));
    }
    strbuf_addf(out, "%s%.*s/%s\n", slash ? "." : "", slash ? (int) (slash - version) : 0, version,
                json_get_text(json_get(obj, "metadata"), "name"));
}

static void print_objects(const struct processing *o, struct json *processed)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    CLEANUP(json_free) struct json *list = json_object();
    const struct json *obj;
    JSON_FOREACH (obj, json_get(processed, "objects")) {
        if (o->output && streq(o->output, "name")) {
            add_name(obj, &out);
        } else if (o->raw) {
            print_one(o, obj, &out);
        }
    }
    if (!o->raw && !(o->output && streq(o->output, "name"))) {
        struct json *items = json_take(processed, "objects");
        json_set_string(list, "apiVersion", "v1");
        json_set_string(list, "kind", "List");
        json_ensure_object(list, "metadata");
        json_set(list, "items", items ? items : json_array());
        print_one(o, list, &out);
    }
    fwrite(strbuf_cstr(&out), 1, out.size, stdout);
}

static int process(const struct processing *o, struct json *template)
{
    CLEANUP(api_causes_done) struct api_causes c = {0};
    CLEANUP(json_free) struct json *processed = NULL;
    for (size_t i = 0; i < json_count(o->labels); i++) {
        json_set(json_ensure_object(template, "labels"), json_key_at(o->labels, i),
                 json_clone(json_at(o->labels, i)));
    }
    int status = set_parameters(o, template);
    if (status != 0) {
        return status;
    }
    if (template_process(template, random_bytes, &processed, &c) < 0) {
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
        for (size_t i = 0; i < c.n; i++) {
            strbuf_addf(&text, "\n  %s: %s", c.list[i].field, c.list[i].message);
        }
        return session_error("unable to process template%s", strbuf_cstr(&text));
    }
    print_objects(o, processed);
    return 0;
}

/* ---- command line ---- */

static int take_option(struct processing *o, int opt)
{
    switch (opt) {
    case 'f':
        o->file = optarg;
        return 0;
    case 'p':
        o->for_processing = true;
        return add_parameter(o, optarg);
    case OPT_PARAM_FILE:
        o->for_processing = true;
        return read_parameters(o, optarg);
    case 'l':
        o->for_processing = true;
        return add_labels(o, optarg);
    case 'o':
        o->output = optarg;
        o->for_processing = true;
        return streq(optarg, "json") || streq(optarg, "yaml") || streq(optarg, "name")
                   ? 0
                   : command_usage(&cmd_process, "output \"%s\" is not json, yaml or name", optarg);
    case OPT_RAW:
        o->raw = o->for_processing = true;
        return 0;
    case OPT_PARAMETERS:
        o->only_parameters = true;
        return 0;
    case OPT_IGNORE_UNKNOWN:
        o->ignore_unknown = true;
        return 0;
    case OPT_LOCAL:
        o->local = true;
        return 0;
    default:
        return 2;
    }
}

static int run(int argc, char **argv)
{
    __attribute__((cleanup(process_done))) struct processing o = {
        .params = json_object(), .file_params = json_object(), .labels = json_object()};
    CLEANUP(json_free) struct json *template = NULL;
    const char *name = NULL;
    int opt, status = 0;
    while (status == 0 && (opt = session_getopt(&o.s, &cmd_process, argc, argv, NULL)) != -1) {
        if (opt == OPT_HELP) {
            return 0;
        }
        status = take_option(&o, opt);
    }
    for (int i = optind; status == 0 && i < argc; i++) {
        if (strchr(argv[i], '=')) {
            o.for_processing = true;
            status = add_parameter(&o, argv[i]);
        } else if (name) {
            return command_usage(&cmd_process, "template name must be specified only once: %s",
                                 argv[i]);
        } else {
            name = argv[i];
        }
    }
    if (status != 0) {
        return status;
    }
    if (!name == !o.file) {
        return command_usage(&cmd_process, "must pass either a filename or the name of a template");
    }
    if (name && o.local) {
        return command_usage(&cmd_process, "with --local the template must be a file's (-f)");
    }
    if (o.only_parameters && o.for_processing) {
        return command_usage(&cmd_process, "--parameters only lists the template's parameters; it "
                                           "takes no values and no form of output");
    }
    status = name ? get_template(&o, name, &template) : read_template(&o, &template);
    status = status ? status : check_template(template);
    if (status == 0 && o.only_parameters) {
        print_parameters(template);
    } else if (status == 0) {
        status = process(&o, template);
    }
    return status;
}

const struct command cmd_process = {.name = "process",
                                    .summary = "make the objects of a template",
                                    .help = help,
                                    .options = options,
                                    .shared = session_options,
                                    .run = run};
