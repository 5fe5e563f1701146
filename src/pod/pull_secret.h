/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials for pulls of images, in Secrets of the types kubernetes.io/dockerconfigjson and
 * kubernetes.io/dockercfg, chosen as in the kubelet's keyring (k8s.io/kubernetes,
 * pkg/credentialprovider).
 *
 * Users write the Secrets: whatever is no document of this form has no credentials.  Pure. */
#pragma once

#include "wire/json.h"

/* Most credentials for an image: each is tried with the registry, while other pulls wait. */
#define PULL_SECRET_MAX 32

/* The credentials of 'secrets' (objects) for the image, the best match first.  Owned array of objects
 * {registry, username, password, identitytoken}; empty if there is none, or the image has no valid
 * name. */
struct json *pull_secret_credentials(const char *image, const struct json *const *secrets,
                                     size_t n);
/* Whether the key of a document ("*.example.com:5000/team") is for a repository
 * ("a.example.com:5000/team/app").  A star stands for any characters of one label of the host, a
 * question mark for one; ports are equal; the key's path is the beginning of the repository's. */
bool pull_secret_matches(const char *key, const char *repository);
