/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of OpenShift 3's node-config.yaml, and flags of Kubernetes' kubelet among its
 * kubeletArguments, that have no effect in this kubelet, with the reason.
 *
 * A file that OpenShift's installer wrote is read with warnings only; a key or a flag that is
 * neither here nor a row is an error.  The flags are those of Kubernetes 1.11.  Constant data. */
#pragma once

#include "wire/options.h"

extern const struct option_alias kubelet_alias[]; /* Ends with a NULL path. */
extern const struct option_idle kubelet_idle[];   /* The same. */
