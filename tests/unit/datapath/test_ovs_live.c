/* SPDX-License-Identifier: Apache-2.0 */
/* The "ovs" datapath on a bridge that works already: another version's flows, another plug-in,
 * projects that move.  Each is one bundle, so that no packet meets half of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "leave_out.h"

#include "base/mem.h"
#include "ovs_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#define NEEDS_OVS                     \
    struct fixture *f = *state;       \
    if (ovs_unavailable()) {          \
        LEAVE_OUT(ovs_unavailable()); \
    }

static void attach_four(struct fixture *f)
{
    fixture_up(f);
    for (unsigned n = 1; n <= 4; n++) {
        fixture_make_veth(f, n);
        assert_int_equal(fixture_attach(f, n), 0);
    }
    fixture_wait_for_ports(f);
}

/* Lets the loop run until the switch has 'bundles' bundles and pod 1 is ready. */
static void wait_for_bundles(struct fixture *f, size_t bundles)
{
    const struct dp_pod *p;
    while (ovs_get_counters(f->dp).bundles < bundles ||
           !(p = datapath_find(f->dp, "container-1", "eth0")) || !p->ready) {
        bool never = false;
        loop_run_until(f->loop, &never, 5);
    }
}

/* Adds 'by' to each number behind 'word' that is not 0. */
static char *shift_numbers(const char *text, const char *word, unsigned by)
{
    struct strbuf out = STRBUF_INIT;
    const char *p = text, *next;
    while ((next = strstr(p, word))) {
        next += strlen(word);
        strbuf_add(&out, p, (size_t) (next - p));
        char *end;
        unsigned long n = strtoul(next, &end, 10);
        strbuf_addf(&out, "%lu", n ? n + by : 0);
        p = end;
    }
    strbuf_adds(&out, p);
    return strbuf_steal(&out);
}

static void replace_flows(struct fixture *f, const char *text)
{
    char path[96];
    snprintf(path, sizeof path, "%s/older.flows", f->ovs.dir);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    OVS_RUN(&f->ovs, NULL, "ovs-ofctl", "-OOpenFlow14", "--bundle", "replace-flows", "br0", path);
}

static void flows_of_another_version_are_replaced_in_one_bundle(void **state)
{
    NEEDS_OVS
    attach_four(f);
    CLEANUP_FREE char *flows = fixture_flows(f);
    size_t n = fixture_count(flows, "\n");
    fixture_close(f);
    /* The same network by tables elsewhere; some have the number of another table of ours. */
    CLEANUP_FREE char *tables = shift_numbers(flows, " table=", 10);
    CLEANUP_FREE char *older = shift_numbers(tables, "goto_table:", 10);
    replace_flows(f, older);
    CLEANUP_FREE char *before = fixture_flows(f);
    assert_string_not_equal(before, flows);
    fixture_up(f);
    struct ovs_counters c = ovs_get_counters(f->dp);
    assert_int_equal(c.bundles, 1);
    assert_true(c.flow_mods <= 2 * n);
    CLEANUP_FREE char *after = fixture_flows(f);
    assert_string_equal(after, flows);
    fixture_restart_agent(f);
    assert_int_equal(ovs_get_counters(f->dp).bundles, 0);
}

static void another_plugin_is_one_bundle_and_touches_no_port(void **state)
{
    NEEDS_OVS
    attach_four(f);
    CLEANUP_FREE char *multitenant = fixture_flows(f);
    struct ovs_counters a = ovs_get_counters(f->dp);
    f->net.plugin = SDN_SUBNET;
    datapath_set_network(f->dp, &f->net);
    f->ready = false;
    fixture_wait(f, &f->ready);
    struct ovs_counters b = ovs_get_counters(f->dp);
    assert_int_equal(b.bundles - a.bundles, 1);
    assert_int_equal(b.transactions - a.transactions, 0);
    CLEANUP_FREE char *subnet = fixture_flows(f);
    assert_int_equal(fixture_count(subnet, "reg0=0x65,reg1=0x65"), 0);
    /* Back, and the projects have other VNIDs than before: still one. */
    f->net.plugin = SDN_MULTITENANT;
    datapath_set_vnids(f->dp, "red", &(struct sdn_vnids){.id = 201});
    datapath_set_vnids(f->dp, "blue", &(struct sdn_vnids){.id = 202});
    datapath_set_network(f->dp, &f->net);
    wait_for_bundles(f, b.bundles + 1);
    assert_int_equal(ovs_get_counters(f->dp).bundles - b.bundles, 1);
    CLEANUP_FREE char *again = fixture_flows(f);
    assert_int_equal(fixture_count(again, "reg0=0xc9,reg1=0xc9"), 1);
    assert_int_equal(fixture_count(again, "\n"), fixture_count(multitenant, "\n"));
}

static void moving_project_takes_both_vnids_and_each_step_is_one_bundle(void **state)
{
    NEEDS_OVS
    static const struct {
        struct sdn_vnids vnids;
        const char *has, *has_not; /* In table 80. */
    } steps[] = {
        {{101, true, 555}, "reg0=0x22b,nw_dst=10.128.0.3", "reg0=0x22b,reg1=0x22b"},
        {{555, true, 101}, "reg0=0x65,nw_dst=10.128.0.3", "reg0=0x65,reg1=0x65"},
        {{555, false, 0}, "reg0=0x22b,reg1=0x22b", "nw_dst=10.128.0.3 actions=output"},
        /* Global on the way: whatever the source. */
        {{555, true, 0}, "priority=150,ip,nw_dst=10.128.0.3", "reg0=0x22b,nw_dst=10.128.0.3"},
        {{SDN_VNID_GLOBAL, false, 0}, "reg1=0 ", "priority=150,ip"},
        {{SDN_VNID_NOBODY, false, 0}, "reg1=0 ", "reg0=0x1,"},
    };
    attach_four(f);
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        struct ovs_counters a = ovs_get_counters(f->dp);
        datapath_set_vnids(f->dp, "red", &steps[i].vnids);
        wait_for_bundles(f, a.bundles + 1);
        assert_int_equal(ovs_get_counters(f->dp).bundles - a.bundles, 1);
        CLEANUP_FREE char *flows = fixture_flows(f);
        if (!strstr(flows, steps[i].has) || strstr(flows, steps[i].has_not)) {
            fail_msg("step %zu: %s", i, flows);
        }
        /* It is stored with the ports: one that starts in the middle finds nothing to do. */
        fixture_restart_agent(f);
        const struct dp_pod *p = datapath_find(f->dp, "container-3", "eth0");
        assert_int_equal(p->vnid, steps[i].vnids.id);
        assert_int_equal(p->has_also_vnid, steps[i].vnids.moving);
        assert_int_equal(p->also_vnid, steps[i].vnids.also);
        assert_int_equal(ovs_get_counters(f->dp).flow_mods, 0);
        assert_int_equal(ovs_get_counters(f->dp).transactions, 0);
    }
}

static void changed_vxlan_port_keeps_port_numbers_and_pods(void **state)
{
    NEEDS_OVS
    attach_four(f);
    CLEANUP_FREE char *before =
        FIXTURE_VSCTL(f, "get", "interface", fixture_port_of(f, 1), "ofport");
    f->net.vxlan_port = 4790;
    datapath_set_network(f->dp, &f->net);
    f->ready = false;
    fixture_wait(f, &f->ready);
    CLEANUP_FREE char *options = FIXTURE_VSCTL(f, "get", "interface", "vxlan0", "options");
    assert_non_null(strstr(options, "dst_port=\"4790\""));
    CLEANUP_FREE char *number = FIXTURE_VSCTL(f, "get", "interface", "vxlan0", "ofport");
    assert_string_equal(number, "1");
    CLEANUP_FREE char *pod = FIXTURE_VSCTL(f, "get", "interface", fixture_port_of(f, 1), "ofport");
    assert_string_equal(pod, before);
    CLEANUP_FREE char *flows = fixture_flows(f);
    assert_int_equal(fixture_count(flows, "tp_dst=4790"), 1);
    assert_int_equal(fixture_count(flows, "tp_dst=4789"), 0);
    assert_int_equal(f->n_lost, 0);
}

/* The original's GetPodDetails, and what it did not look at. */
static void odd_rows_are_no_pods(void **state)
{
    NEEDS_OVS
    attach_four(f);
    CLEANUP_FREE char *flows = fixture_flows(f);
    fixture_close(f);
    fixture_make_veth(f, 7);
    fixture_make_veth(f, 8);
    /* Another port of container 1, as a crash in the middle of a replacement may leave it, and
     * one whose address cannot be read. */
    OVS_VSCTL(&f->ovs, "add-port", "br0", "vp7", "--", "set", "interface", "vp7",
              "external_ids:tenet-container=container-1", "external_ids:tenet-ifname=eth0",
              "external_ids:tenet-namespace=red", "external_ids:tenet-ip=10.128.0.9",
              "external_ids:tenet-mac=\"0a:58:0a:80:00:09\"", "external_ids:tenet-vnid=101");
    OVS_VSCTL(&f->ovs, "add-port", "br0", "vp8", "--", "set", "interface", "vp8",
              "external_ids:tenet-container=container-8", "external_ids:tenet-ifname=eth0",
              "external_ids:tenet-mac=\"0a:58:0a:80:00:0a\"", "external_ids:tenet-vnid=101");
    fixture_up(f);
    size_t n;
    datapath_pods(f->dp, &n);
    assert_int_equal(n, 4);
    assert_null(datapath_find(f->dp, "container-8", "eth0"));
    assert_null(datapath_find(f->dp, "container-9", "eth0"));
    const struct dp_pod *p = datapath_find(f->dp, "container-1", "eth0");
    assert_non_null(p);
    wait_for_bundles(f, 0);
    /* One port a container remains, and has all the flows; the one that is nobody's has none. */
    CLEANUP_FREE char *owners = NULL;
    do {
        bool never = false;
        loop_run_until(f->loop, &never, 5);
        free(owners);
        owners = FIXTURE_VSCTL(f, "--bare", "--columns=external_ids", "list", "interface");
    } while (fixture_count(owners, "tenet-container=container-1") > 1);
    assert_int_equal(fixture_count(owners, "tenet-container=container-1"), 1);
    CLEANUP_FREE char *ports = FIXTURE_VSCTL(f, "list-ports", "br0");
    assert_non_null(strstr(ports, "vp8"));
    CLEANUP_FREE char *after = fixture_flows(f);
    assert_int_equal(fixture_count(after, "\n"), fixture_count(flows, "\n"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(flows_of_another_version_are_replaced_in_one_bundle),
        TEST(another_plugin_is_one_bundle_and_touches_no_port),
        TEST(moving_project_takes_both_vnids_and_each_step_is_one_bundle),
        TEST(changed_vxlan_port_keeps_port_numbers_and_pods),
        TEST(odd_rows_are_no_pods),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
