/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of a pod's spec, one file for each subject, after ValidatePodSpec of Kubernetes and in
 * its words.
 *
 * What concerns one field alone is in its description (core.v1.kinds); these rules are of several
 * fields, or have words of their own.  They run on a spec that fits its schema.  'field' is the
 * path of what is checked.  Internal to src/api/kinds.  Pure; trees belong to the caller. */
#pragma once

#include "api/kind.h"
#include "base/map.h"

/* The pod or template whose spec is checked. */
struct pod_rules {
    struct api_causes *c;
    const struct json *spec;
    const char *pod_name; /* NULL: not known, as in a template. */
    bool is_pod;          /* A pod, not a template. */
    /* The spec's volumes and resource claims by name, because containers refer to many. */
    struct smap *volumes, *claims;
};

/* The element of a short list of objects with this "name"; NULL: there is none. */
const struct json *pod_find_named(const struct json *list, const struct json *name);
/* Whether a member is true. */
bool pod_has_set(const struct json *obj, const char *key);

/* The lists of containers in a spec. */
enum pod_list { POD_CONTAINERS, POD_INIT_CONTAINERS, POD_EPHEMERAL_CONTAINERS, POD_N_LISTS };
extern const char *const pod_lists[POD_N_LISTS];

/* pod_containers.c: names, images, ports, probes, lifecycle; all that containers refer to. */
void pod_check_containers(const struct pod_rules *r, const char *field);
/* pod_env.c: variables, and the fields of the pod that they or files show. */
void pod_check_env(const struct pod_rules *r, const char *field, const struct json *container);
void pod_check_field_ref(const struct pod_rules *r, const char *field, const struct json *ref,
                         bool in_volume);
void pod_check_resource_ref(const struct pod_rules *r, const char *field, const struct json *ref,
                            bool in_volume);
/* pod_resources.c: requests, limits and claims. */
void pod_check_resources(const struct pod_rules *r, const char *field,
                         const struct json *resources);
void pod_check_claims(const struct pod_rules *r, const char *field);
void pod_check_whole(const struct pod_rules *r, const char *field);
void pod_check_overhead(const struct pod_rules *r, const char *field);
/* pod_volumes.c: volumes and their sources. */
void pod_check_volumes(const struct pod_rules *r, const char *field);
/* Whether a volume names a source; without one it is an empty directory. */
bool pod_volume_has_source(const struct json *volume);
/* kind_volume.c: the spec of a claim, or of the template of one. */
void claim_check_spec(struct api_causes *c, const char *field, const struct json *spec);
/* A path that is relative and without "..". */
void pod_check_local_path(const struct pod_rules *r, const char *field, const struct json *path);
/* pod_mounts.c: the mounts and block devices of a container. */
void pod_check_mounts(const struct pod_rules *r, const char *field, const struct json *container);
/* pod_scheduling.c: what the scheduler goes by. */
void pod_check_scheduling(const struct pod_rules *r, const char *field);
void pod_check_tolerations(struct api_causes *c, const char *field, const struct json *list);
/* pod_security.c: security settings, and those of another operating system. */
void pod_check_container_security(const struct pod_rules *r, const char *field,
                                  const struct json *context);
void pod_check_security(const struct pod_rules *r, const char *field);
/* pod_annotations.c: annotations with a meaning, among them old forms of security settings. */
void pod_check_annotations(const struct pod_rules *r, const char *field,
                           const struct json *annotations);
void pod_check_annotation_update(struct api_causes *c, const struct json *now,
                                 const struct json *before);
/* Annotations and the fields that replace them agree in a new pod. */
void pod_check_profiles(const struct pod_rules *r, const char *field,
                        const struct json *annotations);
