/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of a container, as a kubelet makes it (Kubernetes' makeEnvironmentVariables).
 *
 * In order: variables of services, the objects of envFrom, and env; a later one replaces an earlier
 * one of the same name.  "$(NAME)" in a value of env refers to the variables before it, and to
 * those of services; in command and args to all.  "$$" stands for "$", and a reference to an unknown
 * name stays as it is.  Pure. */
#pragma once

#include "pod/field.h"

/* The kernel's limit of one string of execve(2), and the usual limit of all together.  A larger
 * environment could start no process, and is refused with -EINVAL. */
#define POD_ENV_TEXT_MAX ((128 << 10) - 1)
#define POD_ENV_MAX (2 << 20)

struct pod_env {
    struct runtime_pair *v; /* Owned, with their texts. */
    size_t n;
    /* One text for each object of envFrom that had keys which are no names of variables: for an
     * Event with the reason InvalidEnvironmentVariableNames.  NULL: none. */
    struct json *skipped;
};

/* The environment of 'container', which is a member of 'pod'.  Errors are the message of the waiting
 * reason CreateContainerConfigError: -ENOENT: an object or a key is missing; -EINVAL: the object
 * or the reference is invalid; -EAGAIN: something is not known yet.  '*ret' is the caller's, to
 * be released with pod_env_done; untouched on failure. */
int pod_env_make(const struct json *pod, const struct json *container, const struct pod_facts *f,
                 struct pod_env *ret, struct err *e);
void pod_env_done(struct pod_env *env);
static inline UNUSED void pod_env_donep(struct pod_env *env)
{
    pod_env_done(env);
}
static inline UNUSED struct runtime_pairs pod_env_pairs(const struct pod_env *env)
{
    return (struct runtime_pairs){env->v, env->n};
}
/* The value of a variable; NULL: it is not set. */
const char *pod_env_get(struct runtime_pairs env, const char *name);

/* 'text' with its references replaced; the caller owns '*ret'. */
int pod_env_expand(const char *text, struct runtime_pairs env, char **ret, struct err *e);
/* The same, but a reference to an unknown name is an error (subPathExpr). */
int pod_env_expand_strict(const char *text, struct runtime_pairs env, char **ret, struct err *e);
/* An array of the expanded strings of 'list', a container's command or args; empty when 'list' is
 * NULL.  The caller owns '*ret'. */
int pod_env_expand_list(const struct json *list, struct runtime_pairs env, struct json **ret,
                        struct err *e);
