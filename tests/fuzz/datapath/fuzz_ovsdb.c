/* SPDX-License-Identifier: Apache-2.0 */
/* The input from ovsdb-server: framing, messages, replies, updates into the replica, and a plan from that.
 * The same bytes are the text of a command's answer as well. */
#include "base/mem.h"
#include "datapath/ovs/ovs.h"
#include "datapath/ovs/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(struct ovs_rows *rows, const struct ovsdb_msg *m)
{
    struct err e = {0};
    uint64_t id;
    ovsdb_msg_id(m, &id);
    if (m->kind == OVSDB_REPLY) {
        size_t failed;
        ovsdb_reply_error(m, &e);
        ovsdb_transact_result(m, 2, &failed, &e);
        ovsdb_selected_row(m, 1);
        if (m->result) {
            ovsdb_walk_updates(m->result, ovs_rows_apply, rows, &e);
        }
    } else if (m->kind == OVSDB_REQUEST) {
        CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
        ovsdb_put_echo_reply(&out, m);
    } else {
        const struct json *updates = ovsdb_update_of(m, "tenet");
        if (updates) {
            ovsdb_walk_updates(updates, ovs_rows_apply, rows, &e);
        }
    }
    ovs_rows_link(rows, "br0");
}

static void plan(const struct ovs_rows *rows)
{
    const struct bridge_want want = {
        .bridge = "br0", .fallback_type = "netdev", .vxlan_port = 4789, .mtu = 1450};
    struct bridge_undo undo = {.updates = NULL};
    struct json *ops = NULL;
    bridge_plan(rows, &want, &ops, &undo, NULL);
    json_free(ops);
    json_free(bridge_undo_ops(rows, &undo));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ovsdb_framer f = {0};
    struct ovs_rows rows;
    ovs_rows_init(&rows);
    size_t start = 0, n = 0;
    struct err e = {0};
    while (ovsdb_frame(&f, (const char *) data + start, size - start, &n, &e) == 0) {
        struct ovsdb_msg m = {0};
        if (ovsdb_msg_parse((const char *) data + start, n, &m, &e) < 0) {
            break;
        }
        use(&rows, &m);
        ovsdb_msg_done(&m);
        start += n;
    }
    plan(&rows);
    ovs_rows_done(&rows);
    CLEANUP_FREE char *text = xstrndup((const char *) data, size);
    CLEANUP_FREE struct tunnel_entry *entries = NULL;
    tunnels_parse(text, &entries);
    return 0;
}
