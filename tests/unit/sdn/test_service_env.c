/* SPDX-License-Identifier: Apache-2.0 */
/* The variables that a pod gets of the services there are. */
#include "sdn/service_env.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char services[] =
    "[{\"metadata\":{\"namespace\":\"red\",\"name\":\"redis-master\"},\"spec\":{\"clusterIP\":"
    "\"172.30.0.11\",\"ports\":[{\"name\":\"db\",\"port\":6379,\"protocol\":\"TCP\"},{\"name\":"
    "\"node-exporter\",\"port\":53,\"protocol\":\"UDP\"}]}},"
    "{\"metadata\":{\"namespace\":\"red\",\"name\":\"headless\"},\"spec\":{\"clusterIP\":\"None\","
    "\"ports\":[{\"port\":1}]}},"
    "{\"metadata\":{\"namespace\":\"red\",\"name\":\"outside\"},\"spec\":{\"type\":"
    "\"ExternalName\"}},"
    "{\"metadata\":{\"namespace\":\"blue\",\"name\":\"other\"},\"spec\":{\"clusterIP\":"
    "\"172.30.0.12\",\"ports\":[{\"port\":1}]}},"
    "{\"metadata\":{\"namespace\":\"default\",\"name\":\"kubernetes\"},\"spec\":{\"clusterIP\":"
    "\"172.30.0.1\",\"ports\":[{\"name\":\"https\",\"port\":443}]}},"
    "{\"metadata\":{\"namespace\":\"default\",\"name\":\"router\"},\"spec\":{\"clusterIP\":"
    "\"172.30.0.13\",\"ports\":[{\"port\":80}]}}]";

#define KUBERNETES                                                                    \
    "KUBERNETES_SERVICE_HOST=172.30.0.1 KUBERNETES_SERVICE_PORT=443 "                 \
    "KUBERNETES_SERVICE_PORT_HTTPS=443 KUBERNETES_PORT=tcp://172.30.0.1:443 "         \
    "KUBERNETES_PORT_443_TCP=tcp://172.30.0.1:443 KUBERNETES_PORT_443_TCP_PROTO=tcp " \
    "KUBERNETES_PORT_443_TCP_PORT=443 KUBERNETES_PORT_443_TCP_ADDR=172.30.0.1 "

static void expect(const char *namespace, bool links, const char *want)
{
    struct json *list = NULL;
    assert_int_equal(json_parse(services, sizeof services - 1, &list, NULL), 0);
    CLEANUP(json_free) struct json *env = json_array();
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    const struct json *item;
    service_env_add(list, namespace, links, env);
    JSON_FOREACH (item, env) {
        strbuf_addf(&text, "%s ", json_get_string(item));
    }
    assert_string_equal(strbuf_cstr(&text), want);
    json_free(list);
}

static void a_pod_gets_those_of_its_namespace_and_of_the_api(void **state)
{
    expect("red", true,
           KUBERNETES
           "REDIS_MASTER_SERVICE_HOST=172.30.0.11 REDIS_MASTER_SERVICE_PORT=6379 "
           "REDIS_MASTER_SERVICE_PORT_DB=6379 REDIS_MASTER_PORT=tcp://172.30.0.11:6379 "
           "REDIS_MASTER_PORT_6379_TCP=tcp://172.30.0.11:6379 "
           "REDIS_MASTER_PORT_6379_TCP_PROTO=tcp REDIS_MASTER_PORT_6379_TCP_PORT=6379 "
           "REDIS_MASTER_PORT_6379_TCP_ADDR=172.30.0.11 "
           "REDIS_MASTER_SERVICE_PORT_NODE_EXPORTER=53 "
           "REDIS_MASTER_PORT_53_UDP=udp://172.30.0.11:53 REDIS_MASTER_PORT_53_UDP_PROTO=udp "
           "REDIS_MASTER_PORT_53_UDP_PORT=53 REDIS_MASTER_PORT_53_UDP_ADDR=172.30.0.11 ");
    expect("default", true,
           KUBERNETES "ROUTER_SERVICE_HOST=172.30.0.13 ROUTER_SERVICE_PORT=80 "
                      "ROUTER_PORT=tcp://172.30.0.13:80 ROUTER_PORT_80_TCP=tcp://172.30.0.13:80 "
                      "ROUTER_PORT_80_TCP_PROTO=tcp ROUTER_PORT_80_TCP_PORT=80 "
                      "ROUTER_PORT_80_TCP_ADDR=172.30.0.13 ");
}

static void without_service_links_only_the_api_is_there(void **state)
{
    expect("red", false, KUBERNETES);
    expect("default", false, KUBERNETES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pod_gets_those_of_its_namespace_and_of_the_api),
        cmocka_unit_test(without_service_links_only_the_api_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
