/* SPDX-License-Identifier: Apache-2.0 */
/* Constraints as their object says, and what filling in and checking share.  Internal to
 * src/pod/scc*.c. */
#pragma once

#include "pod/scc.h"

enum scc_user_strategy { SCC_ANY_USER, SCC_NON_ROOT, SCC_USER_RANGE, SCC_ONE_USER };

/* The lists belong to 'obj'. */
struct scc {
    struct json *obj;
    const char *name;
    int64_t priority;
    unsigned points;
    bool privileged, host_network, host_ports, host_pid, host_ipc, host_paths;
    bool read_only_root, own_users;        /* A pod must have a user namespace of its own. */
    bool escalation;                       /* Processes may gain privileges. */
    const struct json *default_escalation; /* NULL: says nothing. */
    enum scc_user_strategy user;
    bool one_level, own_file_groups, own_groups; /* Strategies MustRunAs of SELinux and groups. */
    const struct json *labels;                   /* SELinux options; NULL: none. */
    const struct json *default_adds, *drops, *adds; /* Capabilities. */
    const struct json *volumes, *drivers, *profiles, *unsafe, *forbidden;
    bool all_adds, all_volumes;
};

/* Whether a field has a value other than null. */
static inline bool scc_is_set(const struct json *v)
{
    return v && !json_is(v, JSON_NULL);
}
bool scc_has_word(const struct json *list, const char *word);
/* The value of the container's security context, or else of the pod's; NULL: neither has one. */
const struct json *scc_effective(const struct json *context, const struct json *pod_context,
                                 const char *key);
/* The names of the lists of containers; ends with NULL. */
extern const char *const scc_lists[];

/* The text by which constraints name a seccomp profile: "runtime/default", "unconfined",
 * "localhost/FILE"; owned.  NULL: the value is none. */
char *scc_profile_text(const struct json *profile);
/* The first profile that is not "*"; NULL: none. */
const char *scc_default_profile(const struct scc *s);
#define SCC_SECCOMP_POD "seccomp.security.alpha.kubernetes.io/pod"
#define SCC_SECCOMP_CONTAINER "container.seccomp.security.alpha.kubernetes.io/"
