/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/restart.h"

#define NS INT64_C(1000000000)
#define LEVEL_MAX 16

int64_t pod_backoff_s(uint32_t level)
{
    int64_t s = POD_BACKOFF_MIN_S;
    for (; level > 1 && s < POD_BACKOFF_MAX_S; level--) {
        s *= 2;
    }
    return level == 0 ? 0 : MIN(s, (int64_t) POD_BACKOFF_MAX_S);
}

bool pod_restarts(enum pod_restart_policy policy, enum pod_container_kind kind, int32_t exit_code)
{
    switch (kind) {
    case POD_SIDECAR:
        return true;
    case POD_EPHEMERAL:
        return false;
    case POD_INIT:
        return exit_code != 0 && policy != POD_RESTART_NEVER;
    case POD_MAIN:
        break;
    }
    return policy == POD_RESTART_ALWAYS || (policy == POD_RESTART_ON_FAILURE && exit_code != 0);
}

/* Whether the back-off begins anew after 'last'. */
static bool is_forgotten(const struct observed_container *last, const char *hash)
{
    return (*last->hash && !streq(last->hash, hash)) ||
           (last->started_ns && last->finished_ns - last->started_ns >= POD_BACKOFF_FORGET_S * NS);
}

int64_t pod_restart_at(const struct observed_container *last, const char *hash)
{
    return is_forgotten(last, hash) ? 0 : last->finished_ns + pod_backoff_s(last->level) * NS;
}

uint32_t pod_next_level(const struct observed_container *last, const char *hash)
{
    return is_forgotten(last, hash) ? 1 : MIN(last->level + 1, (uint32_t) LEVEL_MAX);
}
