/* SPDX-License-Identifier: Apache-2.0 */
/* tenet set image, resources, serviceaccount and selector. */
#include "api/quantity.h"
#include "base/mem.h"
#include "cli/workloads/set.h"

#include <stdio.h>

/* ---- image ---- */

struct images {
    int n;
    char *const *pairs; /* CONTAINER=IMAGE */
};

static int put_image(void *ctx, struct json *container, struct err *e)
{
    json_set_string(container, "image", ctx);
    return 0;
}

static int change_image(void *ctx, const struct api_kind *k, struct json *object, struct err *e)
{
    const struct images *i = ctx;
    struct json *template = template_of(k, object);
    if (!template) {
        return set_no_template(k, object, e);
    }
    for (int a = 0; a < i->n; a++) {
        const char *equals = strchr(i->pairs[a], '=');
        CLEANUP_FREE char *pattern = xstrndup(i->pairs[a], (size_t) (equals - i->pairs[a]));
        int r =
            template_each_container(template, pattern, true, put_image, (void *) (equals + 1), e);
        if (r <= 0) {
            return r < 0 ? r : set_no_container(pattern, e);
        }
    }
    return 0;
}

static int run_image(int argc, char **argv)
{
    CLEANUP_TARGETS struct targets t = {0};
    int opt = targets_getopt(&t, &set_image, argc, argv);
    if (opt != -1) {
        return opt == OPT_HELP ? 0 : 2;
    }
    int n = argc - optind, objects = set_split(n, argv + optind, set_is_pair);
    struct images i = {n - objects, argv + optind + objects};
    if (i.n == 0) {
        return session_error("at least one image update is required");
    }
    for (int a = 0; a < i.n; a++) {
        const char *equals = strchr(i.pairs[a], '=');
        if (!equals || equals == i.pairs[a] || !equals[1]) {
            return session_error("invalid image update \"%s\": it is not CONTAINER=IMAGE",
                                 i.pairs[a]);
        }
    }
    int status = targets_load(&t, NULL, objects, argv + optind);
    return status | targets_change(&t, change_image, &i, "image updated");
}

/* ---- resources ---- */

struct resources_change {
    const char *containers, *limits, *requests;
};

enum { OPT_LIMITS = OPT_FIRST_FREE, OPT_REQUESTS };

static const struct command_option resources_options[] = {
    {"containers", 'c', "NAME", "the containers, such as web or web*; default: *"},
    {"limits", OPT_LIMITS, "RESOURCES", "most that a container may use: cpu=200m,memory=512Mi"},
    {"requests", OPT_REQUESTS, "RESOURCES", "what is kept free for a container: cpu=100m"},
    {0},
};

/* Writes "cpu=1,memory=2Gi" into the member 'name' of a container's resources. */
static int put_amounts(struct json *container, const char *name, const char *text, struct err *e)
{
    CLEANUP_FREE char *list = xstrdup(text);
    for (char *p = list, *next; p && *p; p = next) {
        CLEANUP_STRBUF struct strbuf amount = STRBUF_INIT;
        next = strchr(p, ',');
        if (next) {
            *next++ = '\0';
        }
        char *equals = strchr(p, '=');
        if (!equals || equals == p) {
            return err_set(e, -EINVAL,
                           "invalid argument syntax %.100s, expected <resource>=<value>", p);
        }
        *equals = '\0';
        struct err why = {0};
        if (api_quantity_format(equals + 1, true, &amount, &why) < 0) {
            return err_set(e, -EINVAL, "--%s: %s: \"%.60s\": %s", name, p, equals + 1, why.text);
        }
        struct json *resources = json_ensure_object(container, "resources");
        json_set_string(json_ensure_object(resources, name), p, strbuf_cstr(&amount));
    }
    return 0;
}

static int put_resources(void *ctx, struct json *container, struct err *e)
{
    const struct resources_change *c = ctx;
    int r = c->limits ? put_amounts(container, "limits", c->limits, e) : 0;
    return r < 0 || !c->requests ? r : put_amounts(container, "requests", c->requests, e);
}

static int change_resources(void *ctx, const struct api_kind *k, struct json *object, struct err *e)
{
    struct resources_change *c = ctx;
    struct json *template = template_of(k, object);
    if (!template) {
        return set_no_template(k, object, e);
    }
    int r = template_each_container(template, c->containers, true, put_resources, c, e);
    return r == 0 ? set_no_container(c->containers, e) : MIN(r, 0);
}

static int run_resources(int argc, char **argv)
{
    CLEANUP_TARGETS struct targets t = {0};
    struct resources_change c = {.containers = "*"};
    int opt;
    while ((opt = targets_getopt(&t, &set_resources, argc, argv)) != -1) {
        switch (opt) {
        case 'c':
            c.containers = optarg;
            break;
        case OPT_LIMITS:
            c.limits = optarg;
            break;
        case OPT_REQUESTS:
            c.requests = optarg;
            break;
        default:
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    if (!c.limits && !c.requests) {
        return session_error("you must specify an update to requests or limits (in the form of "
                             "--requests/--limits)");
    }
    int status = targets_load(&t, NULL, argc - optind, argv + optind);
    return status | targets_change(&t, change_resources, &c, "resource requirements updated");
}

/* ---- serviceaccount ---- */

static int change_account(void *ctx, const struct api_kind *k, struct json *object, struct err *e)
{
    struct json *template = template_of(k, object);
    if (!template) {
        return set_no_template(k, object, e);
    }
    struct json *spec = json_ensure_object(template, "spec");
    json_set_string(spec, "serviceAccountName", ctx);
    /* Its former name, which the server fills in. */
    json_remove(spec, "serviceAccount");
    return 0;
}

static int run_account(int argc, char **argv)
{
    CLEANUP_TARGETS struct targets t = {0};
    int opt = targets_getopt(&t, &set_serviceaccount, argc, argv);
    if (opt != -1) {
        return opt == OPT_HELP ? 0 : 2;
    }
    int n = argc - optind - 1;
    if (n < 0) {
        return session_error("serviceaccount is required");
    }
    int status = targets_load(&t, NULL, n, argv + optind);
    return status | targets_change(&t, change_account, argv[optind + n], "serviceaccount updated");
}

/* ---- selector ---- */

static int change_selector(void *ctx, const struct api_kind *k, struct json *object, struct err *e)
{
    if (!kind_is(k, "", "Service")) {
        return err_set(e, -EINVAL, "setting a selector is only supported for Services, not for %s",
                       k->plural);
    }
    json_set(json_ensure_object(object, "spec"), "selector", json_clone(ctx));
    return 0;
}

static int run_selector(int argc, char **argv)
{
    CLEANUP_TARGETS struct targets t = {0};
    CLEANUP(json_free) struct json *selector = json_object();
    int opt = targets_getopt(&t, &set_selector, argc, argv);
    if (opt != -1) {
        return opt == OPT_HELP ? 0 : 2;
    }
    int n = argc - optind - 1;
    if (n < 0 || !set_is_pair(argv[optind + n])) {
        return session_error("a selector such as app=web is required as the last argument");
    }
    CLEANUP_FREE char *list = xstrdup(argv[optind + n]);
    for (char *p = list, *next; p; p = next) {
        next = strchr(p, ',');
        if (next) {
            *next++ = '\0';
        }
        char *equals = strchr(p, '=');
        if (!equals || equals == p) {
            return session_error("\"%s\" is not KEY=VALUE", p);
        }
        *equals = '\0';
        json_set_string(selector, p, equals + 1);
    }
    int status = targets_load(&t, NULL, n, argv + optind);
    return status | targets_change(&t, change_selector, selector, "selector updated");
}

const struct command set_image = {
    .name = "set image",
    .summary = "images of containers",
    .help = "usage: tenet set image KIND/NAME... CONTAINER=IMAGE... [OPTIONS]\n"
            "\n"
            "Changes images. CONTAINER is a name or a pattern; * means all containers, init\n"
            "containers too.\n",
    .shared = target_options,
    .complete = COMPLETE_KIND,
    .run = run_image};
const struct command set_resources = {
    .name = "set resources",
    .summary = "requests and limits of containers",
    .help = "usage: tenet set resources KIND/NAME... [--limits RESOURCES] [--requests RESOURCES] "
            "[OPTIONS]\n"
            "\n"
            "Changes requests and limits of containers; those that are not named stay.\n",
    .options = resources_options,
    .shared = target_options,
    .complete = COMPLETE_KIND,
    .run = run_resources};
const struct command set_serviceaccount = {
    .name = "set serviceaccount",
    .summary = "the account of the pods",
    .help = "usage: tenet set serviceaccount KIND/NAME... ACCOUNT [OPTIONS]\n"
            "\n"
            "Changes the service account with which the pods of a workload run.\n",
    .shared = target_options,
    .complete = COMPLETE_KIND,
    .run = run_account};
const struct command set_selector = {
    .name = "set selector",
    .summary = "the selector of a Service",
    .help = "usage: tenet set selector service/NAME... KEY=VALUE[,KEY=VALUE]... [OPTIONS]\n"
            "\n"
            "Replaces the selector of Services.\n",
    .shared = target_options,
    .complete = COMPLETE_KIND,
    .run = run_selector};
