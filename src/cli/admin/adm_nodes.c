/* SPDX-License-Identifier: Apache-2.0 */
/* tenet adm cordon, uncordon, drain, manage-node: nodes get no new pods, or lose those that they
 * have, by evictions, which respect PodDisruptionBudgets. */
#include "base/mem.h"
#include "base/timeutil.h"
#include "cli/admin/adm.h"
#include "cli/kubectl/resource.h"
#include "cli/session.h"

#include <stdio.h>
#include <unistd.h>

#define MERGE "application/merge-patch+json"
#define MIRROR "kubernetes.io/config.mirror"
#define POLL_MS 500
#define RETRY_MS 5000 /* After a budget has refused an eviction; as kubectl. */

struct nodes {
    struct session s;
    const struct command *command;
    const char *selector, *pod_selector;
    const char *schedulable; /* "true", "false"; NULL: not given. */
    bool evacuate, list_pods, dry_run, force, ignore_daemonsets, delete_emptydir, disable_eviction;
    int64_t grace_s, timeout_s; /* -1: the pod's own; 0: none. */
    uint64_t end_ms;            /* 0: never. */
};

/* A pod that is evicted. */
struct leaving {
    char *ns, *name, *uid;
};

enum {
    OPT_POD_SELECTOR = OPT_FIRST_FREE,
    OPT_SCHEDULABLE,
    OPT_EVACUATE,
    OPT_LIST_PODS,
    OPT_DRY_RUN,
    OPT_GRACE,
    OPT_FORCE,
    OPT_IGNORE_DAEMONSETS,
    OPT_EMPTYDIR,
    OPT_TIMEOUT,
    OPT_NO_EVICTION,
};

#define NODE_OPTIONS                                                   \
    {"selector", 'l', "SEL", "the nodes with these labels"},           \
    {                                                                  \
        "dry-run", OPT_DRY_RUN, NULL, "only prints what would be done" \
    }
#define POD_OPTIONS                                                                          \
    {"pod-selector", OPT_POD_SELECTOR, "SEL", "only the pods with these labels"},            \
        {"grace-period", OPT_GRACE, "SECONDS",                                               \
         "time that pods get to end; -1, the default: what each pod says"},                  \
        {"force", OPT_FORCE, NULL, "also pods that no controller replaces"},                 \
    {                                                                                        \
        "timeout", OPT_TIMEOUT, "SECONDS", "gives up after this time; 0, the default: never" \
    }

static const struct command_option cordon_options[] = {NODE_OPTIONS, {0}};
static const struct command_option drain_options[] = {
    NODE_OPTIONS,
    POD_OPTIONS,
    {"ignore-daemonsets", OPT_IGNORE_DAEMONSETS, NULL,
     "goes on where DaemonSets have pods, which stay"},
    {"delete-emptydir-data", OPT_EMPTYDIR, NULL, "also pods whose emptyDir volumes are lost"},
    {"disable-eviction", OPT_NO_EVICTION, NULL,
     "deletes pods without asking their PodDisruptionBudgets"},
    {0}};
static const struct command_option manage_options[] = {
    NODE_OPTIONS,
    POD_OPTIONS,
    {"schedulable", OPT_SCHEDULABLE, "[=false]", "whether the nodes get new pods"},
    {"evacuate", OPT_EVACUATE, NULL, "evicts the pods of the nodes, which must be unschedulable"},
    {"list-pods", OPT_LIST_PODS, NULL, "prints the pods of the nodes"},
    {0}};

static uint64_t left_ms(const struct nodes *n)
{
    uint64_t now = time_mono_ms();
    return !n->end_ms ? UINT64_MAX : n->end_ms > now ? n->end_ms - now : 0;
}

static void wait_ms(struct nodes *n, uint64_t ms)
{
    bool never = false;
    (void) loop_run_until(n->s.loop, &never, MAX(MIN(ms, left_ms(n)), 1));
}

/* ---- nodes ---- */

static char *node_path(const char *name)
{
    return api_path("v1", "nodes", NULL, name, NULL);
}

static int set_schedulable(struct nodes *n, const struct json *node, bool on)
{
    const char *name = json_path_string(node, "metadata", "name", NULL);
    bool was = !json_get_bool(json_path(node, "spec", "unschedulable", NULL), false);
    CLEANUP(json_free) struct json *patch = json_object();
    CLEANUP_FREE char *path = node_path(name);
    struct err e = {0};
    json_set(json_ensure_object(patch, "spec"), "unschedulable",
             on ? json_null() : json_bool(true));
    if (was != on && !n->dry_run &&
        api_request_sync(n->s.client, "PATCH", path, NULL, MERGE, patch, NULL, &e) < 0) {
        return session_fail(&n->s, &e, NULL);
    }
    printf("node/%s %s%s%s\n", name, was == on ? "already " : "", on ? "uncordoned" : "cordoned",
           n->dry_run ? " (dry run)" : "");
    return 0;
}

static int get_list(struct nodes *n, const char *plural, const char *fields, const char *labels,
                    struct json **ret)
{
    CLEANUP_STRBUF struct strbuf path = STRBUF_INIT;
    CLEANUP_FREE char *base = api_path("v1", plural, NULL, NULL, NULL);
    struct err e = {0};
    strbuf_adds(&path, base);
    resource_query(&path, "fieldSelector", fields);
    resource_query(&path, "labelSelector", labels);
    return api_request_sync(n->s.client, "GET", strbuf_cstr(&path), NULL, NULL, NULL, ret, &e) < 0
               ? session_fail(&n->s, &e, NULL)
               : 0;
}

/* The nodes that the command line names, as a list of objects. */
static int get_nodes(struct nodes *n, int count, char **names, struct json **ret)
{
    struct err e = {0};
    if (n->selector) {
        return get_list(n, "nodes", NULL, n->selector, ret);
    }
    CLEANUP(json_free) struct json *list = json_object();
    struct json *items = json_ensure_array(list, "items");
    for (int i = 0; i < count; i++) {
        struct json *node = NULL;
        CLEANUP_FREE char *path = node_path(names[i]);
        if (api_request_sync(n->s.client, "GET", path, NULL, NULL, NULL, &node, &e) < 0) {
            return session_fail(&n->s, &e, NULL);
        }
        json_append(items, node);
    }
    *ret = TAKE(list);
    return 0;
}

/* ---- pods ---- */

static int get_pods(struct nodes *n, const char *node, struct json **ret)
{
    CLEANUP_FREE char *fields = xasprintf("spec.nodeName=%s", node);
    return get_list(n, "pods", fields, n->pod_selector, ret);
}

static const char *controller_kind(const struct json *pod)
{
    const struct json *ref;
    JSON_FOREACH (ref, json_path(pod, "metadata", "ownerReferences", NULL)) {
        if (json_get_bool(json_get(ref, "controller"), false)) {
            return json_get_text(ref, "kind");
        }
    }
    return NULL;
}

static bool has_empty_dir(const struct json *pod)
{
    const struct json *v;
    JSON_FOREACH (v, json_path(pod, "spec", "volumes", NULL)) {
        if (json_get(v, "emptyDir")) {
            return true;
        }
    }
    return false;
}

/* Why the pod is not evicted without a further option; NULL: it is.  '*ret_stays': it stays, which
 * is no error. */
static const char *why_not(const struct nodes *n, const struct json *pod, bool *ret_stays)
{
    const char *phase = json_path_string(pod, "status", "phase", NULL);
    const char *kind = controller_kind(pod);
    bool over = streq_null(phase, "Succeeded") || streq_null(phase, "Failed");
    bool manages = n->command == &adm_manage_node;
    *ret_stays = json_path(pod, "metadata", "annotations", MIRROR, NULL) ||
                 (kind && streq(kind, "DaemonSet") && !over && (n->ignore_daemonsets || manages));
    if (*ret_stays || over) {
        return NULL;
    }
    if (kind && streq(kind, "DaemonSet")) {
        return "a DaemonSet manages it (use --ignore-daemonsets to ignore)";
    }
    if (!kind && !n->force) {
        return "no controller replaces it (use --force to override)";
    }
    return has_empty_dir(pod) && !n->delete_emptydir && !manages
               ? "its local storage is lost (use --delete-emptydir-data to override)"
               : NULL;
}

static void print_pod(const struct json *pod)
{
    printf("%s/%s\n", json_path_string(pod, "metadata", "namespace", NULL),
           json_path_string(pod, "metadata", "name", NULL));
}

static struct json *delete_options(const struct nodes *n, const struct leaving *p)
{
    struct json *options = json_object();
    if (n->grace_s >= 0) {
        json_set_int(options, "gracePeriodSeconds", n->grace_s);
    }
    json_set_string(json_ensure_object(options, "preconditions"), "uid", p->uid);
    return options;
}

/* Sends the eviction, or the deletion; 0 also when the pod is gone already. */
static int send_eviction(struct nodes *n, const struct leaving *p, struct err *e)
{
    CLEANUP_FREE char *path =
        api_path("v1", "pods", p->ns, p->name, n->disable_eviction ? NULL : "eviction");
    CLEANUP(json_free) struct json *body = delete_options(n, p);
    if (!n->disable_eviction) {
        struct json *eviction = json_object(), *meta = json_ensure_object(eviction, "metadata");
        json_set_string(eviction, "apiVersion", "policy/v1");
        json_set_string(eviction, "kind", "Eviction");
        json_set_string(meta, "name", p->name);
        json_set_string(meta, "namespace", p->ns);
        json_set(eviction, "deleteOptions", body);
        body = eviction;
    }
    int r = api_request_sync(n->s.client, n->disable_eviction ? "DELETE" : "POST", path, NULL, NULL,
                             body, NULL, e);
    /* -ESTALE: another pod has the name by now. */
    return r == -ENOENT || r == -ESTALE ? 0 : r;
}

static int evict(struct nodes *n, const struct leaving *p)
{
    printf("evicting pod %s/%s\n", p->ns, p->name);
    for (;;) {
        struct err e = {0};
        int r = send_eviction(n, p, &e);
        if (r == 0) {
            return 0;
        }
        if (r != -EAGAIN || !left_ms(n)) {
            return session_fail(&n->s, &e, p->name);
        }
        fprintf(stderr, "error when evicting pods/\"%s\" -n \"%s\" (will retry after 5s): %s\n",
                p->name, p->ns, e.text);
        wait_ms(n, RETRY_MS);
    }
}

static bool is_gone(struct nodes *n, const struct leaving *p)
{
    CLEANUP_FREE char *path = api_path("v1", "pods", p->ns, p->name, NULL);
    CLEANUP(json_free) struct json *pod = NULL;
    int r = api_request_sync(n->s.client, "GET", path, NULL, NULL, NULL, &pod, NULL);
    return r == -ENOENT ||
           (r == 0 && !streq_null(json_path_string(pod, "metadata", "uid", NULL), p->uid));
}

static int wait_gone(struct nodes *n, const struct leaving *p)
{
    while (!is_gone(n, p)) {
        if (!left_ms(n)) {
            return session_error("pod %s/%s has not ended in time: its node has to end it, or "
                                 "delete it with a grace period of 0 when the node is lost",
                                 p->ns, p->name);
        }
        wait_ms(n, POLL_MS);
    }
    printf("pod/%s evicted\n", p->name);
    return 0;
}

static int evict_all(struct nodes *n, const struct leaving *list, size_t count)
{
    int status = 0;
    for (size_t i = 0; i < count; i++) {
        if (n->dry_run) {
            printf("pod/%s evicted (dry run)\n", list[i].name);
        } else {
            status |= evict(n, &list[i]);
        }
    }
    for (size_t i = 0; i < count && !n->dry_run && !status; i++) {
        status |= wait_gone(n, &list[i]);
    }
    return status;
}

/* Chooses the pods to evict; nonzero: some of them need another option. */
static int choose(const struct nodes *n, const struct json *pods, struct leaving *list, size_t *ret)
{
    const struct json *pod;
    int status = 0;
    JSON_FOREACH (pod, json_get(pods, "items")) {
        const struct json *meta = json_get(pod, "metadata");
        bool stays = false;
        const char *why = why_not(n, pod, &stays);
        if (why) {
            status = session_error("cannot evict pod %s/%s: %s", json_get_text(meta, "namespace"),
                                   json_get_text(meta, "name"), why);
        } else if (stays) {
            fprintf(stderr, "pod %s/%s stays\n", json_get_text(meta, "namespace"),
                    json_get_text(meta, "name"));
        } else {
            list[(*ret)++] = (struct leaving){xstrdup(json_get_text(meta, "namespace")),
                                              xstrdup(json_get_text(meta, "name")),
                                              xstrdup(json_get_text(meta, "uid"))};
        }
    }
    return status;
}

static int empty_node(struct nodes *n, const char *node)
{
    CLEANUP(json_free) struct json *pods = NULL;
    size_t count = 0;
    int status = get_pods(n, node, &pods);
    if (status) {
        return status;
    }
    CLEANUP_FREE struct leaving *list =
        xcalloc(json_count(json_get(pods, "items")) + 1, sizeof *list);
    status = choose(n, pods, list, &count);
    status = status ? status : evict_all(n, list, count);
    for (size_t i = 0; i < count; i++) {
        free(list[i].ns);
        free(list[i].name);
        free(list[i].uid);
    }
    if (!status) {
        printf("node/%s drained%s\n", node, n->dry_run ? " (dry run)" : "");
    }
    return status;
}

static int list_pods(struct nodes *n, const char *node)
{
    CLEANUP(json_free) struct json *pods = NULL;
    const struct json *pod;
    int status = get_pods(n, node, &pods);
    if (!status) {
        printf("Listing matched pods on node: %s\n\n", node);
    }
    JSON_FOREACH (pod, json_get(pods, "items")) {
        print_pod(pod);
    }
    return status;
}

/* ---- the commands ---- */

static int on_node(struct nodes *n, const struct json *node)
{
    const char *name = json_path_string(node, "metadata", "name", NULL);
    bool off = json_get_bool(json_path(node, "spec", "unschedulable", NULL), false);
    if (n->command != &adm_manage_node) {
        int status = set_schedulable(n, node, n->command == &adm_uncordon);
        return status || n->command != &adm_drain ? status : empty_node(n, name);
    }
    if (n->schedulable) {
        return set_schedulable(n, node, streq(n->schedulable, "true"));
    }
    if (n->list_pods) {
        return list_pods(n, name);
    }
    if (!off) {
        return session_error("node '%s' must be unschedulable to evacuate: tenet adm manage-node "
                             "%s --schedulable=false",
                             name, name);
    }
    return empty_node(n, name);
}

static int on_nodes(struct nodes *n, int count, char **names)
{
    CLEANUP(json_free) struct json *list = NULL;
    const struct json *node;
    int status = session_open(&n->s);
    status = status ? status : get_nodes(n, count, names, &list);
    n->end_ms = n->timeout_s > 0 ? time_mono_ms() + (uint64_t) n->timeout_s * 1000 : 0;
    JSON_FOREACH (node, json_get(list, "items")) {
        status |= on_node(n, node);
    }
    return status;
}

static int take_number(const struct command *c, const char *name, int64_t least, int64_t *ret)
{
    return str_to_i64(optarg, least, 86400 * 365, ret) < 0
               ? command_usage(c, "--%s: \"%.40s\" is not a number of seconds", name, optarg)
               : 0;
}

/* Returns 0 to go on, or 2. */
static int take_option(struct nodes *n, int opt)
{
    switch (opt) {
    case 'l':
        n->selector = optarg;
        return 0;
    case OPT_POD_SELECTOR:
        n->pod_selector = optarg;
        return 0;
    case OPT_SCHEDULABLE:
        n->schedulable = optarg ? optarg : "true";
        return streq(n->schedulable, "true") || streq(n->schedulable, "false")
                   ? 0
                   : command_usage(n->command, "--schedulable is neither true nor false");
    case OPT_EVACUATE:
        n->evacuate = true;
        return 0;
    case OPT_LIST_PODS:
        n->list_pods = true;
        return 0;
    case OPT_DRY_RUN:
        n->dry_run = true;
        return 0;
    case OPT_GRACE:
        return take_number(n->command, "grace-period", -1, &n->grace_s);
    case OPT_TIMEOUT:
        return take_number(n->command, "timeout", 0, &n->timeout_s);
    case OPT_FORCE:
        n->force = true;
        return 0;
    case OPT_IGNORE_DAEMONSETS:
        n->ignore_daemonsets = true;
        return 0;
    case OPT_EMPTYDIR:
        n->delete_emptydir = true;
        return 0;
    case OPT_NO_EVICTION:
        n->disable_eviction = true;
        return 0;
    default:
        return 2;
    }
}

static void nodes_done(struct nodes *n)
{
    session_done(&n->s);
}

static int run(const struct command *c, int argc, char **argv)
{
    __attribute__((cleanup(nodes_done))) struct nodes n = {.command = c, .grace_s = -1};
    int opt;
    while ((opt = session_getopt(&n.s, c, argc, argv, NULL)) != -1) {
        if (opt == OPT_HELP) {
            return 0;
        }
        if (take_option(&n, opt)) {
            return 2;
        }
    }
    if ((argc > optind) == (n.selector != NULL)) {
        return command_usage(c, "say which nodes: names or --selector");
    }
    if (c == &adm_manage_node && (n.schedulable != NULL) + n.evacuate + n.list_pods != 1) {
        return command_usage(c, "one of --schedulable, --evacuate and --list-pods");
    }
    return on_nodes(&n, argc - optind, argv + optind);
}

static int run_cordon(int argc, char **argv)
{
    return run(&adm_cordon, argc, argv);
}

static int run_uncordon(int argc, char **argv)
{
    return run(&adm_uncordon, argc, argv);
}

static int run_drain(int argc, char **argv)
{
    return run(&adm_drain, argc, argv);
}

static int run_manage(int argc, char **argv)
{
    return run(&adm_manage_node, argc, argv);
}

const struct command adm_cordon = {.name = "adm cordon",
                                   .summary = "nodes get no new pods",
                                   .help = "usage: tenet adm cordon NODE... [OPTIONS]\n"
                                           "       tenet adm cordon -l SELECTOR [OPTIONS]\n"
                                           "\n"
                                           "Marks nodes as unschedulable. Their pods stay.\n",
                                   .options = cordon_options,
                                   .shared = session_options,
                                   .complete = COMPLETE_NODE,
                                   .run = run_cordon};

const struct command adm_uncordon = {.name = "adm uncordon",
                                     .summary = "nodes get new pods again",
                                     .help = "usage: tenet adm uncordon NODE... [OPTIONS]\n"
                                             "       tenet adm uncordon -l SELECTOR [OPTIONS]\n"
                                             "\n"
                                             "Marks nodes as schedulable.\n",
                                     .options = cordon_options,
                                     .shared = session_options,
                                     .complete = COMPLETE_NODE,
                                     .run = run_uncordon};

const struct command adm_drain = {
    .name = "adm drain",
    .summary = "empty nodes for maintenance",
    .help =
        "usage: tenet adm drain NODE... [OPTIONS]\n"
        "       tenet adm drain -l SELECTOR [OPTIONS]\n"
        "\n"
        "Marks nodes as unschedulable, evicts their pods, and waits until these have ended. A\n"
        "PodDisruptionBudget that allows no disruption delays the eviction of its pods. Static\n"
        "pods stay.\n",
    .options = drain_options,
    .shared = session_options,
    .complete = COMPLETE_NODE,
    .run = run_drain};

const struct command adm_manage_node = {
    .name = "adm manage-node",
    .summary = "whether nodes get pods; list or evict their pods",
    .help = "usage: tenet adm manage-node NODE... --schedulable[=false] [OPTIONS]\n"
            "       tenet adm manage-node NODE... --list-pods [OPTIONS]\n"
            "       tenet adm manage-node NODE... --evacuate [OPTIONS]\n"
            "\n"
            "Manages nodes as in OpenShift 3; -l SELECTOR in place of names. Only unschedulable\n"
            "nodes can be evacuated; pods that no controller replaces need --force, and pods of\n"
            "DaemonSets stay.\n",
    .options = manage_options,
    .shared = session_options,
    .complete = COMPLETE_NODE,
    .run = run_manage};
