# SPDX-License-Identifier: Apache-2.0
"""An object of each kind for record_api.py: whole enough that each field users write has a value which may be taken away."""

RULES = [{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["web"]}]
ROLE_SUBJECTS = [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "joe"},
                 {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "dev"},
                 {"kind": "ServiceAccount", "name": "builder", "namespace": "default"}]
POD = {
    "nodeName": "node1", "serviceAccountName": "default", "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 5, "nodeSelector": {"zone": "a"}, "hostname": "web", "subdomain": "sub",
    "securityContext": {"runAsUser": 1000, "fsGroup": 1000},
    "tolerations": [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute", "tolerationSeconds": 3}],
    "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "conf", "configMap": {"name": "c"}}],
    "initContainers": [{"name": "first", "image": "busybox"}],
    "containers": [{
        "name": "c", "image": "busybox:1.36", "command": ["sleep"], "args": ["9"], "imagePullPolicy": "IfNotPresent",
        "env": [{"name": "A", "value": "b"}, {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "ports": [{"name": "http", "containerPort": 8080, "hostPort": 80, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1"}},
        "readinessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 3},
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp", "readOnly": True}],
        "securityContext": {"privileged": False, "capabilities": {"drop": ["ALL"]}}}]}
CONDITION = {"type": "Ready", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2024-01-02T03:04:05Z"}
REQUEST = """LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIWE1IOENBUUF3SFRFTU1Bb0dBMVVFQ2d3RFpHVjJNUTB3Q3dZRFZRUUREQVJxWVc1
bE1Ga3dFd1lIS29aSQp6ajBDQVFZSUtvWkl6ajBEQVFjRFFnQUVVRW9ST3RtbEpMWVU3b0t2T1lHZFl5a0FVZ200aUJKYmxHU0xwdHVSCk9tSzE0dFBZ
U2tEYjV3ZHRwbFl6SUxYOCtvVHUzSml1cDdKbXVpT0srcEtOZmFBQU1Bb0dDQ3FHU000OUJBTUMKQTBnQU1FVUNJR1hGZW1yWW4wTmQ3ZGNRSEtIMlls
eWJMcGNlVXdwakJKK2RqSVBqaXU1QUFpRUE4R092YmtjdwpoRndDYW41aWZ0cU5vaTZvbkw1Y1lib2Y5L1p6dHJMZksvZz0KLS0tLS1FTkQgQ0VSVElG
SUNBVEUgUkVRVUVTVC0tLS0tCg==""".replace("\n", "")
ADMIN_RULES = {
    "egress": [{"name": "out", "action": "Deny", "to": [{"networks": ["192.0.2.0/24"]}],
                "ports": [{"portRange": {"start": 1, "end": 9, "protocol": "TCP"}}]}],
    "ingress": [{"name": "in", "action": "Allow", "from": [{"namespaces": {"matchLabels": {"a": "b"}}}],
                 "ports": [{"portNumber": {"port": 80, "protocol": "UDP"}}, {"namedPort": "http"}]}],
    "subject": {"pods": {"namespaceSelector": {}, "podSelector": {"matchLabels": {"app": "web"}}}}}

TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [
    {"name": "c", "image": "busybox", "ports": [{"containerPort": 80}]}]}}
ENDING = {"metadata": {"labels": {"app": "web"}}, "spec": {"restartPolicy": "OnFailure", "containers": [
    {"name": "c", "image": "busybox"}]}}
OWNER = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}
# Its rule is for a group without kinds, so that no other test meets it.
HOOK = {"name": "a.hooks.example", "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
        "clientConfig": {"service": {"namespace": "default", "name": "hook", "path": "/"}, "caBundle": "Y2E="},
        "rules": [{"operations": ["CREATE"], "apiGroups": ["none.example"], "apiVersions": ["v1"], "resources": ["none"]}]}
DEVICES = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example", "allocationMode": "ExactCount", "count": 1}}]}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "fast"}

PARAMETERIZED = {
    "message": "${NAME} is there", "labels": {"app": "${NAME}"},
    "parameters": [{"name": "NAME", "displayName": "Name", "description": "The name", "value": "web", "required": True},
                   {"name": "PASSWORD", "generate": "expression", "from": "[a]{3}"}],
    "objects": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "${NAME}"}, "data": {"password": "${PASSWORD}"}}]}

# What the mapping in OBJECTS needs.
MAPPED = [{"apiVersion": "user.openshift.io/v1", "kind": "User", "metadata": {"name": "ann"}},
          {"apiVersion": "user.openshift.io/v1", "kind": "Identity", "metadata": {"name": "ldap:ann"}, "providerName": "ldap",
           "providerUserName": "ann"}]

OBJECTS = [
    {"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": "node1"}},
    {"apiVersion": "v1", "kind": "ComponentStatus", "conditions": [{"type": "Healthy", "status": "True"}]},
    {"apiVersion": "metrics.k8s.io/v1beta1", "kind": "NodeMetrics", "window": "15s", "usage": {"cpu": "100m"}},
    {"apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetrics", "window": "15s", "containers": [{"name": "c", "usage": {"cpu": "1m"}}]},
    {"apiVersion": "v1", "kind": "LimitRange", "spec": {"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "9Ti"}}]}},
    {"apiVersion": "v1", "kind": "PersistentVolume", "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
        "nfs": {"server": "192.0.2.5", "path": "/a"}, "claimRef": {"namespace": "default", "name": "c"}, "storageClassName": "fast"},
     "status": {"phase": "Bound"}},
    {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": {**CLAIM, "volumeName": "v"},
     "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}},
    {"apiVersion": "v1", "kind": "ReplicationController", "spec": {"replicas": 2, "selector": {"app": "web"}, "template": TEMPLATE},
     "status": {"replicas": 2, "readyReplicas": 1, "conditions": [{"type": "ReplicaFailure", "status": "False"}]}},
    {"apiVersion": "apps.openshift.io/v1", "kind": "DeploymentConfig", "spec": {
        "replicas": 2, "selector": {"app": "web"}, "template": TEMPLATE, "minReadySeconds": 3, "triggers": [
            {"type": "ConfigChange"}, {"type": "ImageChange", "imageChangeParams": {
                "automatic": True, "containerNames": ["c"], "from": {"kind": "ImageStreamTag", "name": "s:t"}}}],
        "strategy": {"type": "Rolling", "rollingParams": {"timeoutSeconds": 60, "maxSurge": 1, "maxUnavailable": 0, "pre": {
            "failurePolicy": "Abort", "execNewPod": {"command": ["a"], "containerName": "c"}}}}},
     "status": {"latestVersion": 1, "replicas": 2, "conditions": [CONDITION]}},
    {"apiVersion": "route.openshift.io/v1", "kind": "Route", "spec": {
        "host": "www.example.com", "path": "/shop", "to": {"kind": "Service", "name": "blue", "weight": 30},
        "alternateBackends": [{"kind": "Service", "name": "green", "weight": 10}], "port": {"targetPort": "http"},
        "tls": {"termination": "edge", "insecureEdgeTerminationPolicy": "Redirect"}, "wildcardPolicy": "None",
        "httpHeaders": {"actions": {"request": [{"name": "X-A", "action": {"type": "Set", "set": {"value": "a"}}}],
                                    "response": [{"name": "X-B", "action": {"type": "Delete"}}]}}},
     "status": {"ingress": [{"host": "www.example.com", "routerName": "public", "wildcardPolicy": "None",
                             "routerCanonicalHostname": "router.example.com",
                             "conditions": [{**CONDITION, "type": "Admitted"}]}]}},
    {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "spec": {
        "ingressClassName": "fast", "defaultBackend": {"service": {"name": "web", "port": {"number": 80}}},
        "tls": [{"hosts": ["www.example.com"], "secretName": "tls"}], "rules": [{"host": "www.example.com", "http": {"paths": [
            {"path": "/shop", "pathType": "Prefix", "backend": {"service": {"name": "web", "port": {"name": "http"}}}}]}}]},
     "status": {"loadBalancer": {"ingress": [{"hostname": "router.example.com"}]}}},
    {"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "spec": {
        "controller": "example.com/fast", "parameters": {"apiGroup": "example.com", "kind": "Fast", "name": "f", "scope": "Cluster"}}},
    {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"pods": "400", "count/widgets.example.com": "2"}}},
    {"apiVersion": "quota.openshift.io/v1", "kind": "ClusterResourceQuota", "spec": {
        "selector": {"labels": {"matchLabels": {"team": "a"}}, "annotations": {"openshift.io/requester": "ann"}},
        "quota": {"hard": {"pods": "400"}}}},
    {"apiVersion": "quota.openshift.io/v1", "kind": "AppliedClusterResourceQuota", "spec": {
        "selector": {"annotations": {"a": "b"}}, "quota": {"hard": {"pods": "400"}}}},
    {"apiVersion": "apps/v1", "kind": "DaemonSet", "spec": {
        "selector": OWNER["selector"], "template": TEMPLATE, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
            "maxUnavailable": "10%"}}},
     "status": {"currentNumberScheduled": 1, "desiredNumberScheduled": 2, "numberMisscheduled": 0, "numberReady": 1}},
    {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {**OWNER, "strategy": {"type": "RollingUpdate", "rollingUpdate": {
        "maxSurge": 1, "maxUnavailable": 0}}, "minReadySeconds": 3},
     "status": {"replicas": 2, "readyReplicas": 1, "updatedReplicas": 1, "availableReplicas": 1, "conditions": [CONDITION]}},
    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": OWNER, "status": {"replicas": 2, "readyReplicas": 1}},
    {"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": {
        **OWNER, "serviceName": "web", "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": CLAIM}]},
     "status": {"replicas": 2, "readyReplicas": 1, "currentRevision": "web-1"}},
    {"apiVersion": "batch/v1", "kind": "CronJob", "spec": {
        "schedule": "*/5 * * * *", "timeZone": "Europe/Berlin", "concurrencyPolicy": "Forbid", "jobTemplate": {"spec": {
            "template": ENDING}}},
     "status": {"lastScheduleTime": "2024-01-02T03:04:05Z"}},
    {"apiVersion": "extensions/v1", "kind": "Job", "spec": {"completions": 2, "template": ENDING}},
    {"apiVersion": "batch/v2alpha1", "kind": "ScheduledJob", "spec": {
        "schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": ENDING}}}},
    {"apiVersion": "batch/v1beta1", "kind": "CronJob", "spec": {
        "schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": ENDING}}}},
    {"apiVersion": "apps/v1beta2", "kind": "DaemonSet", "spec": {"selector": OWNER["selector"], "template": TEMPLATE}},
    {"apiVersion": "apps/v1beta2", "kind": "Deployment", "spec": OWNER},
    {"apiVersion": "apps/v1beta2", "kind": "ReplicaSet", "spec": OWNER},
    {"apiVersion": "apps/v1beta2", "kind": "StatefulSet", "spec": {**OWNER, "serviceName": "web"}},
    {"apiVersion": "apps/v1beta1", "kind": "Deployment", "spec": {"template": TEMPLATE}},
    {"apiVersion": "apps/v1beta1", "kind": "StatefulSet", "spec": {"template": TEMPLATE, "serviceName": "web"}},
    {"apiVersion": "extensions/v1beta1", "kind": "DaemonSet", "spec": {"template": TEMPLATE}},
    {"apiVersion": "extensions/v1beta1", "kind": "Deployment", "spec": {"template": TEMPLATE}},
    {"apiVersion": "extensions/v1beta1", "kind": "ReplicaSet", "spec": {"template": TEMPLATE}},
    {"apiVersion": "batch/v1", "kind": "Job", "spec": {"completions": 3, "parallelism": 2, "backoffLimit": 4, "template": ENDING},
     "status": {"active": 1, "succeeded": 2, "startTime": "2024-01-02T03:04:05Z", "completionTime": "2024-01-02T03:05:05Z"}},
    {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "minReplicas": 2, "maxReplicas": 5,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}}],
        "behavior": {"scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}}},
     "status": {"currentReplicas": 3, "desiredReplicas": 3}},
    {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "minReplicas": 2, "maxReplicas": 5,
        "targetCPUUtilizationPercentage": 60},
     "status": {"currentReplicas": 3, "desiredReplicas": 3, "currentCPUUtilizationPercentage": 50}},
    {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": {
        "minAvailable": "50%", "selector": {"matchLabels": {"app": "web"}}},
     "status": {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2}},
    {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "spec": {"attachRequired": False, "tokenRequests": [{"audience": "a"}]}},
    {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "spec": {"drivers": [
        {"name": "d.example", "nodeID": "n1", "topologyKeys": ["example.com/zone"], "allocatable": {"count": 8}}]}},
    {"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity", "storageClassName": "fast", "capacity": "1Gi",
     "nodeTopology": {"matchLabels": {"zone": "a"}}},
    {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "d.example", "parameters": {"a": "b"},
     "metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, "allowVolumeExpansion": True,
     "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}]},
    {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "spec": {
        "attacher": "d.example", "nodeName": "node1", "source": {"persistentVolumeName": "v"}}, "status": {"attached": True}},
    {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttributesClass", "driverName": "d.example", "parameters": {"iops": "100"}},
    {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "spec": {
        "selectors": [{"cel": {"expression": "true"}}], "config": [{"opaque": {"driver": "d.example", "parameters": {"a": 1}}}]}},
    {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "spec": {"devices": DEVICES}},
    {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "spec": {"spec": {"devices": DEVICES}}},
    {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "spec": {
        "driver": "d.example", "nodeName": "node1", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0", "attributes": {"model": {"string": "x"}}, "capacity": {"memory": {"value": "8Gi"}}}]}},
    {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "webhooks": [HOOK]},
    {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "webhooks": [HOOK]},
    {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "spec": {
        "matchConstraints": {"resourceRules": [{"operations": ["CREATE"], "apiGroups": ["apps"], "apiVersions": ["v1"],
                                                "resources": ["deployments"]}]},
        "validations": [{"expression": "object.spec.replicas <= 5"}]}},
    {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "spec": {
        "policyName": "one", "validationActions": ["Deny"]}},
    {"apiVersion": "networking.k8s.io/v1", "kind": "IPAddress", "metadata": {"name": "172.30.0.9"}, "spec": {
        "parentRef": {"resource": "services", "namespace": "default", "name": "web"}}},
    {"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "spec": {"cidrs": ["172.30.0.0/16"]}},
    {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"}, "binaryData": {"b": "AAE="}, "immutable": True},
    {"apiVersion": "v1", "kind": "Endpoints", "subsets": [{
        "addresses": [{"ip": "10.128.0.5", "hostname": "web", "nodeName": "node1",
                       "targetRef": {"kind": "Pod", "name": "web", "namespace": "default", "uid": "1"}}],
        "notReadyAddresses": [{"ip": "10.128.0.6"}], "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]}]},
    {"apiVersion": "v1", "kind": "Event", "involvedObject": {"kind": "Pod", "name": "web", "namespace": "default"},
     "reason": "Started", "message": "It runs.", "type": "Normal", "count": 2, "source": {"component": "c", "host": "h"},
     "firstTimestamp": "2024-01-02T03:04:05Z", "lastTimestamp": "2024-01-02T03:04:06Z"},
    {"apiVersion": "v1", "kind": "Namespace", "spec": {"finalizers": ["kubernetes"]},
     "metadata": {"annotations": {"openshift.io/display-name": "Red"}}},
    {"apiVersion": "v1", "kind": "Node", "metadata": {"labels": {"node-role.kubernetes.io/compute": "true"}},
     "spec": {"externalID": "n1", "unschedulable": True, "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]},
     "status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}], "conditions": [CONDITION],
                "capacity": {"pods": "110"}, "nodeInfo": {"kubeletVersion": "v1", "osImage": "Debian", "kernelVersion": "6.1"}}},
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"app": "web"}}, "spec": POD,
     "status": {"phase": "Running", "podIP": "10.128.0.5", "conditions": [{"type": "Ready", "status": "True"}],
                "containerStatuses": [{"name": "c", "ready": True, "restartCount": 3, "image": "i", "imageID": "d"}]}},
    {"apiVersion": "v1", "kind": "PodTemplate", "template": {"metadata": {"labels": {"app": "web"}}, "spec": {
        "containers": [{"name": "c", "image": "busybox", "ports": [{"containerPort": 80}]}]}}},
    {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/basic-auth",
     "data": {"username": "am9l", "password": "eA=="}, "immutable": True},
    {"apiVersion": "v1", "kind": "Service", "spec": {
        "type": "LoadBalancer", "selector": {"app": "web"}, "sessionAffinity": "ClientIP",
        "externalIPs": ["192.0.2.9"], "loadBalancerSourceRanges": ["192.0.2.0/24"], "externalTrafficPolicy": "Local",
        "ports": [{"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP", "nodePort": 30080},
                  {"name": "dns", "port": 53, "targetPort": 5353, "protocol": "UDP"}]}},
    {"apiVersion": "v1", "kind": "ServiceAccount", "secrets": [{"name": "s"}], "imagePullSecrets": [{"name": "p"}],
     "automountServiceAccountToken": False},
    {"apiVersion": "network.openshift.io/v1", "kind": "ClusterNetwork", "serviceNetwork": "172.30.0.0/16",
     "clusterNetworks": [{"CIDR": "10.128.0.0/14", "hostSubnetLength": 9}], "network": "10.128.0.0/14", "hostsubnetlength": 9,
     "pluginName": "redhat/openshift-ovs-multitenant", "vxlanPort": 4789, "mtu": 1450},
    {"apiVersion": "network.openshift.io/v1", "kind": "HostSubnet", "host": "one", "hostIP": "192.0.2.1",
     "subnet": "10.128.0.0/23", "egressIPs": ["192.0.2.7"], "egressCIDRs": ["192.0.2.0/25"]},
    {"apiVersion": "network.openshift.io/v1", "kind": "NetNamespace", "netname": "one", "netid": 17, "egressIPs": ["192.0.2.7"]},
    {"apiVersion": "network.openshift.io/v1", "kind": "EgressNetworkPolicy", "spec": {"egress": [
        {"type": "Allow", "to": {"cidrSelector": "192.0.2.0/24"}}, {"type": "Deny", "to": {"dnsName": "www.example.com"}}]}},
    {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {
        "holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 1,
        "acquireTime": "2024-01-02T03:04:05.000001Z", "renewTime": "2024-01-02T03:04:05.123456Z"}},
    {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
     "metadata": {"labels": {"kubernetes.io/service-name": "web"}},
     "endpoints": [{"addresses": ["10.128.0.5"], "conditions": {"ready": True}, "nodeName": "node1", "hostname": "web",
                    "targetRef": {"kind": "Pod", "name": "web"}, "zone": "a"}],
     "ports": [{"name": "http", "port": 80, "protocol": "TCP", "appProtocol": "http"}]},
    {"apiVersion": "events.k8s.io/v1", "kind": "Event", "eventTime": "2024-01-02T03:04:05.000001Z", "action": "Start",
     "reason": "Started", "note": "It runs.", "type": "Normal", "reportingController": "c.example/c", "reportingInstance": "i",
     "regarding": {"kind": "Pod", "name": "web", "namespace": "default"},
     "series": {"count": 3, "lastObservedTime": "2024-01-02T03:04:06.000001Z"}},
    {"apiVersion": "authorization.openshift.io/v1", "kind": "RoleBindingRestriction", "spec": {
        "userrestriction": {"users": ["joe"], "groups": ["team"], "labels": [{"matchLabels": {"a": "b"}}]}}},
    {"apiVersion": "project.openshift.io/v1", "kind": "Project", "spec": {"finalizers": ["kubernetes"]},
     "metadata": {"annotations": {"openshift.io/display-name": "Red", "openshift.io/description": "red"}}},
    {"apiVersion": "project.openshift.io/v1", "kind": "ProjectRequest", "displayName": "Red", "description": "red"},
    {"apiVersion": "template.openshift.io/v1", "kind": "Template", **PARAMETERIZED, "metadata": {"annotations": {
        "description": "A web server.\nIt serves pages."}}},
    {"apiVersion": "template.openshift.io/v1", "kind": "TemplateInstance", "spec": {
        "template": {"metadata": {"name": "web"}, **PARAMETERIZED}, "secret": {"name": "values"}},
     "status": {"conditions": [CONDITION], "objects": [{"ref": {"apiVersion": "v1", "kind": "ConfigMap", "name": "web"}}]}},
    {"apiVersion": "security.openshift.io/v1", "kind": "SecurityContextConstraints", "metadata": {"name": "database"},
     "priority": 5, "allowHostPorts": True, "allowPrivilegeEscalation": False, "requiredDropCapabilities": ["KILL"],
     "allowedCapabilities": ["CHOWN"], "volumes": ["emptyDir", "flexVolume", "secret"], "allowedFlexVolumes": [{"driver": "a/b"}],
     "seLinuxContext": {"type": "MustRunAs", "seLinuxOptions": {"type": "db_t"}},
     "runAsUser": {"type": "MustRunAsRange", "uidRangeMin": 5000, "uidRangeMax": 5999},
     "fsGroup": {"type": "MustRunAs", "ranges": [{"min": 5, "max": 7}]}, "supplementalGroups": {"type": "RunAsAny"},
     "users": ["system:serviceaccount:default:db"], "groups": ["dev"], "seccompProfiles": ["runtime/default"],
     "allowedUnsafeSysctls": ["kernel.msg*"], "forbiddenSysctls": ["net.*"]},
    {"apiVersion": "user.openshift.io/v1", "kind": "User", "fullName": "Joe", "identities": ["ldap:joe"]},
    {"apiVersion": "user.openshift.io/v1", "kind": "Identity", "metadata": {"name": "ldap:joe"}, "providerName": "ldap",
     "providerUserName": "joe", "user": {"name": "joe", "uid": "7"}, "extra": {"email": "joe@example.com"}},
    {"apiVersion": "user.openshift.io/v1", "kind": "Group", "users": ["joe", "ann"]},
    {"apiVersion": "oauth.openshift.io/v1", "kind": "OAuthClient", "secret": "s", "additionalSecrets": ["t"],
     "respondWithChallenges": True, "redirectURIs": ["https://shop.example.com/back"], "grantMethod": "prompt",
     "scopeRestrictions": [{"literals": ["user:info"]}, {"clusterRole": {"roleNames": ["view"], "namespaces": ["*"],
                                                                         "allowEscalation": False}}],
     "accessTokenMaxAgeSeconds": 60, "accessTokenInactivityTimeoutSeconds": 300},
    {"apiVersion": "oauth.openshift.io/v1", "kind": "OAuthAccessToken",
     "metadata": {"name": "sha256~AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"}, "clientName": "shop", "expiresIn": 86400,
     "scopes": ["user:info", "role:view:red"], "redirectURI": "https://shop.example.com/back", "userName": "joe", "userUID": "7",
     "inactivityTimeoutSeconds": 600},
    {"apiVersion": "oauth.openshift.io/v1", "kind": "OAuthAuthorizeToken",
     "metadata": {"name": "sha256~AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"}, "clientName": "shop", "expiresIn": 300,
     "scopes": ["user:full"], "redirectURI": "https://shop.example.com/back", "state": "x", "userName": "joe", "userUID": "7",
     "codeChallenge": "0123456789012345678901234567890123456789012", "codeChallengeMethod": "S256"},
    {"apiVersion": "oauth.openshift.io/v1", "kind": "UserOAuthAccessToken", "clientName": "shop"},
    {"apiVersion": "oauth.openshift.io/v1", "kind": "OAuthClientAuthorization", "metadata": {"name": "joe:shop"},
     "clientName": "shop", "userName": "joe", "userUID": "7", "scopes": ["user:info"]},
    {"apiVersion": "user.openshift.io/v1", "kind": "UserIdentityMapping", "metadata": {"name": "ldap:ann"},
     "identity": {"name": "ldap:ann"}, "user": {"name": "ann"}},
    {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "books.example.org"},
     "spec": {"group": "example.org", "scope": "Namespaced",
              "names": {"plural": "books", "singular": "book", "kind": "Book", "shortNames": ["bk"]},
              "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                            "additionalPrinterColumns": [{"name": "Pages", "type": "integer", "jsonPath": ".spec.pages"}],
                            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                                "spec": {"type": "object", "required": ["pages"], "properties": {
                                    "pages": {"type": "integer", "minimum": 1, "maximum": 9}}}}}}}]}},
    {"apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 2, "data": {"spec": {"a": 1}}},
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 7, "globalDefault": True, "description": "d",
     "preemptionPolicy": "Never"},
    {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "runc", "overhead": {"podFixed": {"cpu": "10m"}},
     "scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "k", "operator": "Exists"}]}},
    {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "spec": {
        "podSelector": {"matchLabels": {"app": "web"}}, "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"ports": [{"port": 80, "endPort": 90, "protocol": "TCP"}, {"port": "http"}],
                     "from": [{"ipBlock": {"cidr": "192.0.2.0/24", "except": ["192.0.2.128/25"]}},
                              {"namespaceSelector": {"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}}]}],
        "egress": [{"to": [{"podSelector": {}}]}]}},
    {"apiVersion": "policy.networking.k8s.io/v1alpha1", "kind": "AdminNetworkPolicy", "spec": {**ADMIN_RULES, "priority": 5}},
    {"apiVersion": "policy.networking.k8s.io/v1alpha1", "kind": "BaselineAdminNetworkPolicy", "metadata": {"name": "default"},
     "spec": ADMIN_RULES},
    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": RULES},
    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
     "rules": [*RULES, {"verbs": ["get"], "nonResourceURLs": ["/healthz"]}],
     "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}},
    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "subjects": ROLE_SUBJECTS,
     "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "one"}},
    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "subjects": ROLE_SUBJECTS,
     "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "one"}},
    {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "spec": {
        "request": REQUEST, "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"],
        "expirationSeconds": 3600},
     "status": {"conditions": [{"type": "Failed", "status": "True", "reason": "R", "message": "m"}]}},
    {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "t", "audiences": ["a"]}},
    {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
    {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
        "user": "joe", "groups": ["dev"], "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"}}},
    {"apiVersion": "authorization.k8s.io/v1", "kind": "LocalSubjectAccessReview", "metadata": {"namespace": "default"}, "spec": {
        "user": "joe", "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"}}},
    {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {
        "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"}}},
    {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": "default"}},
    {"apiVersion": "authorization.openshift.io/v1", "kind": "Role", "rules": RULES},
    {"apiVersion": "authorization.openshift.io/v1", "kind": "ClusterRole",
     "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["nodes"]}, {"verbs": ["get"], "nonResourceURLs": ["/healthz"]}]},
    {"apiVersion": "authorization.openshift.io/v1", "kind": "RoleBinding", "userNames": ["joe"], "groupNames": ["dev"],
     "roleRef": {"name": "one", "namespace": "default"}},
    {"apiVersion": "authorization.openshift.io/v1", "kind": "ClusterRoleBinding", "roleRef": {"name": "one"}, "subjects": [
        {"kind": "SystemUser", "name": "system:admin"}, {"kind": "ServiceAccount", "namespace": "default", "name": "robot"}]},
    *({"apiVersion": "authorization.openshift.io/v1", "kind": kind, "metadata": {"name": "default"}, "roles": []}
      for kind in ("Policy", "ClusterPolicy")),
    {"apiVersion": "authorization.openshift.io/v1", "kind": "PolicyBinding", "metadata": {"name": ":default"}, "roleBindings": []},
    {"apiVersion": "authorization.openshift.io/v1", "kind": "ClusterPolicyBinding", "metadata": {"name": ":default"},
     "roleBindings": []},
    {"apiVersion": "authorization.openshift.io/v1", "kind": "SubjectAccessReview", "user": "joe", "groups": ["dev"],
     "verb": "get", "resource": "pods", "namespace": "default", "scopes": ["user:full"]},
    {"apiVersion": "authorization.openshift.io/v1", "kind": "LocalSubjectAccessReview", "metadata": {"namespace": "default"},
     "verb": "get", "resource": "pods", "user": "joe"},
    {"apiVersion": "authorization.openshift.io/v1", "kind": "ResourceAccessReview", "verb": "get", "resource": "pods"},
    {"apiVersion": "authorization.openshift.io/v1", "kind": "LocalResourceAccessReview", "metadata": {"namespace": "default"},
     "verb": "get", "resource": "pods"},
    {"apiVersion": "authorization.openshift.io/v1", "kind": "SelfSubjectRulesReview", "metadata": {"namespace": "default"},
     "spec": {"scopes": ["user:info"]}},
    {"apiVersion": "authorization.openshift.io/v1", "kind": "SubjectRulesReview", "metadata": {"namespace": "default"},
     "spec": {"groups": ["dev"]}},
    {"apiVersion": "security.openshift.io/v1", "kind": "PodSecurityPolicySubjectReview", "metadata": {"namespace": "default"},
     "spec": {"user": "joe", "groups": ["dev"], "template": ENDING}},
    {"apiVersion": "security.openshift.io/v1", "kind": "PodSecurityPolicySelfSubjectReview", "metadata": {"namespace": "default"},
     "spec": {"template": ENDING}},
    {"apiVersion": "security.openshift.io/v1", "kind": "PodSecurityPolicyReview", "metadata": {"namespace": "default"},
     "spec": {"serviceAccountNames": ["default"], "template": ENDING}},
]
