/* SPDX-License-Identifier: Apache-2.0 */
#include "master/master_config.h"

#include "base/mem.h"
#include "net/loop/config_file.h"

void master_config_init(struct master_config *c)
{
    *c = (struct master_config){0};
    netconf_defaults(&c->network);
    service_config_init(&c->services);
    c->older.cidr = c->network.ranges[0].cidr;
    c->older.bits = c->network.ranges[0].host_bits;
    options_init(&master_options, c);
    c->n_network_flags = 0;
}

void master_config_done(struct master_config *c)
{
    options_done(&master_options, c);
    json_free(c->oauth.providers);
    admission_config_done(&c->admission);
    json_free(c->named_certs);
    *c = (struct master_config){0};
}

static bool has(const struct json *doc, const char *section, const char *key)
{
    const struct json *v = json_path(doc, section, key, NULL);
    return v && !json_is(v, JSON_NULL);
}

/* Reads the deprecated keys for a single cluster network. */
static int take_older_network(struct master_config *c, const struct json *doc, struct err *e)
{
    bool has_cidr = has(doc, "networkConfig", "clusterNetworkCIDR");
    if (!has_cidr && !has(doc, "networkConfig", "hostSubnetLength")) {
        return 0;
    }
    if (has(doc, "networkConfig", "clusterNetworks")) {
        return err_set(e, -EINVAL, "networkConfig.%s: cannot be given beside clusterNetworks",
                       has_cidr ? "clusterNetworkCIDR" : "hostSubnetLength");
    }
    int r = master_config_check_host_bits(c->older.cidr, c->older.bits, e);
    if (r < 0) {
        return err_prefix(e, "networkConfig.hostSubnetLength"), r;
    }
    c->network.n_ranges = 0;
    return master_config_add_network(c, c->older.cidr, c->older.bits, e);
}

int master_config_join(struct master_config *c, const struct json *v, struct err *e)
{
    int r = 0;
    if (!c->audit_enabled) {
        free(TAKE(c->audit_path));
        free(TAKE(c->audit_policy));
    }
    if (has(v, "etcdClientInfo", "urls") && !has(v, "storage", "backend")) {
        r = options_set_path(&master_options, c, "storage.backend", "etcd", e);
    }
    return r < 0 ? r : take_older_network(c, v, e);
}

int master_config_read(struct master_config *c, const struct json *v, const char *dir,
                       struct err *e)
{
    int r = options_read(&master_options, c, v, dir, e);
    return r < 0 ? r : master_config_join(c, v, e);
}

bool master_config_is_loopback(const struct master_config *c)
{
    char host[OPTION_HOST_SIZE];
    uint64_t port = 0;
    uint32_t addr = 0;
    return option_split_endpoint(c->bind_address, host, &port) == 0 &&
           (streq(host, "localhost") || (ip4_parse(host, &addr) == 0 && addr >> 24 == 127));
}

static int read_document(void *config, const struct json *doc, const char *dir, struct err *e)
{
    return master_config_read(config, doc, dir, e);
}

int master_config_load(const char *path, struct master_config *c, struct err *e)
{
    return config_file_load(path, read_document, c, e);
}
