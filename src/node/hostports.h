/* SPDX-License-Identifier: Apache-2.0 */
/* Which ports of the host lead to which pod, as the datapath has it stored. */
#pragma once

#include "datapath/datapath.h"
#include "node/nat.h"

/* '*ret' is an owned array, in an order that depends on its content only; returns its size. */
size_t host_ports_collect(struct datapath *dp, struct nat_port **ret);
