/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/admission/plugin_names.h"

#include "base/macro.h"
#include "base/str.h"

#include <stddef.h>

#define BUILDS "it comes with builds, which this version does not have"
#define IMAGES "it comes with image streams, which this version does not have"
#define WEBHOOKS "the webhooks of the registry are asked about each write (docs/webhooks.md)"

static const struct admission_name names[] = {
    {"AlwaysAdmit", ADMISSION_IDLE, "a plug-in that refuses nothing changes nothing"},
    {"AlwaysDeny", ADMISSION_LACKING, "no cluster can run with it"},
    {"BuildByStrategy", ADMISSION_IDLE, BUILDS},
    {"BuildDefaults", ADMISSION_IDLE, BUILDS},
    {"BuildOverrides", ADMISSION_IDLE, BUILDS},
    {"EventRateLimit", ADMISSION_IDLE,
     "the API server shares its capacity among all users, and Events expire"},
    {"ExtendedResourceToleration", ADMISSION_IDLE,
     "pods get no tolerations for the devices that they request"},
    {"ExternalIPRanger", ADMISSION_PART,
     "networkConfig.externalIPNetworkCIDRs is checked for each Service"},
    {"ImagePolicyWebhook", ADMISSION_IDLE, IMAGES},
    {"InitialResources", ADMISSION_IDLE, "amounts of resources are not estimated"},
    {"Initializers", ADMISSION_IDLE, "Kubernetes has removed initializers"},
    {"MutatingAdmissionWebhook", ADMISSION_PART, WEBHOOKS},
    {"NamespaceAutoProvision", ADMISSION_LACKING, "a project is made by a request for it"},
    {"NamespaceExists", ADMISSION_PART, "NamespaceLifecycle does it"},
    {"PersistentVolumeLabel", ADMISSION_IDLE, "there are no volumes of cloud providers"},
    {"PodNodeSelector", ADMISSION_LACKING,
     "use projectConfig.defaultNodeSelector and the annotation openshift.io/node-selector"},
    {"PodPreset", ADMISSION_IDLE, "Kubernetes has removed PodPresets"},
    {"PodTolerationRestriction", ADMISSION_LACKING,
     "tolerations are not restricted by namespaces; a webhook can do it"},
    {"SecurityContextDeny", ADMISSION_LACKING, "security context constraints judge the pods"},
    {"ValidatingAdmissionWebhook", ADMISSION_PART, WEBHOOKS},
    {"image.openshift.io/ImagePolicy", ADMISSION_IDLE, IMAGES},
    {"openshift.io/BuildConfigSecretInjector", ADMISSION_IDLE, BUILDS},
    {"openshift.io/ImageLimitRange", ADMISSION_IDLE, IMAGES},
    {"openshift.io/ImagePolicy", ADMISSION_IDLE, IMAGES},
    {"openshift.io/IngressAdmission", ADMISSION_IDLE,
     "users who may update an Ingress may change its host names"},
    {"openshift.io/JenkinsBootstrapper", ADMISSION_IDLE, BUILDS},
};

const struct admission_name *admission_name_at(unsigned i)
{
    return i < ARRAY_SIZE(names) ? &names[i] : NULL;
}

const struct admission_name *admission_name_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (streq(names[i].name, name)) {
            return &names[i];
        }
    }
    return NULL;
}
