/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ebpf/early.h"

#include "base/mem.h"
#include "datapath/ebpf/settings.h"

struct early {
    struct datapath_prepared prepared; /* First. */
    char *pins, *without;
    uint32_t max_entries;
    struct program_features features; /* Written by the worker, until 'probed' is set. */
    bool probed;                      /* The features are valid; read by any thread. */
    /* Used by the worker until it is done. */
    struct program program;
    int result; /* 0: the programs are loaded. */
    struct err error;

    bool over, abandoned;
    struct loop_task done; /* Calls the function of early_tell. */
};

static void not_asked(void *ctx)
{
    (void) ctx;
}

static void destroy(struct early *x)
{
    if (x->over && x->result == 0) {
        program_done(&x->program);
    }
    free(x->pins);
    free(x->without);
    free(x);
}

static void load(void *ctx)
{
    struct early *x = ctx;
    x->result = program_probe(x->without, &x->features, &x->error);
    x->features.max_entries = x->max_entries;
    if (x->result == 0) {
        __atomic_store_n(&x->probed, true, __ATOMIC_RELEASE);
        x->result = program_load(x->pins, &x->features, false, &x->program, &x->error);
    }
}

static void loaded(void *ctx)
{
    struct early *x = ctx;
    x->over = true;
    if (x->abandoned) {
        destroy(x);
    } else {
        loop_task_queue(&x->done);
    }
}

static void free_prepared(struct datapath_prepared *p)
{
    early_free(early_of(p));
}

struct early *early_begin(struct loop *l, const struct datapath_config *cfg, const char *pins)
{
    struct early *x = NEW(struct early);
    x->prepared.free = free_prepared;
    x->pins = xstrdup(pins);
    const char *without = datapath_get_setting(cfg, EBPF_WITHOUT);
    x->without = without ? xstrdup(without) : NULL;
    x->max_entries = ebpf_max_entries(cfg);
    loop_task_init(&x->done, l, not_asked, NULL);
    loop_work(l, load, loaded, x);
    return x;
}

struct datapath_prepared *early_prepared(struct early *x)
{
    return &x->prepared;
}

struct early *early_of(struct datapath_prepared *p)
{
    return p ? CONTAINER_OF(p, struct early, prepared) : NULL;
}

bool early_features(const struct early *x, struct program_features *ret)
{
    if (!__atomic_load_n(&x->probed, __ATOMIC_ACQUIRE)) {
        return false;
    }
    *ret = x->features;
    return true;
}

void early_tell(struct early *x, loop_fn *fn, void *ctx)
{
    x->done.fn = fn;
    x->done.ctx = ctx;
    if (x->over) {
        loop_task_queue(&x->done);
    }
}

int early_take(struct early *x, struct program_features *ret_features, struct program *ret,
               struct err *e)
{
    int r = x->result;
    if (r < 0) {
        *e = x->error;
        return r;
    }
    *ret_features = x->features;
    *ret = x->program;
    x->result = -ENOENT; /* Their owner is the caller now. */
    return 0;
}

struct early *early_free(struct early *x)
{
    if (x) {
        loop_task_cancel(&x->done);
        x->abandoned = true;
        if (x->over) {
            destroy(x);
        }
    }
    return NULL;
}
