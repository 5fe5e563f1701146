/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/network/vnid_plan.h"

#include "controller/obj.h"
#include "sdn/network.h"

bool vnid_plan_is_global(const char *name)
{
    return streq(name, "default");
}

enum vnid_step vnid_plan_make(const char *name, const struct json *ns, const struct json *nn)
{
    uint32_t vnid = 0;
    if (!ns) {
        return nn ? VNID_DELETE : VNID_NONE;
    }
    if (!nn) {
        return VNID_CREATE;
    }
    if (vnid_plan_is_global(name) &&
        (netnamespace_vnid(nn, &vnid) < 0 || vnid != SDN_VNID_GLOBAL)) {
        return VNID_GLOBAL;
    }
    return VNID_KEEP;
}

struct json *vnid_plan_create(const char *name, uint32_t vnid)
{
    struct json *o = obj_new(NETWORK_API_VERSION, "NetNamespace", NULL, name);
    json_set_string(o, "netname", name);
    json_set_int(o, "netid", vnid);
    return o;
}
