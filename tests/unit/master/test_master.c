/* SPDX-License-Identifier: Apache-2.0 */
/* What the master makes of its configuration: certificates, keys, and DNS. */
#include "base/mem.h"
#include "client/kubeconfig.h"
#include "master/master_addresses.h"
#include "master/master_dns.h"
#include "master/master_security.h"
#include "master/master_signing.h"
#include "master/master_tls.h"
#include "net/loop/process.h"
#include "net/tls/jws.h"
#include "net/tls/pki.h"
#include "wire/yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/tenet-master-XXXXXX";
static struct loop *loop;

static int setup(void **state)
{
    loop = loop_new();
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    loop_free(loop);
    return dir_remove(dir, NULL);
}

/* 'text' is YAML in which %s is the folder. */
static void configure(struct master_config *c, const char *text)
{
    CLEANUP(json_free) struct json *v = NULL;
    CLEANUP_STRBUF struct strbuf yaml = STRBUF_INIT;
    struct err e = {0};
    for (const char *p = text; *p; p++) {
        if (p[0] == '%' && p[1] == 's') {
            strbuf_adds(&yaml, dir);
            p++;
        } else {
            strbuf_addc(&yaml, *p);
        }
    }
    master_config_init(c);
    if (yaml_parse(strbuf_cstr(&yaml), yaml.size, &v, &e) < 0 ||
        master_config_read(c, v, NULL, &e) < 0 || master_config_check(c, MASTER_WHOLE, &e) < 0) {
        fail_msg("%s: %s", text, e.text);
    }
}

#define TLS "servingInfo: {tls: auto, pkiDir: \"%s/pki\"}\n"

static void write_text(const char *name, const char *text)
{
    CLEANUP_FREE char *path = xasprintf("%s/%s", dir, name);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* ---- who may do what ---- */

/* Makes the parts from 'text'; 0, or the error with its text. */
static int make(const char *text, struct master_security **ret, struct master_tls **ret_tls,
                struct master_config *c, struct err *e)
{
    configure(c, text);
    assert_int_equal(master_tls_new(c, 8443, ret_tls, e), 0);
    return master_security_new(loop, c, *ret_tls, ret, e);
}

static void without_tls_everyone_is_trusted(void **state)
{
    struct master_config c;
    struct master_tls *tls;
    struct master_security *s;
    struct err e = {0};
    assert_int_equal(make("servingInfo: {tls: off}", &s, &tls, &c, &e), 0);
    assert_null(tls);
    assert_null(master_tls_free(tls));
    assert_null(s);
    assert_null(master_security_of_api(s));
    assert_null(master_security_token(s));
    assert_int_equal(master_security_reload(s, &e), 0);
    master_security_free(s);
    master_config_done(&c);
}

static void with_tls_keys_and_a_way_in_are_made(void **state)
{
    struct master_config c;
    struct master_tls *tls;
    struct master_security *s, *again;
    struct err e = {0};
    if (make(TLS, &s, &tls, &c, &e) < 0) {
        fail_msg("%s", e.text);
    }
    const struct apiserver_security *api = master_security_of_api(s);
    assert_false(api->always_allow);
    assert_true(api->anonymous);
    assert_non_null(api->keys);
    assert_null(api->audit);
    /* 256 random bits, which nobody else's start has. */
    const char *token = master_security_token(s);
    assert_ptr_equal(token, api->loopback_token);
    assert_int_equal(strlen(token), 64);
    assert_int_equal(strspn(token, "0123456789abcdef"), 64);
    assert_int_equal(master_security_new(loop, &c, tls, &again, &e), 0);
    assert_string_not_equal(master_security_token(again), token);
    /* The key of tokens stays. */
    CLEANUP(json_free) struct json *first = jws_public_set(api->keys);
    CLEANUP(json_free) struct json *second = jws_public_set(master_security_of_api(again)->keys);
    assert_true(json_equal(first, second));
    static const char *const secret[] = {"pki/sa.key", "pki/ca.key", "pki/server.key",
                                         "pki/admin.kubeconfig"};
    for (size_t i = 0; i < ARRAY_SIZE(secret); i++) {
        CLEANUP_FREE char *path = xasprintf("%s/%s", dir, secret[i]);
        struct stat st;
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
    }
    master_security_free(again);
    master_security_free(s);
    master_tls_free(tls);
    master_config_done(&c);
}

static void a_kubeconfig_that_does_not_fit_is_made_anew(void **state)
{
    struct master_config c;
    struct master_tls *tls = NULL;
    struct err e = {0};
    CLEANUP_FREE char *file = xasprintf("%s/pki/admin.kubeconfig", dir);
    configure(&c, TLS);
    assert_int_equal(master_tls_new(&c, 8443, &tls, &e), 0);
    __attribute__((cleanup(kubeconfig_done))) struct kubeconfig made = {0};
    __attribute__((cleanup(kubeconfig_done))) struct kubeconfig again = {0};
    __attribute__((cleanup(kubeconfig_done))) struct kubeconfig other = {0};
    assert_int_equal(kubeconfig_load(file, &made, &e), 0);
    assert_non_null(made.cert);
    /* One that fits stays. */
    assert_int_equal(master_tls_reload(tls, &e), 0);
    assert_int_equal(kubeconfig_load(file, &again, &e), 0);
    assert_string_equal(again.cert, made.cert);
    /* Somebody put a token in place of the certificate. */
    struct kubeconfig w = {.server = made.server, .ca = made.ca, .token = (char *) "t"};
    assert_int_equal(kubeconfig_write(file, "system:admin", &w, &e), 0);
    assert_int_equal(master_tls_reload(tls, &e), 0);
    assert_int_equal(kubeconfig_load(file, &other, &e), 0);
    assert_non_null(other.cert);
    assert_string_not_equal(other.cert, made.cert);
    assert_null(other.token);
    master_tls_free(tls);
    master_config_done(&c);
}

static const char *host_name = "Node-1.Example";

int gethostname(char *ret, size_t size)
{
    if (!host_name) {
        errno = ENAMETOOLONG;
        return -1;
    }
    snprintf(ret, size, "%s", host_name);
    return 0;
}

static bool is_master(const struct master_addresses *a, const char *text)
{
    uint32_t ip;
    assert_int_equal(ip4_parse(text, &ip), 0);
    return address_ranges_contain(&a->rules.masters, ip);
}

static void addresses_of_the_master_are_its_own(void **state)
{
    static const struct netconf_host_net nets[] = {
        {.ifname = "eth0", .addr = 0xc0a80001}, /* 192.168.0.1 */
        {.ifname = "tun0", .addr = 0x0a800001}, /* 10.128.0.1 */
        {.ifname = "lo", .addr = 0x7f000001},
    };
    struct master_config c;
    struct service_ranges services = {0};
    struct master_addresses a = {0};
    configure(&c, TLS);
    free((char *) c.bind_address);
    c.bind_address = xstrdup("0.0.0.0:8443");
    master_addresses_fill(&a, &c, &services, 0xc0a80005, false, nets, 3);
    assert_string_equal(a.host_name, "node-1.example");
    assert_ptr_equal(a.own_node[0], a.host_name);
    assert_ptr_equal(a.rules.master_nodes, a.own_node);
    assert_true(is_master(&a, "192.168.0.5"));
    assert_true(is_master(&a, "192.168.0.1")); /* It listens at all. */
    assert_false(is_master(&a, "10.128.0.1"));
    assert_false(is_master(&a, "127.0.0.1"));
    assert_int_equal(a.rules.masters.n, 2);
    assert_int_equal(a.rules.ingress.n, 0);
    master_config_done(&c);

    struct master_addresses b = {0};
    configure(&c, TLS "dnsConfig: {bindAddress: \"192.0.2.3:53\"}\n");
    free((char *) c.storage_endpoints);
    c.storage_endpoints = xstrdup("http://192.0.2.1:2379,http://etcd2:2379,http://192.0.2.2:2379");
    free((char *) c.bind_address);
    c.bind_address = xstrdup("192.0.2.9:8443");
    services.has_ingress = true;
    services.ingress = (struct ip4_prefix){0xc6336400, 24};
    host_name = NULL;
    master_addresses_fill(&b, &c, &services, 0, false, nets, 3);
    assert_null(b.own_node[0]);
    static const char *const own[] = {"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.9"};
    for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
        assert_true(is_master(&b, own[i]));
    }
    assert_int_equal(b.rules.masters.n, 4);
    assert_int_equal(b.rules.ingress.n, 1);
    assert_int_equal(b.rules.ingress.list[0].addr, 0xc6336400);
    master_config_done(&c);

    /* Without authorization every client is trusted, nodes too. */
    struct master_addresses d = {0};
    configure(&c, "servingInfo: {tls: off}");
    master_addresses_fill(&d, &c, &services, 0xc0a80005, true, nets, 3);
    assert_int_equal(d.rules.masters.n, 0);
    master_config_done(&c);
    host_name = "node1";
}

static void what_is_configured_is_used(void **state)
{
    struct master_config c;
    struct master_tls *tls;
    struct master_security *s;
    struct err e = {0};
    int r = make(TLS "authorization: {mode: AlwaysAllow, anonymous: false}\n"
                     "serviceAccountConfig: {managedNames: [robot]}\n"
                     "auditConfig: {auditFilePath: \"%s/audit.log\"}",
                 &s, &tls, &c, &e);
    if (r < 0) {
        fail_msg("%s", e.text);
    }
    assert_true(master_security_of_api(s)->always_allow);
    assert_false(master_security_of_api(s)->anonymous);
    assert_non_null(master_security_of_api(s)->audit);
    assert_int_equal(master_security_reload(s, &e), 0);
    master_security_free(s);
    master_tls_free(tls);
    master_config_done(&c);
}

static void controllers_sign_with_the_authority_of_auto_or_of_files(void **state)
{
    struct master_config c;
    struct master_tls *tls;
    struct master_security *s;
    struct master_signing *signing;
    struct err e = {0};
    assert_null(master_signing_security(NULL));
    if (make(TLS "serviceAccountConfig: {managedNames: [robot]}", &s, &tls, &c, &e) < 0) {
        fail_msg("%s", e.text);
    }
    assert_int_equal(master_signing_new(&c, master_tls_ca(tls), "pem", &signing, &e), 0);
    assert_ptr_equal(master_signing_security(signing)->ca, master_tls_ca(tls));
    assert_string_equal(master_signing_security(signing)->ca_pem, "pem");
    assert_string_equal(master_signing_security(signing)->client_ca_pem,
                        pki_ca_pem(master_tls_ca(tls)));
    assert_string_equal(master_signing_security(signing)->service_accounts[0], "robot");
    assert_null(master_signing_security(signing)->service_accounts[1]);
    master_signing_free(signing);
    /* Controllers apart from their API server read the authority from files; by default
     * they have three names. */
    struct master_config apart;
    master_config_init(&apart);
    assert_int_equal(master_signing_new(&apart, NULL, NULL, &signing, &e), 0);
    assert_null(master_signing_security(signing)->ca);
    assert_null(master_signing_security(signing)->ca_pem);
    assert_null(master_signing_security(signing)->client_ca_pem);
    assert_string_equal(master_signing_security(signing)->service_accounts[0], "default");
    assert_string_equal(master_signing_security(signing)->service_accounts[2], "deployer");
    assert_null(master_signing_security(signing)->service_accounts[3]);
    master_signing_free(signing);
    apart.client_ca = xasprintf("%s/none.crt", dir);
    assert_int_equal(master_signing_new(&apart, NULL, NULL, &signing, &e), -ENOENT);
    assert_non_null(strstr(e.text, "servingInfo.clientCA: "));
    free(apart.client_ca);
    apart.client_ca = xasprintf("%s/pki/ca.crt", dir);
    assert_int_equal(master_signing_new(&apart, NULL, NULL, &signing, &e), 0);
    assert_string_equal(master_signing_security(signing)->client_ca_pem,
                        pki_ca_pem(master_tls_ca(tls)));
    master_signing_free(signing);
    apart.signing_cert = xasprintf("%s/pki/ca.crt", dir);
    apart.signing_key = xasprintf("%s/pki/ca.key", dir);
    assert_int_equal(master_signing_new(&apart, NULL, NULL, &signing, &e), 0);
    assert_string_equal(pki_ca_pem(master_signing_security(signing)->ca),
                        pki_ca_pem(master_tls_ca(tls)));
    master_signing_free(signing);
    /* A key that is not the certificate's, and a missing file, are refused. */
    free(apart.signing_key);
    apart.signing_key = xasprintf("%s/pki/server.key", dir);
    assert_int_equal(master_signing_new(&apart, NULL, NULL, &signing, &e), -EINVAL);
    assert_non_null(strstr(e.text, "controllerConfig: "));
    assert_non_null(strstr(e.text, "does not belong to"));
    free(apart.signing_key);
    apart.signing_key = xasprintf("%s/pki/none", dir);
    assert_int_equal(master_signing_new(&apart, NULL, NULL, &signing, &e), -ENOENT);
    assert_non_null(strstr(e.text, "pki/none"));
    master_config_done(&apart);
    master_security_free(s);
    master_tls_free(tls);
    master_config_done(&c);
}

static void what_cannot_be_read_is_named(void **state)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {TLS "serviceAccountConfig: {privateKeyFile: \"%s/none\"}", "serviceAccountConfig: "},
        {TLS "serviceAccountConfig: {privateKeyFile: \"%s/bad\"}", "serviceAccountConfig: "},
        {TLS "serviceAccountConfig: {publicKeyFiles: [\"%s/none\"]}", "serviceAccountConfig: "},
        {TLS "serviceAccountConfig: {publicKeyFiles: [\"%s/bad\"]}", "serviceAccountConfig: "},
        {TLS "auditConfig: {auditFilePath: \"%s/none/audit.log\"}", "auditConfig: "},
        {TLS "auditConfig: {auditFilePath: \"%s/a.log\", policyFile: \"%s/none\"}",
         "auditConfig: "},
    };
    write_text("bad", "nonsense");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct master_config c;
        struct master_tls *tls;
        struct master_security *s = NULL;
        struct err e = {0};
        if (make(rows[i].text, &s, &tls, &c, &e) >= 0 || !str_has_prefix(e.text, rows[i].says)) {
            fail_msg("%s: %s", rows[i].text, e.text);
        }
        assert_null(s);
        master_tls_free(tls);
        master_config_done(&c);
    }
}

/* ---- DNS ---- */

static void dns_is_as_configured_or_refused(void **state)
{
    static const struct {
        const char *text;
        bool there;
        const char *says; /* NULL: it is good. */
    } rows[] = {
        {"", true, NULL},
        {"dnsConfig: {bindAddress: none}", false, NULL},
        {"dnsConfig: {bindAddress: \"127.0.0.1:5353\"}", true, NULL},
        {"servingInfo: {bindAddress: \"localhost:8443\"}", true, NULL},
        {"dnsConfig: {bindAddress: \"::1\"}", false,
         "dnsConfig.bindAddress: \"::1\" is neither none nor an IPv4 address"},
        {"dnsConfig: {bindAddress: nowhere}", false, "dnsConfig.bindAddress"},
        {"dnsConfig: {nameservers: [\"10.0.0.1\"]}", true, NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct master_config c;
        struct master_dns *d = NULL;
        struct err e = {0};
        configure(&c, rows[i].text);
        int r = master_dns_new(loop, &c, &d, &e);
        if (rows[i].says ? r != -EINVAL || !str_has_prefix(e.text, rows[i].says) : r != 0) {
            fail_msg("%s: %d %s", rows[i].text, r, e.text);
        }
        if ((d != NULL) != rows[i].there) {
            fail_msg("%s", rows[i].text);
        }
        master_dns_free(d);
        master_config_done(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_tls_everyone_is_trusted),
        cmocka_unit_test(with_tls_keys_and_a_way_in_are_made),
        cmocka_unit_test(a_kubeconfig_that_does_not_fit_is_made_anew),
        cmocka_unit_test(addresses_of_the_master_are_its_own),
        cmocka_unit_test(what_is_configured_is_used),
        cmocka_unit_test(controllers_sign_with_the_authority_of_auto_or_of_files),
        cmocka_unit_test(what_cannot_be_read_is_named),
        cmocka_unit_test(dns_is_as_configured_or_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
