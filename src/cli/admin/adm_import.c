/* SPDX-License-Identifier: Apache-2.0 */
/* tenet adm import openshift-sdn: takes the network of an existing cluster.
 *
 * sdn_import.h decides.  The API server then judges every object without storing it, and only when
 * it accepts all are they written.  A write that fails takes back those before it. */
#include "base/mem.h"
#include "cli/admin/adm.h"
#include "cli/admin/sdn_import.h"
#include "cli/kubectl/manifest.h"
#include "cli/session.h"
#include "client/client.h"

#include <stdio.h>

#define NETWORK_API "network.openshift.io/v1"
#define MERGE "application/merge-patch+json"
/* Attempts to write a NetNamespace that the master makes at the same moment. */
#define TRIES 20

static const char help[] =
    "usage: tenet adm import openshift-sdn (-f FILE... | --from-kubeconfig FILE) [--dry-run]\n"
    "\n"
    "Takes the network of a cluster with openshift-sdn: the subnets of nodes, the VNIDs of\n"
    "projects, the projects and their egress firewalls.  Nodes keep their subnets and projects\n"
    "their VNIDs.  The cluster's ClusterNetwork must have the same ranges, service network,\n"
    "plug-in and VXLAN port already.  With any conflict nothing is written.\n";

enum { OPT_FROM = OPT_FIRST_FREE, OPT_DRY_RUN };

static const struct command_option options[] = {
    {"filename", 'f', "FILE",
     "a file, a folder or - with the other cluster's ClusterNetwork, HostSubnets, NetNamespaces, "
     "EgressNetworkPolicies and projects; may be repeated",
     COMPLETE_FILE},
    {"from-kubeconfig", OPT_FROM, "FILE", "kubeconfig of the other cluster, whose API is read",
     COMPLETE_FILE},
    {"dry-run", OPT_DRY_RUN, NULL, "only prints what would be done"},
    {0},
};

struct undo {
    const char *method;
    char *path;
    struct json *body; /* NULL: none. */
};

struct import {
    struct session s;
    struct manifests files;
    const char *from_kubeconfig;
    bool dry_run;
    struct sdn_objects from, to;
    bool has_policies; /* The API server of this cluster knows EgressNetworkPolicies. */
    struct sdn_plan plan;
    struct undo *undo;
    size_t n_undo, cap_undo;
};

static void import_done(struct import *m)
{
    for (size_t i = 0; i < m->n_undo; i++) {
        free(m->undo[i].path);
        json_free(m->undo[i].body);
    }
    free(m->undo);
    manifests_done(&m->files);
    sdn_objects_done(&m->from);
    sdn_objects_done(&m->to);
    sdn_plan_done(&m->plan);
    session_done(&m->s);
}

/* ---- reading ---- */

struct resource {
    const char *api_version, *plural, *kind;
};
static const struct resource network_r = {NETWORK_API, "clusternetworks", "ClusterNetwork"};
static const struct resource subnet_r = {NETWORK_API, "hostsubnets", "HostSubnet"};
static const struct resource net_r = {NETWORK_API, "netnamespaces", "NetNamespace"};
static const struct resource policy_r = {NETWORK_API, "egressnetworkpolicies",
                                         "EgressNetworkPolicy"};
static const struct resource project_r = {"v1", "namespaces", "Namespace"};
static const struct resource pod_r = {"v1", "pods", "Pod"};

/* Reads all objects of a resource into 'o'.  -ENOENT: the server does not know it. */
static int read_all(struct api_client *c, const struct resource *r, struct sdn_objects *o,
                    struct err *e)
{
    CLEANUP_FREE char *path = api_path(r->api_version, r->plural, NULL, NULL, NULL);
    CLEANUP(json_free) struct json *list = NULL;
    int k = api_request_sync(c, "GET", path, NULL, NULL, NULL, &list, e);
    const struct json *item;
    if (k < 0) {
        return k;
    }
    JSON_FOREACH (item, json_get(list, "items")) {
        struct json *object = json_clone(item);
        json_set_string(object, "apiVersion", r->api_version);
        json_set_string(object, "kind", r->kind);
        if (r == &pod_r) {
            json_append(o->pods, object);
        } else if (!sdn_objects_add(o, object)) {
            json_free(object);
        }
    }
    return 0;
}

static int read_cluster(struct api_client *c, struct sdn_objects *o, bool *ret_policies,
                        struct err *e)
{
    static const struct resource *const needed[] = {&network_r, &subnet_r, &net_r, &project_r};
    int k = 0;
    for (size_t i = 0; i < ARRAY_SIZE(needed) && k == 0; i++) {
        k = read_all(c, needed[i], o, e);
    }
    if (k < 0) {
        return k;
    }
    k = read_all(c, &policy_r, o, e);
    *ret_policies = k == 0;
    return k == -ENOENT ? 0 : k;
}

static int read_other(struct import *m, struct err *e)
{
    CLEANUP(api_client_free) struct api_client *c = NULL;
    bool has_policies;
    if (m->from_kubeconfig) {
        int r = api_client_from_kubeconfig(m->s.loop, m->from_kubeconfig, "tenet/" TENET_VERSION,
                                           &c, e);
        return r < 0 ? r : read_cluster(c, &m->from, &has_policies, e);
    }
    for (size_t i = 0; i < m->files.n; i++) {
        struct manifest *f = &m->files.list[i];
        if (!sdn_objects_add(&m->from, f->object)) {
            const char *kind = json_path_string(f->object, "kind", NULL);
            return err_set(e, -EINVAL,
                           "%s: %s \"%s\" is none of ClusterNetwork, HostSubnet, NetNamespace, "
                           "EgressNetworkPolicy, Project and Namespace",
                           f->source, kind ? kind : "object",
                           json_path_string(f->object, "metadata", "name", NULL) ?: "");
        }
        f->object = NULL;
    }
    return 0;
}

/* ---- writing ---- */

static const char *name_of(const struct json *o)
{
    return json_path_string(o, "metadata", "name", NULL);
}

static void remember(struct import *m, const char *method, char *path, struct json *body)
{
    m->undo = grow(m->undo, &m->cap_undo, m->n_undo + 1, sizeof *m->undo);
    m->undo[m->n_undo++] = (struct undo){method, path, body};
}

/* Takes back what was written, the newest first. */
static void take_back(struct import *m)
{
    for (size_t i = m->n_undo; i-- > 0;) {
        struct undo *u = &m->undo[i];
        struct err e = {0};
        if (api_request_sync(m->s.client, u->method, u->path, NULL, u->body ? MERGE : NULL, u->body,
                             NULL, &e) < 0) {
            fprintf(stderr, "error: %s could not be taken back: %s\n", u->path, e.text);
        }
    }
}

static int create(struct import *m, const struct resource *r, const struct json *o, bool dry_run,
                  struct err *e)
{
    const char *ns = json_path_string(o, "metadata", "namespace", NULL);
    CLEANUP_FREE char *base = api_path(r->api_version, r->plural, ns, NULL, NULL);
    CLEANUP_FREE char *path = xasprintf("%s%s", base, dry_run ? "?dryRun=All" : "");
    int k = api_request_sync(m->s.client, "POST", path, NULL, NULL, o, NULL, e);
    if (k == 0 && !dry_run) {
        remember(m, "DELETE", api_path(r->api_version, r->plural, ns, name_of(o), NULL), NULL);
    }
    return k;
}

/* The fields of a NetNamespace that the import sets; with 'o' the object that has them. */
static struct json *net_patch(const struct json *o)
{
    struct json *p = json_object();
    json_set(p, "netid", json_clone(json_get(o, "netid")));
    json_set(p, "egressIPs",
             json_get(o, "egressIPs") ? json_clone(json_get(o, "egressIPs")) : json_null());
    struct json *annotations = json_path(o, "metadata", "annotations", NULL);
    if (annotations) {
        json_set(json_ensure_object(p, "metadata"), "annotations", json_clone(annotations));
    }
    return p;
}

static int change_net(struct import *m, const struct json *o, const struct json *here, bool dry_run,
                      struct err *e)
{
    CLEANUP_FREE char *base = api_path(NETWORK_API, net_r.plural, NULL, name_of(o), NULL);
    CLEANUP_FREE char *path = xasprintf("%s%s", base, dry_run ? "?dryRun=All" : "");
    CLEANUP(json_free) struct json *patch = net_patch(o);
    int k = api_request_sync(m->s.client, "PATCH", path, NULL, MERGE, patch, NULL, e);
    if (k == 0 && !dry_run) {
        remember(m, "PATCH", TAKE(base), net_patch(here));
    }
    return k;
}

/* The master makes the NetNamespace of a new project at the same time, with a VNID of its own. */
static int write_net(struct import *m, const struct json *o, bool dry_run, struct err *e)
{
    CLEANUP_FREE char *path = api_path(NETWORK_API, net_r.plural, NULL, name_of(o), NULL);
    int k = -EEXIST;
    for (int i = 0; i < TRIES && k == -EEXIST; i++) {
        CLEANUP(json_free) struct json *here = NULL;
        k = api_request_sync(m->s.client, "GET", path, NULL, NULL, NULL, &here, e);
        if (k == 0) {
            k = change_net(m, o, here, dry_run, e);
        }
        k = k == -ENOENT ? create(m, &net_r, o, dry_run, e) : k;
    }
    return k;
}

struct part {
    const struct resource *r;
    const struct json *list;
};

static int write_part(struct import *m, const struct part *p, bool dry_run)
{
    const struct json *o;
    int refused = 0;
    JSON_FOREACH (o, p->list) {
        struct err e = {0};
        if (dry_run && p->r == &policy_r) {
            break; /* Its project may not exist yet. */
        }
        int k = p->r == &net_r ? write_net(m, o, dry_run, &e) : create(m, p->r, o, dry_run, &e);
        if (k < 0) {
            fprintf(stderr, "error: %s %s: %s\n", p->r->kind, name_of(o), e.text);
            refused++;
            if (!dry_run) {
                break;
            }
        } else if (!dry_run || m->dry_run) {
            printf("%s %s imported%s\n", p->r->kind, name_of(o), dry_run ? " (dry run)" : "");
        }
    }
    return refused ? -EINVAL : 0;
}

/* Projects come before what belongs to them. */
static int write_all(struct import *m, bool dry_run)
{
    const struct part parts[] = {{&project_r, m->plan.projects},
                                 {&net_r, m->plan.nets},
                                 {&subnet_r, m->plan.subnets},
                                 {&policy_r, m->plan.policies}};
    int k = 0;
    for (size_t i = 0; i < ARRAY_SIZE(parts) && (k == 0 || dry_run); i++) {
        int part = write_part(m, &parts[i], dry_run);
        k = k < 0 ? k : part;
    }
    return k;
}

/* Another client, or the master, may have written meanwhile. */
static int verify(struct import *m)
{
    const struct json *o;
    int bad = 0;
    JSON_FOREACH (o, m->plan.nets) {
        CLEANUP_FREE char *path = api_path(NETWORK_API, net_r.plural, NULL, name_of(o), NULL);
        CLEANUP(json_free) struct json *here = NULL;
        struct err e = {0};
        int k = api_request_sync(m->s.client, "GET", path, NULL, NULL, NULL, &here, &e);
        if (k < 0 || !json_equal(json_get(here, "netid"), json_get(o, "netid"))) {
            fprintf(stderr, "error: NetNamespace %s: another client changed it during the import\n",
                    name_of(o));
            bad++;
        }
    }
    return bad ? -EAGAIN : 0;
}

static int import(struct import *m)
{
    struct err e = {0};
    if (read_other(m, &e) < 0) {
        return session_error("%s", e.text);
    }
    if (read_cluster(m->s.client, &m->to, &m->has_policies, &e) < 0 ||
        read_all(m->s.client, &pod_r, &m->to, &e) < 0) {
        return session_fail(&m->s, &e, NULL);
    }
    sdn_plan_make(&m->from, &m->to, m->has_policies, &m->plan);
    fputs(strbuf_cstr(&m->plan.remarks), stderr);
    if (m->plan.n_problems) {
        fputs(strbuf_cstr(&m->plan.problems), stderr);
        return session_error("nothing is imported: %zu conflicts", m->plan.n_problems);
    }
    if (write_all(m, true) < 0) {
        return session_error("nothing is imported: the API server refuses objects");
    }
    if (!m->dry_run && (write_all(m, false) < 0 || verify(m) < 0)) {
        take_back(m);
        return session_error("nothing is imported: what was written was taken back");
    }
    printf("%zu objects were there already\n", m->plan.unchanged);
    return 0;
}

static int run(int argc, char **argv)
{
    __attribute__((cleanup(import_done))) struct import m = {0};
    int opt;
    struct err e = {0};
    sdn_objects_init(&m.from);
    sdn_objects_init(&m.to);
    while ((opt = session_getopt(&m.s, &adm_import, argc, argv, NULL)) != -1) {
        switch (opt) {
        case 'f':
            if (manifests_read(&m.files, optarg, &e) < 0) {
                return session_error("%s", e.text);
            }
            break;
        case OPT_FROM:
            m.from_kubeconfig = optarg;
            break;
        case OPT_DRY_RUN:
            m.dry_run = true;
            break;
        default:
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    if (optind + 1 != argc || !streq(argv[optind], "openshift-sdn")) {
        return command_usage(&adm_import, "what is imported is \"openshift-sdn\"");
    }
    if ((m.files.n > 0) == (m.from_kubeconfig != NULL)) {
        return command_usage(&adm_import, "give either --filename or --from-kubeconfig");
    }
    int status = session_open(&m.s);
    return status ? status : import(&m);
}

const struct command adm_import = {.name = "adm import",
                                   .summary = "take the network of a cluster with openshift-sdn",
                                   .help = help,
                                   .options = options,
                                   .shared = session_options,
                                   .complete = "openshift-sdn",
                                   .run = run};
