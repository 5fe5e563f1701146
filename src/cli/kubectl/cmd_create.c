/* SPDX-License-Identifier: Apache-2.0 */
/* tenet create: makes objects from files, or a project by its name. */
#include "base/mem.h"
#include "base/timeutil.h"
#include "cli/kubectl/create_route.h"
#include "cli/kubectl/create_workload.h"
#include "cli/kubectl/learn.h"
#include "cli/kubectl/print.h"
#include "cli/login/sa_token.h"

#include <stdio.h>

struct create {
    struct session s;
    struct manifests m;
    const char *output;
    bool dry_run;
    uint64_t seconds;       /* Of a token; 0: not given. */
    struct json *audiences; /* Of a token; owned; NULL: not given. */
};

static const char help[] =
    "usage: tenet create -f FILE... [OPTIONS]\n"
    "       tenet create namespace NAME [OPTIONS]\n"
    "       tenet create project NAME [OPTIONS]\n"
    "       tenet create (deployment | deploymentconfig | job) NAME --image IMAGE [OPTIONS] "
    "[-- COMMAND...]\n"
    "       tenet create cronjob NAME --image IMAGE --schedule CRON [OPTIONS] [-- COMMAND...]\n"
    "       tenet create route (edge | passthrough | reencrypt) [NAME] --service NAME [OPTIONS]\n"
    "       tenet create job NAME --from cronjob/NAME [OPTIONS]\n"
    "       tenet create token ACCOUNT [--duration TIME] [--audience NAME]...\n"
    "\n"
    "Creates the objects of files (JSON or YAML, several documents and Lists too), a project, a\n"
    "workload from an image, or a route with TLS; or prints a new token of a service account.\n";

enum { OPT_DRY_RUN = OPT_ROUTE_FREE, OPT_DURATION, OPT_AUDIENCE };

static const struct command_option options[] = {
    {"filename", 'f', "FILE", "a file, a directory of files, or - for standard input",
     COMPLETE_FILE,
     .detail = "The files of a directory are *.json, *.yaml and *.yml. May be repeated."},
    {"output", 'o', "FORMAT", "what was created as json, yaml or name", "json yaml name"},
    {"dry-run", OPT_DRY_RUN, "[=client]", "only prints what would be created"},
    {NULL, 0, NULL, "Options of workloads:"},
    CREATE_WORKLOAD_OPTIONS,
    {NULL, 0, NULL, "Options of routes, which have --port, too:"},
    CREATE_ROUTE_OPTIONS,
    {NULL, 0, NULL, "Options of tokens:"},
    {"duration", OPT_DURATION, "TIME",
     "when the token ends, such as 30m or 2h; default: as the server sets it"},
    {"audience", OPT_AUDIENCE, "NAME",
     "who the token is for; default: the API server; may be repeated"},
    {0},
};

static int write_created(const struct create *c, const struct api_kind *k, const struct json *o)
{
    CLEANUP_FREE char *label = resource_label(k);
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    const char *name = json_path_string(o, "metadata", "name", NULL);
    if (!c->output) {
        strbuf_addf(&out, "%s/%s created%s\n", label, name ? name : "",
                    c->dry_run ? " (dry run)" : "");
    } else if (streq(c->output, "name")) {
        strbuf_addf(&out, "%s/%s\n", label, name ? name : "");
    } else if (streq(c->output, "json")) {
        print_json(o, &out);
    } else {
        print_yaml(o, &out);
    }
    fwrite(strbuf_cstr(&out), 1, out.size, stdout);
    return 0;
}

/* Creates 'o'; 'source' is the file it came from, or NULL. */
static int create_object(struct create *c, const struct api_kind *k, const struct json *o,
                         const char *source)
{
    const char *own = json_path_string(o, "metadata", "namespace", NULL);
    if (k->namespaced && own && c->s.option_ns && !streq(own, c->s.option_ns)) {
        return session_error("the namespace from the provided object \"%s\" does not match the "
                             "namespace \"%s\". You must pass '--namespace=%s' to perform this "
                             "operation.",
                             own, c->s.option_ns, own);
    }
    if (c->dry_run) {
        return write_created(c, k, o);
    }
    CLEANUP_FREE char *path = resource_path(k, own && *own ? own : c->s.ns, NULL);
    CLEANUP(json_free) struct json *answer = NULL;
    struct err e = {0};
    if (api_request_sync(c->s.client, "POST", path, NULL, NULL, o, &answer, &e) < 0) {
        CLEANUP_FREE char *context =
            source ? xasprintf("error when creating \"%s\"", streq(source, "-") ? "STDIN" : source)
                   : NULL;
        return session_fail(&c->s, &e, context);
    }
    return write_created(c, k, answer);
}

static int create_namespace(struct create *c, int n, char **names)
{
    if (n != 1) {
        return command_usage(&cmd_create, "exactly one NAME is required, got %d", n);
    }
    int status = session_open(&c->s);
    if (status != 0) {
        return status;
    }
    CLEANUP(json_free) struct json *o = json_object();
    json_set_string(o, "apiVersion", "v1");
    json_set_string(o, "kind", "Namespace");
    json_set_string(json_ensure_object(o, "metadata"), "name", names[0]);
    return create_object(c, api_kind_by_name("v1", "Namespace"), o, NULL);
}

/* Prints a new token of a service account. */
static int create_token(struct create *c, int n, char **names)
{
    CLEANUP_FREE char *token = NULL;
    struct err e = {0};
    if (n != 1) {
        return command_usage(&cmd_create, "exactly one NAME is required, got %d", n);
    }
    if (c->output || c->dry_run) {
        return command_usage(&cmd_create, "a token is printed as it is, without --%s",
                             c->output ? "output" : "dry-run");
    }
    int status = session_open(&c->s);
    if (status != 0) {
        return status;
    }
    if (sa_token_request(&c->s, names[0], c->seconds, c->audiences, &token, &e) < 0) {
        return session_fail(&c->s, &e, NULL);
    }
    puts(token);
    explicit_bzero(token, strlen(token));
    return 0;
}

static int read_duration(struct create *c, const char *text)
{
    int64_t ns;
    if (time_parse_duration(text, &ns) < 0 || ns < NS_PER_S ||
        ns / NS_PER_S > (int64_t) SA_TOKEN_MAX_SECONDS) {
        return command_usage(&cmd_create, "--duration \"%s\" is not a time such as 30m or 2h",
                             text);
    }
    c->seconds = (uint64_t) (ns / NS_PER_S);
    return 0;
}

static void create_done(struct create *c)
{
    json_free(c->audiences);
    manifests_done(&c->m);
    session_done(&c->s);
}

/* Returns -1 to go on, else the exit status. */
static int parse_options(struct create *c, int argc, char **argv, size_t *n_files)
{
    struct err e = {0};
    int opt;
    while ((opt = session_getopt(&c->s, &cmd_create, argc, argv, NULL)) != -1) {
        switch (opt) {
        case 'f':
            (*n_files)++;
            if (manifests_read(&c->m, optarg, &e) < 0) {
                return session_error("%s", e.text);
            }
            break;
        case 'o':
            c->output = optarg;
            if (!streq(optarg, "json") && !streq(optarg, "yaml") && !streq(optarg, "name")) {
                return command_usage(&cmd_create, "output \"%s\" is not json, yaml or name",
                                     optarg);
            }
            break;
        case OPT_DRY_RUN:
            c->dry_run = !optarg || !streq(optarg, "none");
            if (optarg && !streq(optarg, "none") && !streq(optarg, "client")) {
                return command_usage(&cmd_create, "--dry-run=%s is not none or client", optarg);
            }
            break;
        case OPT_DURATION:
            if (read_duration(c, optarg) != 0) {
                return 2;
            }
            break;
        case OPT_AUDIENCE:
            c->audiences = c->audiences ? c->audiences : json_array();
            json_append(c->audiences, json_string(optarg));
            break;
        case OPT_HELP:
            return 0;
        default:
            /* Options of workloads and routes are read again, when the kind is known. */
            if (opt < OPT_CREATE_IMAGE || opt >= OPT_ROUTE_FREE) {
                return 2;
            }
        }
    }
    return -1;
}

static int run(int argc, char **argv)
{
    __attribute__((cleanup(create_done))) struct create c = {0};
    size_t n_files = 0;
    int all = argc;
    char **command = command_take_rest(&argc, argv);
    int status = parse_options(&c, argc, argv, &n_files);
    if (status >= 0) {
        return status;
    }
    int n = argc - optind;
    if (n_files == 0 && n > 0) {
        const char *kind = create_workload_kind(argv[optind]);
        if (kind) {
            return create_workload(kind, argc, argv, command,
                                   command ? (int) (argv + all - command) : 0);
        }
        if (streq(argv[optind], "route")) {
            return create_route(argc, argv);
        }
        if (streq(argv[optind], "token")) {
            return create_token(&c, n - 1, argv + optind + 1);
        }
        if (c.seconds || c.audiences) {
            return command_usage(&cmd_create, "--%s is for tokens",
                                 c.seconds ? "duration" : "audience");
        }
        const struct api_kind *k = api_kind_by_alias(argv[optind]);
        if (k && streq(k->kind, "Namespace")) {
            return create_namespace(&c, n - 1, argv + optind + 1);
        }
        return command_usage(&cmd_create, "\"%s\" can be created from a file only (-f)",
                             argv[optind]);
    }
    if (n_files == 0) {
        return command_usage(&cmd_create, "must specify -f FILE, or namespace NAME");
    }
    if (n > 0) {
        return command_usage(&cmd_create, "unexpected argument \"%s\" beside -f", argv[optind]);
    }
    status = session_open(&c.s);
    if (status == 0) {
        status = learn_manifests(&c.s, &c.m);
    }
    if (status != 0) {
        return status;
    }
    for (size_t i = 0; i < c.m.n; i++) {
        status |= create_object(&c, c.m.list[i].kind, c.m.list[i].object, c.m.list[i].source);
    }
    return status;
}

const struct command cmd_create = {
    .name = "create",
    .summary = "create objects from files, a project, a workload, or a route",
    .help = help,
    .options = options,
    .shared = session_options,
    .complete = "namespace project deployment deploymentconfig job cronjob route token",
    .run = run};
