/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/kubectl/create_route.h"

#include "base/mem.h"
#include "net/loop/process.h"

/* Bytes of a file of certificates; the server has limits of its own. */
#define MAX_PEM ((size_t) 4 << 20)

static const char help[] =
    "usage: tenet create route edge [NAME] --service NAME [OPTIONS]\n"
    "       tenet create route passthrough [NAME] --service NAME [OPTIONS]\n"
    "       tenet create route reencrypt [NAME] --service NAME [OPTIONS]\n"
    "\n"
    "Creates a route with TLS to a service: edge (the router ends TLS), passthrough (the pod\n"
    "does), or reencrypt (the router begins another connection with TLS to the pod).\n";

static const struct command_option options[] = {
    CREATE_ROUTE_OPTIONS,
    {"port", OPT_CREATE_PORT, "PORT", "number or name of the service's port; default: all"},
    {0}};

static const struct command create_kind = {
    .name = "create", .help = help, .options = options, .shared = target_new_options};

int create_route_of(struct targets *t, const struct compose_route_options *o,
                    const struct json *service, const char *said)
{
    struct err e = {0};
    CLEANUP(json_free) struct json *made = compose_route(o, service, &e);
    return made ? targets_create(t, api_kind_find("route.openshift.io", "v1", "routes"), made, said)
                : session_error("%s", e.text);
}

/* A service that does not exist yet is fine when the port is given. */
static int create(struct targets *t, const struct compose_route_options *o)
{
    CLEANUP(json_free) struct json *service = NULL;
    struct err e = {0};
    int status = session_open(&t->s);
    if (status != 0) {
        return status;
    }
    CLEANUP_FREE char *path = api_path("v1", "services", t->s.ns, o->service, NULL);
    int r = api_request_sync(t->s.client, "GET", path, NULL, NULL, NULL, &service, &e);
    if (r < 0 && r != -ENOENT) {
        return session_fail(&t->s, &e, NULL);
    }
    return create_route_of(t, o, service, "created");
}

/* The files, owned; wiped because one of them is a key. */
struct pem_files {
    struct strbuf cert, key, ca, destination_ca;
};

static void pem_files_done(struct pem_files *f)
{
    struct strbuf *all[] = {&f->cert, &f->key, &f->ca, &f->destination_ca};
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        if (all[i]->data) {
            explicit_bzero(all[i]->data, all[i]->cap);
        }
        strbuf_done(all[i]);
    }
}

static int read_pem(const char *path, struct strbuf *b, const char **ret)
{
    struct err e = {0};
    *b = STRBUF_INIT;
    if (file_read(path, MAX_PEM, b, &e) < 0) {
        return session_error("%s", e.text);
    }
    *ret = strbuf_cstr(b);
    return -1;
}

int create_route(int argc, char **argv)
{
    static const char *const words[] = {"edge", "passthrough", "reencrypt"};
    CLEANUP_TARGETS struct targets t = {0};
    __attribute__((cleanup(pem_files_done))) struct pem_files f = {0};
    struct compose_route_options o = {0};
    int opt, status = -1;
    optind = 0; /* The arguments are read a second time, with other options. */
    while (status < 0 && (opt = targets_getopt(&t, &create_kind, argc, argv)) != -1) {
        switch (opt) {
        case OPT_ROUTE_SERVICE:
            o.service = optarg;
            break;
        case OPT_ROUTE_HOSTNAME:
            o.host = optarg;
            break;
        case OPT_ROUTE_PATH:
            o.path = optarg;
            break;
        case OPT_CREATE_PORT:
            o.port = optarg;
            break;
        case OPT_ROUTE_CERT:
            status = read_pem(optarg, &f.cert, &o.cert);
            break;
        case OPT_ROUTE_KEY:
            status = read_pem(optarg, &f.key, &o.key);
            break;
        case OPT_ROUTE_CA:
            status = read_pem(optarg, &f.ca, &o.ca);
            break;
        case OPT_ROUTE_DESTINATION_CA:
            status = read_pem(optarg, &f.destination_ca, &o.destination_ca);
            break;
        case OPT_ROUTE_INSECURE:
            o.insecure = optarg;
            break;
        case OPT_ROUTE_WILDCARD:
            o.wildcard = optarg;
            break;
        default:
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    if (status >= 0) {
        return status;
    }
    int n = argc - optind - 1; /* After "route". */
    for (size_t i = 0; n > 0 && i < ARRAY_SIZE(words); i++) {
        o.termination = streq(argv[optind + 1], words[i]) ? words[i] : o.termination;
    }
    if (!o.termination) {
        return command_usage(&create_kind, "a route is edge, passthrough or reencrypt");
    }
    if (n > 2) {
        return command_usage(&create_kind, "at most one NAME is possible, got %d", n - 1);
    }
    if (!o.service) {
        return session_error("service is required: --service NAME");
    }
    o.name = n == 2 ? argv[optind + 2] : NULL;
    return create(&t, &o);
}
