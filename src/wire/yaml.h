/* SPDX-License-Identifier: Apache-2.0 */
/* YAML to JSON values, through libyaml's event interface: configuration files and manifests.
 *
 * Scalars follow Kubernetes' habit (YAML 1.1 as sigs.k8s.io/yaml reads it): unquoted
 * true/false/yes/no/ on/off/y/n are booleans; integers, also as 0x1f, 0o17, 017 and 0b11, and
 * floats are numbers, exact and in JSON's syntax ("0644" is 420, "1_000" is 1000); null, ~ and
 * an empty value are null; all others, dates too, are strings.  A key that is a number or
 * boolean becomes its text.  Aliases are refused (alias bombs; no manifest needs them), as are
 * duplicate keys, keys that are null or no scalars, merge keys, infinities and NaN, more than
 * JSON_MAX_DEPTH levels, and tags.  Pure; nothing is kept between calls. */
#pragma once

#include "wire/json.h"

/* All documents of 'text' in order (empty ones skipped) as a JSON array; JSON input works too, as
 * it is YAML.  -EINVAL with line and column. */
int yaml_parse_all(const char *text, size_t size, struct json **ret_array, struct err *e);
/* Exactly one document; an empty text is an empty object. */
int yaml_parse(const char *text, size_t size, struct json **ret, struct err *e);
/* The line, from 1, of the key or item at 'path' ("networkConfig.clusterNetworks[0].cidr") in the
 * first document of 'text', or of the deepest one above it that is there; 0: there is none. */
size_t yaml_find_line(const char *text, size_t size, const char *path);
/* Appends 'v' as a block-style YAML document the way kubectl -o yaml does (sorted as given, strings
 * quoted when they would read as something else), but long lines are not folded.  Bytes that are
 * not UTF-8 become U+FFFD.  out->failed: it did not fit. */
void yaml_write(const struct json *v, struct strbuf *out);
