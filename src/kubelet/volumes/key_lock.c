/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/volumes/key_lock.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"

#include <pthread.h>

struct key_lock {
    struct list node;
    char *key;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static struct list held = LIST_INIT(&held); /* Guarded by 'mutex'. */

static bool is_held(const char *key)
{
    const struct key_lock *l;
    LIST_FOREACH (l, const struct key_lock, node, &held) {
        if (streq(l->key, key)) {
            return true;
        }
    }
    return false;
}

struct key_lock *key_lock_take(const char *key)
{
    struct key_lock *l = NEW(struct key_lock);
    l->key = xstrdup(key);
    pthread_mutex_lock(&mutex);
    while (is_held(key)) {
        pthread_cond_wait(&released, &mutex);
    }
    list_push_back(&held, &l->node);
    pthread_mutex_unlock(&mutex);
    return l;
}

struct key_lock *key_lock_release(struct key_lock *l)
{
    if (l) {
        pthread_mutex_lock(&mutex);
        list_remove(&l->node);
        pthread_cond_broadcast(&released);
        pthread_mutex_unlock(&mutex);
        free(l->key);
        free(l);
    }
    return NULL;
}
