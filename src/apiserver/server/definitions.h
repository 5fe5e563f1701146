/* SPDX-License-Identifier: Apache-2.0 */
/* CustomResourceDefinitions at work: what is served, and their status. */
#pragma once

#include "apiserver/request/server_priv.h"

/* Makes the timer of the definitions, and subscribes to the cache. */
void definitions_init(struct apiserver *a);
/* Serves what the CustomResourceDefinitions in the cache say. */
void definitions_load(void *server);
/* Settles the status of those that are new; one write at a time. */
void definitions_settle(void *server);
