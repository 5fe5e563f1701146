/* SPDX-License-Identifier: Apache-2.0 */
/* Whole commands: what is typed, the exit status, and what is printed.  The API server is this
 * test's, the command a child of it. */
#include "typed.h"

#include "base/mem.h"
#include "cli/kubectl/export.h"
#include "net/loop/process.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- what is typed wrongly ---- */

static void wrong_usage_is_told(void **state)
{
    static const struct typed_row rows[] = {
        {"check --dns x", 2, "",
         "tenet check: --dns: \"x\" is not an address, or too many; see tenet check --help\n"},
        {"check --dns 10.0.0.1 --dns 10.0.0", 2, "",
         "tenet check: --dns: \"10.0.0\" is not an address, or too many; see tenet check --help\n"},
        {"check --outside x", 2, "",
         "tenet check: --outside: \"x\" is not an address; see tenet check --help\n"},
        {"check -o x", 2, "", "tenet check: -o: \"x\" is not json; see tenet check --help\n"},
        {"check x", 2, "", "tenet check: unexpected argument \"x\"; see tenet check --help\n"},
        {"check --outside", 2, "",
         "tenet check: a value is missing after --outside; see tenet check --help\n"},
        {"lab", 2, "",
         "tenet lab: say what to do: up, down, status, project, pod, exec, node, ovs, "
         "kubelet, containerd or master; "
         "see tenet lab --help\n"},
        {"lab frob", 2, "", "tenet lab: \"frob\" is none of its commands; see tenet lab --help\n"},
        {"lab up x", 2, "", "tenet lab: \"x\" is too much after up; see tenet lab --help\n"},
        {"lab up --nodes 201", 2, "",
         "tenet lab: --nodes: \"201\" is not a number from 0 to 200; see tenet lab --help\n"},
        {"lab up --nodes x", 2, "",
         "tenet lab: --nodes: \"x\" is not a number from 0 to 200; see tenet lab --help\n"},
        {"lab up --plugin x", 2, "",
         "tenet lab: --plugin: \"x\" is not a network plug-in: \"redhat/openshift-ovs-subnet\", "
         "\"redhat/openshift-ovs-multitenant\", \"redhat/openshift-ovs-networkpolicy\" and "
         "\"flannel\" are; see tenet lab --help\n"},
        {"lab up --cluster-network x", 2, "",
         "tenet lab: --cluster-network: \"x\" is not an IPv4 CIDR such as 10.128.0.0/14; see tenet "
         "lab --help\n"},
        {"lab up --cluster-network 10.128.0.0/14 x", 2, "",
         "tenet lab: \"x\" is too much after up; see tenet lab --help\n"},
        {"lab down --nodes 3", 2, "",
         "tenet lab: --nodes is no option of down; see tenet lab --help\n"},
        {"lab down --node n", 2, "",
         "tenet lab: --node is no option of down; see tenet lab --help\n"},
        {"lab down --label a=b", 2, "",
         "tenet lab: --label is no option of down; see tenet lab --help\n"},
        {"lab down --port a=1", 2, "",
         "tenet lab: --port is no option of down; see tenet lab --help\n"},
        {"lab down -o json", 2, "", "tenet lab: -o is no option of down; see tenet lab --help\n"},
        {"lab pod add", 2, "", "tenet lab: pod add needs a PROJECT/NAME; see tenet lab --help\n"},
        {"lab pod add x", 2, "", "tenet lab: \"x\" is not PROJECT/NAME; see tenet lab --help\n"},
        {"lab pod add x/y --port a", 2, "",
         "tenet lab: --port: \"a\" is not NAME=NUMBER[/PROTO]; see tenet lab --help\n"},
        {"lab pod add x/y --port a=b", 2, "",
         "tenet lab: --port: \"a=b\" is not NAME=NUMBER[/PROTO]; see tenet lab --help\n"},
        {"lab pod add x/y --port a=1/UDP z", 2, "",
         "tenet lab: \"z\" is too much after pod add; see tenet lab --help\n"},
        {"lab pod add x/y --port a=65536", 2, "",
         "tenet lab: --port: \"a=65536\" is not NAME=NUMBER[/PROTO]; see tenet lab --help\n"},
        {"lab exec a/b", 2, "",
         "tenet lab: exec PROJECT/NAME needs \"--\" and the command to run; see tenet lab "
         "--help\n"},
        {"lab exec a/b c", 2, "",
         "tenet lab: \"c\" is too much after exec; put \"--\" before the command to run; see tenet "
         "lab --help\n"},
        {"lab node add n1 n2", 2, "",
         "tenet lab: \"n2\" is too much after node add; see tenet lab --help\n"},
        {"lab up --masters 2", 2, "",
         "tenet lab: --masters: several need --store etcd; see tenet lab --help\n"},
        {"lab up -- x", 2, "", "tenet lab: up takes no \"--\"; see tenet lab --help\n"},
        {"store", 2, "",
         "tenet store: \"\" is not one of export, import, backup, restore, check, repair, "
         "release, defrag; see tenet store --help\n"},
        {"store frob", 2, "",
         "tenet store: \"frob\" is not one of export, import, backup, restore, check, repair, "
         "release, defrag; see tenet store --help\n"},
        {"store backup", 2, "", "tenet store: backup takes a FILE; see tenet store --help\n"},
        {"store import a b", 2, "",
         "tenet store: unexpected argument \"b\"; see tenet store --help\n"},
        {"dns x", 2, "", "tenet dns: unexpected argument \"x\"; see tenet dns --help\n"},
        {"dns --listen x", 2, "",
         "tenet dns: --listen: \"x\" is not an IPv4 address with or without a port; see tenet dns "
         "--help\n"},
        {"dns --threads x", 2, "",
         "tenet dns: --threads: x is not in 1-16; see tenet dns --help\n"},
        {"dns --threads 0", 2, "",
         "tenet dns: --threads: 0 is not in 1-16; see tenet dns --help\n"},
        {"dns --threads 17", 2, "",
         "tenet dns: --threads: 17 is not in 1-16; see tenet dns --help\n"},
        {"dns --networks x", 2, "",
         "tenet dns: --networks: \"x\" is not an IPv4 CIDR such as 10.128.0.0/14; see tenet dns "
         "--help\n"},
        {"dns --nameservers x", 2, "",
         "tenet dns: --nameservers: \"x\" is not an address of a name server; see tenet dns "
         "--help\n"},
        {"trace", 2, "", "tenet trace: say from which pod and to where; see tenet trace --help\n"},
        {"trace a/b", 2, "",
         "tenet trace: say from which pod and to where; see tenet trace --help\n"},
        {"trace a/b c icmp 7", 2, "", "tenet trace: icmp has no ports; see tenet trace --help\n"},
        {"trace a/b c foo", 2, "",
         "tenet trace: \"foo\" is not icmp, tcp, udp or sctp; see tenet trace --help\n"},
        {"flows x", 2, "", "tenet flows: unexpected argument \"x\"; see tenet flows --help\n"},
        {"flows --for x", 2, "",
         "tenet flows: --for: \"x\" is not a number of seconds; see tenet flows --help\n"},
        {"flows -o x", 2, "", "tenet flows: -o: \"x\" is not json; see tenet flows --help\n"},
        {"node maps a b", 2, "",
         "tenet node maps: unexpected argument \"b\"; see tenet node maps --help\n"},
        {"node maps --frob", 2, "",
         "tenet node maps: wrong option --frob; see tenet node maps --help\n"},
        {"node flows a b", 2, "",
         "tenet node flows: unexpected argument \"a\"; see tenet node flows --help\n"},
        {"node x", 2, "", "tenet node: unexpected argument \"x\"; see tenet node --help\n"},
        {"master x", 2, "", "tenet master: unexpected argument \"x\"; see tenet master --help\n"},
        {"get ns --frob", 2, "", "tenet get: wrong option --frob; see tenet get --help\n"},
        {"get ns -n", 2, "", "tenet get: a value is missing after -n; see tenet get --help\n"},
        {"delete ns red --timeout 10", 2, "",
         "tenet delete: --timeout \"10\" is not a time such as 30s; see tenet delete --help\n"},
        {"delete ns red --timeout 10d", 2, "",
         "tenet delete: --timeout \"10d\" is not a time such as 30s; see tenet delete --help\n"},
        {"delete ns red --timeout s", 2, "",
         "tenet delete: --timeout \"s\" is not a time such as 30s; see tenet delete --help\n"},
        {"token", 2, "", "tenet token: ..."},
        {"token create --ttl 10x", 2, "",
         "tenet token: --ttl 10x is not a time such as 24h; see tenet token --help\n"},
        {"token create --ttl s", 2, "",
         "tenet token: --ttl s is not a time such as 24h; see tenet token --help\n"},
        {"token create --ttl x", 2, "",
         "tenet token: --ttl x is not a time such as 24h; see tenet token --help\n"},
        {"token create --write-kubeconfig f --server http://127.0.0.1:1", 2, "",
         "tenet token: --write-kubeconfig needs a kubeconfig, not --server; see tenet token "
         "--help\n"},
        {"adm", 2, "usage: tenet adm...", ""},
        {"adm x", 2, "", "tenet adm: unknown command \"x\"; see tenet adm --help\n"},
        {"adm pod-network", 2, "",
         "tenet adm pod-network: a command is missing; see tenet adm pod-network --help\n"},
        {"adm pod-network x", 2, "",
         "tenet adm pod-network: unknown command \"x\"; see tenet adm pod-network --help\n"},
        {"adm pod-network isolate-projects a --to=b", 2, "",
         "tenet adm pod-network: --to belongs to join-projects; see tenet adm pod-network "
         "--help\n"},
        {"adm groups", 2, "",
         "tenet adm groups: a command is missing; see tenet adm groups --help\n"},
        {"adm groups x", 2, "",
         "tenet adm groups: unknown command \"x\"; see tenet adm groups --help\n"},
        {"adm groups new", 2, "",
         "tenet adm groups: new needs a group; see tenet adm groups --help\n"},
        {"adm groups add-users dev", 2, "",
         "tenet adm groups: add-users needs a group and users; see tenet adm groups --help\n"},
        {"adm groups sync", 2, "",
         "tenet adm groups: --sync-config FILE is missing; see tenet adm groups --help\n"},
        {"adm groups prune --confirm", 2, "",
         "tenet adm groups: --sync-config FILE is missing; see tenet adm groups --help\n"},
        {"adm groups sync --sync-config f --type x", 2, "",
         "tenet adm groups: --type must be ldap or openshift, not \"x\"; see tenet adm groups "
         "--help\n"},
        {"adm groups new dev --confirm", 2, "",
         "tenet adm groups: new takes none of the options of sync and prune; see tenet adm groups "
         "--help\n"},
        {"adm groups --frob", 2, "",
         "tenet adm groups: wrong option --frob; see tenet adm groups --help\n"},
        {"whoami x", 2, "", "tenet whoami: unexpected argument \"x\"; see tenet whoami --help\n"},
        {"whoami -t -c", 2, "",
         "tenet whoami: only one of --show-console, --show-context, --show-server and "
         "--show-token; see tenet whoami --help\n"},
        {"idle", 2, "",
         "tenet idle: say which services: names, --selector, or --all; see tenet idle --help\n"},
        {"master --log-level x", 1, "",
         "tenet: logLevel: \"x\" is not error, warn, info, debug or MODULE=LEVEL\n"},
        {"node --config /nonexistent", 1, "",
         "tenet: read /nonexistent: No such file or directory\n"},
        {"master --config /nonexistent", 1, "",
         "tenet: read /nonexistent: No such file or directory\n"},
    };
    typed_check(NULL, rows, ARRAY_SIZE(rows));
}

static void every_command_has_its_help(void **state)
{
    for (size_t i = 0; commands[i]; i++) {
        CLEANUP_FREE char *line = xasprintf("%s --help", commands[i]->name);
        CLEANUP_STRBUF struct strbuf help = STRBUF_INIT;
        struct outcome o = typed_run(NULL, line);
        assert_int_equal(o.status, 0);
        command_help(commands[i], &help);
        assert_string_equal(o.out, strbuf_cstr(&help));
        assert_string_equal(o.err, "");
        free(o.out);
        free(o.err);
    }
}

/* ---- with a server ---- */

static void a_token_is_printed_listed_and_deleted(void **state)
{
    struct harness *h = harness_new(NULL, NULL);
    free(make_namespace(h, "kube-system"));
    struct outcome made = typed_run(h, "token create --description x");
    assert_int_equal(made.status, 0);
    assert_int_equal(strlen(made.out), 24);
    assert_int_equal(made.out[6], '.');
    CLEANUP_FREE char *id = xstrndup(made.out, 6);
    struct outcome list = typed_run(h, "token list");
    assert_int_equal(list.status, 0);
    assert_non_null(strstr(list.out, id));
    assert_null(strstr(list.out, made.out + 7)); /* Its secret is told once. */
    CLEANUP_FREE char *line = xasprintf("token delete %s", id);
    CLEANUP_FREE char *said = xasprintf("token %s deleted\n", id);
    const struct typed_row rows[] = {{line, 0, said, ""}, {line, 1, "", "..."}};
    typed_check(h, rows, ARRAY_SIZE(rows));
    struct outcome none = typed_run(h, "token list");
    assert_null(strstr(none.out, id));
    const struct outcome all[] = {made, list, none};
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        free(all[i].out);
        free(all[i].err);
    }
    harness_free(h);
}

static void objects_are_made_shown_and_deleted(void **state)
{
    struct harness *h = harness_new(NULL, NULL);
    static const struct typed_row rows[] = {
        {"create namespace red", 0, "namespace/red created\n", ""},
        {"create namespace red", 1, "",
         "Error from server (AlreadyExists): namespaces \"red\" already exists\n"},
        {"create namespace blue -o name --dry-run", 0, "namespace/blue\n", ""},
        {"create namespace blue --dry-run", 0, "namespace/blue created (dry run)\n", ""},
        {"create namespace blue -o name", 0, "namespace/blue\n", ""},
        {"create namespace a b", 2, "", "..."},
        {"create namespace Red", 1, "", "..."},
        {"create -f /nonexistent", 1, "", "..."},
        {"get ns -o name", 0, "namespace/blue\nnamespace/default\nnamespace/red\n", ""},
        {"get ns red none", 1, "NAME   STATUS   AGE\nred    Active   ...",
         "Error from server (NotFound): namespaces \"none\" not found\n"},
        {"get ns none", 1, "", "Error from server (NotFound): namespaces \"none\" not found\n"},
        {"get ns none --ignore-not-found", 0, "", ""},
        {"get ns/red -o jsonpath={.metadata.name}", 0, "red", ""},
        {"get ns red -o custom-columns=N:.metadata.name,P:.status.phase", 0,
         "N     P\nred   Active\n", ""},
        {"get ns red -o json", 0,
         "{\n    \"apiVersion\": \"v1\",\n    \"kind\": \"Namespace\",\n...", ""},
        {"get ns red -o yaml", 0, "apiVersion: v1\nkind: Namespace\nmetadata:\n...", ""},
        {"get ns --watch-only red extra", 1, "",
         "error: you may only specify a single resource type\n"},
        {"get ns -w none", 1, "", "Error from server (NotFound): namespaces \"none\" not found\n"},
        {"get pods", 0, "", "No resources found in default namespace.\n"},
        {"get pods -n red", 0, "", "No resources found in red namespace.\n"},
        {"get pods -A", 0, "", "No resources found\n"},
        {"get frobs", 1, "", "error: the server doesn't have a resource type \"frobs\"\n"},
        {"get ns -o frob", 1, "",
         "error: unable to match a printer suitable for the output format \"frob\"..."},
        {"get", 1, "", "error: you must specify the type of resource..."},
        {"get ns -l a=b", 0, "", "No resources found\n"},
        {"get ns -l kubernetes.io/metadata.name=red -o name", 0, "namespace/red\n", ""},
        {"get ns --field-selector metadata.name=red -o name", 0, "namespace/red\n", ""},
        {"describe ns none", 1, "",
         "Error from server (NotFound): namespaces \"none\" not found\n"},
        {"describe ns red", 0, "Name:         red\n...", ""},
        {"delete ns", 1, "", "error: resource(s) were provided, but no name was specified\n"},
        {"delete ns none", 1, "", "Error from server (NotFound): namespaces \"none\" not found\n"},
        {"delete ns none --ignore-not-found", 0, "", ""},
        {"delete ns blue --wait=false", 0, "namespace \"blue\" deleted\n", ""},
        {"delete ns red --timeout 0 --wait=false -o name", 0, "namespace/red\n", ""},
        {"delete ns default --timeout 50ms", 1, "...", "..."},
        {"delete ns default --cascade=frob", 2, "",
         "tenet delete: --cascade=frob is not background, foreground or orphan; ..."},
        {"idle --all", 0, "", "No service has anything to be idled\n"},
        {"token delete x", 2, "",
         "tenet token: \"x\" is not a token's id; see tenet token --help\n"},
        {"idle none", 1, "", "Error from server (NotFound): services \"none\" not found\n"},
        {"adm pod-network make-projects-global red", 1, "",
         "error: managing pod network is only supported for openshift multitenant network "
         "plugin\n"},
    };
    typed_check(h, rows, ARRAY_SIZE(rows));
    harness_free(h);
}

/* ---- while something changes ---- */

/* A request that is sent some time after a command has begun. */
struct later {
    struct harness *h;
    struct loop_timer *timer;
    const char *method, *path, *type, *body;
    bool done;
};

static void on_answer(void *ctx, const struct http_result *r)
{
    struct later *l = ctx;
    l->done = true;
    assert_in_range(r->status, 200, 201);
}

static void on_time(void *ctx)
{
    struct later *l = ctx;
    http_call(l->h->client, l->method, l->path, NULL, l->type, l->body, strlen(l->body), on_answer,
              l);
}

static void send_later(struct harness *h, struct later *l, uint64_t ms)
{
    l->h = h;
    l->timer = loop_timer_new(h->loop, on_time, l);
    loop_timer_arm(l->timer, ms);
}

static void later_done(struct later *l)
{
    assert_true(l->done);
    loop_timer_free(l->timer);
}

static void a_deletion_without_a_limit_waits_for_the_finalizer(void **state)
{
    struct harness *h = harness_new(NULL, NULL);
    put_in(h, "POST", "/api/v1/namespaces/default/configmaps",
           "{'metadata':{'name':'c','finalizers':['example.com/x']}}", 201);
    struct later l = {.method = "PATCH",
                      .path = "/api/v1/namespaces/default/configmaps/c",
                      .type = "application/merge-patch+json",
                      .body = "{\"metadata\":{\"finalizers\":null}}"};
    send_later(h, &l, 300);
    static const struct typed_row rows[] = {
        {"delete configmap c --timeout 0", 0, "configmap \"c\" deleted\n", ""},
        {"get configmap c", 1, "", "..."},
    };
    typed_check(h, rows, ARRAY_SIZE(rows));
    later_done(&l);
    harness_free(h);
}

/* A watch that is ended from outside: what it prints until then. */
static void changes_are_shown_once_each(void **state)
{
    struct harness *h = harness_new(NULL, NULL);
    CLEANUP_FREE char *url = harness_url(h);
    put_in(h, "POST", "/api/v1/namespaces/default/configmaps", "{'metadata':{'name':'a'}}", 201);
    FILE *out = tmpfile();
    assert_non_null(out);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char *argv[] = {(char *) "get",  (char *) "configmaps", (char *) "-w", (char *) "-o",
                        (char *) "name", (char *) "--server",   url,           NULL};
        dup2(fileno(out), STDOUT_FILENO);
        _exit(typed_find("get")->run(7, argv));
    }
    static const char *const want[] = {"configmap/a\n", "configmap/a\nconfigmap/b\n",
                                       "configmap/a\nconfigmap/b\nconfigmap/c\n"};
    for (size_t k = 0; k < ARRAY_SIZE(want); k++) {
        char text[256] = "";
        bool never = false;
        for (unsigned i = 0; i < 1000 && strlen(text) < strlen(want[k]); i++) {
            loop_run_until(h->loop, &never, 10);
            ssize_t n = pread(fileno(out), text, sizeof text - 1, 0);
            text[MAX(n, 0)] = '\0';
        }
        loop_run_until(h->loop, &never, 50); /* Nothing comes twice. */
        ssize_t n = pread(fileno(out), text, sizeof text - 1, 0);
        text[MAX(n, 0)] = '\0';
        if (!streq(text, want[k])) {
            kill(pid, SIGKILL);
            fail_msg("%s", text);
        }
        if (k < 2) {
            put_in(h, "POST", "/api/v1/namespaces/default/configmaps",
                   k ? "{'metadata':{'name':'c'}}" : "{'metadata':{'name':'b'}}", 201);
        }
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    fclose(out);
    harness_free(h);
}

static char *write_manifest(const char *text)
{
    char *path = xstrdup("/tmp/tenet-manifest-XXXXXX");
    CLEANUP_FREE char *json = quoted(text);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, json, strlen(json)), (ssize_t) strlen(json));
    close(fd);
    return path;
}

static void objects_are_made_from_files_and_described(void **state)
{
    struct harness *h = harness_new(NULL, NULL);
    CLEANUP_FREE char *path = write_manifest(
        "{'apiVersion':'v1','kind':'Service','metadata':{'name':'web'},'spec':{'selector':"
        "{'app':'w'},'externalIPs':['192.0.2.1','192.0.2.2'],'clusterIP':'172.30.0.9',"
        "'ports':[{'name':'http','port':80,'targetPort':8080}]}}");
    CLEANUP_FREE char *create = xasprintf("create -f %s", path);
    CLEANUP_FREE char *twice = xasprintf("create -f %s", path);
    CLEANUP_FREE char *too_much = xasprintf("create -f %s x", path);
    CLEANUP_FREE char *other = xasprintf("create -f %s -n other", path);
    CLEANUP_FREE char *exists = xasprintf(
        "Error from server (AlreadyExists): error when creating \"%s\": services \"web\" already "
        "exists\n",
        path);
    const struct typed_row rows[] = {
        {create, 0, "service/web created\n", ""},
        {twice, 1, "", exists},
        {too_much, 2, "", "tenet create: unexpected argument \"x\" beside -f; ..."},
        {other, 1, "", "..."},
        {"create", 2, "", "tenet create: must specify -f FILE, or namespace NAME; ..."},
        {"create service x", 2, "",
         "tenet create: \"service\" can be created from a file only (-f); ..."},
    };
    typed_check(h, rows, ARRAY_SIZE(rows));
    unlink(path);
    struct outcome o = typed_run(h, "describe service web");
    assert_int_equal(o.status, 0);
    assert_non_null(strstr(o.out, "192.0.2.1,192.0.2.2\n"));
    assert_non_null(strstr(o.out, "TargetPort:"));
    free(o.out);
    free(o.err);
    harness_free(h);
}

static void projects_share_networks_when_the_master_agrees(void **state)
{
    struct harness *h = harness_new(NULL, NULL);
    put_in(h, "POST", "/apis/network.openshift.io/v1/clusternetworks",
           "{'metadata':{'name':'default'},'network':'10.128.0.0/14','hostsubnetlength':9,"
           "'serviceNetwork':'172.30.0.0/16','pluginName':'redhat/openshift-ovs-multitenant'}",
           201);
    free(make_namespace(h, "red"));
    free(make_namespace(h, "blue"));
    free(make_net(h, "red", 10, "{}"));
    free(make_net(h, "blue", 11, "{}"));
    static const struct typed_row rows[] = {
        {"adm pod-network isolate-projects --selector a=b", 1, "", "error: no projects found\n"},
        {"adm pod-network isolate-projects none red nor", 1, "",
         "error: projects none, nor not found\n"},
        {"adm pod-network isolate-projects", 1, "",
         "error: must provide --selector=<project_selector> or projects\n"},
        {"adm pod-network isolate-projects red --selector a=b", 1, "",
         "error: either specify --selector=<project_selector> or projects but not both\n"},
        {"adm pod-network join-projects red", 1, "", "error: must provide --to=<project_name>\n"},
        {"adm pod-network join-projects", 1, "",
         "error: [must provide --selector=<project_selector> or projects, must provide "
         "--to=<project_name>]\n"},
        {"adm pod-network join-projects red --to=none", 1, "", "error: projects none not found\n"},
        {"adm pod-network isolate-projects default", 1, "",
         "error: network isolation for project \"default\" is forbidden\n"},
        {"adm pod-network join-projects red --to=red", 0, "", ""},
    };
    typed_check(h, rows, ARRAY_SIZE(rows));
    /* The master does it ... */
    struct later done = {.method = "PATCH",
                         .path = "/apis/network.openshift.io/v1/netnamespaces/red",
                         .type = "application/merge-patch+json",
                         .body = "{\"netid\":11,\"metadata\":{\"annotations\":null}}"};
    send_later(h, &done, 300);
    static const struct typed_row joins[] = {
        {"adm pod-network join-projects --to=blue --selector kubernetes.io/metadata.name=red", 0,
         "", ""}};
    typed_check(h, joins, ARRAY_SIZE(joins));
    later_done(&done);
    /* ... or refuses. */
    struct later refused = {.method = "PATCH",
                            .path = "/apis/network.openshift.io/v1/netnamespaces/red",
                            .type = "application/merge-patch+json",
                            .body = "{\"metadata\":{\"annotations\":{\"tenet.io/change-refused\":"
                                    "\"no\"}}}"};
    send_later(h, &refused, 300);
    static const struct typed_row globals[] = {
        {"adm pod-network make-projects-global red", 1, "",
         "error: removing network isolation for project \"red\" failed, error: no\n"}};
    typed_check(h, globals, ARRAY_SIZE(globals));
    later_done(&refused);
    harness_free(h);
}

static void groups_are_made_and_changed(void **state)
{
    struct harness *h = harness_new(NULL, NULL);
    static const struct typed_row rows[] = {
        {"whoami", 0, "system:admin\n", ""},
        {"adm groups new dev", 0, "group.user.openshift.io/dev created\n", ""},
        {"adm groups new ops jane joe jane", 0, "group.user.openshift.io/ops created\n", ""},
        {"adm groups new ops", 1, "",
         "Error from server (AlreadyExists): groups.user.openshift.io \"ops\" already exists\n"},
        {"adm groups new system:masters eve", 1, "",
         "The Group \"system:masters\" is invalid: metadata.name: Invalid value: "
         "\"system:masters\": may not contain \":\"\n"},
        {"adm groups add-users dev jane", 0, "group.user.openshift.io/dev added: \"jane\"\n", ""},
        {"adm groups add-users dev joe jane ann", 0,
         "group.user.openshift.io/dev added: \"joe\", \"jane\", \"ann\"\n", ""},
        {"get groups", 0, "NAME   USERS\ndev    jane, joe, ann\nops    jane, joe\n", ""},
        {"adm groups remove-users dev jane nobody", 0,
         "group.user.openshift.io/dev removed: \"jane\", \"nobody\"\n", ""},
        {"adm groups remove-users ops jane joe", 0,
         "group.user.openshift.io/ops removed: \"jane\", \"joe\"\n", ""},
        {"get groups", 0, "NAME   USERS\ndev    joe, ann\nops    \n", ""},
        {"adm groups add-users none jane", 1, "",
         "Error from server (NotFound): groups.user.openshift.io \"none\" not found\n"},
        {"adm groups add-users dev a:b", 1, "", "The Group \"dev\" is invalid: users[2]..."},
        {"whoami -c", 1, "", "error: with --server there is no context and no token\n"},
    };
    typed_check(h, rows, ARRAY_SIZE(rows));
    harness_free(h);
}

#define RBAC "/apis/rbac.authorization.k8s.io/v1/"

static void the_use_of_constraints_is_given_and_taken(void **state)
{
    struct harness *h = harness_new(NULL, NULL);
    make_constraints(h);
    free(make_namespace(h, "red"));
    CLEANUP_FREE char *listed = quoted("{'users':['jane','system:serviceaccount:red:web','joe']}");
    CLEANUP_ANSWER
    struct answer a =
        ask_full(h, "PATCH", "/apis/security.openshift.io/v1/securitycontextconstraints/all", NULL,
                 "application/merge-patch+json", listed);
    assert_int_equal(a.status, 200);
#define SCC_ROLE "clusterrole.rbac.authorization.k8s.io/system:openshift:scc:all "
    static const struct typed_row rows[] = {
        {"adm policy", 2, "", "tenet adm policy: a command is missing..."},
        {"adm policy can-i", 2, "", "tenet adm policy: unknown command \"can-i\"..."},
        {"adm policy add-scc-to-user all", 2, "",
         "tenet adm policy: add-scc-to-user needs security context constraints and users..."},
        {"adm policy add-scc-to-group all -z web", 2, "",
         "tenet adm policy: add-scc-to-group takes no --serviceaccount..."},
        {"adm policy add-scc-to-user all -z web -n none", 1, "",
         "Error from server (NotFound): namespaces \"none\" not found\n"},
        {"adm policy add-scc-to-user none jane", 1, "",
         "Error from server (NotFound): securitycontextconstraints.security.openshift.io \"none\" "
         "not found\n"},
        {"adm policy add-scc-to-user all jane", 0, SCC_ROLE "added: \"jane\"\n", ""},
        {"adm policy add-scc-to-user all ann jane", 0, SCC_ROLE "added: \"ann\", \"jane\"\n", ""},
        {"adm policy add-scc-to-group all dev", 0, SCC_ROLE "added: \"dev\"\n", ""},
        {"adm policy add-scc-to-user all -z web -z db -n red", 0,
         SCC_ROLE "added: \"web\", \"db\"\n", ""},
        {"adm policy remove-scc-from-user all jane", 0, SCC_ROLE "removed: \"jane\"\n", ""},
        {"adm policy remove-scc-from-user all -z web -n red", 0, SCC_ROLE "removed: \"web\"\n", ""},
        {"get securitycontextconstraints all -o jsonpath={.users}", 0, "[\"joe\"]", ""},
    };
    typed_check(h, rows, ARRAY_SIZE(rows));
    CLEANUP_ANSWER
    struct answer role = ask_ok(h, "GET", RBAC "clusterroles/system:openshift:scc:all", NULL, 200);
    assert_non_null(strstr(role.text, "\"resourceNames\":[\"all\"]"));
    CLEANUP_ANSWER
    struct answer all =
        ask_ok(h, "GET", RBAC "clusterrolebindings/system:openshift:scc:all", NULL, 200);
    assert_null(strstr(all.text, "\"jane\""));
    assert_non_null(strstr(all.text, "\"name\":\"ann\""));
    assert_non_null(strstr(all.text, "\"name\":\"dev\""));
    CLEANUP_ANSWER
    struct answer own =
        ask_ok(h, "GET", RBAC "namespaces/red/rolebindings/system:openshift:scc:all", NULL, 200);
    assert_null(strstr(own.text, "\"web\""));
    assert_non_null(strstr(own.text, "\"namespace\":\"red\",\"name\":\"db\""));
    harness_free(h);
}

/* The object as an export has it, as JSON; "-": it is not exported.  ' stands for ". */
static char *exported(const char *text)
{
    CLEANUP_FREE char *copy = xstrdup(text);
    CLEANUP(json_free) struct json *o = NULL;
    for (char *p = copy; (p = strchr(p, '\''));) {
        *p = '"';
    }
    assert_int_equal(json_parse(copy, strlen(copy), &o, NULL), 0);
    char *out = export_strip(o) < 0 ? xstrdup("-") : json_to_text(o);
    for (char *p = out; (p = strchr(p, '"'));) {
        *p = '\'';
    }
    return out;
}

static void an_export_has_nothing_of_this_cluster(void **state)
{
    static const char *const rows[][2] = {
        {"{'kind':'ConfigMap','apiVersion':'v1','metadata':{'name':'a','namespace':'red','uid':'u',"
         "'resourceVersion':'1','creationTimestamp':'t','generation':1,'managedFields':[],"
         "'labels':{'a':'b'}},'data':{'k':'v'},'status':{}}",
         "{'kind':'ConfigMap','apiVersion':'v1','metadata':{'name':'a','labels':{'a':'b'}},'data':{"
         "'k':'v'}}"},
        {"{'kind':'Service','apiVersion':'v1','metadata':{'name':'s'},'spec':{'clusterIP':"
         "'172.30.0.9','clusterIPs':['172.30.0.9'],'ports':[{'port':80,'nodePort':30001}]}}",
         "{'kind':'Service','apiVersion':'v1','metadata':{'name':'s'},'spec':{'ports':[{'port':80}]"
         "}}"},
        {"{'kind':'Service','apiVersion':'v1','metadata':{'name':'s'},'spec':{'clusterIP':'None'}}",
         "{'kind':'Service','apiVersion':'v1','metadata':{'name':'s'},'spec':{'clusterIP':'None'}"
         "}"},
        {"{'kind':'Pod','apiVersion':'v1','metadata':{'name':'p-x','generateName':'p-'},'spec':{"
         "'nodeName':'n1'}}",
         "{'kind':'Pod','apiVersion':'v1','metadata':{'generateName':'p-'},'spec':{}}"},
        {"{'kind':'ServiceAccount','apiVersion':'v1','metadata':{'name':'r'},'secrets':[{'name':"
         "'r-token-abc'},{'name':'mine'}],'imagePullSecrets':[{'name':'r-dockercfg-abc'}]}",
         "{'kind':'ServiceAccount','apiVersion':'v1','metadata':{'name':'r'},'secrets':[{'name':"
         "'mine'}]}"},
        {"{'kind':'Secret','apiVersion':'v1','metadata':{'name':'t'},'type':"
         "'kubernetes.io/service-account-token'}",
         "-"},
        {"{'kind':'Pod','apiVersion':'v1','metadata':[],'spec':[]}",
         "{'kind':'Pod','apiVersion':'v1','metadata':[],'spec':[]}"}};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_FREE char *got = exported(rows[i][0]);
        assert_string_equal(got, rows[i][1]);
    }
}

static void roles_are_given_and_taken(void **state)
{
    struct harness *h = harness_new(NULL, NULL);
    free(make_namespace(h, "red"));
#define ROLES "clusterrole.rbac.authorization.k8s.io/"
    CLEANUP_FREE char *role = quoted("{'metadata':{'name':'watcher'},'rules':[]}");
    CLEANUP_ANSWER
    struct answer cluster = ask_ok(h, "POST", RBAC "clusterroles", role, 201);
    CLEANUP_ANSWER
    struct answer local = ask_ok(h, "POST", RBAC "namespaces/red/roles", role, 201);
    static const struct typed_row rows[] = {
        {"adm policy add-role-to-user watcher", 2, "",
         "tenet adm policy: add-role-to-user needs a role and users..."},
        {"adm policy add-scc-to-user all jane --rolebinding-name x", 2, "",
         "tenet adm policy: add-scc-to-user takes neither --role-namespace..."},
        {"adm policy add-role-to-user watcher jane --role-namespace blue -n red", 2, "",
         "tenet adm policy: --role-namespace \"blue\" is not the namespace \"red\"..."},
        {"adm policy add-cluster-role-to-user watcher jane --role-namespace red", 2, "",
         "tenet adm policy: a role of a namespace..."},
        {"adm policy add-role-to-user none jane -n red", 1, "",
         "Error from server (NotFound): clusterroles.rbac.authorization.k8s.io \"none\" not "
         "found\n"},
        {"adm policy add-role-to-user watcher jane -n red", 0, ROLES "watcher added: \"jane\"\n",
         ""},
        {"adm policy add-role-to-user watcher jane joe -n red", 0,
         ROLES "watcher added: \"jane\", \"joe\"\n", ""},
        {"adm policy add-role-to-user watcher -z web -n red", 0, ROLES "watcher added: \"web\"\n",
         ""},
        {"get rolebindings watcher -n red -o jsonpath={.subjects[*].name}", 0, "jane joe web", ""},
        /* The role of the namespace has a binding of its own. */
        {"adm policy add-role-to-group watcher dev --role-namespace red -n red", 0,
         "role.rbac.authorization.k8s.io/watcher added: \"dev\"\n", ""},
        {"get rolebindings watcher-0 -n red -o jsonpath={.roleRef.kind}", 0, "Role", ""},
        {"adm policy add-role-to-user watcher ann --rolebinding-name watcher-0 -n red", 1, "",
         "error: the binding watcher-0 gives another role, which cannot be changed\n"},
        {"adm policy add-role-to-user watcher ann --rolebinding-name mine -n red", 0,
         ROLES "watcher added: \"ann\"\n", ""},
        {"adm policy add-cluster-role-to-group watcher ops", 0, ROLES "watcher added: \"ops\"\n",
         ""},
        {"get clusterrolebindings watcher -o jsonpath={.subjects[*].name}", 0, "ops", ""},
        {"adm policy remove-role-from-user watcher nobody -n red", 1, "",
         "error: no binding of the role watcher has any of these subjects\n"},
        {"adm policy remove-role-from-user watcher jane ann -n red", 0,
         ROLES "watcher removed: \"jane\", \"ann\"\n", ""},
        {"get rolebindings watcher -n red -o jsonpath={.subjects[*].name}", 0, "joe web", ""},
        {"get rolebindings mine -n red", 1, "", NULL},
        {"adm policy remove-cluster-role-from-group watcher ops", 0,
         ROLES "watcher removed: \"ops\"\n", ""},
        {"get clusterrolebindings watcher", 1, "", NULL},
    };
    typed_check(h, rows, ARRAY_SIZE(rows));
    harness_free(h);
}

static void reviews_tell_which_constraints_allow_the_pods_of_a_file(void **state)
{
    static const char pods[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[{\"apiVersion\":\"v1\",\"kind\":"
        "\"Pod\","
        "\"metadata\":{\"name\":\"web\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}"
        "]}},{"
        "\"apiVersion\":\"apps/"
        "v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"host\"},\"spec\":{"
        "\"selector\":{\"matchLabels\":{\"a\":\"b\"}},\"template\":{\"metadata\":{\"labels\":{"
        "\"a\":\"b\"}},"
        "\"spec\":{\"hostPID\":true,\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}}}]}";
    static const char map[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"m\"}}";
    struct harness *h = harness_new_secure((struct apiserver_security){0});
    char dir[] = "/tmp/tenet-review-XXXXXX";
    assert_non_null(mkdtemp(dir));
    CLEANUP_FREE char *file = xasprintf("%s/pods.json", dir),
                      *other = xasprintf("%s/map.json", dir);
    CLEANUP_FREE char *config = xasprintf("%s/config", dir), *url = harness_url(h);
    CLEANUP_FREE char *kubeconfig = xasprintf(
        "{\"apiVersion\":\"v1\",\"kind\":\"Config\",\"current-context\":\"c\",\"contexts\":[{"
        "\"name\":\"c\","
        "\"context\":{\"cluster\":\"c\",\"user\":\"u\"}}],\"clusters\":[{\"name\":\"c\","
        "\"cluster\":{\"server\":"
        "\"%s\"}}],\"users\":[{\"name\":\"u\",\"user\":{\"token\":\"" HARNESS_TOKEN "\"}}]}",
        url);
    assert_int_equal(file_write_atomic(file, pods, strlen(pods), 0600, NULL), 0);
    assert_int_equal(file_write_atomic(other, map, strlen(map), 0600, NULL), 0);
    assert_int_equal(file_write_atomic(config, kubeconfig, strlen(kubeconfig), 0600, NULL), 0);
    const struct {
        const char *line;
        int status;
        const char *out, *err;
    } cases[] = {
        {"scc-subject-review -f %s/pods.json", 0,
         "RESOURCE          ALLOWED BY\nPod/web           lax\nDeployment/host   all\n", ""},
        {"scc-subject-review -f %s/pods.json -u jane -g system:authenticated", 0,
         "RESOURCE          ALLOWED BY\nPod/web           lax\nDeployment/host   <none>\n", ""},
        {"scc-subject-review -f %s/pods.json -u jane", 0,
         "RESOURCE          ALLOWED BY\nPod/web           <none>\nDeployment/host   <none>\n", ""},
        {"scc-subject-review -f %s/pods.json -z default", 0,
         "RESOURCE          ALLOWED BY\nPod/web           lax\nDeployment/host   <none>\n", ""},
        {"scc-review -f %s/pods.json -z a -z b", 0,
         "RESOURCE          SERVICE ACCOUNT   ALLOWED BY\nPod/web           a                 lax\n"
         "Pod/web           b                 lax\nDeployment/host   <none>            <none>\n",
         ""},
        {"scc-review -f %s/map.json", 1, "", "error: ConfigMap/m of "},
        {"scc-review -f %s/none.json", 1, "", "error: "},
        {"scc-review -u jane -f %s/map.json", 2, "", "tenet adm policy: scc-review takes neither"},
        {"scc-review --kubeconfig %s/config", 2, "",
         "tenet adm policy: scc-review needs --filename"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *words = xasprintf(cases[i].line, dir);
        CLEANUP_FREE char *line = xasprintf("adm policy %s --kubeconfig %s", words, config);
        struct outcome o = typed_run(h, line);
        if (o.status != cases[i].status || !streq(o.out, cases[i].out) ||
            !str_has_prefix(o.err, cases[i].err)) {
            fail_msg("%s: %d\n%s\n%s", line, o.status, o.out, o.err);
        }
        free(o.out);
        free(o.err);
    }
    dir_remove(dir, NULL);
    harness_free(h);
}

#define WIDGETS "/apis/idle.example/v1/namespaces/red/widgets"

/* A pod of the widget "w", and its address among the endpoints of the service. */
static void make_widgets_pod(struct harness *h, const char *name, const char *uid)
{
    CLEANUP_FREE char *pod =
        xasprintf("{'metadata':{'name':'%s','ownerReferences':[{'apiVersion':'idle.example/v1',"
                  "'kind':'Widget','name':'w','uid':'%s','controller':true}]},"
                  "'spec':{'containers':[{'name':'c','image':'i'}]}}",
                  name, uid);
    put_in(h, "POST", "/api/v1/namespaces/red/pods", pod, 201);
}

static void a_service_is_idled_with_the_owner_of_its_pods(void **state)
{
    struct harness *h = harness_new(NULL, NULL);
    put_in(h, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
           "{'apiVersion':'apiextensions.k8s.io/v1','kind':'CustomResourceDefinition',"
           "'metadata':{'name':'widgets.idle.example'},'spec':{'group':'idle.example',"
           "'scope':'Namespaced','names':{'plural':'widgets','singular':'widget',"
           "'kind':'Widget'},'versions':[{'name':'v1','served':true,'storage':true,"
           "'subresources':{'scale':{'specReplicasPath':'.spec.replicas',"
           "'statusReplicasPath':'.status.replicas'}},'schema':{'openAPIV3Schema':"
           "{'type':'object','x-kubernetes-preserve-unknown-fields':true}}}]}}",
           201);
    free(make_namespace(h, "red"));
    CLEANUP_FREE char *uid =
        make_object(h, WIDGETS,
                    "{'apiVersion':'idle.example/v1','kind':'Widget','metadata':{'name':'w'},"
                    "'spec':{'replicas':2}}");
    make_widgets_pod(h, "w0", uid);
    make_widgets_pod(h, "w1", uid);
    static const char *const services[] = {"web", "also", "bare"};
    for (size_t i = 0; i < ARRAY_SIZE(services); i++) {
        CLEANUP_FREE char *text =
            xasprintf("{'metadata':{'name':'%s','labels':{'n':'%zu'}},"
                      "'spec':{'clusterIP':'172.30.0.%zu','ports':[{'port':80}]}}",
                      services[i], i, i + 5);
        put_in(h, "POST", "/api/v1/namespaces/red/services", text, 201);
        CLEANUP_FREE char *endpoints = xasprintf(
            i == 2 ? "{'metadata':{'name':'%s'}}"
                   : "{'metadata':{'name':'%s'},'subsets':[{'addresses':[{'ip':'10.128.0.2',"
                     "'targetRef':{'kind':'Pod','name':'w0','namespace':'red'}}],"
                     "'notReadyAddresses':[{'ip':'10.128.0.3','targetRef':{'kind':'Pod',"
                     "'name':'w1','namespace':'red'}},{'ip':'10.128.0.4'}],"
                     "'ports':[{'port':80}]}]}",
            services[i]);
        put_in(h, "POST", "/api/v1/namespaces/red/endpoints", endpoints, 201);
    }
    static const struct typed_row rows[] = {
        {"idle web -n red --dry-run", 0,
         "The service \"red/web\" has been marked as idled (dry run)\n"
         "The service \"red/web\" will unidle Widget.idle.example \"red/w\" to 2 replicas once "
         "it receives traffic\n"
         "Widget.idle.example \"red/w\" has been idled (dry run)\n",
         ""},
        {"idle bare -n red", 1, "",
         "error: the service \"red/bare\" has nothing to be idled: none of its pods has an owner "
         "that can be scaled\n"},
        {"idle none -n red", 1, "", "Error from server (NotFound): services \"none\" not found\n"},
        {"idle -l n=9 -n red", 0, "", "No service has anything to be idled\n"},
        {"idle web also -n red", 0,
         "The service \"red/web\" has been marked as idled\n"
         "The service \"red/web\" will unidle Widget.idle.example \"red/w\" to 2 replicas once "
         "it receives traffic\n"
         "The service \"red/also\" has been marked as idled\n"
         "The service \"red/also\" will unidle Widget.idle.example \"red/w\" to 2 replicas once "
         "it receives traffic\n"
         "Widget.idle.example \"red/w\" has been idled\n",
         ""},
        {"idle --all -n red", 0, "", ""},
    };
    typed_check(h, rows, ARRAY_SIZE(rows));
    CLEANUP_ANSWER struct answer scale = ask_ok(h, "GET", WIDGETS "/w/scale", NULL, 200);
    assert_int_equal(json_get_int_or(json_path(scale.body, "spec", "replicas", NULL), 0), 0);
    CLEANUP_ANSWER struct answer w = ask_ok(h, "GET", WIDGETS "/w", NULL, 200);
    const struct json *notes = json_path(w.body, "metadata", "annotations", NULL);
    assert_string_equal(json_path_string(notes, "idling.alpha.openshift.io/previous-scale", NULL),
                        "2");
    for (size_t i = 0; i < 2; i++) {
        CLEANUP_FREE char *path = xasprintf("/api/v1/namespaces/red/services/%s", services[i]);
        CLEANUP_ANSWER struct answer s = ask_ok(h, "GET", path, NULL, 200);
        notes = json_path(s.body, "metadata", "annotations", NULL);
        assert_string_equal(
            json_path_string(notes, "idling.alpha.openshift.io/unidle-targets", NULL),
            "[{\"kind\":\"Widget\",\"name\":\"w\",\"group\":\"idle.example\",\"replicas\":2}]");
        assert_non_null(json_path_string(notes, "idling.alpha.openshift.io/idled-at", NULL));
    }
    harness_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_usage_is_told),
        cmocka_unit_test(every_command_has_its_help),
        cmocka_unit_test(a_token_is_printed_listed_and_deleted),
        cmocka_unit_test(objects_are_made_shown_and_deleted),
        cmocka_unit_test(a_deletion_without_a_limit_waits_for_the_finalizer),
        cmocka_unit_test(changes_are_shown_once_each),
        cmocka_unit_test(objects_are_made_from_files_and_described),
        cmocka_unit_test(a_service_is_idled_with_the_owner_of_its_pods),
        cmocka_unit_test(projects_share_networks_when_the_master_agrees),
        cmocka_unit_test(groups_are_made_and_changed),
        cmocka_unit_test(the_use_of_constraints_is_given_and_taken),
        cmocka_unit_test(an_export_has_nothing_of_this_cluster),
        cmocka_unit_test(roles_are_given_and_taken),
        cmocka_unit_test(reviews_tell_which_constraints_allow_the_pods_of_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
