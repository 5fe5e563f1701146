/* SPDX-License-Identifier: Apache-2.0 */
/* tenet export: objects in a form that creates them elsewhere. */
#include "base/mem.h"
#include "cli/kubectl/export.h"
#include "cli/kubectl/print.h"
#include "cli/kubectl/target.h"

#include <stdio.h>

static const char help[] =
    "usage: tenet export KIND[,KIND]... [NAME]... [OPTIONS]\n"
    "       tenet export KIND/NAME... [OPTIONS]\n"
    "\n"
    "Prints objects without what only those of this cluster have: status, uid, versions, the\n"
    "namespace, and addresses and names that the server chose. The text creates them elsewhere.\n"
    "Tokens of service accounts are left out.\n";

enum { OPT_AS_TEMPLATE = OPT_FIRST_FREE, OPT_RAW };

static const struct command_option options[] = {
    {"output", 'o', "FORMAT", "yaml or json; default: yaml", "yaml json"},
    {"selector", 'l', "SEL", "only objects with these labels: a=b,c!=d,e"},
    {"as-template", OPT_AS_TEMPLATE, "NAME", "a Template of this name with the objects"},
    {"raw", OPT_RAW, NULL, "the objects as they are"},
    {0},
};

struct export
{
    struct targets t;
    const char *template;
    bool json, raw;
};

static int print(const struct export *x)
{
    CLEANUP(json_free) struct json *list = json_array(), *whole = NULL;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    for (size_t i = 0; i < x->t.n; i++) {
        struct json *o = json_clone(x->t.list[i].object);
        if (!x->raw && export_strip(o) < 0) {
            json_free(o);
            continue;
        }
        json_append(list, o);
    }
    if (!json_count(list)) {
        return session_error("no resources found - nothing to export");
    }
    if (x->template) {
        whole = export_template(x->template, TAKE(list));
    } else if (json_count(list) == 1) {
        whole = json_take_at(list, 0);
    } else {
        whole = json_object();
        json_set_string(whole, "kind", "List");
        json_set_string(whole, "apiVersion", "v1");
        json_set(whole, "items", TAKE(list));
    }
    (x->json ? print_json : print_yaml)(whole, &out);
    fwrite(strbuf_cstr(&out), 1, out.size, stdout);
    return 0;
}

static int run_export(struct export *x, int argc, char **argv)
{
    int opt;
    while ((opt = session_getopt(&x->t.s, &cmd_export, argc, argv, NULL)) != -1) {
        switch (opt) {
        case 'o':
            if (!streq(optarg, "yaml") && !streq(optarg, "json")) {
                return command_usage(&cmd_export, "output \"%s\" is not yaml or json", optarg);
            }
            x->json = streq(optarg, "json");
            break;
        case 'l':
            x->t.labels = optarg;
            break;
        case OPT_AS_TEMPLATE:
            x->template = optarg;
            break;
        case OPT_RAW:
            x->raw = true;
            break;
        default:
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    if (optind == argc) {
        return command_usage(&cmd_export, "a kind is needed, such as \"dc/web\" or \"svc\"");
    }
    int status = targets_load(&x->t, NULL, argc - optind, argv + optind);
    return status ? status : print(x);
}

static int run(int argc, char **argv)
{
    struct export x = {.t.local_all = true};
    int status = run_export(&x, argc, argv);
    targets_done(&x.t);
    return status;
}

const struct command cmd_export = {.name = "export",
                                   .summary = "print objects so that they can be created elsewhere",
                                   .help = help,
                                   .options = options,
                                   .shared = session_options,
                                   .complete = COMPLETE_KIND,
                                   .run = run};
