/* SPDX-License-Identifier: Apache-2.0 */
/* An API server with RBAC and the default roles, and a project in it with people who have them. */
#pragma once

#include "harness.h"

/* In the namespace "red" are vic with role view, eve with edit, ada with admin; "blue" is another
 * project.  The pod network is 10.128.0.0/14, services are 172.30.0.0/16. */
struct harness *project_new(void);

/* A request by 'user', whose body (NULL: none) is written with ' for "; PATCH sends a
 * merge patch. */
struct answer by(struct harness *h, const char *user, const char *method, const char *path,
                 const char *body);
/* As before; fails the test unless the status is 'want' and the answer's text contains
 * 'text' (NULL: anything). */
void check_by(struct harness *h, const char *user, const char *method, const char *path,
              const char *body, int want, const char *text);
/* By the master itself; fails the test unless the status is below 300. */
void by_master(struct harness *h, const char *method, const char *path, const char *body);
/* Binds 'role' (a ClusterRole) to the user, in 'ns'. */
void give_role(struct harness *h, const char *ns, const char *user, const char *role);
