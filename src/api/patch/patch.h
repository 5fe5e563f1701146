/* SPDX-License-Identifier: Apache-2.0 */
/* Patches of objects: merge patch (RFC 7386), JSON patch (RFC 6902), strategic merge patch.
 *
 * Each takes the tree '*obj' and changes it in place or replaces it; after a failure its content is
 * unspecified, so callers patch a copy. */
#pragma once

#include "api/kind.h"

/* Maximum of operations in a JSON patch, and of bytes added by its "copy" operations. */
#define API_PATCH_MAX_OPS 10000
#define API_PATCH_MAX_COPY ((size_t) 3 << 20)

void api_patch_merge(struct json **obj, const struct json *patch);
/* -EINVAL: the patch is malformed; -ENOENT: it does not apply (an absent path, a failed test);
 * -E2BIG: too many operations or too much copied. */
int api_patch_json(struct json **obj, const struct json *patch, struct err *e);
/* Like a merge patch, but lists with a merge key (containers by name, conditions by type, ...)
 * are merged by it, and the directives $patch, $retainKeys, $setElementOrder and
 * $deleteFromPrimitiveList are executed. -EINVAL; -ENOENT: an unknown directive. */
int api_patch_strategic(const struct api_kind *k, struct json **obj, const struct json *patch,
                        struct err *e);
