/* SPDX-License-Identifier: Apache-2.0 */
/* Security context constraints: which settings a pod may have, and what is filled in where it
 * leaves them open.
 *
 * Strategies, order and words are those of OpenShift (release 3.11, and the fields that 4.x added),
 * so that its users find the messages that they know.  The admission plug-in
 * SecurityContextConstraint acts upon the results (apiserver/admission/admit_scc.c), as do the
 * reviews of security.openshift.io (apiserver/verbs/scc_review.c).
 *
 * A struct scc is made of an object of the kind SecurityContextConstraints, once.  A struct
 * scc_provider is such constraints with the values of one project (user IDs, groups, SELinux
 * level), made for each pod; it borrows the constraints.  A "pod" here is any object with metadata
 * and spec of a pod: a Pod, or a PodTemplateSpec.  A setting of a wrong type is refused.
 *
 * Pure; the caller owns all trees.  A struct scc is constant, and may be shared by threads. */
#pragma once

#include "api/kind.h"

#define SCC_GROUP "security.openshift.io"
#define SCC_PLURAL "securitycontextconstraints"
#define SCC_ANNOTATION "openshift.io/scc" /* Of a pod: the constraints that allowed it. */
/* Of a pod: only these constraints are tried. */
#define SCC_REQUIRED_ANNOTATION "openshift.io/required-scc"
/* Annotations of a namespace: the values of the project. */
#define SCC_UIDS_ANNOTATION "openshift.io/sa.scc.uid-range"
#define SCC_GROUPS_ANNOTATION "openshift.io/sa.scc.supplemental-groups"
#define SCC_LEVEL_ANNOTATION "openshift.io/sa.scc.mcs"

struct scc;
/* 'obj' is a valid object of the kind.  What it does not say is forbidden. */
struct scc *scc_new(const struct json *obj);
struct scc *scc_free(struct scc *s);
DEFINE_CLEANUP(struct scc *, scc_free)
const char *scc_name(const struct scc *s);
const struct json *scc_object(const struct scc *s); /* Borrowed. */
/* Whether the constraints name the user, or one of the groups. */
bool scc_names_subject(const struct scc *s, const char *user, char *const *groups, size_t n);

/* How much the constraints allow: more points allow more.  The weights are the original's, so that
 * its order comes out. */
unsigned scc_points(const struct scc *s);
/* The order in which constraints are tried: higher priority, fewer points, name. */
int scc_compare(const struct scc *a, const struct scc *b);

/* IDs min .. max, both included. */
struct scc_range {
    int64_t min, max;
};
struct scc_ranges {
    struct scc_range *at;
    size_t n;
};
#define SCC_MAX_BLOCKS 64 /* Of an annotation. */
/* Parses "START/LENGTH" or "START-END" of the annotation SCC_UIDS_ANNOTATION.  -EINVAL. */
int scc_parse_block(const char *text, struct scc_range *ret, struct err *e);

struct scc_provider {
    const struct scc *scc;
    struct scc_range users; /* Of MustRunAs and MustRunAsRange. */
    const char *level;      /* Of the SELinux strategy MustRunAs; borrowed. */
    struct scc_ranges file_groups, groups;
};
/* Joins the constraints with the annotations of the namespace 'ns' (NULL: it has none).  -EINVAL:
 * an annotation that the constraints need is absent or wrong; then '*ret' is not made. */
int scc_provider_init(struct scc_provider *ret, const struct scc *s, const char *ns,
                      const struct json *annotations, struct err *e);
void scc_provider_done(struct scc_provider *p);
static inline UNUSED void scc_provider_donep(struct scc_provider *p)
{
    scc_provider_done(p);
}

/* The part of a pod in which unset settings are filled in. */
enum scc_part {
    SCC_WHOLE_POD,
    SCC_EPHEMERAL_CONTAINERS,
};
/* Fills unset settings in; a setting that is there stays.  Returns whether the pod was changed. */
bool scc_fill(const struct scc_provider *p, struct json *pod, enum scc_part part);
/* Adds a cause for each setting of 'pod' that the constraints do not allow.  'path' precedes the
 * fields' names: "", or "spec.template.". */
void scc_check(const struct scc_provider *p, const struct json *pod, const char *path,
               struct api_causes *c);
