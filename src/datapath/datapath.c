/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/datapath.h"

#include "base/mem.h"
#include "base/str.h"
#include "datapath/ebpf/program.h"
#include "datapath/ops.h"
#include "net/kernel/rtnl.h"

static const struct datapath_ops *const kinds[] = {&datapath_ovs, &datapath_ebpf};

static int find_kind(const struct datapath_config *cfg, const struct datapath_ops **ret,
                     struct err *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (streq(cfg->kind, kinds[i]->kind)) {
            *ret = kinds[i];
            return 0;
        }
    }
    return err_set(e, -EINVAL, "there is no datapath \"%s\" (known: ovs, ebpf)", cfg->kind);
}

static bool is_optional(const char *name, size_t size)
{
    const char *known;
    for (size_t i = 0; (known = program_feature_name(i)); i++) {
        if (strlen(known) == size && strncmp(known, name, size) == 0) {
            return true;
        }
    }
    return false;
}

int datapath_check_without(const char *list, struct err *e)
{
    CLEANUP_STRBUF struct strbuf known = STRBUF_INIT;
    for (size_t i = 0; program_feature_name(i); i++) {
        strbuf_addf(&known, "%s%s", i ? ", " : "", program_feature_name(i));
    }
    for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        size_t n = strcspn(p, ",");
        if (!is_optional(p, n)) {
            return err_set(e, -EINVAL, "\"%.*s\" is none of %s", (int) MIN(n, 100), p,
                           strbuf_cstr(&known));
        }
    }
    return 0;
}

int datapath_check(const struct datapath_config *cfg, const struct sdn_network *n, struct err *e)
{
    const struct datapath_ops *ops = NULL;
    int r = find_kind(cfg, &ops, e);
    return r == 0 && ops->check ? ops->check(cfg, n, e) : r;
}

struct datapath_prepared *datapath_prepare(struct loop *l, const struct datapath_config *cfg)
{
    const struct datapath_ops *ops = NULL;
    return find_kind(cfg, &ops, NULL) == 0 && ops->prepare ? ops->prepare(l, cfg) : NULL;
}

struct datapath_prepared *datapath_prepared_free(struct datapath_prepared *p)
{
    if (p) {
        p->ops->unprepare(p);
    }
    return NULL;
}

int datapath_make_mounts(const struct datapath_config *cfg, struct err *e)
{
    const struct datapath_ops *ops = NULL;
    int r = find_kind(cfg, &ops, e);
    return r < 0 ? r : ops->make_mounts(cfg, e);
}

int datapath_open(struct loop *l, const struct datapath_config *cfg,
                  const struct datapath_events *ev, void *ctx, struct datapath **ret, struct err *e)
{
    const struct datapath_ops *ops = NULL;
    int r = find_kind(cfg, &ops, e);
    return r < 0 ? r : ops->open(l, cfg, ev, ctx, ret, e);
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

void datapath_set_flows(struct datapath *dp, uint64_t cookie, struct of_flow_list *flows)
{
    dp->ops->set_flows(dp, cookie, flows);
}

const struct policy_table_ops *datapath_policy_table(struct datapath *dp, void **ret_ctx)
{
    return dp->ops->policy_table ? dp->ops->policy_table(dp, ret_ctx) : NULL;
}

bool datapath_wants_services(const struct datapath *dp)
{
    return dp->ops->set_services != NULL;
}

void datapath_set_services(struct datapath *dp, const char *node, const struct model_service *list,
                           size_t n)
{
    dp->ops->set_services(dp, node, list, n);
}

void datapath_keep(struct datapath *dp, const struct of_connection *c)
{
    if (dp->ops->keep) {
        dp->ops->keep(dp, c);
    }
}

void datapath_forget(struct datapath *dp, const struct of_connection *c)
{
    if (dp->ops->forget) {
        dp->ops->forget(dp, c);
    }
}

void datapath_send_held(struct datapath *dp, uint32_t port, const uint8_t *frame, size_t size)
{
    if (dp->ops->send_held) {
        dp->ops->send_held(dp, port, frame, size);
    }
}

const struct dp_pod *const *datapath_pods(struct datapath *dp, size_t *ret_n)
{
    return dp->ops->pods(dp, ret_n);
}

const struct dp_pod *datapath_find(struct datapath *dp, const char *container_id,
                                   const char *ifname)
{
    return dp->ops->find(dp, container_id, ifname);
}

void datapath_get_status(struct datapath *dp, struct datapath_status *ret)
{
    dp->ops->get_status(dp, ret);
}

void datapath_drops(struct datapath *dp, datapath_drops_fn *done, void *ctx)
{
    dp->ops->drops(dp, done, ctx);
}

void datapath_rules(struct datapath *dp, const struct datapath_rules_ops *ops, void *ctx)
{
    dp->ops->rules(dp, ops, ctx);
}

void datapath_trace(struct datapath *dp, const struct model_packet *p, datapath_trace_fn *done,
                    void *ctx)
{
    dp->ops->trace(dp, p, done, ctx);
}

int datapath_watch(struct datapath *dp, datapath_events_fn *fn, void *ctx, struct err *e)
{
    return dp->ops->watch(dp, fn, ctx, e);
}

int datapath_maps(struct datapath *dp, const char *name, const char *after, size_t limit,
                  struct json **ret, struct err *e)
{
    return dp->ops->maps(dp, name, after, limit, ret, e);
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
