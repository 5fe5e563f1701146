/* SPDX-License-Identifier: Apache-2.0 */
#include "sdn/service_ranges.h"

#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <string.h>

void service_ranges_defaults(struct service_ranges *r)
{
    *r = (struct service_ranges){
        .services = {0xac1e0000, 16}, /* 172.30.0.0 */
        .first_port = SERVICE_NODE_PORT_FIRST,
        .last_port = SERVICE_NODE_PORT_LAST,
        .has_ingress = true,
        .ingress = {0xac1d0000, 16}, /* 172.29.0.0 */
    };
}

bool service_ranges_allow_external(const struct service_ranges *r, uint32_t ip)
{
    bool allowed = false;
    for (size_t i = 0; i < r->n_external; i++) {
        if (prefix_contains(r->external[i].net, ip)) {
            if (r->external[i].rejected) {
                return false;
            }
            allowed = true;
        }
    }
    return allowed;
}

bool service_ranges_is_inside(const struct service_ranges *r, uint32_t ip)
{
    bool inside = prefix_contains(r->services, ip);
    for (size_t i = 0; i < r->n_pods; i++) {
        inside |= prefix_contains(r->pods[i], ip);
    }
    return inside;
}

int service_ports_parse(const char *s, uint16_t *ret_first, uint16_t *ret_last, struct err *e)
{
    uint64_t first = SERVICE_NODE_PORT_FIRST, last = SERVICE_NODE_PORT_LAST;
    size_t n = strcspn(s, "-+");
    CLEANUP_FREE char *from = xstrndup(s, n);
    bool bad = *s && (!s[n] || str_to_u64(from, UINT16_MAX, &first) < 0 ||
                      str_to_u64(s + n + 1, UINT16_MAX, &last) < 0);
    if (s[n] == '+') {
        last += first;
    }
    if (bad || first < 1 || last > UINT16_MAX || last < first) {
        return err_set(e, -EINVAL, "\"%.40s\" is not a range of ports such as 30000-32767", s);
    }
    *ret_first = (uint16_t) first;
    *ret_last = (uint16_t) last;
    return 0;
}

int service_external_parse(const char *s, struct service_external_rule *ret, struct err *e)
{
    struct service_external_rule rule = {.rejected = *s == '!'};
    int r = prefix_parse(s + rule.rejected, &rule.net, e);
    if (r == 0) {
        *ret = rule;
    }
    return r;
}

int service_ranges_check(const struct service_ranges *r, struct err *e)
{
    if (prefix_size(r->services) < 8) {
        return err_set(e, -EINVAL,
                       "serviceNetworkCIDR: %s: is too small for services, give at least a /29",
                       PREFIX_TEXT(r->services));
    }
    if (!r->has_ingress) {
        return 0;
    }
    if (prefix_size(r->ingress) < 4) {
        return err_set(e, -EINVAL,
                       "ingressIPNetworkCIDR: %s: has no addresses, give at least a /30",
                       PREFIX_TEXT(r->ingress));
    }
    if (prefix_overlaps(r->ingress, r->services)) {
        return err_set(e, -EINVAL, "ingressIPNetworkCIDR: %s: overlaps the service network %s",
                       PREFIX_TEXT(r->ingress), PREFIX_TEXT(r->services));
    }
    for (size_t i = 0; i < r->n_pods; i++) {
        if (prefix_overlaps(r->ingress, r->pods[i])) {
            return err_set(e, -EINVAL, "ingressIPNetworkCIDR: %s: overlaps the cluster network %s",
                           PREFIX_TEXT(r->ingress), PREFIX_TEXT(r->pods[i]));
        }
    }
    return 0;
}
