/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ovs/settings.h"

#include "base/str.h"

#include <net/if.h>

static int check_path(const char *v, struct err *e)
{
    return *v == '/' ? 0 : err_set(e, -EINVAL, "\"%s\" is not an absolute path", v);
}

static int check_bridge(const char *v, struct err *e)
{
    bool ok = *v && strlen(v) < IF_NAMESIZE && !streq(v, ".") && !streq(v, "..");
    for (const char *p = v; *p; p++) {
        ok = ok && *p > ' ' && *p <= '~' && *p != '/' && *p != ':';
    }
    return ok ? 0 : err_set(e, -EINVAL, "\"%s\" is not the name of an interface", v);
}

static int check_type(const char *v, struct err *e)
{
    return streq(v, "system") || streq(v, "netdev")
               ? 0
               : err_set(e, -EINVAL, "\"%s\" is neither system nor netdev", v);
}

const struct datapath_setting ovs_settings[] = {
    {OVS_DATABASE, OVS_DATABASE_DEFAULT, check_path},
    {OVS_RUN_DIR, OVS_RUN_DIR_DEFAULT, check_path},
    {OVS_BRIDGE, OVS_BRIDGE_DEFAULT, check_bridge},
    {OVS_DATAPATH_TYPE, NULL, check_type},
    {NULL, NULL, NULL},
};
