/* SPDX-License-Identifier: Apache-2.0 */
/* CustomResourceDefinitions (apiextensions.k8s.io/v1): kinds that are known at run time.
 *
 * A 'struct crd' is the compiled form of one definition: an api_kind for each served version,
 * with schema, columns and subresources.  All versions of a kind have the same fields
 * (conversion strategy None): objects are stored in the version marked as stored, and returned
 * in the requested one. Pure. A definition is reference-counted and immutable except for
 * crd_set_terminating; its kinds are freed with it. */
#pragma once

#include "api/registry.h"

#define CRD_GROUP "apiextensions.k8s.io"
#define CRD_VERSION "v1"
#define CRD_PLURAL "customresourcedefinitions"
#define CRD_API_VERSION CRD_GROUP "/" CRD_VERSION
/* Keeps a definition until its objects are deleted. */
#define CRD_FINALIZER "customresourcecleanup.apiextensions.k8s.io"

struct crd;
/* From a CustomResourceDefinition whose names were accepted. -EINVAL: it cannot be served;
 * -ENOENT: it is not established. */
int crd_new(const struct json *obj, struct crd **ret, struct err *e);
struct crd *crd_ref(struct crd *c);
struct crd *crd_unref(struct crd *c); /* NULL is fine; returns NULL. */
DEFINE_CLEANUP(struct crd *, crd_unref)

const char *crd_name(const struct crd *c);
/* The version in which objects are stored, whether it is served or not. */
const struct api_kind *crd_stored(const struct crd *c);
/* The i-th served version; NULL: no more. */
const struct api_kind *crd_served(const struct crd *c, size_t i);
bool crd_has_kind(const struct crd *c, const struct api_kind *k);
/* Whether both serve the same kinds in the same way. */
bool crd_same(const struct crd *a, const struct crd *b);
/* Its deletion was requested: nothing new is created. */
bool crd_is_terminating(const struct crd *c);
void crd_set_terminating(struct crd *c, bool terminating);

/* Sets the status of the CustomResourceDefinition 'obj': its names are accepted unless another
 * kind of 'known' has them ('own', which may be NULL, is its present definition), and it is
 * established. True: 'obj' was changed. */
bool crd_settle(struct json *obj, const struct api_registry *known, const struct crd *own,
                int64_t now_ms);
/* Versions as Kubernetes orders them: v2, v1, v2beta1, v1alpha1, then others by their letters. */
int api_version_compare(const char *a, const char *b);
