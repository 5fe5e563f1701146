/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/csi/drivers.h"

#include "api/kind.h"
#include "base/map.h"
#include "base/mem.h"

#include <pthread.h>

#define DRIVER_NAME_MAX 63

struct csi_drivers {
    pthread_mutex_t mutex; /* Guards all below. */
    size_t refs;
    struct smap map; /* Name to 'struct csi_driver'. */
};

void csi_driver_done(struct csi_driver *d)
{
    free(d->name);
    free(d->endpoint);
    free(d->node_id);
    json_free(d->topology);
    *d = (struct csi_driver){0};
}

static void driver_free(void *p)
{
    csi_driver_done(p);
    free(p);
}

static void copy(const struct csi_driver *from, struct csi_driver *to)
{
    *to = *from;
    to->name = xstrdup(from->name);
    to->endpoint = xstrdup(from->endpoint);
    to->node_id = xstrdup(from->node_id);
    to->topology = from->topology ? json_clone(from->topology) : NULL;
}

struct csi_drivers *csi_drivers_new(void)
{
    struct csi_drivers *d = NEW(struct csi_drivers);
    pthread_mutex_init(&d->mutex, NULL);
    d->refs = 1;
    smap_init(&d->map, driver_free);
    return d;
}

struct csi_drivers *csi_drivers_ref(struct csi_drivers *d)
{
    pthread_mutex_lock(&d->mutex);
    d->refs++;
    pthread_mutex_unlock(&d->mutex);
    return d;
}

struct csi_drivers *csi_drivers_unref(struct csi_drivers *d)
{
    if (!d) {
        return NULL;
    }
    pthread_mutex_lock(&d->mutex);
    bool last = --d->refs == 0;
    pthread_mutex_unlock(&d->mutex);
    if (last) {
        smap_done(&d->map);
        pthread_mutex_destroy(&d->mutex);
        free(d);
    }
    return NULL;
}

void csi_drivers_set(struct csi_drivers *d, struct csi_driver *driver)
{
    struct csi_driver *own = NEW(struct csi_driver);
    *own = *driver;
    *driver = (struct csi_driver){0};
    pthread_mutex_lock(&d->mutex);
    smap_remove(&d->map, own->name);
    smap_set(&d->map, own->name, own);
    pthread_mutex_unlock(&d->mutex);
}

void csi_drivers_remove(struct csi_drivers *d, const char *name)
{
    pthread_mutex_lock(&d->mutex);
    smap_remove(&d->map, name);
    pthread_mutex_unlock(&d->mutex);
}

int csi_drivers_find(struct csi_drivers *d, const char *name, struct csi_driver *ret, struct err *e)
{
    pthread_mutex_lock(&d->mutex);
    const struct csi_driver *found = smap_get(&d->map, name);
    if (found) {
        copy(found, ret);
    }
    pthread_mutex_unlock(&d->mutex);
    return found ? 0
                 : err_set(e, -ENOENT,
                           "driver name %.100s not found in the list of registered CSI drivers",
                           name);
}

struct json *csi_drivers_list(struct csi_drivers *d)
{
    struct json *list = json_array();
    struct smap_entry *en;
    pthread_mutex_lock(&d->mutex);
    SMAP_FOREACH (en, &d->map) {
        const struct csi_driver *v = en->value;
        struct json *o = json_append(list, json_object());
        json_set_string(o, "name", v->name);
        json_set_string(o, "nodeID", v->node_id);
        struct json *keys = json_set(o, "topologyKeys", json_array());
        for (size_t i = 0; i < json_count(v->topology); i++) {
            json_append(keys, json_string(json_key_at(v->topology, i)));
        }
        if (v->max_volumes > 0) {
            json_set_int(json_ensure_object(o, "allocatable"), "count",
                         MIN(v->max_volumes, (int64_t) INT32_MAX));
        }
    }
    pthread_mutex_unlock(&d->mutex);
    return list;
}

struct json *csi_drivers_labels(struct csi_drivers *d)
{
    struct json *labels = json_object();
    struct smap_entry *en;
    pthread_mutex_lock(&d->mutex);
    SMAP_FOREACH (en, &d->map) {
        const struct csi_driver *v = en->value;
        for (size_t i = 0; i < json_count(v->topology); i++) {
            json_set(labels, json_key_at(v->topology, i), json_clone(json_at(v->topology, i)));
        }
    }
    pthread_mutex_unlock(&d->mutex);
    return labels;
}

bool csi_driver_name_is_valid(const char *name)
{
    return strlen(name) <= DRIVER_NAME_MAX && !api_check_dns_subdomain(name);
}
