/* SPDX-License-Identifier: Apache-2.0 */
/* ProjectRequest of project.openshift.io: a user without rights in the cluster asks for a project
 * of one's own, and is answered with the Project.
 *
 * The objects are those of a Template: the built-in one, or that of
 * projectConfig.projectRequestTemplate.  The namespace and all other objects are written in one
 * transaction, so that no failure leaves a project without its administrator, and one of several
 * racing requests wins.  The answer follows when the server's own cache has all of them: the next
 * request of the user is authorized by the new role binding.
 *
 * The template is the cluster administrator's: its objects are judged by the rules of their kinds,
 * but not by admission, which judges users.  Kinds whose safety depends on admission, or that need
 * allocation, are refused.  Listing tells whether the user may request a project.  The texts follow
 * OpenShift's project API (openshift/origin, pkg/project).  Internal to src/apiserver; loop's
 * thread. */
#pragma once

#include "apiserver/request/request.h"

/* Whether the request is for projectrequests. */
bool project_request_is_asked(const struct request *q);
void handle_project_request(struct request *q, struct outcome *outcome);
