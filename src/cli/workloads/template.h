/* SPDX-License-Identifier: Apache-2.0 */
/* The pod template of an object, and its containers.  Pure; trees belong to the caller. */
#pragma once

#include "api/kind.h"

/* The object with "metadata" and "spec" from which pods are made: the pod itself, the template of a
 * workload or of a CronJob's Job.  NULL: it has none. */
struct json *template_of(const struct api_kind *k, const struct json *object);
/* Where that template is in the object: "spec.template"; "" for a pod. */
const char *template_path(const struct api_kind *k);

/* Calls 'fn' for each container whose name matches 'pattern' ("*", "web*", a name); with 'init'
 * also for init containers.  Returns the number of matches, or the first negative result. */
typedef int template_container_fn(void *ctx, struct json *container, struct err *e);
int template_each_container(struct json *template, const char *pattern, bool init,
                            template_container_fn *fn, void *ctx, struct err *e);
/* The element of the array 'list' with this name; NULL: there is none. */
struct json *template_named(const struct json *list, const char *name);
/* Removes it; false: there was none. */
bool template_remove_named(struct json *list, const char *name);

/* Whether an object of the kind has a member spec.replicas that scales it. */
bool template_has_replicas(const struct json *object);
/* Whether the kind is 'name' of the group 'group'. */
bool kind_is(const struct api_kind *k, const char *group, const char *name);
#define DC_GROUP "apps.openshift.io"
bool kind_is_dc(const struct api_kind *k);
/* The selector of the pods of an object, as a text for labelSelector; "" if it has none. */
void template_selector(const struct json *object, struct strbuf *out);
/* The number at a path of members of 'o' such as "status", "replicas". */
int64_t number_at(const struct json *o, const char *a, const char *b, int64_t dflt);
/* The annotation 'key' of an object; NULL: it has none. */
const char *annotation_of(const struct json *object, const char *key);
