/* SPDX-License-Identifier: Apache-2.0 */
/* The endpoints controller against an API server: slices of services with pods, and of Endpoints
 * made by hand. */
#include "controllers/services/endpoints.h"

#include "json_text.h"
#include "rig.h"

#define SERVICES "/api/v1/namespaces/default/services"
#define ENDPOINTS "/api/v1/namespaces/default/endpoints"
#define SLICES "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"

static struct harness *h;
static struct api_client *client;
static struct rig_controller *controller;

static int set_up(void **state)
{
    static const struct address_ranges none = {0};
    h = harness_new(NULL, NULL);
    client = rig_client(h);
    controller = rig_start(h, client, &endpoints_controller, &none);
    return 0;
}

static int tear_down(void **state)
{
    rig_stop(controller);
    api_client_free(client);
    harness_free(h);
    return 0;
}

static char *slices_of(const char *service)
{
    return xasprintf(SLICES "?labelSelector=kubernetes.io/service-name%%3D%s", service);
}

/* Waits until the service has exactly one slice with this address; "": until it has none. */
static void expect_address(const char *service, const char *address)
{
    CLEANUP_FREE char *path = slices_of(service);
    rig_expect(h, path, "items.0.endpoints.0.addresses.0", address);
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", path, NULL, 200);
    assert_int_equal(json_count(json_get(a.body, "items")), *address ? 1 : 0);
}

#define SERVICE(name, more) \
    "{'metadata': {'name': '" name "'}, 'spec': {'ports': [{'port': 80}]" more "}}"
#define BY_HAND(name, ip, more)                                                         \
    "{'metadata': {'name': '" name "'" more "}, 'subsets': [{'addresses': [{'ip': '" ip \
    "'}], 'ports': [{'port': 8080}]}]}"

static void endpoints_made_by_hand_are_mirrored_while_the_service_wants_it(void **state)
{
    put_in(h, "POST", ENDPOINTS, BY_HAND("alone", "192.0.2.1", ""), 201);
    put_in(h, "POST", SERVICES, SERVICE("skipped", ""), 201);
    put_in(h, "POST", ENDPOINTS,
           BY_HAND("skipped", "192.0.2.2",
                   ", 'labels': {'endpointslice.kubernetes.io/skip-mirror': 'true'}"),
           201);
    put_in(h, "POST", SERVICES, SERVICE("hand", ""), 201);
    put_in(h, "POST", ENDPOINTS, BY_HAND("hand", "192.0.2.3", ""), 201);
    expect_address("hand", "192.0.2.3");
    CLEANUP_FREE char *path = slices_of("hand");
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", path, NULL, 200);
    const struct json *meta = json_get(json_at(json_get(a.body, "items"), 0), "metadata");
    assert_string_equal(
        json_path_string(meta, "labels", "endpointslice.kubernetes.io/managed-by", NULL),
        "endpointslicemirroring-controller.k8s.io");
    assert_string_equal(
        json_path_string(json_at(json_get(meta, "ownerReferences"), 0), "kind", NULL), "Endpoints");
    /* A change is mirrored, too. */
    put_in(h, "PUT", ENDPOINTS "/hand", BY_HAND("hand", "192.0.2.4", ""), 200);
    expect_address("hand", "192.0.2.4");
    /* All that came before has been looked at. */
    expect_address("alone", "");
    expect_address("skipped", "");
    /* The mirror ends with the wish for it, and with the Endpoints. */
    put_in(h, "PUT", ENDPOINTS "/hand",
           BY_HAND("hand", "192.0.2.4",
                   ", 'labels': {'endpointslice.kubernetes.io/skip-mirror': 'true'}"),
           200);
    expect_address("hand", "");
    put_in(h, "PUT", ENDPOINTS "/hand", BY_HAND("hand", "192.0.2.5", ""), 200);
    expect_address("hand", "192.0.2.5");
    put_in(h, "DELETE", ENDPOINTS "/hand", NULL, 200);
    expect_address("hand", "");
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(endpoints_made_by_hand_are_mirrored_while_the_service_wants_it),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
