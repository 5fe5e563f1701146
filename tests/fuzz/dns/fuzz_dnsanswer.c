/* SPDX-License-Identifier: Apache-2.0 */
/* Queries to a zone that has something of everything: whatever comes, what is answered is a DNS message within its
 * size, to that question. */
#include "dns/respond.h"

#include "base/mem.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) ((x) ? (void) 0 : abort())
#define POD 0x0a800005u

static void add(struct dns_zone *z, const char *service, const char *slice)
{
    CLEANUP(json_free) struct json *v = NULL, *w = NULL;
    CLEANUP(sdn_service_free) struct sdn_service *s = NULL;
    CLEANUP(sdn_slice_unref) struct sdn_slice *p = NULL;
    CHECK(json_parse(service, strlen(service), &v, NULL) == 0);
    CHECK(sdn_service_parse(v, &s, NULL) == 0);
    if (slice) {
        CHECK(json_parse(slice, strlen(slice), &w, NULL) == 0);
        CHECK(sdn_slice_parse(w, &p, NULL) == 0);
        sdn_service_join(s, &p, 1);
    }
    dns_zone_set_service(z, s);
}

static struct dns_zone *make_zone(void)
{
    struct dns_zone *z = NULL;
    CHECK(dns_zone_new("c.l", &z, NULL) == 0);
    add(z,
        "{\"metadata\":{\"namespace\":\"a\",\"name\":\"w\"},\"spec\":{\"clusterIP\":\"172.30.0.1\","
        "\"ports\":["
        "{\"name\":\"h\",\"port\":80}]}}",
        "{\"addressType\":\"IPv4\",\"ports\":[{\"name\":\"h\",\"port\":80}],\"endpoints\":["
        "{\"addresses\":[\"10.128.0.5\"]}]}");
    add(z,
        "{\"metadata\":{\"namespace\":\"a\",\"name\":\"d\"},\"spec\":{\"clusterIP\":\"None\","
        "\"ports\":["
        "{\"name\":\"h\",\"port\":80}]}}",
        "{\"addressType\":\"IPv6\",\"ports\":[{\"name\":\"h\",\"port\":80}],\"endpoints\":["
        "{\"addresses\":[\"fd00::5\"],\"hostname\":\"p\"},{\"addresses\":[\"fd00::6\"]}]}");
    add(z,
        "{\"metadata\":{\"namespace\":\"a\",\"name\":\"x\"},\"spec\":{\"type\":\"ExternalName\","
        "\"externalName\":\"y.a.svc.c.l\"}}",
        NULL);
    add(z,
        "{\"metadata\":{\"namespace\":\"a\",\"name\":\"y\"},\"spec\":{\"type\":\"ExternalName\","
        "\"externalName\":\"example.com\"}}",
        NULL);
    dns_zone_set_complete(z);
    dns_zone_set_pod(z, POD, "a");
    return z;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct dns_responder r = {.forwards = true, .recurse_all = true};
    static struct dns_counters counters;
    if (!r.zone) {
        r.zone = make_zone();
        r.cache = dns_cache_new(1 << 16);
    }
    for (int i = 0; i < 3; i++) {
        size_t limit = i == 2 ? DNS_MESSAGE_MAX : DNS_UDP_EDNS, out = 0;
        CLEANUP_FREE uint8_t *buf = xmalloc(limit);
        struct dns_key key;
        struct dns_request rq = {.data = data,
                                 .size = size,
                                 .client = POD,
                                 .tcp = i == 2,
                                 .now_ms = 1000,
                                 .asked = i > 0};
        enum dns_reply reply = dns_respond(&r, &counters, &rq, buf, &out, &key);
        CHECK(reply == DNS_SEND || reply == DNS_SILENCE || !rq.asked);
        if (reply != DNS_SEND) {
            continue;
        }
        struct dns_reader reader;
        struct dns_record rec;
        int more;
        CHECK(out <= limit && dns_reader_init(&reader, buf, out) == 0);
        CHECK(reader.id == dns_get16(data) && reader.flags & DNS_QR);
        while ((more = dns_reader_next(&reader, &rec)) > 0) {
        }
        CHECK(more == 0 && reader.at == out);
    }
    return 0;
}
