/* SPDX-License-Identifier: Apache-2.0 */
/* The replica of the database, what is planned from it, and pods as external_ids:
 * without Open vSwitch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "datapath/ovs/plan.h"

#define ROOT "00000000-0000-0000-0000-000000000001"
#define BR0 "00000000-0000-0000-0000-0000000000b0"
#define BR9 "00000000-0000-0000-0000-0000000000b9"
#define P(n) "00000000-0000-0000-0000-0000000001" n
#define I(n) "00000000-0000-0000-0000-0000000002" n

/* A database in which all is right; names: 00 br0, 01 vxlan0, 02 tun0. */
#define ROOT_ROW \
    "\"Open_vSwitch\":{\"" ROOT "\":{\"initial\":{\"bridges\":[\"uuid\",\"" BR0 "\"]}}}"
#define BRIDGE_ROW(more)                                                                          \
    "\"Bridge\":{\"" BR0 "\":{\"initial\":{\"name\":\"br0\",\"fail_mode\":\"secure\"," more       \
    "\"datapath_type\":\"netdev\",\"ports\":[\"set\",[[\"uuid\",\"" P("00") "\"],[\"uuid\",\"" P( \
        "01") "\"],[\"uuid\",\"" P("02") "\"]]]}}}"
#define PORT_ROW(n, name) \
    "\"" P(n) "\":{\"initial\":{\"name\":\"" name "\",\"interfaces\":[\"uuid\",\"" I(n) "\"]}}"
#define PORT_ROWS \
    "\"Port\":{" PORT_ROW("00", "br0") "," PORT_ROW("01", "vxlan0") "," PORT_ROW("02", "tun0") "}"
#define LOCAL_ROW "\"" I("00") "\":{\"initial\":{\"name\":\"br0\",\"type\":\"internal\"}}"
#define VXLAN_ROW                                                                                  \
    "\"" I("01") "\":{\"initial\":{\"name\":\"vxlan0\",\"type\":\"vxlan\",\"ofport_request\":1,"   \
                 "\"ofport\":1,\"options\":[\"map\",[[\"remote_ip\",\"flow\"],[\"key\",\"flow\"]," \
                 "[\"dst_port\",\"4789\"]]]}}"
#define TUN_ROW                                                                                   \
    "\"" I("02") "\":{\"initial\":{\"name\":\"tun0\",\"type\":\"internal\",\"ofport_request\":2," \
                 "\"ofport\":2,\"mtu_request\":1450,\"mac\":\"0a:58:0a:80:00:01\"}}"
#define RIGHT                                                                                \
    "{" ROOT_ROW "," BRIDGE_ROW("") "," PORT_ROWS ",\"Interface\":{" LOCAL_ROW "," VXLAN_ROW \
                                    "," TUN_ROW "}}"

static struct json *parse(const char *text)
{
    struct json *v = NULL;
    struct err e = {0};
    if (json_parse(text, strlen(text), &v, &e) < 0) {
        fail_msg("%s: %s", text, e.text);
    }
    return v;
}

static int apply(struct ovs_rows *r, const char *text, struct err *e)
{
    CLEANUP(json_free) struct json *u = parse(text);
    int k = ovsdb_walk_updates(u, ovs_rows_apply, r, e);
    if (k == 0) {
        ovs_rows_link(r, "br0");
    }
    return k;
}

static int setup(void **state)
{
    *state = NEW(struct ovs_rows);
    ovs_rows_init(*state);
    return 0;
}

static int teardown(void **state)
{
    ovs_rows_done(*state);
    free(*state);
    return 0;
}

static const struct bridge_want want = {.bridge = "br0",
                                        .fallback_type = "netdev",
                                        .vxlan_port = 4789,
                                        .tun_mac = {{0x0a, 0x58, 0x0a, 0x80, 0, 1}},
                                        .mtu = 1450};

/* The plan as text; "" for none.  '*undo' must be cleared by the caller. */
static char *plan(struct ovs_rows *r, const struct bridge_want *w, struct bridge_undo *undo)
{
    struct json *ops = NULL;
    struct err e = {0};
    if (bridge_plan(r, w, &ops, undo, &e) < 0) {
        return xstrdup(e.text);
    }
    char *text = ops ? json_to_text(ops) : xstrdup("");
    json_free(ops);
    return text;
}

#define assert_in(text, part)                             \
    do {                                                  \
        if (!strstr(text, part)) {                        \
            fail_msg("\"%s\" is not in\n%s", part, text); \
        }                                                 \
    } while (0)

static void right_database_needs_no_plan(void **state)
{
    struct bridge_undo undo = {.updates = NULL};
    assert_int_equal(apply(*state, RIGHT, NULL), 0);
    CLEANUP_FREE char *text = plan(*state, &want, &undo);
    assert_string_equal(text, "");
    assert_string_equal(plan_datapath_type(*state, &want), "netdev");
}

static void empty_database_gets_all_in_one_transaction(void **state)
{
    struct bridge_undo undo = {.updates = NULL};
    assert_int_equal(apply(*state, "{\"Open_vSwitch\":{\"" ROOT "\":{\"initial\":{}}}}", NULL), 0);
    CLEANUP_FREE char *text = plan(*state, &want, &undo);
    assert_in(text, "\"datapath_type\":\"netdev\"");
    assert_in(text, "\"fail_mode\":\"secure\"");
    assert_in(text, "[\"bridges\",\"insert\",[\"named-uuid\",\"bridge\"]]");
    assert_in(text, "[\"next_cfg\",\"+=\",1]");
    assert_in(text, "[\"dst_port\",\"4789\"]");
    assert_in(text, "\"mac\":\"0a:58:0a:80:00:01\"");
    assert_true(undo.bridge && undo.vxlan && undo.tun);
    assert_null(undo.updates);
}

static void one_wrong_column_is_one_guarded_update(void **state)
{
    struct bridge_undo undo = {.updates = NULL};
    assert_int_equal(apply(*state, RIGHT, NULL), 0);
    assert_int_equal(
        apply(*state,
              "{\"Interface\":{\"" I("02") "\":{\"modify\":{\"mtu_request\":[\"set\",[]]}}}}",
              NULL),
        0);
    CLEANUP_FREE char *text = plan(*state, &want, &undo);
    assert_string_equal(
        text,
        "[{\"op\":\"wait\",\"table\":\"Interface\",\"where\":[[\"_uuid\",\"==\",[\"uuid\",\"" I(
            "02") "\"]]],\"columns\":[\"mtu_request\"],\"until\":\"==\",\"rows\":[{\"mtu_request\":"
                  "[\"set\",[]]}],\"timeout\":0},{\"op\":\"update\",\"table\":\"Interface\","
                  "\"where\":[[\"_uuid\",\"==\",[\"uuid\",\"" I(
                      "02") "\"]]],\"row\":{\"mtu_request\":1450}},"
                            "{\"op\":\"mutate\",\"table\":\"Open_vSwitch\",\"where\":[[\"_uuid\","
                            "\"==\",[\"uuid\",\"" ROOT "\"]]],\"mutations\":[[\"next_cfg\","
                            "\"+=\",1]]},{\"op\":\"comment\",\"comment\":"
                            "\"tenet: set up the bridge\"}]");
    assert_false(undo.bridge || undo.vxlan || undo.tun);
    CLEANUP(json_free) struct json *back = bridge_undo_ops(*state, &undo);
    CLEANUP_FREE char *undo_text = json_to_text(back);
    assert_in(undo_text, "\"row\":{\"mtu_request\":[\"set\",[]]}");
    assert_null(undo.updates);
}

static void extra_option_is_removed(void **state)
{
    struct bridge_undo undo = {.updates = NULL};
    assert_int_equal(apply(*state, RIGHT, NULL), 0);
    assert_int_equal(apply(*state,
                           "{\"Interface\":{\"" I("01") "\":{\"modify\":{\"options\":[\"map\","
                                                        "[[\"csum\",\"true\"]]]}}}}",
                           NULL),
                     0);
    CLEANUP_FREE char *text = plan(*state, &want, &undo);
    assert_in(text, "\"row\":{\"options\":[\"map\",[[\"dst_port\",\"4789\"],[\"key\",\"flow\"],"
                    "[\"remote_ip\",\"flow\"]]]}");
    /* The guard has the value that was seen. */
    assert_in(text, "[\"csum\",\"true\"]");
    bridge_undo_clear(&undo);
}

static void undo_removes_what_was_created_and_nothing_else(void **state)
{
    assert_int_equal(apply(*state, RIGHT, NULL), 0);
    struct bridge_undo undo = {.tun = true};
    CLEANUP(json_free) struct json *ops = bridge_undo_ops(*state, &undo);
    assert_int_equal(json_count(ops), 1);
    CLEANUP_FREE char *text = json_to_text(ops);
    assert_in(text, "[\"ports\",\"delete\",[\"uuid\",\"" P("02") "\"]]");
    undo = (struct bridge_undo){.bridge = true, .tun = true, .vxlan = true};
    CLEANUP(json_free) struct json *all = bridge_undo_ops(*state, &undo);
    CLEANUP_FREE char *all_text = json_to_text(all);
    assert_int_equal(json_count(all), 1);
    assert_in(all_text, "[\"bridges\",\"delete\",[\"uuid\",\"" BR0 "\"]]");
    undo = (struct bridge_undo){.updates = NULL};
    assert_null(bridge_undo_ops(*state, &undo));
}

static void first_seen_values_are_those_to_go_back_to(void **state)
{
    struct bridge_undo a = {.updates = parse("[1]")}, b = {.tun = true, .updates = parse("[2]")};
    bridge_undo_merge(&a, &b);
    assert_true(a.tun);
    assert_null(b.updates);
    CLEANUP_FREE char *text = json_to_text(a.updates);
    assert_string_equal(text, "[1]");
    bridge_undo_clear(&a);
}

static void taken_number_and_taken_name_are_named(void **state)
{
    struct bridge_undo undo = {.updates = NULL};
    assert_int_equal(apply(*state, RIGHT, NULL), 0);
    assert_int_equal(apply(*state,
                           "{\"Interface\":{\"" I("01") "\":{\"modify\":{\"ofport\":7}},\"" I(
                               "00") "\":{\"modify\":{\"ofport\":1}}}}",
                           NULL),
                     0);
    CLEANUP_FREE char *number = plan(*state, &want, &undo);
    assert_string_equal(number, "port 1 of the bridge is taken by br0");
    /* vxlan0 in another bridge. */
    assert_int_equal(
        apply(*state,
              "{\"Interface\":{\"" I(
                  "00") "\":{\"modify\":{\"ofport\":[\"set\",[]]}}},"
                        "\"Bridge\":{\"" BR0 "\":{\"modify\":{\"ports\":[\"uuid\",\"" P(
                            "01") "\"]}},"
                                  "\"" BR9
                                  "\":{\"insert\":{\"name\":\"br9\",\"ports\":[\"uuid\",\"" P(
                                      "01") "\"]}}}}",
              NULL),
        0);
    CLEANUP_FREE char *name = plan(*state, &want, &undo);
    assert_string_equal(name, "interface vxlan0 is a port of another bridge");
    assert_null(undo.updates);
}

static void type_of_a_working_bridge_is_kept_unless_configured(void **state)
{
    struct bridge_undo undo = {.updates = NULL};
    struct bridge_want w = want;
    assert_int_equal(apply(*state, RIGHT, NULL), 0);
    w.fallback_type = "system";
    CLEANUP_FREE char *keep = plan(*state, &w, &undo);
    assert_string_equal(keep, "");
    w.datapath_type = "system";
    CLEANUP_FREE char *change = plan(*state, &w, &undo);
    assert_in(change, "\"row\":{\"datapath_type\":\"system\"}");
    bridge_undo_clear(&undo);
    /* "" is system, which is of no use where the kernel does not have it. */
    assert_int_equal(
        apply(*state, "{\"Bridge\":{\"" BR0 "\":{\"modify\":{\"datapath_type\":\"\"}}}}", NULL), 0);
    CLEANUP_FREE char *none = plan(*state, &w, &undo);
    assert_string_equal(none, "");
    CLEANUP_FREE char *fall_back = plan(*state, &want, &undo);
    assert_in(fall_back, "\"row\":{\"datapath_type\":\"netdev\"}");
    bridge_undo_clear(&undo);
}

static void missing_protocol_is_added(void **state)
{
    struct bridge_undo undo = {.updates = NULL};
    assert_int_equal(apply(*state, RIGHT, NULL), 0);
    assert_int_equal(apply(*state,
                           "{\"Bridge\":{\"" BR0 "\":{\"modify\":{\"protocols\":\"OpenFlow10\"}}}}",
                           NULL),
                     0);
    CLEANUP_FREE char *text = plan(*state, &want, &undo);
    assert_in(text, "[\"protocols\",\"insert\",\"OpenFlow14\"]");
    bridge_undo_clear(&undo);
}

static void replica_out_of_step_is_noticed(void **state)
{
    static const char *const bad[] = {
        "{\"Interface\":{\"" I("77") "\":{\"modify\":{\"ofport\":1}}}}",
        "{\"Interface\":{\"" I("77") "\":{\"delete\":null}}}",
        "{\"Interface\":{\"" I("77") "\":{\"insert\":{}}}}",
        "{\"Interface\":{\"" I("01") "\":{\"insert\":{\"name\":\"vxlan0\"}}}}",
        "{\"Port\":{\"" P("77") "\":{\"modify\":{}}}}",
        "{\"Bridge\":{\"" BR9 "\":{\"delete\":null}}}",
        "{\"Open_vSwitch\":{\"" BR9 "\":{\"modify\":{}}}}",
        "{\"Queue\":{\"" BR9 "\":{\"insert\":{}}}}",
        "{\"Interface\":{\"" I("01") "\":{\"modify\":{\"ofport\":\"x\"}}}}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct err e = {0};
        ovs_rows_clear(*state);
        assert_int_equal(apply(*state, RIGHT, &e), 0);
        assert_int_equal(apply(*state, bad[i], &e), -EBADMSG);
        assert_true(e.text[0]);
    }
}

static void rows_follow_updates(void **state)
{
    struct ovs_rows *r = *state;
    assert_int_equal(apply(r, RIGHT, NULL), 0);
    struct row_iface *i = ovs_rows_iface(r, "tun0");
    assert_non_null(i);
    assert_string_equal(i->port->name, "tun0");
    assert_int_equal(i->ofport, 2);
    assert_int_equal(apply(r,
                           "{\"Interface\":{\"" I("02") "\":{\"modify\":{\"ofport\":-1,"
                                                        "\"error\":\"no such device\"}}}}",
                           NULL),
                     0);
    i = ovs_rows_iface(r, "tun0");
    assert_int_equal(i->ofport, -1);
    assert_string_equal(i->error, "no such device");
    assert_int_equal(apply(r,
                           "{\"Interface\":{\"" I("02") "\":{\"delete\":null}},\"Port\":{\"" P(
                               "02") "\":{\"delete\":null}},\"Bridge\":{\"" BR0
                                     "\":{\"modify\":{\"ports\":[\"uuid\",\"" P("02") "\"]}}}}",
                           NULL),
                     0);
    assert_null(ovs_rows_iface(r, "tun0"));
    assert_int_equal(smap_size(&r->bridge->ports), 2);
    assert_int_equal(apply(r, "{\"Bridge\":{\"" BR0 "\":{\"delete\":null}}}", NULL), 0);
    assert_null(r->bridge);
    assert_null(ovs_rows_iface(r, "vxlan0")->port);
}

/* ---- pods ---- */

static void pod_survives_the_way_through_external_ids(void **state)
{
    struct dp_pod p = {.container_id = (char *) "c\"1",
                       .ifname = (char *) "eth0",
                       .pod_namespace = (char *) "red",
                       .netns = (char *) "/run/netns/x",
                       .port = "veth1",
                       .host_if = "veth1",
                       .host_ports = (char *) "tcp:1:2",
                       .ip = 0x0a800002,
                       .mac = {{0x0a, 0x58, 1, 2, 3, 4}},
                       .vnid = SDN_VNID_MAX};
    CLEANUP(json_free) struct json *row = json_object();
    json_set(row, "external_ids", pod_to_ids(&p));
    struct smap ids;
    smap_init(&ids, free);
    assert_int_equal(ovsdb_read_map(row, "external_ids", false, &ids, NULL), 0);
    assert_string_equal(smap_get(&ids, "sandbox"), "c\"1");
    assert_string_equal(smap_get(&ids, "ip"), "10.128.0.2");
    assert_null(smap_get(&ids, "tenet-pod"));
    CLEANUP(dp_pod_free) struct dp_pod *back = pod_from_ids(&ids, "veth1");
    assert_non_null(back);
    assert_true(pod_equal(back, &p));
    p.host_ports = NULL;
    assert_false(pod_equal(back, &p));
    p.host_ports = back->host_ports;
    p.bandwidth = (char *) "to=1000/0,from=0/0";
    assert_false(pod_equal(back, &p));
    p.bandwidth = NULL;
    p.vnid = 0;
    assert_false(pod_equal(back, &p));

    static const char *const bad[][2] = {
        {"tenet-ip", "10.0.0"}, {"tenet-ip", NULL},        {"tenet-mac", "0a:58"},
        {"tenet-mac", NULL},    {"tenet-vnid", "-1"},      {"tenet-vnid", "16777216"},
        {"tenet-vnid", NULL},   {"tenet-container", NULL}, {"tenet-container", ""},
        {"tenet-ifname", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        char *old = smap_take(&ids, bad[i][0]);
        if (bad[i][1]) {
            smap_set(&ids, bad[i][0], xstrdup(bad[i][1]));
        }
        assert_null(pod_from_ids(&ids, "veth1"));
        smap_set(&ids, bad[i][0], old);
    }
    assert_null(pod_from_ids(&ids, "a-name-of-sixteen"));
    smap_done(&ids);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(right_database_needs_no_plan),
        T(empty_database_gets_all_in_one_transaction),
        T(one_wrong_column_is_one_guarded_update),
        T(extra_option_is_removed),
        T(undo_removes_what_was_created_and_nothing_else),
        T(first_seen_values_are_those_to_go_back_to),
        T(taken_number_and_taken_name_are_named),
        T(type_of_a_working_bridge_is_kept_unless_configured),
        T(missing_protocol_is_added),
        T(replica_out_of_step_is_noticed),
        T(rows_follow_updates),
        T(pod_survives_the_way_through_external_ids),
    };
    return cmocka_run_group_tests_name("datapath/ovs_plan", tests, NULL, NULL);
}
