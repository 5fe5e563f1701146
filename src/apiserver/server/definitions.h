/* SPDX-License-Identifier: Apache-2.0 */
/* Serves the kinds of CustomResourceDefinitions, and writes the status of the definitions. */
#pragma once

#include "apiserver/request/server_priv.h"

/* Makes the timer of the definitions, and subscribes to the cache. */
void definitions_init(struct apiserver *a);
/* Serves the CustomResourceDefinitions in the cache. */
void definitions_load(void *server);
/* Writes the status of new definitions; one write at a time. */
void definitions_settle(void *server);
