/* SPDX-License-Identifier: Apache-2.0 */
#include "node/openshift_keys.h"

const struct option_alias node_alias[] = {
    {"networkPluginName", "networkConfig.networkPluginName", false},
    {0},
};

#define OF_KUBELET "a key of the kubelet: give it the file, too (tenet kubelet --config)"
#define NO_DOCKER "containers are run by a runtime with the CRI"
#define FIXED_CLIENT "the agent's connection to the API is not tuned"

const struct option_idle node_idle[] = {
    {"allowDisabledDocker", NO_DOCKER, "false"},
    {"authConfig", OF_KUBELET, NULL},
    {"dockerConfig", NO_DOCKER, NULL},
    {"enableUnidling", "services that idle are always woken", "true"},
    {"imageConfig", "this version needs no image for its own parts but the pause image", NULL},
    {"iptablesSyncPeriod", "changes of services are applied at once, and nothing is repeated",
     NULL},
    {"kubeletArguments", OF_KUBELET, NULL},
    {"masterClientConnectionOverrides", FIXED_CLIENT, NULL},
    {"podManifestConfig", OF_KUBELET, NULL},
    {"proxyArguments", "no option of Tenet stands for this flag", NULL},
    {"servingInfo", OF_KUBELET, NULL},
    {"volumeConfig", "volumes have no quota of each group", NULL},
    {"volumeDirectory", OF_KUBELET, NULL},
    {0},
};
