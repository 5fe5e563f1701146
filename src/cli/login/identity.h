/* SPDX-License-Identifier: Apache-2.0 */
/* The name of the user that a server takes the caller for. */
#pragma once

#include "client/client.h"

/* Asks for users/~, or on a server without kinds of OpenShift for a SelfSubjectReview.  '*ret' is
 * owned. */
int identity_ask(struct api_client *c, char **ret, struct err *e);
