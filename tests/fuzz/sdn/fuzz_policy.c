/* SPDX-License-Identifier: Apache-2.0 */
/* The policy compiler over any history of any objects: lines of one letter, which says what happens, and JSON.
 * Nothing may be left when it is freed. */
#include "sdn/policy.h"

#include "base/mem.h"

#include <string.h>

struct seen {
    size_t groups;
};

static void set_group(void *ctx, uint64_t cookie, struct of_flow_list *flows)
{
    struct seen *s = ctx;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    for (size_t i = 0; i < flows->n; i++) {
        assert(flows->flows[i]->cookie == cookie);
        of_put_flow_mod(&out, 1, OF_FLOW_ADD, flows->flows[i]);
        strbuf_reset(&out);
    }
    s->groups++;
}

static void change(struct policy *p, char what, const struct json *obj)
{
    const char *ns = json_path_string(obj, "metadata", "namespace", NULL);
    const char *name = json_path_string(obj, "metadata", "name", NULL);
    struct err e = {0};
    uint32_t ip = 0x0a800002 + (uint32_t) (json_count(obj) % 4);
    ns = ns ? ns : "red";
    name = name ? name : "a";
    switch (what) {
    case 'n':
        policy_set_object(p, POLICY_NETWORK, ns, name, obj, &e);
        break;
    case 'a':
        policy_set_object(p, POLICY_ADMIN, NULL, name, obj, &e);
        break;
    case 'b':
        policy_set_object(p, POLICY_BASELINE, NULL, name, obj, &e);
        break;
    case 'x':
        policy_delete_object(p, POLICY_NETWORK, ns, name);
        policy_delete_object(p, POLICY_ADMIN, NULL, name);
        break;
    case 's':
        policy_set_namespace(p, name, obj);
        break;
    case 'S':
        policy_delete_namespace(p, name);
        break;
    case 'p':
        policy_set_pod(p, ns, name, obj);
        break;
    case 'P':
        policy_delete_pod(p, ns, name);
        break;
    case 'o':
        policy_set_node(p, name, obj);
        break;
    case 'O':
        policy_delete_node(p, name);
        break;
    case 'h':
        policy_set_host_subnet(p, name, obj);
        break;
    case 'H':
        policy_delete_host_subnet(p, name);
        break;
    case 'l':
        policy_attach(p, ip, ns, name);
        break;
    case 'L':
        policy_detach(p, ip);
        break;
    default:
        policy_compile(p);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct policy_ops ops = {0};
    static const struct policy_flow_ops flows = {.set_group = set_group};
    struct seen seen = {0};
    struct policy *p = policy_new((struct ip4_prefix){0x0a800000, 23}, &ops, NULL);
    policy_want_flows(p, &flows, &seen);
    /* Pods without a node, which most of the corpus has, may have any address. */
    CLEANUP(json_free) struct json *all = json_object();
    json_set_string(all, "subnet", "0.0.0.0/0");
    policy_set_host_subnet(p, "", all);
    while (size) {
        const uint8_t *nl = memchr(data, '\n', size);
        size_t n = nl ? (size_t) (nl - data) : size;
        CLEANUP(json_free) struct json *obj = NULL;
        struct err e = {0};
        if (n > 0 && (n == 1 || json_parse((const char *) data + 1, n - 1, &obj, &e) == 0)) {
            change(p, (char) data[0], obj);
        }
        data += n + (nl != NULL);
        size -= n + (nl != NULL);
    }
    policy_compile(p);
    policy_free(p);
    return 0;
}
