/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "answers.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#define WEB                                                                                        \
    "{'metadata':{'namespace':'default','name':'web'},'spec':{'clusterIP':'172.30.0.10','ports':[" \
    "{'name':'http','port':80,'protocol':'TCP'},{'name':'dns','port':53,'protocol':'UDP'},"        \
    "{'port':99}]}}"
#define WEB_SLICE                                                                         \
    "{'addressType':'IPv4','ports':[{'name':'http','port':8080},{'name':'','port':99}],"  \
    "'endpoints':[{'addresses':['10.128.0.5']},{'addresses':['10.129.0.6'],'conditions':" \
    "{'ready':false}}]}"
#define DB                                                                                 \
    "{'metadata':{'namespace':'default','name':'db'},'spec':{'clusterIP':'None','ports':[" \
    "{'name':'https','port':443,'protocol':'TCP'}]}}"
#define DB_SLICE                                                                     \
    "{'addressType':'IPv4','ports':[{'name':'https','port':443}],'endpoints':["      \
    "{'addresses':['10.3.0.100'],'hostname':'My-Pet'},{'addresses':['10.3.0.101'],"  \
    "'hostname':'my-pet'},{'addresses':['10.3.0.102']},{'addresses':['10.3.0.103']," \
    "'conditions':{'ready':false}}]}"
#define SIX "{'metadata':{'namespace':'six','name':'six'},'spec':{'clusterIP':'None','ports':[]}}"
#define SIX_SLICE \
    "{'addressType':'IPv6','ports':[],'endpoints':[{'addresses':['fd00::5'],'hostname':'a'}]}"
#define EXTERNAL(name, target)                                                             \
    "{'metadata':{'namespace':'default','name':'" name "'},'spec':{'type':'ExternalName'," \
    "'externalName':'" target "'}}"

static char *quoted(const char *s)
{
    char *p = xstrdup(s);
    for (char *q = p; *q; q++) {
        *q = *q == '\'' ? '"' : *q;
    }
    return p;
}

static void set(struct dns_zone *z, const char *service, const char *slice)
{
    CLEANUP_FREE char *s = quoted(service), *t = slice ? quoted(slice) : NULL;
    set_service(z, s, t);
}

static struct dns_zone *new_zone(void)
{
    struct dns_zone *z = NULL;
    assert_int_equal(dns_zone_new("cluster.local", &z, NULL), 0);
    dns_zone_set_complete(z);
    set(z, WEB, WEB_SLICE);
    set(z, DB, DB_SLICE);
    set(z, SIX, SIX_SLICE);
    set(z, EXTERNAL("ext", "www.Example.com"), NULL);
    set(z, EXTERNAL("near", "web.default.svc.cluster.local"), NULL);
    set(z, EXTERNAL("far", "gone.default.svc.cluster.local."), NULL);
    set(z, EXTERNAL("ring", "ring2.default.svc.cluster.local"), NULL);
    set(z, EXTERNAL("ring2", "ring.default.svc.cluster.local"), NULL);
    set(z, EXTERNAL("bad", "a..b"), NULL);
    set(z, "{'metadata':{'namespace':'default','name':'empty'},'spec':{'clusterIP':'None'}}", NULL);
    set(z, "{'metadata':{'namespace':'default','name':'pending'},'spec':{}}", NULL);
    set(z,
        "{'metadata':{'namespace':'default','name':'kubernetes'},'spec':{'clusterIP':'172.30.0.1',"
        "'ports':[{'name':'https','port':443}]}}",
        NULL);
    set(z, "{'metadata':{'namespace':'other','name':'api'},'spec':{'clusterIP':'172.30.0.20'}}",
        NULL);
    return z;
}

#define NX "NXDOMAIN aa | auth cluster.local. SOA 5"
#define NODATA "NOERROR aa | auth cluster.local. SOA 5"
#define D ".default.svc.cluster.local."

struct row {
    const char *name;
    uint16_t type;
    const char *answer;
};

static void check_rows(const struct dns_zone *z, uint32_t client, const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        CLEANUP_FREE char *got = ask(z, client, rows[i].name, rows[i].type);
        if (!streq(got, rows[i].answer)) {
            print_error("%s %u:\n  is     %s\n  not    %s\n", rows[i].name, rows[i].type, got,
                        rows[i].answer);
        }
        assert_string_equal(got, rows[i].answer);
    }
}

/* Section by section of the Kubernetes DNS specification. */
static void the_specification_is_kept(void **state)
{
    CLEANUP(dns_zone_free) struct dns_zone *z = new_zone();
    static const struct row rows[] = {
        /* 2.2 */
        {"dns-version.cluster.local", DNS_TXT, "NOERROR aa | dns-version.cluster.local. TXT 1.1.0"},
        /* 2.3.1 */
        {"kubernetes" D, DNS_A, "NOERROR aa | kubernetes" D " A 172.30.0.1"},
        {"KuberNetes" D, DNS_A, "NOERROR aa | kubernetes" D " A 172.30.0.1"},
        {"kubernetes" D, DNS_AAAA, NODATA},
        {"kubernetes" D, DNS_TXT, NODATA},
        {"none" D, DNS_A, NX},
        {"none" D, DNS_AAAA, NX},
        /* 2.3.2 */
        {"_https._tcp.kubernetes" D, DNS_SRV,
         "NOERROR aa | _https._tcp.kubernetes" D " SRV 10 10 443 kubernetes" D " | add kubernetes" D
         " A 172.30.0.1"},
        {"_dns._udp.web" D, DNS_SRV,
         "NOERROR aa | _dns._udp.web" D " SRV 10 10 53 web" D " | add web" D " A 172.30.0.10"},
        {"_dns._tcp.web" D, DNS_SRV, NX},
        {"_none._tcp.web" D, DNS_SRV, NX},
        {"_tcp.web" D, DNS_SRV, NODATA},
        {"_sctp.web" D, DNS_SRV, NX},
        {"_http._tc.web" D, DNS_SRV, NX},
        {"_htt._tcp.web" D, DNS_SRV, NX},
        {"_https._tcp.web" D, DNS_SRV, NX},
        /* 2.3.3 */
        {"1.0.30.172.in-addr.arpa", DNS_PTR,
         "NOERROR aa | 1.0.30.172.in-addr.arpa. PTR kubernetes" D},
        {"1.0.30.172.in-addr.arpa", DNS_A, NODATA},
        /* 2.4.1 */
        {"db" D, DNS_A,
         "NOERROR aa | db" D " A 10.3.0.100, db" D " A 10.3.0.101, db" D " A 10.3.0.102"},
        {"db" D, DNS_AAAA, NODATA},
        {"empty" D, DNS_A, NX},
        {"my-pet.db" D, DNS_A,
         "NOERROR aa | my-pet.db" D " A 10.3.0.100, my-pet.db" D " A 10.3.0.101"},
        {"10-3-0-102.db" D, DNS_A, "NOERROR aa | 10-3-0-102.db" D " A 10.3.0.102"},
        {"10-3-0-103.db" D, DNS_A, NX},
        {"other.db" D, DNS_A, NX},
        {"six.six.svc.cluster.local", DNS_AAAA,
         "NOERROR aa | six.six.svc.cluster.local. AAAA fd00::5"},
        {"six.six.svc.cluster.local", DNS_A, NODATA},
        {"a.six.six.svc.cluster.local", DNS_AAAA,
         "NOERROR aa | a.six.six.svc.cluster.local. AAAA fd00::5"},
        /* 2.4.2 */
        {"_https._tcp.db" D, DNS_SRV,
         "NOERROR aa | _https._tcp.db" D " SRV 10 10 443 10-3-0-102.db" D ", _https._tcp.db" D
         " SRV 10 10 443 my-pet.db" D ", _https._tcp.db" D " SRV 10 10 443 my-pet.db" D
         " | add 10-3-0-102.db" D " A 10.3.0.102, my-pet.db" D " A 10.3.0.100, my-pet.db" D
         " A 10.3.0.101"},
        /* 2.4.3 */
        {"100.0.3.10.in-addr.arpa", DNS_PTR,
         "NOERROR aa | 100.0.3.10.in-addr.arpa. PTR my-pet.db" D},
        {"102.0.3.10.in-addr.arpa", DNS_PTR,
         "NOERROR aa | 102.0.3.10.in-addr.arpa. PTR 10-3-0-102.db" D},
        {"5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa", DNS_PTR,
         "NOERROR aa | 5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa. "
         "PTR "
         "a.six.six.svc.cluster.local."},
        /* 2.5 */
        {"ext" D, DNS_A, "NOERROR aa | ext" D " CNAME www.example.com. elsewhere www.example.com."},
        {"ext" D, DNS_CNAME, "NOERROR aa | ext" D " CNAME www.example.com."},
        {"near" D, DNS_A, "NOERROR aa | near" D " CNAME web" D ", web" D " A 172.30.0.10"},
        {"near" D, DNS_AAAA, "NOERROR aa | near" D " CNAME web" D " | auth cluster.local. SOA 5"},
        {"far" D, DNS_A, "NXDOMAIN aa | far" D " CNAME gone" D " | auth cluster.local. SOA 5"},
        {"bad" D, DNS_A, NODATA},
        /* 2.6 */
        {"10-128-0-5.default.pod.cluster.local", DNS_A,
         "NOERROR aa | 10-128-0-5.default.pod.cluster.local. A 10.128.0.5"},
        {"10-128-0-256.default.pod.cluster.local", DNS_A, NX},
        /* What is between. */
        {"cluster.local", DNS_A, NODATA},
        {"svc.cluster.local", DNS_A, NODATA},
        {"default.svc.cluster.local", DNS_A, NODATA},
        {"none.svc.cluster.local", DNS_A, NX},
        {"pending" D, DNS_A, NODATA},
        {"cluster.local", DNS_NS, "NOERROR aa | cluster.local. NS ns.dns.cluster.local."},
        {"cluster.local", DNS_SOA, "NOERROR aa | cluster.local. SOA 5"},
        {"xcluster.local", DNS_A, "NOERROR elsewhere xcluster.local."},
        {"local", DNS_A, "NOERROR elsewhere local."},
        {"9.9.9.9.in-addr.arpa", DNS_PTR, "NOERROR elsewhere 9.9.9.9.in-addr.arpa."},
    };
    check_rows(z, 0, rows, ARRAY_SIZE(rows));
}

/* Its name has the address where it listens, once it does. */
static void the_server_has_a_name(void **state)
{
    CLEANUP(dns_zone_free) struct dns_zone *z = new_zone();
    static const struct row before[] = {{"ns.dns.cluster.local", DNS_A, NODATA},
                                        {"ns.dns.cluster.local", DNS_AAAA, NODATA}};
    static const struct row after[] = {
        {"ns.a.dns.cluster.local", DNS_A, NX},
        {"a.dns.cluster.local", DNS_A, NX},
        {"ns.dns.cluster.local", DNS_A, "NOERROR aa | ns.dns.cluster.local. A 172.30.0.53"},
        {"ns.dns.cluster.local", DNS_AAAA, NODATA},
        {"cluster.local", DNS_NS,
         "NOERROR aa | cluster.local. NS ns.dns.cluster.local. | add ns.dns.cluster.local. A "
         "172.30.0.53"}};
    check_rows(z, 0, before, ARRAY_SIZE(before));
    dns_zone_set_server(z, 0xac1e0035);
    check_rows(z, 0, after, ARRAY_SIZE(after));
}

/* What is behind an address of a service has no name backwards. */
static void endpoints_of_a_service_with_an_address_have_no_names(void **state)
{
    CLEANUP(dns_zone_free) struct dns_zone *z = new_zone();
    static const struct row rows[] = {
        {"5.0.128.10.in-addr.arpa", DNS_PTR, "NOERROR elsewhere 5.0.128.10.in-addr.arpa."}};
    check_rows(z, 0, rows, ARRAY_SIZE(rows));
}

/* Of two services with the same endpoint either may go. */
static void an_address_keeps_the_names_of_those_that_stay(void **state)
{
#define ONE(name)                                                                                  \
    "{'metadata':{'namespace':'default','name':'" name "'},'spec':{'clusterIP':'None','ports':[]}" \
    "}"
    static const char slice[] =
        "{'addressType':'IPv4','ports':[],'endpoints':[{'addresses':['10.5.0.1'],'hostname':'x'}]}";
    static const char *const names[] = {"h1", "h2"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        CLEANUP(dns_zone_free) struct dns_zone *z = new_zone();
        set(z, ONE("h1"), slice);
        set(z, ONE("h2"), slice);
        dns_zone_remove_service(z, "default", names[i]);
        const struct row row = {"1.0.5.10.in-addr.arpa", DNS_PTR,
                                i ? "NOERROR aa | 1.0.5.10.in-addr.arpa. PTR x.h1" D
                                  : "NOERROR aa | 1.0.5.10.in-addr.arpa. PTR x.h2" D};
        check_rows(z, 0, &row, 1);
    }
}

/* A label has 63 letters. */
static void the_longest_name_of_a_service_is_one(void **state)
{
    CLEANUP(dns_zone_free) struct dns_zone *z = new_zone();
    char name[65] = {0};
    memset(name, 'a', 63);
    CLEANUP_FREE char *text = xasprintf(
        "{'metadata':{'namespace':'default','name':'%s'},'spec':{'clusterIP':'172.30.0.9'}}", name);
    CLEANUP_FREE char *ask_for = xasprintf("%s" D, name);
    CLEANUP_FREE char *want = xasprintf("NOERROR aa | %s" D " A 172.30.0.9", name);
    set(z, text, NULL);
    check_rows(z, 0, &(struct row){ask_for, DNS_A, want}, 1);
    CLEANUP_FREE char *slice =
        xasprintf("{'addressType':'IPv4','ports':[],'endpoints':[{'addresses':['10.6.0.1'],"
                  "'hostname':'%s'}]}",
                  name);
    set(z, "{'metadata':{'namespace':'default','name':'h'},'spec':{'clusterIP':'None'}}", slice);
    CLEANUP_FREE char *host = xasprintf("%s.h" D, name);
    CLEANUP_FREE char *address = xasprintf("NOERROR aa | %s.h" D " A 10.6.0.1", name);
    check_rows(z, 0, &(struct row){host, DNS_A, address}, 1);
    size_t before = dns_zone_count(z);
    name[63] = 'a';
    CLEANUP_FREE char *longer = xasprintf(
        "{'metadata':{'namespace':'default','name':'%s'},'spec':{'clusterIP':'172.30.0.9'}}", name);
    set(z, longer, NULL);
    assert_int_equal(dns_zone_count(z), before);
}

static void names_of_openshift_are_answered(void **state)
{
    CLEANUP(dns_zone_free) struct dns_zone *z = new_zone();
    static const struct row rows[] = {
        {"web.default.cluster.local", DNS_A,
         "NOERROR aa | web.default.cluster.local. A 172.30.0.10"},
        {"default.cluster.local", DNS_A, NODATA},
        {"none.cluster.local", DNS_A, NX},
        {"anything.below.web" D, DNS_A, "NOERROR aa | anything.below.web" D " A 172.30.0.10"},
        {"anything.web.default.cluster.local", DNS_A,
         "NOERROR aa | anything.web.default.cluster.local. A 172.30.0.10"},
        {"anything.web" D, DNS_AAAA, NODATA},
        {"openshift" D, DNS_A, "NOERROR aa | openshift" D " A 172.30.0.1"},
        {"web.default.endpoints.cluster.local", DNS_A,
         "NOERROR aa | web.default.endpoints.cluster.local. A 10.128.0.5"},
        {"10-128-0-5.web.default.endpoints.cluster.local", DNS_A,
         "NOERROR aa | 10-128-0-5.web.default.endpoints.cluster.local. A 10.128.0.5"},
        {"my-pet.db.default.endpoints.cluster.local", DNS_A,
         "NOERROR aa | my-pet.db.default.endpoints.cluster.local. A 10.3.0.100, "
         "my-pet.db.default.endpoints.cluster.local. A 10.3.0.101"},
        /* FNV-1a of "10.3.0.102" */
        {"540eb87a.db" D, DNS_A, "NOERROR aa | 540eb87a.db" D " A 10.3.0.102"},
        {"_http._tcp.web.default.endpoints.cluster.local", DNS_SRV,
         "NOERROR aa | _http._tcp.web.default.endpoints.cluster.local. SRV 10 10 8080 "
         "10-128-0-5.web.default.endpoints.cluster.local. | add "
         "10-128-0-5.web.default.endpoints.cluster.local. A 10.128.0.5"},
        {"kubernetes.default.endpoints.cluster.local", DNS_A, NX},
    };
    check_rows(z, 0, rows, ARRAY_SIZE(rows));
}

static void what_is_not_known_yet_is_not_denied(void **state)
{
    CLEANUP(dns_zone_free) struct dns_zone *z = NULL;
    assert_int_equal(dns_zone_new("cluster.local", &z, NULL), 0);
    set(z, WEB, WEB_SLICE);
    static const struct row before[] = {
        {"web" D, DNS_A, "NOERROR aa | web" D " A 172.30.0.10"},
        {"db" D, DNS_A, "SERVFAIL"},
    };
    check_rows(z, 0, before, ARRAY_SIZE(before));
    dns_zone_set_complete(z);
    static const struct row after[] = {{"db" D, DNS_A, NX}};
    check_rows(z, 0, after, ARRAY_SIZE(after));
}

static void a_circle_of_names_ends(void **state)
{
    CLEANUP(dns_zone_free) struct dns_zone *z = new_zone();
    CLEANUP_FREE char *got = ask(z, 0, "ring.default.svc.cluster.local", DNS_A);
    assert_true(str_has_prefix(got, "SERVFAIL"));
}

static void own_networks_are_not_asked_for_elsewhere(void **state)
{
    CLEANUP(dns_zone_free) struct dns_zone *z = new_zone();
    struct ip4_prefix nets[2];
    prefix_parse("10.128.0.0/14", &nets[0], NULL);
    prefix_parse("172.30.0.0/16", &nets[1], NULL);
    dns_zone_set_networks(z, nets, 2);
    static const struct row rows[] = {
        {"9.0.128.10.in-addr.arpa", DNS_PTR, NX},
        {"9.0.30.172.in-addr.arpa", DNS_PTR, NX},
        {"10-128-0-5.default.pod.cluster.local", DNS_A,
         "NOERROR aa | 10-128-0-5.default.pod.cluster.local. A 10.128.0.5"},
        {"8-8-8-8.default.pod.cluster.local", DNS_A, NX},
    };
    check_rows(z, 0, rows, ARRAY_SIZE(rows));
}

#define POD 0x0a800005u

static void the_search_of_a_pod_ends_at_its_first_question(void **state)
{
    CLEANUP(dns_zone_free) struct dns_zone *z = new_zone();
    dns_zone_set_pod(z, POD, "default");
    set(z, "{'metadata':{'namespace':'default','name':'other'},'spec':{'clusterIP':'172.30.0.30'}}",
        NULL);
    static const struct row rows[] = {
        {"www.example.org" D, DNS_A,
         "NOERROR aa | www.example.org" D " CNAME www.example.org. searched elsewhere "
         "www.example.org."},
        {"api.other.svc" D, DNS_A,
         "NOERROR aa | api.other.svc" D " CNAME api.other.svc.cluster.local., "
         "api.other.svc.cluster.local. A 172.30.0.20"},
        {"api.other.svc.cluster.local" D, DNS_A,
         "NOERROR aa | api.other.svc.cluster.local" D " CNAME api.other.svc.cluster.local., "
         "api.other.svc.cluster.local. A 172.30.0.20"},
        {"none.other.svc.cluster.local" D, DNS_A, NX},
        /* A service with its namespace is meant, also where a service of that name
         * would take all below it ... */
        {"api.other" D, DNS_A,
         "NOERROR aa | api.other" D " CNAME api.other.svc.cluster.local., "
         "api.other.svc.cluster.local. A 172.30.0.20"},
        /* ... as it does here. */
        {"none.other" D, DNS_A, "NOERROR aa | none.other" D " A 172.30.0.30"},
        {"none" D, DNS_A, NX},
        {"www.example.org.other.svc.cluster.local", DNS_A, NX},
    };
    check_rows(z, POD, rows, ARRAY_SIZE(rows));
    CLEANUP_FREE char *stranger = ask(z, POD + 1, "www.example.org" D, DNS_A);
    assert_string_equal(stranger, NX);
    dns_zone_set_pod(z, POD, NULL);
    CLEANUP_FREE char *gone = ask(z, POD, "www.example.org" D, DNS_A);
    assert_string_equal(gone, NX);
}

/* ---- isolated projects ---- */

#define RED 0x0a800005u
#define BLUE 0x0a800006u
#define ADMIN 0x0a800007u
#define STRANGER 0x0a800008u

static struct dns_zone *new_isolated_zone(void)
{
    static const struct {
        const char *ns;
        uint32_t vnid;
    } projects[] = {{"red", 10}, {"blue", 11}, {"default", 0}};
    struct dns_zone *z = NULL;
    assert_int_equal(dns_zone_new("cluster.local", &z, NULL), 0);
    struct ip4_prefix nets[2];
    prefix_parse("10.128.0.0/14", &nets[0], NULL);
    prefix_parse("172.30.0.0/16", &nets[1], NULL);
    dns_zone_set_networks(z, nets, 2);
    for (size_t i = 0; i < ARRAY_SIZE(projects); i++) {
        dns_zone_set_project(z, projects[i].ns, &(struct sdn_vnids){.id = projects[i].vnid});
    }
    set(z,
        "{'metadata':{'namespace':'red','name':'web'},'spec':{'clusterIP':'172.30.0.10','ports'"
        ":[{'name':'http','protocol':'TCP','port':80}]}}",
        NULL);
    set(z,
        "{'metadata':{'namespace':'blue','name':'web'},'spec':{'clusterIP':'172.30.0.20','ports'"
        ":[{'name':'http','protocol':'TCP','port':80}]}}",
        "{'metadata':{'namespace':'blue','labels':{'kubernetes.io/"
        "service-name':'web'}},'addressType'"
        ":'IPv4','ports':[{'name':'http','protocol':'TCP','port':80}],'endpoints':[{'addresses':["
        "'10.128.0.9'],'hostname':'one'}]}");
    set(z,
        "{'metadata':{'namespace':'blue','name':'set'},'spec':{'clusterIP':'None','ports':[{'name'"
        ":'http','protocol':'TCP','port':80}]}}",
        "{'metadata':{'namespace':'blue','labels':{'kubernetes.io/"
        "service-name':'set'}},'addressType'"
        ":'IPv4','ports':[{'name':'http','protocol':'TCP','port':80}],'endpoints':[{'addresses':["
        "'10.128.0.9'],'hostname':'one'}]}");
    set(z,
        "{'metadata':{'namespace':'default','name':'kubernetes'},'spec':{'clusterIP':"
        "'172.30.0.1','ports':[{'name':'https','protocol':'TCP','port':443}]}}",
        NULL);
    set(z,
        "{'metadata':{'namespace':'red','name':'alias'},'spec':{'type':'ExternalName',"
        "'externalName':'web.blue.svc.cluster.local'}}",
        NULL);
    dns_zone_set_pod(z, RED, "red");
    dns_zone_set_pod(z, BLUE, "blue");
    dns_zone_set_pod(z, ADMIN, "default");
    dns_zone_set_isolated(z, true);
    dns_zone_set_complete(z);
    dns_zone_set_projects_complete(z);
    return z;
}

#define DOMAIN ".cluster.local"
#define IS(type) "NOERROR aa" type

static void names_of_other_projects_do_not_exist_where_they_are_isolated(void **state)
{
    static const struct {
        const char *name;
        uint16_t type;
        const char *red, *blue, *admin, *stranger; /* Begin of the answer. */
    } rows[] = {
        {"web.red.svc" DOMAIN, DNS_A, IS(" |"), NX, IS(" |"), NX},
        {"web.blue.svc" DOMAIN, DNS_A, NX, IS(" |"), IS(" |"), NX},
        {"web.blue" DOMAIN, DNS_A, NX, IS(" |"), IS(" |"), NX},
        {"below.web.blue.svc" DOMAIN, DNS_A, NX, IS(" |"), IS(" |"), NX},
        {"web.blue.svc" DOMAIN, DNS_AAAA, NX, IS(""), IS(""), NX},
        {"web.blue.svc" DOMAIN, DNS_SRV, NX, IS(" |"), IS(" |"), NX},
        {"_http._tcp.web.blue.svc" DOMAIN, DNS_SRV, NX, IS(" |"), IS(" |"), NX},
        {"web.blue.endpoints" DOMAIN, DNS_A, NX, IS(" |"), IS(" |"), NX},
        {"one.web.blue.endpoints" DOMAIN, DNS_A, NX, IS(" |"), IS(" |"), NX},
        {"set.blue.svc" DOMAIN, DNS_A, NX, IS(" |"), IS(" |"), NX},
        {"one.set.blue.svc" DOMAIN, DNS_A, NX, IS(" |"), IS(" |"), NX},
        {"_http._tcp.set.blue.svc" DOMAIN, DNS_SRV, NX, IS(" |"), IS(" |"), NX},
        {"blue.svc" DOMAIN, DNS_A, NX, IS(""), IS(""), NX},
        {"blue" DOMAIN, DNS_A, NX, IS(""), IS(""), NX},
        {"blue.endpoints" DOMAIN, DNS_A, NX, IS(""), IS(""), NX},
        {"blue.pod" DOMAIN, DNS_A, NX, IS(""), IS(""), NX},
        {"10-128-0-9.blue.pod" DOMAIN, DNS_A, NX, IS(" |"), IS(" |"), NX},
        {"20.0.30.172.in-addr.arpa", DNS_PTR, NX, IS(" |"), IS(" |"), NX},
        {"9.0.128.10.in-addr.arpa", DNS_PTR, NX, IS(" |"), IS(" |"), NX},
        /* What is global is everybody's. */
        {"kubernetes.default.svc" DOMAIN, DNS_A, IS(" |"), IS(" |"), IS(" |"), IS(" |")},
        {"openshift.default.svc" DOMAIN, DNS_A, IS(" |"), IS(" |"), IS(" |"), IS(" |")},
        {"1.0.30.172.in-addr.arpa", DNS_PTR, IS(" |"), IS(" |"), IS(" |"), IS(" |")},
        {"dns-version" DOMAIN, DNS_TXT, IS(" |"), IS(" |"), IS(" |"), IS(" |")},
        /* The search of a pod's resolver finds no more: other name servers are asked,
         * as for any name. */
        {"web.blue.svc.red.svc" DOMAIN, DNS_A,
         "NOERROR aa | web.blue.svc.red.svc.cluster.local. CNAME web.blue.svc. searched", NX, NX,
         NX},
        {"web.blue.red.svc" DOMAIN, DNS_A,
         "NOERROR aa | web.blue.red.svc.cluster.local. CNAME web.blue. searched", NX, NX, NX},
        {"web.red.blue.svc" DOMAIN, DNS_A, NX,
         "NOERROR aa | web.red.blue.svc.cluster.local. CNAME web.red. searched", NX, NX},
        {"web.red.default.svc" DOMAIN, DNS_A, NX, NX, IS(" |"), NX},
        /* Nor does an alias of one's own. */
        {"alias.red.svc" DOMAIN, DNS_A,
         "NXDOMAIN aa | alias.red.svc.cluster.local. CNAME web.blue.svc.cluster.local.", NX,
         IS(" | alias.red.svc.cluster.local. CNAME web.blue.svc.cluster.local., web.blue"), NX},
        {"nothing.blue.svc" DOMAIN, DNS_A, NX, NX, NX, NX},
    };
    static const uint32_t clients[] = {RED, BLUE, ADMIN, STRANGER, 0};
    CLEANUP(dns_zone_free) struct dns_zone *z = new_isolated_zone();
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        for (size_t k = 0; k < ARRAY_SIZE(clients); k++) {
            const char *const want[] = {rows[i].red, rows[i].blue, rows[i].admin, rows[i].stranger,
                                        rows[i].stranger};
            CLEANUP_FREE char *got = ask(z, clients[k], rows[i].name, rows[i].type);
            if (!str_has_prefix(got, want[k]) || (streq(want[k], IS("")) && strchr(got, '1'))) {
                fail_msg("%s for client %zu: %s, not %s", rows[i].name, k, got, want[k]);
            }
        }
    }
    dns_zone_set_isolated(z, false);
    CLEANUP_FREE char *open = ask(z, RED, "web.blue.svc" DOMAIN, DNS_A);
    assert_string_equal(open, "NOERROR aa | web.blue.svc.cluster.local. A 172.30.0.20");
}

static void names_follow_the_vnids_of_projects(void **state)
{
    static const char name[] = "web.blue.svc" DOMAIN;
    static const struct {
        const char *what;
        bool has_red, has_blue;
        struct sdn_vnids red, blue;
        bool seen;
    } rows[] = {
        {"apart", true, true, {.id = 10}, {.id = 11}, false},
        {"joined", true, true, {.id = 11}, {.id = 11}, true},
        {"global", true, true, {.id = 10}, {.id = 0}, true},
        {"from a global one", true, true, {.id = 0}, {.id = 11}, true},
        {"moving there", true, true, {.id = 10, .moving = true, .also = 11}, {.id = 11}, true},
        {"moving here", true, true, {.id = 10}, {.id = 11, .moving = true, .also = 10}, true},
        {"moving elsewhere", true, true, {.id = 10, .moving = true, .also = 12}, {.id = 11}, false},
        {"kept apart", true, true, {.id = 1}, {.id = 1}, false},
        {"without a network", true, false, {.id = 10}, {.id = 0}, false},
        {"from one without", false, true, {.id = 0}, {.id = 11}, false},
        {"both without", false, false, {.id = 0}, {.id = 0}, false},
    };
    CLEANUP(dns_zone_free) struct dns_zone *z = new_isolated_zone();
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        dns_zone_set_project(z, "red", rows[i].has_red ? &rows[i].red : NULL);
        dns_zone_set_project(z, "blue", rows[i].has_blue ? &rows[i].blue : NULL);
        CLEANUP_FREE char *got = ask(z, RED, name, DNS_A);
        if (str_has_prefix(got, "NOERROR") != rows[i].seen) {
            fail_msg("%s: %s", rows[i].what, got);
        }
        CLEANUP_FREE char *own = ask(z, BLUE, name, DNS_A);
        assert_string_equal(own, "NOERROR aa | web.blue.svc.cluster.local. A 172.30.0.20");
    }
    /* A pod that is gone is a stranger. */
    dns_zone_set_project(z, "red", &(struct sdn_vnids){.id = 11});
    dns_zone_set_project(z, "blue", &(struct sdn_vnids){.id = 11});
    dns_zone_set_pod(z, RED, NULL);
    CLEANUP_FREE char *gone = ask(z, RED, name, DNS_A);
    assert_string_equal(gone, NX);
}

static void a_name_is_not_denied_before_all_projects_are_known(void **state)
{
    struct dns_zone *z = NULL;
    assert_int_equal(dns_zone_new("cluster.local", &z, NULL), 0);
    set(z, "{'metadata':{'namespace':'blue','name':'web'},'spec':{'clusterIP':'172.30.0.20'}}",
        NULL);
    dns_zone_set_pod(z, RED, "red");
    dns_zone_set_isolated(z, true);
    dns_zone_set_complete(z);
    CLEANUP_FREE char *early = ask(z, RED, "web.blue.svc" DOMAIN, DNS_A);
    assert_string_equal(early, "SERVFAIL");
    dns_zone_set_projects_complete(z);
    CLEANUP_FREE char *late = ask(z, RED, "web.blue.svc" DOMAIN, DNS_A);
    assert_string_equal(late, NX);
    dns_zone_free(z);
}

static void changes_are_answered_at_once(void **state)
{
    CLEANUP(dns_zone_free) struct dns_zone *z = new_zone();
    set(z, "{'metadata':{'namespace':'default','name':'web'},'spec':{'clusterIP':'172.30.0.11'}}",
        NULL);
    static const struct row moved[] = {
        {"web" D, DNS_A, "NOERROR aa | web" D " A 172.30.0.11"},
        {"10.0.30.172.in-addr.arpa", DNS_PTR, "NOERROR elsewhere 10.0.30.172.in-addr.arpa."},
        {"11.0.30.172.in-addr.arpa", DNS_PTR, "NOERROR aa | 11.0.30.172.in-addr.arpa. PTR web" D},
    };
    check_rows(z, 0, moved, ARRAY_SIZE(moved));
    dns_zone_remove_service(z, "default", "web");
    dns_zone_remove_service(z, "six", "six");
    dns_zone_remove_service(z, "six", "six");
    static const struct row gone[] = {
        {"web" D, DNS_A, NX},
        {"six.svc.cluster.local", DNS_A, NX},
        {"11.0.30.172.in-addr.arpa", DNS_PTR, "NOERROR elsewhere 11.0.30.172.in-addr.arpa."},
    };
    check_rows(z, 0, gone, ARRAY_SIZE(gone));
}

/* Endpoints with and without names, and ports that only some of them have: what is kept
 * in short is answered in full. */
static void ports_have_the_endpoints_that_they_have(void **state)
{
    CLEANUP(dns_zone_free) struct dns_zone *z = new_zone();
    static const char service[] =
        "{'metadata':{'namespace':'default','name':'two'},'spec':{'clusterIP':'None','ports':["
        "{'name':'a','port':1},{'name':'b','port':2},{'name':'c','port':3}]}}";
    CLEANUP_FREE char *text = quoted(service);
    static const char *const slices[] = {
        "{'addressType':'IPv4','ports':[{'name':'a','port':1001},{'name':'b','port':1002}],"
        "'endpoints':[{'addresses':['10.4.0.1']},{'addresses':['10.4.0.2'],'conditions':{'ready':"
        "false}}]}",
        "{'addressType':'IPv4','ports':[{'name':'a','port':1001},{'name':'c','port':1003}],"
        "'endpoints':[{'addresses':['10.4.0.3']}]}",
    };
    struct json *obj = NULL;
    struct sdn_service *s = NULL;
    struct sdn_slice *joined[ARRAY_SIZE(slices)];
    assert_int_equal(json_parse(text, strlen(text), &obj, NULL), 0);
    assert_int_equal(sdn_service_parse(obj, &s, NULL), 0);
    json_free(obj);
    for (size_t i = 0; i < ARRAY_SIZE(slices); i++) {
        CLEANUP_FREE char *slice = quoted(slices[i]);
        assert_int_equal(json_parse(slice, strlen(slice), &obj, NULL), 0);
        assert_int_equal(sdn_slice_parse(obj, &joined[i], NULL), 0);
        json_free(obj);
    }
    sdn_service_join(s, joined, ARRAY_SIZE(joined));
    dns_zone_set_service(z, s);
    sdn_service_free(s);
    for (size_t i = 0; i < ARRAY_SIZE(slices); i++) {
        sdn_slice_unref(joined[i]);
    }
    static const struct row rows[] = {
        {"two" D, DNS_A, "NOERROR aa | two" D " A 10.4.0.1, two" D " A 10.4.0.3"},
        {"_a._tcp.two" D, DNS_SRV,
         "NOERROR aa | _a._tcp.two" D " SRV 10 10 1001 10-4-0-1.two" D ", _a._tcp.two" D
         " SRV 10 10 1001 10-4-0-3.two" D " | add 10-4-0-1.two" D " A 10.4.0.1, 10-4-0-3.two" D
         " A 10.4.0.3"},
        {"_b._tcp.two" D, DNS_SRV,
         "NOERROR aa | _b._tcp.two" D " SRV 10 10 1002 10-4-0-1.two" D " | add 10-4-0-1.two" D
         " A 10.4.0.1"},
        {"_c._tcp.two" D, DNS_SRV,
         "NOERROR aa | _c._tcp.two" D " SRV 10 10 1003 10-4-0-3.two" D " | add 10-4-0-3.two" D
         " A 10.4.0.3"},
        {"10-4-0-3.two" D, DNS_A, "NOERROR aa | 10-4-0-3.two" D " A 10.4.0.3"},
        {"10-4-0-2.two" D, DNS_A, NX},
        {"3.0.4.10.in-addr.arpa", DNS_PTR,
         "NOERROR aa | 3.0.4.10.in-addr.arpa. PTR 10-4-0-3.two" D},
    };
    check_rows(z, 0, rows, ARRAY_SIZE(rows));
}

static void the_reverse_name_stays_while_endpoints_change(void **state)
{
    CLEANUP(dns_zone_free) struct dns_zone *z = new_zone();
    static const struct row own[] = {
        {"10.0.30.172.in-addr.arpa", DNS_PTR, "NOERROR aa | 10.0.30.172.in-addr.arpa. PTR web" D},
    };
    set(z, WEB, NULL);
    check_rows(z, 0, own, ARRAY_SIZE(own));
    set(z, WEB, WEB_SLICE);
    check_rows(z, 0, own, ARRAY_SIZE(own));
    dns_zone_remove_service(z, "default", "web");
    static const struct row gone[] = {
        {"10.0.30.172.in-addr.arpa", DNS_PTR, "NOERROR elsewhere 10.0.30.172.in-addr.arpa."},
    };
    check_rows(z, 0, gone, ARRAY_SIZE(gone));
}

static void addresses_take_turns(void **state)
{
    CLEANUP(dns_zone_free) struct dns_zone *z = new_zone();
    uint8_t query[300], buf[DNS_UDP_EDNS];
    struct dns_query q;
    size_t size = make_query("db" D, DNS_A, false, query, sizeof query);
    assert_int_equal(dns_query_parse(query, size, &q), 0);
    unsigned first[3] = {0};
    for (unsigned turn = UINT32_MAX - 2; turn != 3; turn++) {
        struct dns_writer w;
        struct dns_lookup found;
        dns_writer_answer(&w, &q, query + DNS_HEADER, buf, DNS_UDP_PLAIN);
        dns_zone_answer(z, 0, turn, &w, &found);
        assert_int_equal(w.counts[DNS_ANSWER], 3);
        uint8_t last = buf[DNS_HEADER + q.question_size + 15];
        assert_in_range(last, 100, 102);
        first[last - 100]++;
    }
    assert_int_equal(first[0], 2);
    assert_int_equal(first[1], 2);
    assert_int_equal(first[2], 2);
}

static void an_answer_that_does_not_fit_says_so(void **state)
{
    CLEANUP(dns_zone_free) struct dns_zone *z = NULL;
    assert_int_equal(dns_zone_new("cluster.local", &z, NULL), 0);
    CLEANUP_STRBUF struct strbuf slice = STRBUF_INIT;
    strbuf_adds(&slice, "{'addressType':'IPv4','ports':[],'endpoints':[");
    for (unsigned i = 0; i < 200; i++) {
        strbuf_addf(&slice, "%s{'addresses':['10.128.1.%u']}", i ? "," : "", i + 1);
    }
    strbuf_adds(&slice, "]}");
    set(z, "{'metadata':{'namespace':'a','name':'many'},'spec':{'clusterIP':'None'}}", slice.data);
    uint8_t query[300], buf[DNS_MESSAGE_MAX];
    struct dns_query q;
    size_t size = make_query("many.a.svc.cluster.local", DNS_A, false, query, sizeof query);
    assert_int_equal(dns_query_parse(query, size, &q), 0);
    struct dns_writer w;
    struct dns_lookup found;
    dns_writer_answer(&w, &q, query + DNS_HEADER, buf, DNS_UDP_PLAIN);
    dns_zone_answer(z, 0, 0, &w, &found);
    size = dns_writer_finish(&w, DNS_AA, found.rcode);
    assert_true(size <= DNS_UDP_PLAIN);
    assert_true(dns_get16(buf + 2) & DNS_TC);
    assert_int_equal(w.counts[DNS_ANSWER], (DNS_UDP_PLAIN - DNS_HEADER - q.question_size) / 16);
    dns_writer_answer(&w, &q, query + DNS_HEADER, buf, sizeof buf);
    dns_zone_answer(z, 0, 0, &w, &found);
    assert_int_equal(w.counts[DNS_ANSWER], 200);
    assert_false(w.truncated);
}

static void domains_are_checked(void **state)
{
    struct dns_zone *z = NULL;
    struct err e = {0};
    static const char *const bad[] = {"", ".", "a..b", ".a",
                                      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                                      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_int_equal(dns_zone_new(bad[i], &z, &e), -EINVAL);
        assert_non_null(strstr(e.text, "is not a domain"));
    }
    assert_null(z);
}

/* ---- threads ---- */

struct reader {
    struct dns_zone *zone;
    int number;
    _Atomic bool *stop;
    unsigned answered, wrong;
};

static void *read_zone(void *ctx)
{
    struct reader *r = ctx;
    uint8_t query[300], buf[DNS_UDP_PLAIN];
    struct dns_query q;
    size_t size = make_query("svc-7.a.svc.cluster.local", DNS_A, false, query, sizeof query);
    dns_query_parse(query, size, &q);
    while (!atomic_load(r->stop) || r->answered < 100) {
        struct dns_writer w;
        struct dns_lookup found;
        dns_epochs_enter(dns_zone_epochs(r->zone), r->number);
        dns_writer_answer(&w, &q, query + DNS_HEADER, buf, sizeof buf);
        dns_zone_answer(r->zone, 0, r->answered, &w, &found);
        dns_epochs_leave(dns_zone_epochs(r->zone), r->number);
        r->wrong += found.rcode != DNS_NOERROR || w.counts[DNS_ANSWER] != 1;
        r->answered++;
    }
    return NULL;
}

static void set_numbered(struct dns_zone *z, unsigned i, unsigned round)
{
    CLEANUP_FREE char *text = xasprintf(
        "{'metadata':{'namespace':'a','name':'svc-%u'},'spec':{'clusterIP':'172.30.%u.%u'}}", i,
        round % 256, i % 256);
    set(z, text, NULL);
}

/* The sanitizer sees a reader that has what was freed; a service that stays is always found. */
static void threads_read_what_is_being_changed(void **state)
{
    CLEANUP(dns_zone_free) struct dns_zone *z = NULL;
    assert_int_equal(dns_zone_new("cluster.local", &z, NULL), 0);
    _Atomic bool stop = false;
    struct reader readers[2];
    pthread_t threads[2];
    set_numbered(z, 7, 0);
    for (unsigned i = 0; i < 2; i++) {
        readers[i] = (struct reader){
            .zone = z, .number = dns_epochs_add_reader(dns_zone_epochs(z)), .stop = &stop};
        assert_int_equal(pthread_create(&threads[i], NULL, read_zone, &readers[i]), 0);
    }
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < 150; i++) {
            set_numbered(z, i, round);
        }
        for (unsigned i = 0; i < 150; i++) {
            CLEANUP_FREE char *name = xasprintf("svc-%u", i);
            if (i != 7) {
                dns_zone_remove_service(z, "a", name);
            }
        }
        sched_yield();
    }
    atomic_store(&stop, true);
    for (unsigned i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(readers[i].wrong, 0);
        assert_true(readers[i].answered >= 100);
    }
    assert_int_equal(dns_zone_count(z), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_specification_is_kept),
        cmocka_unit_test(the_server_has_a_name),
        cmocka_unit_test(endpoints_of_a_service_with_an_address_have_no_names),
        cmocka_unit_test(an_address_keeps_the_names_of_those_that_stay),
        cmocka_unit_test(the_longest_name_of_a_service_is_one),
        cmocka_unit_test(names_of_openshift_are_answered),
        cmocka_unit_test(what_is_not_known_yet_is_not_denied),
        cmocka_unit_test(a_circle_of_names_ends),
        cmocka_unit_test(own_networks_are_not_asked_for_elsewhere),
        cmocka_unit_test(the_search_of_a_pod_ends_at_its_first_question),
        cmocka_unit_test(names_of_other_projects_do_not_exist_where_they_are_isolated),
        cmocka_unit_test(names_follow_the_vnids_of_projects),
        cmocka_unit_test(a_name_is_not_denied_before_all_projects_are_known),
        cmocka_unit_test(changes_are_answered_at_once),
        cmocka_unit_test(ports_have_the_endpoints_that_they_have),
        cmocka_unit_test(the_reverse_name_stays_while_endpoints_change),
        cmocka_unit_test(addresses_take_turns),
        cmocka_unit_test(an_answer_that_does_not_fit_says_so),
        cmocka_unit_test(domains_are_checked),
        cmocka_unit_test(threads_read_what_is_being_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
