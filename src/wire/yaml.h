/* SPDX-License-Identifier: Apache-2.0 */
/* YAML to JSON values, through libyaml's event interface: configuration files and manifests.
 *
 * Scalars follow Kubernetes' habit (YAML 1.1 as sigs.k8s.io/yaml reads it): unquoted true/false/yes/no/
 * on/off are booleans, decimal integers and floats are numbers, null and ~ are null, the rest strings.
 * Aliases are refused (alias bombs; no manifest needs them), as are duplicate keys, non-string keys
 * after conversion, more than JSON_MAX_DEPTH levels, and tags. */
#pragma once

#include "wire/json.h"

/* All documents of 'text' in order (empty ones skipped) as a JSON array; JSON input works too, as it is
 * YAML.  -EINVAL with line and column. */
int yaml_parse_all(const char *text, size_t size, struct json **ret_array, struct err *e);
/* Exactly one document; an empty text is an empty object. */
int yaml_parse(const char *text, size_t size, struct json **ret, struct err *e);
/* Writes 'v' as a block-style YAML document the way kubectl -o yaml does (sorted as given, strings quoted
 * when they would read as something else). */
void yaml_write(const struct json *v, struct strbuf *out);
