/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of a Route's texts (route.openshift.io/v1), which the API server and routers share.
 *
 * Each function returns NULL for a valid text, else a constant text with the rule.  Pure. */
#pragma once

#include "base/macro.h"

#define ROUTE_GROUP "route.openshift.io"
/* The largest weight of a service, and of an absent one at the API. */
#define ROUTE_MAX_WEIGHT 256
#define ROUTE_DEFAULT_WEIGHT 100
/* Services of a route beside the first one. */
#define ROUTE_MAX_ALTERNATES 3
/* Bytes of a path. */
#define ROUTE_MAX_PATH 2048
/* Headers that a route changes, in each direction. */
#define ROUTE_MAX_HEADERS 20

/* A name of a route: a DNS subdomain of at most 63 characters. */
const char *route_check_name(const char *s);
/* A host name: labels of at most 63 characters, 253 in all (RFC 1123, section 2.1). */
const char *route_check_host(const char *s);
/* Labels within a router's domain. */
const char *route_check_subdomain(const char *s);
/* An absolute path as requests have it: characters of RFC 3986, section 3.3; others are
 * percent-encoded. */
const char *route_check_path(const char *s);
/* A port of endpoints: a number from 1 to 65535 as text, or a name. */
const char *route_check_port(const char *s);
/* The name of a header (RFC 9110, section 5.6.2) that routes may change. */
const char *route_check_header_name(const char *s);
/* A value of a header of requests (else: of responses) in HAProxy's log format, of which only
 * sample expressions of a fixed list may be in it. */
const char *route_check_header_value(const char *s, bool request);
