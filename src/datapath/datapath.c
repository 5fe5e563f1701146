/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/datapath.h"

#include "base/mem.h"
#include "base/str.h"
#include "datapath/ops.h"
#include "net/kernel/rtnl.h"

/* The table of datapaths. */
static const struct datapath_ops *const kinds[] = {&datapath_ovs, &datapath_ebpf, &datapath_hostgw};

static const struct datapath_ops *find_kind(const char *kind)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (streq(kind, kinds[i]->kind)) {
            return kinds[i];
        }
    }
    return NULL;
}

int datapath_check_kind(const char *kind, struct err *e)
{
    CLEANUP_STRBUF struct strbuf known = STRBUF_INIT;
    if (find_kind(kind)) {
        return 0;
    }
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        strbuf_addf(&known, "%s%s", i ? ", " : "", kinds[i]->kind);
    }
    return err_set(e, -EINVAL, "\"%s\" is not a datapath; there are: %s", kind,
                   strbuf_cstr(&known));
}

const struct datapath_words *datapath_words(const char *kind)
{
    return &find_kind(kind)->words;
}

static const struct datapath_setting *find_setting(const char *key)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        for (const struct datapath_setting *s = kinds[i]->settings; s->key; s++) {
            if (streq(s->key, key)) {
                return s;
            }
        }
    }
    return NULL;
}

int datapath_check_setting(const char *key, const char *value, struct err *e)
{
    const struct datapath_setting *s = find_setting(key);
    return s ? s->check(value, e)
             : err_set(e, -ENOENT, "%s: no datapath has a setting of this name", key);
}

const char *datapath_get_setting(const struct datapath_config *cfg, const char *key)
{
    const char *value = cfg->settings ? smap_get(cfg->settings, key) : NULL;
    return value ? value : find_setting(key)->fallback;
}

/* Routes know no project: a plug-in that keeps projects apart must not seem to be in effect. */
static int check_plugin(const struct datapath_ops *ops, enum sdn_plugin p, struct err *e)
{
    if (ops->is_routed == sdn_plugin_is_routed(p)) {
        return 0;
    }
    return ops->is_routed
               ? err_set(
                     e, -EINVAL,
                     "networkConfig.datapath: %s: routes of the host have no VNIDs and judge no "
                     "NetworkPolicy, so the cluster's plug-in must be %s, not %s",
                     ops->kind, sdn_plugin_name(SDN_FLANNEL), sdn_plugin_name(p))
               : err_set(e, -EINVAL,
                         "networkConfig.datapath: %s: the cluster's plug-in %s needs %s", ops->kind,
                         sdn_plugin_name(p), datapath_hostgw.kind);
}

int datapath_check(const struct datapath_config *cfg, const struct sdn_network *n, struct err *e)
{
    int r = datapath_check_kind(cfg->kind, e);
    const struct datapath_ops *ops = find_kind(cfg->kind);
    r = r < 0 ? r : check_plugin(ops, n->plugin, e);
    return r == 0 && ops->check ? ops->check(cfg, n, e) : r;
}

struct datapath_prepared *datapath_prepare(struct loop *l, const struct datapath_config *cfg)
{
    const struct datapath_ops *ops = find_kind(cfg->kind);
    return ops && ops->prepare ? ops->prepare(l, cfg) : NULL;
}

struct datapath_prepared *datapath_prepared_free(struct datapath_prepared *p)
{
    if (p) {
        p->free(p);
    }
    return NULL;
}

int datapath_make_mounts(const struct datapath_config *cfg, struct err *e)
{
    int r = datapath_check_kind(cfg->kind, e);
    return r < 0 ? r : find_kind(cfg->kind)->make_mounts(cfg, e);
}

int datapath_open(struct loop *l, const struct datapath_config *cfg,
                  const struct datapath_events *ev, void *ctx, struct datapath **ret, struct err *e)
{
    int r = datapath_check_kind(cfg->kind, e);
    return r < 0 ? r : find_kind(cfg->kind)->open(l, cfg, ev, ctx, ret, e);
}

struct datapath *datapath_close(struct datapath *dp)
{
    if (dp) {
        dp->ops->close(dp);
    }
    return NULL;
}

void datapath_set_network(struct datapath *dp, const struct sdn_network *n)
{
    dp->ops->set_network(dp, n);
}

void datapath_attach(struct datapath *dp, const struct dp_pod *p, datapath_port_fn *port,
                     datapath_done_fn *done, void *ctx)
{
    dp->ops->attach(dp, p, port, done, ctx);
}

int datapath_wire(struct datapath *dp, const struct dp_wire *w, struct err *e)
{
    return dp->ops->wire(dp, w, e);
}

int datapath_unlimit(struct datapath *dp, const struct dp_wire *w, struct err *e)
{
    return dp->ops->unlimit(dp, w, e);
}

int datapath_check_wire(struct datapath *dp, const struct dp_wire *w, struct err *e)
{
    return dp->ops->check_wire(dp, w, e);
}

int datapath_end(struct datapath *dp, const char *port, const char *host_if)
{
    return dp->ops->end ? dp->ops->end(dp, port, host_if) : -1;
}

int datapath_links(struct datapath *dp, struct rtnl_link **ret, size_t *ret_n, struct err *e)
{
    if (dp->ops->links) {
        return dp->ops->links(dp, ret, ret_n, e);
    }
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    int k = rtnl_open(&r, e);
    return k < 0 ? k : rtnl_link_list(r, ret, ret_n, e);
}

void datapath_detach(struct datapath *dp, const char *container_id, const char *ifname,
                     datapath_done_fn *done, void *ctx)
{
    dp->ops->detach(dp, container_id, ifname, done, ctx);
}

void datapath_link_gone(struct datapath *dp, const char *name)
{
    dp->ops->link_gone(dp, name);
}

void datapath_set_runtime(struct datapath *dp, const char *container_id, const char *ifname,
                          const char *host_ports, const char *bandwidth, datapath_done_fn *done,
                          void *ctx)
{
    dp->ops->set_runtime(dp, container_id, ifname, host_ports, bandwidth, done, ctx);
}

void datapath_set_vnids(struct datapath *dp, const char *pod_namespace, const struct sdn_vnids *v)
{
    dp->ops->set_vnids(dp, pod_namespace, v);
}

void datapath_set_policy(struct datapath *dp, struct policy *p)
{
    dp->ops->set_policy(dp, p);
}

void datapath_set_firewall(struct datapath *dp, uint32_t vnid, const struct firewall_block *blocks,
                           size_t n)
{
    dp->ops->set_firewall(dp, vnid, blocks, n);
}

void datapath_change_service(struct datapath *dp, const struct sdn_service *old,
                             const struct sdn_project_service *now)
{
    dp->ops->change_service(dp, old, now);
}

void datapath_settle_services(struct datapath *dp, const struct datapath_services *all)
{
    dp->ops->settle_services(dp, all);
}

void datapath_release(struct datapath *dp, uint32_t port, const uint8_t *frame, size_t size)
{
    dp->ops->release(dp, port, frame, size);
}

const struct dp_pod *const *datapath_pods(struct datapath *dp, size_t *ret_n)
{
    return dp->ops->pods(dp, ret_n);
}

const struct dp_pod *datapath_find(struct datapath *dp, const char *container_id,
                                   const char *ifname)
{
    size_t n;
    const struct dp_pod *const *pods = datapath_pods(dp, &n);
    for (size_t i = 0; i < n; i++) {
        if (streq(pods[i]->container_id, container_id) && streq(pods[i]->ifname, ifname)) {
            return pods[i];
        }
    }
    return NULL;
}

void datapath_get_status(struct datapath *dp, struct datapath_status *ret)
{
    dp->ops->get_status(dp, ret);
}

void datapath_drops(struct datapath *dp, datapath_drops_fn *done, void *ctx)
{
    dp->ops->explain.drops(dp, done, ctx);
}

void datapath_rules(struct datapath *dp, const struct datapath_rules_ops *ops, void *ctx)
{
    dp->ops->explain.rules(dp, ops, ctx);
}

void datapath_trace(struct datapath *dp, const struct model_packet *p, datapath_trace_fn *done,
                    void *ctx)
{
    dp->ops->explain.trace(dp, p, done, ctx);
}

int datapath_watch(struct datapath *dp, datapath_events_fn *fn, void *ctx, struct err *e)
{
    return dp->ops->explain.watch(dp, fn, ctx, e);
}

int datapath_maps(struct datapath *dp, const char *name, const char *after, size_t limit,
                  struct json **ret, struct err *e)
{
    return dp->ops->explain.maps(dp, name, after, limit, ret, e);
}

static char *dup_or_null(const char *s)
{
    return s ? xstrdup(s) : NULL;
}

struct dp_pod *dp_pod_clone(const struct dp_pod *p)
{
    struct dp_pod *c = xmemdup(p, sizeof *p);
    c->container_id = dup_or_null(p->container_id);
    c->ifname = dup_or_null(p->ifname);
    c->pod_namespace = dup_or_null(p->pod_namespace);
    c->pod_name = dup_or_null(p->pod_name);
    c->netns = dup_or_null(p->netns);
    c->host_ports = dup_or_null(p->host_ports);
    c->bandwidth = dup_or_null(p->bandwidth);
    return c;
}

struct dp_pod *dp_pod_free(struct dp_pod *p)
{
    if (p) {
        free(p->container_id);
        free(p->ifname);
        free(p->pod_namespace);
        free(p->pod_name);
        free(p->netns);
        free(p->host_ports);
        free(p->bandwidth);
        free(p);
    }
    return NULL;
}
