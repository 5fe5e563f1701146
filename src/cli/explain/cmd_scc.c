/* SPDX-License-Identifier: Apache-2.0 */
/* tenet scc: which security context constraints admit a pod, why those before do not, and in which
 * order they are tried.  The answers are the server's (the reviews of security.openshift.io). */
#include "base/mem.h"
#include "cli/explain/scc_question.h"
#include "cli/kubectl/learn.h"
#include "cli/kubectl/print.h"
#include "cli/kubectl/target.h"
#include "cli/shown.h"
#include "pod/scc.h"

#include <stdio.h>
#include <stdlib.h>

#define API SCC_GROUP "/v1"
#define REVIEW_PATH "spec.template." /* Precedes the names of the pod's fields in an answer. */
#define SUBJECT_REVIEWS "podsecuritypolicysubjectreviews"
#define SELF_REVIEWS "podsecuritypolicyselfsubjectreviews"

static const char why_help[] =
    "usage: tenet scc why POD [OPTIONS]\n"
    "       tenet scc why KIND/NAME [OPTIONS]\n"
    "       tenet scc why -f FILE [OPTIONS]\n"
    "\n"
    "Which security context constraints admit a pod, and for which reasons those that are tried\n"
    "before do not. The exit status is 1 when none admits it.\n"
    "\n"
    "The question is about the user and the pod's service account together, as when the user\n"
    "creates the pod. For a template, and for a pod that a controller has made, it is about the\n"
    "account alone.\n";

static const struct command_option why_options[] = {
    {"filename", 'f', "FILE", "a file with pods or templates of pods; may be given repeatedly",
     COMPLETE_FILE},
    {"user", 'u', "USER", "a user other than oneself"},
    {"groups", 'g', "GROUP", "a group of that user; may be given repeatedly"},
    {"serviceaccount", 'z', "ACCOUNT", "a service account other than the pod's"},
    {0},
};

struct scc_why {
    struct targets t;
    const char *user, *account;
    struct json *groups; /* An array; owned; NULL: not given. */
};

/* ---- why ---- */

static bool has_controller(const struct json *pod)
{
    const struct json *owner;
    JSON_FOREACH (owner, json_path(pod, "metadata", "ownerReferences", NULL)) {
        if (json_get_bool(json_get(owner, "controller"), false)) {
            return true;
        }
    }
    return false;
}

/* Whether a controller makes the pod, so that only the account counts. */
static bool is_made_by_controller(const struct json *obj, const struct json *pod)
{
    return pod != obj || has_controller(obj);
}

static const char *account_of(const struct scc_why *w, const struct json *pod)
{
    const char *own = json_path_string(pod, "spec", "serviceAccountName", NULL);
    return w->account ? w->account : own && *own ? own : "default";
}

static struct json *question(const struct scc_why *w, const struct json *obj,
                             const struct json *pod, const char **ret_plural)
{
    struct json *o = json_object(), *spec = json_ensure_object(o, "spec");
    bool named = w->user || w->groups;
    bool self = !named && !w->account && !is_made_by_controller(obj, pod);
    json_set_string(o, "apiVersion", API);
    json_set_string(o, "kind",
                    self ? "PodSecurityPolicySelfSubjectReview" : "PodSecurityPolicySubjectReview");
    json_set(spec, "template", scc_question_template(pod, account_of(w, pod)));
    if (named) {
        json_set_string(spec, "user", w->user ? w->user : "");
        json_set(spec, "groups", w->groups ? json_clone(w->groups) : json_array());
    }
    *ret_plural = self ? SELF_REVIEWS : SUBJECT_REVIEWS;
    return o;
}

static void add_row(struct json *rows, const char *name, const char *admits, const char *reason)
{
    struct json *row = json_append(rows, json_array());
    json_append(row, json_string(name));
    json_append(row, json_string(admits));
    json_append(row, json_string(reason));
}

/* Prints which constraints admitted a stored pod, and whom the answer below is about. */
static void print_subject(const struct scc_why *w, const struct json *obj, const struct json *pod,
                          bool self)
{
    const char *by = json_path_string(obj, "metadata", "annotations", SCC_ANNOTATION, NULL);
    if (pod == obj && by) {
        CLEANUP_FREE char *text = shown(by);
        printf("The pod was admitted by %s.\n", text);
    }
    printf("%s/%s for ", json_get_text(obj, "kind"),
           json_get_text(json_get(obj, "metadata"), "name"));
    if (self) {
        printf("you and ");
    } else if (w->user) {
        printf("user %s and ", w->user);
    } else if (w->groups) {
        printf("a member of the groups and ");
    }
    printf("service account %s:\n\n", account_of(w, pod));
}

static void add_refusal(struct json *rows, const struct json *refusal)
{
    const struct json *reason;
    const char *name = json_get_text(refusal, "name"), *no = "no";
    JSON_FOREACH (reason, json_get(refusal, "reasons")) {
        const char *text = json_get_string(reason);
        bool field = text && str_has_prefix(text, REVIEW_PATH);
        add_row(rows, name, no, field ? text + strlen(REVIEW_PATH) : text);
        name = no = "";
    }
}

/* Prints the answer.  Returns the exit status. */
static int print_answer(const struct scc_why *w, const struct json *pod, const struct json *status)
{
    const char *by = json_path_string(status, "allowedBy", "name", NULL);
    CLEANUP(json_free) struct json *rows = json_array();
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    const struct json *refusal;
    add_row(rows, "CONSTRAINTS", "ADMIT", "REASON");
    JSON_FOREACH (refusal, json_get(status, "refusedBy")) {
        add_refusal(rows, refusal);
    }
    if (by) {
        add_row(rows, by, "yes", "the first that fits decides");
    }
    print_rows(rows, &out);
    fwrite(strbuf_cstr(&out), 1, out.size, stdout);
    if (!by) {
        printf(
            "\nNo constraints admit it. Change the pod, or let an administrator give its service "
            "account constraints\nthat do:\n\n"
            "    %s adm policy add-scc-to-user SCC -z %s -n %s\n",
            command_program(), account_of(w, pod), w->t.s.ns);
    }
    return by ? 0 : 1;
}

static int ask(struct scc_why *w, const struct json *obj)
{
    const struct json *pod = scc_question_pod(obj);
    const char *plural;
    struct err e = {0};
    if (!pod) {
        return session_error("%s/%s is no pod and has no template of pods",
                             json_get_text(obj, "kind"),
                             json_get_text(json_get(obj, "metadata"), "name"));
    }
    CLEANUP(json_free) struct json *body = question(w, obj, pod, &plural);
    CLEANUP(json_free) struct json *answer = NULL;
    CLEANUP_FREE char *path = api_path(API, plural, w->t.s.ns, NULL, NULL);
    if (api_request_sync(w->t.s.client, "POST", path, NULL, NULL, body, &answer, &e) < 0) {
        return session_fail(&w->t.s, &e, NULL);
    }
    print_subject(w, obj, pod, streq(plural, SELF_REVIEWS));
    return print_answer(w, pod, json_get(answer, "status"));
}

static int ask_about_all(struct scc_why *w, int n, char *const *args)
{
    struct targets *t = &w->t;
    int status;
    if (t->m.n) {
        status = n ? session_error("unexpected argument \"%s\" beside -f", args[0])
                   : session_open(&t->s);
        for (size_t i = 0; status == 0 && i < t->m.n; i++) {
            status = ask(w, t->m.list[i].object);
        }
        return status;
    }
    status = targets_load(t, "pods", n, args);
    for (size_t i = 0; status == 0 && i < t->n; i++) {
        status = ask(w, t->list[i].object);
    }
    return status;
}

static int run_why(int argc, char **argv);
static const struct command scc_why = {.name = "scc why",
                                       .summary = "which constraints admit a pod, and why",
                                       .help = why_help,
                                       .options = why_options,
                                       .shared = session_options,
                                       .complete = COMPLETE_KIND,
                                       .run = run_why};

static int run_why(int argc, char **argv)
{
    struct scc_why w = {0};
    struct err e = {0};
    int opt, status = 0;
    while (status == 0 && (opt = session_getopt(&w.t.s, &scc_why, argc, argv, NULL)) != -1) {
        switch (opt) {
        case 'f':
            status = manifests_read(&w.t.m, optarg, &e) < 0 ? session_error("%s", e.text) : 0;
            break;
        case 'u':
            w.user = optarg;
            break;
        case 'g':
            w.groups = w.groups ? w.groups : json_array();
            json_append(w.groups, json_string(optarg));
            break;
        case 'z':
            w.account = optarg;
            break;
        default:
            status = opt == OPT_HELP ? -1 : 2;
        }
    }
    if (status == 0 && !w.t.m.n && optind == argc) {
        status = command_usage(&scc_why, "a pod, KIND/NAME or --filename is needed");
    }
    status = status ? status : ask_about_all(&w, argc - optind, argv + optind);
    json_free(w.groups);
    targets_done(&w.t);
    return status < 0 ? 0 : status;
}

/* ---- list ---- */

static int compare(const void *a, const void *b)
{
    return scc_compare(*(struct scc *const *) a, *(struct scc *const *) b);
}

static char *joined(const struct json *list)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *item;
    JSON_FOREACH (item, list) {
        strbuf_addf(&b, "%s%s", b.size ? "," : "", json_get_string(item));
    }
    return xstrdup(b.size ? strbuf_cstr(&b) : "<none>");
}

static void add_constraints(struct json *rows, const struct scc *s)
{
    struct json *row = json_append(rows, json_array());
    const struct json *o = scc_object(s);
    CLEANUP_FREE char *users = joined(json_get(o, "users"));
    CLEANUP_FREE char *groups = joined(json_get(o, "groups"));
    int64_t priority;
    json_append(row, json_string(scc_name(s)));
    json_append(row, json_get_int(json_get(o, "priority"), &priority) < 0
                         ? json_string("<no value>")
                         : json_stringf("%lld", (long long) priority));
    json_append(row, json_stringf("%u", scc_points(s)));
    json_append(row, json_string(users));
    json_append(row, json_string(groups));
}

/* Prints the items in the order in which they are tried. */
static void print_list(const struct json *items)
{
    size_t n = json_count(items);
    struct scc **list = xcalloc(n + 1, sizeof(*list));
    CLEANUP(json_free) struct json *rows = json_array();
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    static const char *const head[] = {"NAME", "PRIORITY", "POINTS", "USERS", "GROUPS"};
    struct json *row = json_append(rows, json_array());
    for (size_t i = 0; i < ARRAY_SIZE(head); i++) {
        json_append(row, json_string(head[i]));
    }
    for (size_t i = 0; i < n; i++) {
        list[i] = scc_new(json_at(items, i));
    }
    qsort(list, n, sizeof(*list), compare);
    for (size_t i = 0; i < n; i++) {
        add_constraints(rows, list[i]);
        scc_free(list[i]);
    }
    free(list);
    print_rows(rows, &out);
    fwrite(strbuf_cstr(&out), 1, out.size, stdout);
}

static int run_list(int argc, char **argv);
static const struct command scc_list = {
    .name = "scc list",
    .summary = "all constraints, in the order in which they are tried",
    .help = "usage: tenet scc list\n"
            "\n"
            "All security context constraints, in the order in which they are tried: by priority,\n"
            "then by points, of which constraints that allow more have more, then by name. USERS\n"
            "and GROUPS are those that the constraints name; roles give the use as well.\n",
    .shared = session_options,
    .run = run_list};

static int run_list(int argc, char **argv)
{
    CLEANUP_SESSION struct session s = {0};
    CLEANUP(json_free) struct json *list = NULL;
    CLEANUP_FREE char *path = api_path(API, SCC_PLURAL, NULL, NULL, NULL);
    struct err e = {0};
    int opt = session_getopt(&s, &scc_list, argc, argv, NULL);
    if (opt != -1) {
        return opt == OPT_HELP ? 0 : 2;
    }
    int status = command_expect_end(&scc_list, argc, argv) == -1 ? session_open(&s) : 2;
    if (status) {
        return status;
    }
    if (api_request_sync(s.client, "GET", path, NULL, NULL, NULL, &list, &e) < 0) {
        return session_fail(&s, &e, NULL);
    }
    print_list(json_get(list, "items"));
    return 0;
}

static const struct command *const groups[] = {&scc_why, &scc_list, NULL};

static int run_scc(int argc, char **argv)
{
    return command_run_group(&cmd_scc, argc, argv);
}

const struct command cmd_scc = {
    .name = "scc",
    .summary = "which security context constraints admit a pod, and why",
    .help = "usage: tenet scc why POD [OPTIONS]\n"
            "       tenet scc list\n"
            "\n"
            "  why    which constraints admit a pod, and why those that are tried before do not\n"
            "  list   all constraints, in the order in which they are tried\n",
    .groups = groups,
    .run = run_scc};
