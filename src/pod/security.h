/* SPDX-License-Identifier: Apache-2.0 */
/* Security settings of pods and containers as the runtime takes them.
 *
 * A container's settings come before the pod's; what neither gives has the kubelet's defaults
 * (pkg/kubelet/kuberuntime/security_context.go, pkg/securitycontext).  Lists are in the arena.  Pure;
 * everything that is not understood is an error, never ignored. */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "runtime/runtime_spec.h"
#include "wire/json.h"

/* What the node allows and has. */
struct pod_security_config {
    const char *seccomp_dir; /* Profiles of Localhost are below it. */
    /* Sysctls beyond the safe ones, "NAME" or "PREFIX*"; NULL ends it; NULL: none. */
    const char *const *allowed_sysctls;
};

/* Settings of the sandbox, and of the container when 'container' is not NULL. 'target_id': the
 * container whose processes an ephemeral one sees; NULL: none.  -EINVAL names the field. */
int pod_security(const struct json *pod, const struct json *container, const char *target_id,
                 const struct pod_security_config *conf, struct arena *a,
                 struct runtime_security *ret, struct err *e);

/* Checks runAsNonRoot against the user of the image: 'image' has it.  -EPERM with the kubelet's text,
 * of the waiting reason CreateContainerConfigError. */
int pod_check_non_root(const struct json *pod, const struct json *container,
                       const struct runtime_image *image, struct err *e);

/* The pod's sysctls; -EPERM: one is not allowed (the reason SysctlForbidden). */
int pod_sysctls(const struct json *pod, const struct pod_security_config *conf, struct arena *a,
                struct runtime_pairs *ret, struct err *e);
