/* SPDX-License-Identifier: Apache-2.0 */
#include "random_services.h"

#include "base/mem.h"
#include "sdn/host_ports.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static uint32_t below(const struct random_service_world *w, uint64_t n)
{
    return (uint32_t) (w->rng() % n);
}

static bool chance(const struct random_service_world *w, unsigned percent)
{
    return below(w, 100) < percent;
}

static struct json *parse(const struct strbuf *text)
{
    struct json *obj = NULL;
    struct err e = {0};
    if (json_parse(text->data, text->size, &obj, &e) < 0) {
        fail_msg("%s", e.text);
    }
    return obj;
}

/* Its ports, node ports and addresses are its number's; endpoints are anywhere. */
struct sdn_service *random_service(const struct random_service_world *w, unsigned number)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    struct sdn_service *s = NULL;
    struct err e = {0};
    uint32_t ip = w->net->service.len ? w->net->service.addr + 1 + number : 0xc0000201u + number;
    strbuf_addf(&text,
                "{\"metadata\":{\"namespace\":\"project\",\"name\":\"s%u\"%s},\"spec\":{"
                "\"type\":\"NodePort\",\"clusterIP\":\"%s\",%s%s\"ports\":[",
                number, chance(w, 30) ? ",\"annotations\":{\"" SDN_IDLED_AT "\":\"\"}" : "",
                IP4_TEXT(ip), chance(w, 30) ? "\"sessionAffinity\":\"ClientIP\"," : "",
                chance(w, 30) ? "\"internalTrafficPolicy\":\"Local\"," : "");
    for (unsigned i = 0; i < 3; i++) {
        static const char *const protocols[] = {"TCP", "UDP", "SCTP"};
        strbuf_addf(&text, "%s{\"name\":\"%c\",\"protocol\":\"%s\",\"port\":%u,\"nodePort\":%u}",
                    i ? "," : "", 'a' + i, protocols[i], RANDOM_SERVICE_PORT + number,
                    RANDOM_NODE_PORT + number);
    }
    strbuf_adds(&text, "]");
    if (chance(w, 50)) {
        /* One of nobody, one that may be a node's, one that must not be used. */
        strbuf_addf(&text, ",\"externalIPs\":[\"203.0.113.%u\",\"%s\",\"%s\"]", 1 + below(w, 3),
                    IP4_TEXT(w->net->host_ip + 1 + below(w, 3)),
                    IP4_TEXT(w->net->local.addr + below(w, 8)));
    }
    strbuf_adds(&text, "}}");
    CLEANUP(json_free) struct json *obj = parse(&text);
    assert_int_equal(sdn_service_parse(obj, &s, &e), 0);

    strbuf_reset(&text);
    strbuf_addf(&text,
                "{\"metadata\":{\"namespace\":\"project\",\"name\":\"s%u-1\",\"labels\":{"
                "\"" SDN_SERVICE_LABEL "\":\"s%u\"}},\"addressType\":\"IPv4\",\"ports\":[",
                number, number);
    for (unsigned i = 0; i < 3; i++) {
        static const char *const protocols[] = {"TCP", "UDP", "SCTP"};
        unsigned port = chance(w, 10) ? w->net->vxlan_port : 8080 + below(w, 3);
        strbuf_addf(&text, "%s{\"name\":\"%c\",\"protocol\":\"%s\",\"port\":%u}", i ? "," : "",
                    'a' + i, protocols[i], port);
    }
    strbuf_adds(&text, "],\"endpoints\":[");
    for (size_t n = chance(w, 30) ? 0 : below(w, 6), i = 0; i < n; i++) {
        uint32_t at = w->address(w->ctx);
        strbuf_addf(&text,
                    "%s{\"addresses\":[\"%s\"],\"nodeName\":\"%s\",\"conditions\":{\"ready\":%s}}",
                    i ? "," : "", IP4_TEXT(at ? at : 1u << 31), chance(w, 50) ? w->node : "other",
                    chance(w, 80) ? "true" : "false");
    }
    strbuf_adds(&text, "]}");
    CLEANUP(json_free) struct json *slice_obj = parse(&text);
    struct sdn_slice *slice = NULL;
    assert_int_equal(sdn_slice_parse(slice_obj, &slice, &e), 0);
    sdn_service_join(s, &slice, 1);
    sdn_slice_unref(slice);
    return s;
}

struct sdn_service *random_host_ports(const struct random_service_world *w, uint32_t address)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    CLEANUP_FREE struct sdn_host_port *list = NULL;
    for (unsigned i = below(w, 6); i > 0; i--) {
        static const char *const protocols[] = {"tcp", "udp", "sctp"};
        unsigned first = chance(w, 50) ? RANDOM_SERVICE_PORT : RANDOM_NODE_PORT;
        strbuf_addf(&text, "%s:%u=", protocols[below(w, 3)], first + below(w, RANDOM_SERVICES));
        strbuf_addf(&text, "%s:%u,", IP4_TEXT(w->address(w->ctx)),
                    chance(w, 10) ? w->net->vxlan_port : 8080 + below(w, 3));
    }
    size_t n = sdn_host_ports_parse(strbuf_cstr(&text), (struct ip4_prefix){0}, &list);
    return sdn_host_ports_service(address, list, n);
}
