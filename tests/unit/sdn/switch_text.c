/* SPDX-License-Identifier: Apache-2.0 */
#include "switch_text.h"

#include "sdn/pipeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Value of "key=" in a list, up to the next comma or parenthesis; "" when it is not there. */
static const char *field(const char *list, const char *key, char out[64])
{
    size_t n = strlen(key), i = 0;
    const char *p = list;
    while ((p = strstr(p, key)) && (p[n] != '=' || (p != list && !strchr(", (", p[-1])))) {
        p += n;
    }
    for (p = p ? p + n + 1 : ""; *p && !strchr(",)\n", *p) && i < 63; p++) {
        out[i++] = *p;
    }
    out[i] = '\0';
    return out;
}

/* The last line of 'text' that starts with 'head', without the head; NULL: none.  The last, because a packet that
 * was tracked goes on in a part of its own. */
static const char *line_of(const char *text, const char *head)
{
    const char *found = NULL;
    for (const char *p = text; (p = strstr(p, head)); p += strlen(head)) {
        if (p == text || p[-1] == '\n') {
            found = p + strlen(head);
        }
    }
    return found;
}

/* Of the last flow of br0 that the packet met: its table, and the cause that its cookie names. */
static void add_last_flow(const char *trace, struct strbuf *ret)
{
    int table = -1;
    uint64_t cookie = 0;
    for (const char *p = trace; *p; p += strcspn(p, "\n"), p += *p == '\n') {
        char *end;
        long n = strtol(p, &end, 10);
        if (end != p && *end == '.' && strspn(p, " ") <= 1) {
            table = (int) n;
            const char *c = strstr(p, "cookie 0x");
            cookie = c ? strtoull(c + strlen("cookie "), NULL, 16) : 0;
        }
    }
    const char *name = table < 0 || table > UINT8_MAX ? NULL : pipeline_table_name((uint8_t) table);
    strbuf_addf(ret, "%s: %s", name ? name : "no table",
                name ? model_cause_name(pipeline_cause((uint8_t) table, cookie)) : "");
}

/* Outputs, and everything done to the packet that is not a new Ethernet or ARP header, verbatim. */
static void add_actions(const char *actions, bool last, struct strbuf *ret)
{
    char v[2][64];
    bool tunnelled = false;
    for (size_t n; *actions && *actions != '\n'; actions += n + (actions[n] == ',')) {
        int depth = 0;
        for (n = 0; actions[n] && actions[n] != '\n' && (depth || actions[n] != ','); n++) {
            depth += (actions[n] == '(') - (actions[n] == ')');
        }
        if (str_has_prefix(actions, "set(eth(") || str_has_prefix(actions, "set(arp(")) {
            continue; /* The fields are compared. */
        }
        const char *mark = strstr(actions, "mark=");
        if (str_has_prefix(actions, "ct(commit,zone=") && mark && mark < actions + n) {
            bool denied = str_has_prefix(mark, "mark=0x1/");
            strbuf_adds(ret, denied ? "denied from now on, " : "allowed from now on, ");
            continue;
        }
        if (!last) {
            continue; /* It goes on in a part of its own. */
        }
        if (str_has_prefix(actions, "tnl_push(")) {
            const char *ip = strstr(actions, "ipv4("), *vxlan = strstr(actions, "vxlan(");
            assert_true(ip && vxlan);
            strbuf_addf(ret, "vxlan(to=%s,id=%lu)", field(ip, "dst", v[0]),
                        strtoul(field(vxlan, "vni", v[1]), NULL, 16));
            tunnelled = true;
        } else if (!tunnelled || n != 3 || memcmp(actions, "nic", 3) != 0) {
            strbuf_add(ret, actions, n);
        }
    }
}

void switch_text(const char *trace, const struct model_packet *p, struct strbuf *ret)
{
    const char *actions = line_of(trace, "Datapath actions: ");
    const char *final = line_of(trace, "Final flow: ");
    assert_non_null(actions);
    assert_non_null(final);
    if (str_has_prefix(final, "unchanged")) {
        final = line_of(trace, "Flow: ");
        assert_non_null(final);
    }
    size_t before = ret->size;
    for (const char *a = trace; (a = strstr(a, "Datapath actions: ")); a++) {
        const char *part = a + strlen("Datapath actions: ");
        add_actions(part, part == actions, ret);
    }
    /* Nothing but to remember what becomes of the connection, or to let the agent know? */
    const char *done = strbuf_cstr(ret) + before, *rest = strstr(done, "from now on, ");
    rest = rest ? rest + strlen("from now on, ") : done;
    bool refused = str_has_prefix(rest, "meter(0)userspace(") && rest[strlen(rest) - 1] == ')' &&
                   strstr(rest, "controller(");
    if (!*rest || streq(rest, "drop") || refused) {
        ret->size -= strlen(rest);
        strbuf_adds(ret, "drop in ");
        add_last_flow(trace, ret);
        strbuf_adds(ret, refused ? ", refused" : "");
        return;
    }
    CLEANUP_STRBUF struct strbuf line = STRBUF_INIT;
    strbuf_add(&line, final, strcspn(final, "\n"));
    final = strbuf_cstr(&line);
    char v[5][64];
    strbuf_addf(ret, " eth %s>%s", field(final, "dl_src", v[0]), field(final, "dl_dst", v[1]));
    if (p->eth_type == MODEL_ETH_ARP) {
        strbuf_addf(ret, " arp %s %s/%s>%s/%s", field(final, "arp_op", v[0]),
                    field(final, "arp_spa", v[1]), field(final, "arp_sha", v[2]),
                    field(final, "arp_tpa", v[3]), field(final, "arp_tha", v[4]));
    } else {
        strbuf_addf(ret, " ip %s>%s", field(final, "nw_src", v[0]), field(final, "nw_dst", v[1]));
    }
}

bool switch_translates(const char *trace, const struct model_node *n, const struct model_verdict *v,
                       struct model_packet *p)
{
    const char *to = strstr(trace, ",nat(dst=");
    char text[32];
    uint64_t port = 0;
    if (!to) {
        return false;
    }
    to += strlen(",nat(dst=");
    snprintf(text, sizeof text, "%.*s", (int) strcspn(to, ":"), to);
    assert_int_equal(ip4_parse(text, &p->ip.dst), 0);
    to += strcspn(to, ":") + 1;
    snprintf(text, sizeof text, "%.*s", (int) strcspn(to, ")"), to);
    assert_int_equal(str_to_u64(text, UINT16_MAX, &port), 0);
    p->ip.dst_port = (uint16_t) port;
    p->ip.translated = true;
    return model_may_get(n, v, p->ip.dst, p->ip.dst_port);
}
