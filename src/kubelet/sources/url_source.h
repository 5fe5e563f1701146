/* SPDX-License-Identifier: Apache-2.0 */
/* A manifest by HTTP or HTTPS, read at an interval.
 *
 * An answer other than 200, or none, changes nothing: what was read last stays.  The server's name
 * is looked up on a worker thread, and again after a failure.  HTTPS is verified with the host's
 * authorities.  Everything else runs on the loop's thread. */
#pragma once

#include "kubelet/sources/file_source.h"

struct url_source;
/* Reads 'url' soon, and then every 'interval_ms'.  'headers' are "NAME: VALUE", NULL ends them (NULL:
 * none). 'fn' gets one manifest. */
struct url_source *url_source_new(struct loop *l, const char *url, char *const *headers,
                                  uint64_t interval_ms, manifests_read_fn *fn, void *ctx);
struct url_source *url_source_free(struct url_source *s);
