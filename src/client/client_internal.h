/* SPDX-License-Identifier: Apache-2.0 */
/* What the informer needs of the client beyond its public face.  Same thread as the client. */
#pragma once

#include "client/client.h"

/* The client's connection to the server; the client's. */
struct http_client *api_client_http(struct api_client *c);
/* Negative errno for an HTTP status, as client.h lists them; 'reason' of the Status, or NULL. */
int api_status_errno(int status, const char *reason);
