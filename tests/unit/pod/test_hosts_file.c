/* SPDX-License-Identifier: Apache-2.0 */
/* /etc/hosts of pods. */
#include "pod/hosts_file.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static struct json *pod_of(const char *name, const char *spec)
{
    CLEANUP_FREE char *text =
        xasprintf("{'metadata': {'name': '%s', 'namespace': 'red'}, 'spec': {%s}}", name, spec);
    struct json *v = NULL;
    struct err e;
    for (char *p = text; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    if (json_parse(text, strlen(text), &v, &e) < 0) {
        fail_msg("%s: %s", e.text, text);
    }
    return v;
}

#define A10 "aaaaaaaaaa"
#define A60 A10 A10 A10 A10 A10 A10

#define HOSTS                                                                                \
    "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost "  \
    "ip6-loopback\nfe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\n" \
    "fe00::2\tip6-allrouters\n"

static void hosts_files_have_the_pods_names_and_aliases(void **state)
{
    static const char *const ips[] = {"10.1.0.7", "fd00::7"};
    static const struct {
        const char *spec, *node, *want;
    } cases[] = {
        {"'x': 1", NULL, HOSTS "10.1.0.7\tweb\nfd00::7\tweb\n"},
        {"'subdomain': 's'", NULL,
         HOSTS "10.1.0.7\tweb.s.red.svc.d\tweb\nfd00::7\tweb.s.red.svc.d\tweb\n"},
        {"'hostAliases': [{'ip': '192.0.2.1', 'hostnames': ['a', 'b.c']}, {'ip': '192.0.2.2', "
         "'hostnames': ['x\\n127.0.0.1', 'd']}, {'ip': '1.2.3.4 evil', 'hostnames': ['e']}]",
         NULL,
         HOSTS "10.1.0.7\tweb\nfd00::7\tweb\n\n# Entries added by HostAliases.\n"
               "192.0.2.1\ta\tb.c\n192.0.2.2\td\n"},
        {"'hostNetwork': true, 'hostAliases': [{'ip': '192.0.2.1', 'hostnames': ['a']}]",
         "127.0.0.1 me",
         "# Kubernetes-managed hosts file (host network).\n127.0.0.1 me\n\n# Entries added by "
         "HostAliases.\n192.0.2.1\ta\n"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *pod = pod_of("web", cases[i].spec);
        CLEANUP_FREE char *text =
            pod_hosts_file(pod, (struct runtime_texts){ips, 2}, "d", cases[i].node);
        assert_string_equal(text, cases[i].want);
    }
}

static void names_are_cut_to_what_a_label_holds(void **state)
{
    static const struct {
        const char *name, *spec, *want;
    } cases[] = {
        {"web-1", "'hostname': 'h', 'subdomain': 's'", "\n10.1.0.7\th.s.red.svc.d\th\n"},
        {A60 "bb-cc", "'x': 1", "\n10.1.0.7\t" A60 "bb\n"},
        {A60 "b.-cc", "'x': 1", "\n10.1.0.7\t" A60 "b\n"},
    };
    static const char *const ips[] = {"10.1.0.7"};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *pod = pod_of(cases[i].name, cases[i].spec);
        CLEANUP_FREE char *text = pod_hosts_file(pod, (struct runtime_texts){ips, 1}, "d", NULL);
        assert_true(str_has_suffix(text, cases[i].want));
    }
}

static void a_container_that_mounts_its_own_hosts_keeps_it(void **state)
{
    CLEANUP(json_free)
    struct json *pod = pod_of("p", "'containers': [{'volumeMounts': [{"
                                   "'mountPath': '/etc/hosts'}]}, {}]");
    const struct json *list = json_path(pod, "spec", "containers", NULL);
    assert_false(pod_has_hosts_file(json_at(list, 0)));
    assert_true(pod_has_hosts_file(json_at(list, 1)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_files_have_the_pods_names_and_aliases),
        cmocka_unit_test(names_are_cut_to_what_a_label_holds),
        cmocka_unit_test(a_container_that_mounts_its_own_hosts_keeps_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
