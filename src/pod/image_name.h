/* SPDX-License-Identifier: Apache-2.0 */
/* Names of images, as users write them and as registries and runtimes take them: [HOST[:PORT]/]PATH
 * [:TAG][@DIGEST] (github.com/distribution/reference).  Pure. */
#pragma once

#include "base/err.h"

/* The whole name: "nginx" is "docker.io/library/nginx:latest".  Owned; -EINVAL: no name of an
 * image. */
int image_name_complete(const char *image, char **ret, struct err *e);
/* The same without tag and digest, by which credentials are chosen. */
int image_name_repository(const char *image, char **ret, struct err *e);
/* The policy of pulls that applies when none is given: "Always" for the tag "latest", else
 * "IfNotPresent". */
const char *image_name_pull_policy(const char *image);
