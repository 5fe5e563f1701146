/* SPDX-License-Identifier: Apache-2.0 */
/* The controllers of ReplicaSets and of ReplicationControllers: keep the number of pods
 * (workload/replicas.h). */
#pragma once

#include "controller/controller.h"

extern const struct controller replica_sets_controller, replication_controllers_controller;
