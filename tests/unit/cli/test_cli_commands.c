/* SPDX-License-Identifier: Apache-2.0 */
/* Whole commands: what is typed, the exit status, and what is printed.  The API server is this test's, the command a
 * child of it. */
#include "typed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
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
         "tenet lab: say what to do: up, down, status, project, pod, exec, node, ovs or master; "
         "see tenet lab --help\n"},
        {"lab frob", 2, "", "tenet lab: \"frob\" is none of its commands; see tenet lab --help\n"},
        {"lab up x", 2, "", "tenet lab: \"x\" is too much after up; see tenet lab --help\n"},
        {"lab up --nodes 201", 2, "",
         "tenet lab: --nodes: \"201\" is not a number from 0 to 200; see tenet lab --help\n"},
        {"lab up --nodes x", 2, "",
         "tenet lab: --nodes: \"x\" is not a number from 0 to 200; see tenet lab --help\n"},
        {"lab up --plugin x", 2, "",
         "tenet lab: --plugin: \"x\" is not a network plug-in: \"redhat/openshift-ovs-subnet\", "
         "\"redhat/openshift-ovs-multitenant\" and \"redhat/openshift-ovs-networkpolicy\" are; see "
         "tenet lab --help\n"},
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
        {"idle", 2, "",
         "tenet idle: say which services: names, --selector, or --all; see tenet idle --help\n"},
        {"master --log-level x", 1, "", "tenet: logLevel: \"x\" is not a level such as info\n"},
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
        {"get ns red none", 1, "NAME   STATUS   AGE\nred    Active   0s\n...",
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_usage_is_told),
        cmocka_unit_test(every_command_has_its_help),
        cmocka_unit_test(a_token_is_printed_listed_and_deleted),
        cmocka_unit_test(objects_are_made_shown_and_deleted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
