/* SPDX-License-Identifier: Apache-2.0 */
/* Pods: each rule of their spec with its field and the words of kube-apiserver. */
#include "pod_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static const struct {
    const char *patch; /* Merge patch of the sample. */
    const char *field, *says;
} bad[] = {
    /* Containers. */
    {"{'spec':null}", "spec.containers", "Required value"},
    {"{'spec':{'containers':[]}}", "spec.containers", "Required value"},
    {"{'spec':{'containers':[{'image':'i'}]}}", "spec.containers[0].name", "Required value"},
    {"{'spec':{'containers':[{'name':'','image':'i'}]}}", "spec.containers[0].name",
     "Required value"},
    {"{'spec':{'containers':[{'name':'A','image':'i'}]}}", "spec.containers[0].name",
     "Invalid value: \"A\": a lowercase RFC 1123 label must consist of lower case alphanumeric "
     "characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  "
     "or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"},
    {"{'spec':{'containers':[{'name':'c'}]}}", "spec.containers[0].image", "Required value"},
    {"{'spec':{'containers':[{'name':'c','image':''}]}}", "spec.containers[0].image",
     "Required value"},
    {"{'spec':{'containers':[{'name':'c','image':' i'}]}}", "spec.containers[0].image",
     "Invalid value: \" i\": must not have leading or trailing whitespace"},
    {"{'spec':{'containers':[{'name':'c','image':'i'},{'name':'c','image':'i'}]}}",
     "spec.containers[1].name", "Duplicate value: \"c\""},
    {"{'spec':{'initContainers':[{'name':'c','image':'i'}]}}", "spec.initContainers[0].name",
     "Duplicate value: \"c\""},
    {"{'spec':{'ephemeralContainers':[{'name':'e','image':'i'}]}}", "spec.ephemeralContainers",
     "Forbidden: cannot be set on create"},
    {"{'spec':{'containers':[{'name':'c','image':'i','imagePullPolicy':'X'}]}}",
     "spec.containers[0].imagePullPolicy",
     "Unsupported value: \"X\": supported values: \"Always\", \"IfNotPresent\", \"Never\""},
    {"{'spec':{'containers':[{'name':'c','image':'i','terminationMessagePolicy':'X'}]}}",
     "spec.containers[0].terminationMessagePolicy",
     "Unsupported value: \"X\": supported values: \"File\", \"FallbackToLogsOnError\""},
    {"{'spec':{'containers':[{'name':'c','image':'i','restartPolicy':'Always'}]}}",
     "spec.containers[0].restartPolicy", "Forbidden: may not be set for non-init containers"},
    {"{'spec':{'containers':[{'name':'c','image':'i','resizePolicy':[{'resourceName':'disk','"
     "restartPolicy':'NotRequired'}]}]}}",
     "spec.containers[0].resizePolicy",
     "Unsupported value: \"disk\": supported values: \"cpu\", \"memory\""},
    {"{'spec':{'containers':[{'name':'c','image':'i','resizePolicy':[{'resourceName':'cpu','"
     "restartPolicy':'X'}]}]}}",
     "spec.containers[0].resizePolicy",
     "Unsupported value: \"X\": supported values: \"NotRequired\", \"RestartContainer\""},
    {"{'spec':{'containers':[{'name':'c','image':'i','resizePolicy':[{'resourceName':'cpu','"
     "restartPolicy':'NotRequired'},{'resourceName':'cpu','restartPolicy':'NotRequired'}]}]}}",
     "spec.containers[0].resizePolicy[1]", "Duplicate value: \"cpu\""},
    {"{'spec':{'restartPolicy':'Never','containers':[{'name':'c','image':'i','resizePolicy':[{'"
     "resourceName':'cpu','restartPolicy':'RestartContainer'}]}]}}",
     "spec.containers[0].resizePolicy",
     "Invalid value: \"RestartContainer\": must be 'NotRequired' when `restartPolicy` is 'Never'"},
    /* Init containers. */
    {"{'spec':{'initContainers':[{'name':'n','image':'i','lifecycle':{'preStop':{'exec':{'command':"
     "['x']}}}}]}}",
     "spec.initContainers[0].lifecycle",
     "Forbidden: may not be set for init containers without restartPolicy=Always"},
    {"{'spec':{'initContainers':[{'name':'n','image':'i','livenessProbe':{'exec':{'command':['x']}}"
     "}]}}",
     "spec.initContainers[0].livenessProbe",
     "Forbidden: may not be set for init containers without restartPolicy=Always"},
    {"{'spec':{'initContainers':[{'name':'n','image':'i','readinessProbe':{'exec':{'command':['x']}"
     "}}]}}",
     "spec.initContainers[0].readinessProbe",
     "Forbidden: may not be set for init containers without restartPolicy=Always"},
    {"{'spec':{'initContainers':[{'name':'n','image':'i','startupProbe':{'exec':{'command':['x']}}}"
     "]}}",
     "spec.initContainers[0].startupProbe",
     "Forbidden: may not be set for init containers without restartPolicy=Always"},
    {"{'spec':{'initContainers':[{'name':'n','image':'i','restartPolicy':'Never'}]}}",
     "spec.initContainers[0].restartPolicy",
     "Unsupported value: \"Never\": supported values: \"Always\""},
    {"{'spec':{'initContainers':[{'name':'n','image':'i','restartPolicy':'Always','livenessProbe':{"
     "}}]}}",
     "spec.initContainers[0].livenessProbe", "Required value: must specify a handler type"},
    /* Ports. */
    {"{'spec':{'containers':[{'name':'c','image':'i','ports':[{'containerPort':0}]}]}}",
     "spec.containers[0].ports[0].containerPort", "Required value"},
    {"{'spec':{'containers':[{'name':'c','image':'i','ports':[{'containerPort':65536}]}]}}",
     "spec.containers[0].ports[0].containerPort",
     "Invalid value: 65536: must be between 1 and 65535, inclusive"},
    {"{'spec':{'containers':[{'name':'c','image':'i','ports':[{'containerPort':1,'hostPort':-1}]}]}"
     "}",
     "spec.containers[0].ports[0].hostPort",
     "Invalid value: -1: must be between 1 and 65535, inclusive"},
    {"{'spec':{'containers':[{'name':'c','image':'i','ports':[{'containerPort':1,'protocol':'X'}]}]"
     "}}",
     "spec.containers[0].ports[0].protocol",
     "Unsupported value: \"X\": supported values: \"SCTP\", \"TCP\", \"UDP\""},
    {"{'spec':{'containers':[{'name':'c','image':'i','ports':[{'containerPort':1,'name':'1'}]}]}}",
     "spec.containers[0].ports[0].name",
     "Invalid value: \"1\": must contain at least one letter (a-z)"},
    {"{'spec':{'containers':[{'name':'c','image':'i','ports':[{'containerPort':1,'name':'a'},{'"
     "containerPort':2,'name':'a'}]}]}}",
     "spec.containers[0].ports[1].name", "Duplicate value: \"a\""},
    {"{'spec':{'containers':[{'name':'c','image':'i','ports':[{'containerPort':1,'hostPort':8},{'"
     "containerPort':2,'hostPort':8}]}]}}",
     "spec.containers[0].ports[1].hostPort", "Duplicate value: \"TCP//8\""},
    {"{'spec':{'containers':[{'name':'c','image':'i','ports':[{'containerPort':1,'hostPort':8,'"
     "hostIP':'1.1.1.1'}]},{'name':'d','image':'i','ports':[{'containerPort':1,'hostPort':8,'"
     "hostIP':'1.1.1.1'}]}]}}",
     "spec.containers[1].ports[0].hostPort", "Duplicate value: \"TCP/1.1.1.1/8\""},
    {"{'spec':{'hostNetwork':true,'containers':[{'name':'c','image':'i','ports':[{'containerPort':"
     "1,'hostPort':2}]}]}}",
     "spec.containers[0].ports[0].hostPort",
     "Invalid value: 2: must match `containerPort` when `hostNetwork` is true"},
    /* Variables. */
    {"{'spec':{'containers':[{'name':'c','image':'i','env':[{'name':''}]}]}}",
     "spec.containers[0].env[0].name", "Required value"},
    {"{'spec':{'containers':[{'name':'c','image':'i','env':[{'name':'1A'}]}]}}",
     "spec.containers[0].env[0].name",
     "Invalid value: \"1A\": a valid environment variable name must consist of alphabetic "
     "characters, digits, '_', '-', or '.', and must not start with a digit (e.g. 'my.env-name',  "
     "or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is "
     "'[-._a-zA-Z][-._a-zA-Z0-9]*')"},
    {"{'spec':{'containers':[{'name':'c','image':'i','env':[{'name':'a=b'}]}]}}",
     "spec.containers[0].env[0].name",
     "Invalid value: \"a=b\": a valid environment variable name must consist of alphabetic "
     "characters, digits, '_', '-', or '.', and must not start with a digit (e.g. 'my.env-name',  "
     "or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is "
     "'[-._a-zA-Z][-._a-zA-Z0-9]*')"},
    {"{'spec':{'containers':[{'name':'c','image':'i','env':[{'name':'.'}]}]}}",
     "spec.containers[0].env[0].name", "Invalid value: \".\": must not be '.'"},
    {"{'spec':{'containers':[{'name':'c','image':'i','env':[{'name':'..'}]}]}}",
     "spec.containers[0].env[0].name", "Invalid value: \"..\": must not be '..'"},
    {"{'spec':{'containers':[{'name':'c','image':'i','env':[{'name':'..a'}]}]}}",
     "spec.containers[0].env[0].name", "Invalid value: \"..a\": must not start with '..'"},
    {"{'spec':{'containers':[{'name':'c','image':'i','env':[{'name':'A','valueFrom':{}}]}]}}",
     "spec.containers[0].env[0].valueFrom",
     "Invalid value: \"\": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` "
     "or `secretKeyRef`"},
    {"{'spec':{'containers':[{'name':'c','image':'i','env':[{'name':'A','value':'x','valueFrom':{'"
     "fieldRef':{'fieldPath':'metadata.name'}}}]}]}}",
     "spec.containers[0].env[0].valueFrom",
     "Invalid value: \"\": may not be specified when `value` is not empty"},
    {"{'spec':{'containers':[{'name':'c','image':'i','env':[{'name':'A','valueFrom':{'fieldRef':{'"
     "fieldPath':'metadata.name'},'secretKeyRef':{'name':'s','key':'k'}}}]}]}}",
     "spec.containers[0].env[0].valueFrom",
     "Invalid value: \"\": may not have more than one field specified at a time"},
    {"{'spec':{'containers':[{'name':'c','image':'i','env':[{'name':'A','valueFrom':{'fieldRef':{'"
     "fieldPath':''}}}]}]}}",
     "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath", "Required value"},
    {"{'spec':{'containers':[{'name':'c','image':'i','env':[{'name':'A','valueFrom':{'fieldRef':{'"
     "apiVersion':'v2','fieldPath':'metadata.name'}}}]}]}}",
     "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath",
     "Invalid value: \"metadata.name\": error converting fieldPath: unsupported pod version: v2"},
    {"{'spec':{'containers':[{'name':'c','image':'i','env':[{'name':'A','valueFrom':{'fieldRef':{'"
     "fieldPath':'spec.x'}}}]}]}}",
     "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath",
     "Invalid value: \"spec.x\": error converting fieldPath: field label not supported: spec.x"},
    {"{'spec':{'containers':[{'name':'c','image':'i','env':[{'name':'A','valueFrom':{'fieldRef':{'"
     "fieldPath':'metadata.labels'}}}]}]}}",
     "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath",
     "Unsupported value: \"metadata.labels\": supported values: \"metadata.name\", "
     "\"metadata.namespace\", \"metadata.uid\", \"spec.nodeName\", \"spec.serviceAccountName\", "
     "\"status.hostIP\", \"status.hostIPs\", \"status.podIP\", \"status.podIPs\""},
    {"{'spec':{'containers':[{'name':'c','image':'i','env':[{'name':'A','valueFrom':{'fieldRef':{'"
     "fieldPath':'metadata.labels[@-@]'}}}]}]}}",
     "spec.containers[0].env[0].valueFrom.fieldRef",
     "Invalid value: \"-\": name part must consist of alphanumeric characters, '-', '_' or '.', "
     "and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
     "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"},
    {"{'spec':{'containers':[{'name':'c','image':'i','env':[{'name':'A','valueFrom':{'fieldRef':{'"
     "fieldPath':'spec.nodeName[@a@]'}}}]}]}}",
     "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath",
     "Invalid value: \"spec.nodeName['a']\": error converting fieldPath: field label does not "
     "support subscript: spec.nodeName['a']"},
    {"{'spec':{'containers':[{'name':'c','image':'i','env':[{'name':'A','valueFrom':{'"
     "resourceFieldRef':{'resource':''}}}]}]}}",
     "spec.containers[0].env[0].valueFrom.resourceFieldRef.resource", "Required value"},
    {"{'spec':{'containers':[{'name':'c','image':'i','env':[{'name':'A','valueFrom':{'"
     "resourceFieldRef':{'resource':'limits.x'}}}]}]}}",
     "spec.containers[0].env[0].valueFrom.resourceFieldRef.resource",
     "Unsupported value: \"limits.x\": supported values: \"limits.cpu\", "
     "\"limits.ephemeral-storage\", \"limits.memory\", \"requests.cpu\", "
     "\"requests.ephemeral-storage\", \"requests.memory\""},
    {"{'spec':{'containers':[{'name':'c','image':'i','env':[{'name':'A','valueFrom':{'"
     "resourceFieldRef':{'resource':'limits.cpu','divisor':'2'}}}]}]}}",
     "spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor",
     "Invalid value: \"limits.cpu\": only divisor's values 1m and 1 are supported with the cpu "
     "resource"},
    {"{'spec':{'containers':[{'name':'c','image':'i','env':[{'name':'A','valueFrom':{'"
     "resourceFieldRef':{'resource':'limits.memory','divisor':'2'}}}]}]}}",
     "spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor",
     "Invalid value: \"limits.memory\": only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, "
     "1Gi, 1Ti, 1Pi, 1Ei are supported with the memory resource"},
    {"{'spec':{'containers':[{'name':'c','image':'i','env':[{'name':'A','valueFrom':{'"
     "resourceFieldRef':{'resource':'limits.hugepages-2Mi','divisor':'2'}}}]}]}}",
     "spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor",
     "Invalid value: \"limits.hugepages-2Mi\": only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, "
     "1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the hugepages resource"},
    {"{'spec':{'containers':[{'name':'c','image':'i','env':[{'name':'A','valueFrom':{'"
     "configMapKeyRef':{'name':'A','key':'k'}}}]}]}}",
     "spec.containers[0].env[0].valueFrom.configMapKeyRef.name",
     "Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
     "characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
     "'example.com', regex used for validation is "
     "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"},
    {"{'spec':{'containers':[{'name':'c','image':'i','env':[{'name':'A','valueFrom':{'"
     "configMapKeyRef':{'key':'k'}}}]}]}}",
     "spec.containers[0].env[0].valueFrom.configMapKeyRef.name",
     "Invalid value: \"\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
     "characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
     "'example.com', regex used for validation is "
     "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"},
    {"{'spec':{'containers':[{'name':'c','image':'i','env':[{'name':'A','valueFrom':{'secretKeyRef'"
     ":{'name':'s','key':''}}}]}]}}",
     "spec.containers[0].env[0].valueFrom.secretKeyRef.key", "Required value"},
    {"{'spec':{'containers':[{'name':'c','image':'i','env':[{'name':'A','valueFrom':{'secretKeyRef'"
     ":{'name':'s','key':'..'}}}]}]}}",
     "spec.containers[0].env[0].valueFrom.secretKeyRef.key",
     "Invalid value: \"..\": must not start with '..'"},
    {"{'spec':{'containers':[{'name':'c','image':'i','envFrom':[{}]}]}}",
     "spec.containers[0].envFrom",
     "Invalid value: \"\": must specify one of: `configMapRef` or `secretRef`"},
    {"{'spec':{'containers':[{'name':'c','image':'i','envFrom':[{'configMapRef':{'name':'a'},'"
     "secretRef':{'name':'a'}}]}]}}",
     "spec.containers[0].envFrom",
     "Invalid value: \"\": may not have more than one field specified at a time"},
    {"{'spec':{'containers':[{'name':'c','image':'i','envFrom':[{'secretRef':{}}]}]}}",
     "spec.containers[0].envFrom[0].secretRef.name", "Required value"},
    {"{'spec':{'containers':[{'name':'c','image':'i','envFrom':[{'secretRef':{'name':'A'}}]}]}}",
     "spec.containers[0].envFrom[0].secretRef.name",
     "Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
     "characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
     "'example.com', regex used for validation is "
     "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"},
    {"{'spec':{'containers':[{'name':'c','image':'i','envFrom':[{'prefix':'1','secretRef':{'name':'"
     "a'}}]}]}}",
     "spec.containers[0].envFrom[0].prefix",
     "Invalid value: \"1\": a valid environment variable name must consist of alphabetic "
     "characters, digits, '_', '-', or '.', and must not start with a digit (e.g. 'my.env-name',  "
     "or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is "
     "'[-._a-zA-Z][-._a-zA-Z0-9]*')"},
    /* Resources. */
    {"{'spec':{'containers':[{'name':'c','image':'i','resources':{'limits':{'x':'1'}}}]}}",
     "spec.containers[0].resources.limits[x]",
     "Invalid value: \"x\": must be a standard resource type or fully qualified"},
    {"{'spec':{'containers':[{'name':'c','image':'i','resources':{'limits':{'pods':'1'}}}]}}",
     "spec.containers[0].resources.limits[pods]",
     "Invalid value: \"pods\": must be a standard resource for containers"},
    {"{'spec':{'containers':[{'name':'c','image':'i','resources':{'limits':{'a/-':'1'}}}]}}",
     "spec.containers[0].resources.limits[a/-]",
     "Invalid value: \"a/-\": name part must consist of alphanumeric characters, '-', '_' or '.', "
     "and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
     "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"},
    {"{'spec':{'containers':[{'name':'c','image':'i','resources':{'limits':{'requests.a/"
     "b':'1'}}}]}}",
     "spec.containers[0].resources.limits[requests.a/b]",
     "Invalid value: \"requests.a/b\": doesn't follow extended resource name standard"},
    {"{'spec':{'containers':[{'name':'c','image':'i','resources':{'limits':{'cpu':'-1'}}}]}}",
     "spec.containers[0].resources.limits[cpu]",
     "Invalid value: \"-1\": must be greater than or equal to 0"},
    {"{'spec':{'containers':[{'name':'c','image':'i','resources':{'limits':{'a.b/"
     "c':'1.5'},'requests':{'a.b/c':'1.5'}}}]}}",
     "spec.containers[0].resources.limits[a.b/c]", "Invalid value: \"1500m\": must be an integer"},
    {"{'spec':{'containers':[{'name':'c','image':'i','resources':{'limits':{'cpu':'1'},'requests':{"
     "'cpu':'1001m'}}}]}}",
     "spec.containers[0].resources.requests",
     "Invalid value: \"1001m\": must be less than or equal to cpu limit of 1"},
    {"{'spec':{'containers':[{'name':'c','image':'i','resources':{'limits':{'memory':'1Gi'},'"
     "requests':{'memory':'2G'}}}]}}",
     "spec.containers[0].resources.requests",
     "Invalid value: \"2G\": must be less than or equal to memory limit of 1Gi"},
    {"{'spec':{'containers':[{'name':'c','image':'i','resources':{'limits':{'a.b/"
     "c':'2'},'requests':{'a.b/c':'1'}}}]}}",
     "spec.containers[0].resources.requests",
     "Invalid value: \"1\": must be equal to a.b/c limit of 2"},
    {"{'spec':{'containers':[{'name':'c','image':'i','resources':{'requests':{'a.b/c':'1'}}}]}}",
     "spec.containers[0].resources.limits",
     "Required value: Limit must be set for non overcommitable resources"},
    {"{'spec':{'containers':[{'name':'c','image':'i','resources':{'limits':{'hugepages-2Mi':'4Mi'}}"
     "}]}}",
     "spec.containers[0].resources", "Forbidden: HugePages require cpu or memory"},
    {"{'spec':{'containers':[{'name':'c','image':'i','resources':{'limits':{'cpu':'1','hugepages-"
     "2Mi':'3Mi'}}}]}}",
     "spec.containers[0].resources.limits[hugepages-2Mi]",
     "Invalid value: \"3Mi\": 3Mi is not positive integer multiple of hugepages-2Mi"},
    {"{'spec':{'containers':[{'name':'c','image':'i','resources':{'claims':[{'name':'g'}]}}]}}",
     "spec.containers[0].resources.claims[0]",
     "Not found: \"g\": must be one of the names in pod.spec.resourceClaims which is empty"},
    {"{'spec':{'resourceClaims':[{'name':'a','resourceClaimName':'x'}],'containers':[{'name':'c','"
     "image':'i','resources':{'claims':[{'name':'g'}]}}]}}",
     "spec.containers[0].resources.claims[0]",
     "Not found: \"g\": must be one of the names in pod.spec.resourceClaims: a"},
    {"{'spec':{'resourceClaims':[{'name':'a'}]}}", "spec.resourceClaims[0]",
     "Invalid value: {\"name\":\"a\"}: must specify one of: `resourceClaimName`, "
     "`resourceClaimTemplateName`"},
    {"{'spec':{'resourceClaims':[{'name':'a','resourceClaimName':'x','resourceClaimTemplateName':'"
     "y'}]}}",
     "spec.resourceClaims[0]",
     "Invalid value: "
     "{\"name\":\"a\",\"resourceClaimName\":\"x\",\"resourceClaimTemplateName\":\"y\"}: at most "
     "one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"},
    {"{'spec':{'overhead':{'cpu':'-1'}}}", "spec.overhead.limits[cpu]",
     "Invalid value: \"-1\": must be greater than or equal to 0"},
    /* Mounts and devices. */
    {"{'spec':{'volumes':[{'name':'v','emptyDir':{}}],'containers':[{'name':'c','image':'i','"
     "volumeMounts':[{'name':'w','mountPath':'/a'}]}]}}",
     "spec.containers[0].volumeMounts[0].name", "Not found: \"w\""},
    {"{'spec':{'volumes':[{'name':'v','emptyDir':{}}],'containers':[{'name':'c','image':'i','"
     "volumeMounts':[{'name':'','mountPath':'/a'}]}]}}",
     "spec.containers[0].volumeMounts[0].name", "Required value"},
    {"{'spec':{'volumes':[{'name':'v','emptyDir':{}}],'containers':[{'name':'c','image':'i','"
     "volumeMounts':[{'name':'v','mountPath':''}]}]}}",
     "spec.containers[0].volumeMounts[0].mountPath", "Required value"},
    {"{'spec':{'volumes':[{'name':'v','emptyDir':{}}],'containers':[{'name':'c','image':'i','"
     "volumeMounts':[{'name':'v','mountPath':'/a'},{'name':'v','mountPath':'/a'}]}]}}",
     "spec.containers[0].volumeMounts[1].mountPath", "Invalid value: \"/a\": must be unique"},
    {"{'spec':{'volumes':[{'name':'v','emptyDir':{}}],'containers':[{'name':'c','image':'i','"
     "volumeMounts':[{'name':'v','mountPath':'/a','subPath':'/b'}]}]}}",
     "spec.containers[0].volumeMounts.subPath", "Invalid value: \"/b\": must be a relative path"},
    {"{'spec':{'volumes':[{'name':'v','emptyDir':{}}],'containers':[{'name':'c','image':'i','"
     "volumeMounts':[{'name':'v','mountPath':'/a','subPath':'b/../..'}]}]}}",
     "spec.containers[0].volumeMounts.subPath",
     "Invalid value: \"b/../..\": must not contain '..'"},
    {"{'spec':{'volumes':[{'name':'v','emptyDir':{}}],'containers':[{'name':'c','image':'i','"
     "volumeMounts':[{'name':'v','mountPath':'/a','subPathExpr':'..'}]}]}}",
     "spec.containers[0].volumeMounts.subPathExpr", "Invalid value: \"..\": must not contain '..'"},
    {"{'spec':{'volumes':[{'name':'v','emptyDir':{}}],'containers':[{'name':'c','image':'i','"
     "volumeMounts':[{'name':'v','mountPath':'/a','subPath':'b','subPathExpr':'c'}]}]}}",
     "spec.containers[0].volumeMounts[0].subPathExpr",
     "Invalid value: \"c\": subPathExpr and subPath are mutually exclusive"},
    {"{'spec':{'volumes':[{'name':'v','image':{'reference':'i'}}],'containers':[{'name':'c','image'"
     ":'i','volumeMounts':[{'name':'v','mountPath':'/a','subPath':'b'}]}]}}",
     "spec.containers[0].volumeMounts[0].subPath",
     "Invalid value: \"b\": not allowed in image volume sources"},
    {"{'spec':{'volumes':[{'name':'v','emptyDir':{}}],'containers':[{'name':'c','image':'i','"
     "volumeMounts':[{'name':'v','mountPath':'/a','mountPropagation':'X'}]}]}}",
     "spec.containers[0].volumeMounts.mountPropagation",
     "Unsupported value: \"X\": supported values: \"Bidirectional\", \"HostToContainer\", "
     "\"None\""},
    {"{'spec':{'volumes':[{'name':'v','emptyDir':{}}],'containers':[{'name':'c','image':'i','"
     "volumeMounts':[{'name':'v','mountPath':'/a','mountPropagation':'Bidirectional'}]}]}}",
     "spec.containers[0].volumeMounts.mountPropagation",
     "Forbidden: Bidirectional mount propagation is available only to privileged containers"},
    {"{'spec':{'volumes':[{'name':'v','emptyDir':{}}],'containers':[{'name':'c','image':'i','"
     "volumeMounts':[{'name':'v','mountPath':'/a','recursiveReadOnly':'X'}]}]}}",
     "spec.containers[0].volumeMounts.recursiveReadOnly",
     "Unsupported value: \"X\": supported values: \"Disabled\", \"Enabled\", \"IfPossible\""},
    {"{'spec':{'volumes':[{'name':'v','emptyDir':{}}],'containers':[{'name':'c','image':'i','"
     "volumeMounts':[{'name':'v','mountPath':'/a','recursiveReadOnly':'Enabled'}]}]}}",
     "spec.containers[0].volumeMounts.recursiveReadOnly",
     "Forbidden: may only be specified when readOnly is true"},
    {"{'spec':{'volumes':[{'name':'v','emptyDir':{}}],'containers':[{'name':'c','image':'i','"
     "volumeMounts':[{'name':'v','mountPath':'/"
     "a','readOnly':true,'mountPropagation':'HostToContainer','recursiveReadOnly':'Enabled'}]}]}}",
     "spec.containers[0].volumeMounts.recursiveReadOnly",
     "Forbidden: may only be specified when mountPropagation is None or not specified"},
    {"{'spec':{'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'x'}}],'containers':[{'"
     "name':'c','image':'i','volumeDevices':[{'name':'w','devicePath':'/a'}]}]}}",
     "spec.containers[0].volumeDevices[0].name", "Not found: \"w\""},
    {"{'spec':{'volumes':[{'name':'v','emptyDir':{}}],'containers':[{'name':'c','image':'i','"
     "volumeDevices':[{'name':'v','devicePath':'/a'}]}]}}",
     "spec.containers[0].volumeDevices[0].name",
     "Invalid value: \"v\": can only use volume source type of PersistentVolumeClaim or Ephemeral "
     "for block mode"},
    {"{'spec':{'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'x'}}],'containers':[{'"
     "name':'c','image':'i','volumeDevices':[{'name':'v','devicePath':'/"
     "a'},{'name':'v','devicePath':'/b'}]}]}}",
     "spec.containers[0].volumeDevices[1].name", "Invalid value: \"v\": must be unique"},
    {"{'spec':{'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'x'}}],'containers':[{'"
     "name':'c','image':'i','volumeDevices':[{'name':'v','devicePath':''}]}]}}",
     "spec.containers[0].volumeDevices[0].devicePath", "Required value"},
    {"{'spec':{'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'x'}}],'containers':[{'"
     "name':'c','image':'i','volumeDevices':[{'name':'v','devicePath':'/a/..'}]}]}}",
     "spec.containers[0].volumeDevices[0].devicePath",
     "Invalid value: \"/a/..\": can not contain backsteps ('..')"},
    {"{'spec':{'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'x'}}],'containers':[{'"
     "name':'c','image':'i','volumeMounts':[{'name':'v','mountPath':'/"
     "b'}],'volumeDevices':[{'name':'v','devicePath':'/a'}]}]}}",
     "spec.containers[0].volumeMounts[0].name",
     "Invalid value: \"v\": must not already exist in volumeDevices"},
    {"{'spec':{'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'x'}}],'containers':[{'"
     "name':'c','image':'i','volumeMounts':[{'name':'v','mountPath':'/"
     "a'}],'volumeDevices':[{'name':'v','devicePath':'/a'}]}]}}",
     "spec.containers[0].volumeDevices[0].devicePath",
     "Invalid value: \"/a\": must not already exist as a path in volumeMounts"},
    /* Probes and lifecycle. */
    {"{'spec':{'containers':[{'name':'c','image':'i','livenessProbe':{}}]}}",
     "spec.containers[0].livenessProbe", "Required value: must specify a handler type"},
    {"{'spec':{'containers':[{'name':'c','image':'i','livenessProbe':{'exec':{'command':['x']},'"
     "tcpSocket':{'port':1}}}]}}",
     "spec.containers[0].livenessProbe.tcpSocket",
     "Forbidden: may not specify more than 1 handler type"},
    {"{'spec':{'containers':[{'name':'c','image':'i','livenessProbe':{'exec':{'command':['x']},'"
     "httpGet':{'port':1},'grpc':{'port':1}}}]}}",
     "spec.containers[0].livenessProbe.grpc",
     "Forbidden: may not specify more than 1 handler type"},
    {"{'spec':{'containers':[{'name':'c','image':'i','livenessProbe':{'exec':{}}}]}}",
     "spec.containers[0].livenessProbe.exec.command", "Required value"},
    {"{'spec':{'containers':[{'name':'c','image':'i','livenessProbe':{'httpGet':{'port':0}}}]}}",
     "spec.containers[0].livenessProbe.httpGet.port",
     "Invalid value: 0: must be between 1 and 65535, inclusive"},
    {"{'spec':{'containers':[{'name':'c','image':'i','livenessProbe':{'httpGet':{'port':'-'}}}]}}",
     "spec.containers[0].livenessProbe.httpGet.port",
     "Invalid value: \"-\": must not begin or end with a hyphen"},
    {"{'spec':{'containers':[{'name':'c','image':'i','livenessProbe':{'httpGet':{'port':1,'scheme':"
     "'FTP'}}}]}}",
     "spec.containers[0].livenessProbe.httpGet.scheme",
     "Unsupported value: \"FTP\": supported values: \"HTTP\", \"HTTPS\""},
    {"{'spec':{'containers':[{'name':'c','image':'i','livenessProbe':{'httpGet':{'port':1,'"
     "httpHeaders':[{'name':'a b','value':''}]}}}]}}",
     "spec.containers[0].livenessProbe.httpGet.httpHeaders",
     "Invalid value: \"a b\": a valid HTTP header must consist of alphanumeric characters or '-' "
     "(e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')"},
    {"{'spec':{'containers':[{'name':'c','image':'i','livenessProbe':{'tcpSocket':{'port':70000}}}]"
     "}}",
     "spec.containers[0].livenessProbe.tcpSocket.port",
     "Invalid value: 70000: must be between 1 and 65535, inclusive"},
    {"{'spec':{'containers':[{'name':'c','image':'i','livenessProbe':{'grpc':{'port':0}}}]}}",
     "spec.containers[0].livenessProbe.grpc.port",
     "Invalid value: 0: must be between 1 and 65535, inclusive"},
    {"{'spec':{'containers':[{'name':'c','image':'i','livenessProbe':{'exec':{'command':['x']},'"
     "initialDelaySeconds':-1}}]}}",
     "spec.containers[0].livenessProbe.initialDelaySeconds",
     "Invalid value: -1: must be greater than or equal to 0"},
    {"{'spec':{'containers':[{'name':'c','image':'i','livenessProbe':{'exec':{'command':['x']},'"
     "timeoutSeconds':-1}}]}}",
     "spec.containers[0].livenessProbe.timeoutSeconds",
     "Invalid value: -1: must be greater than or equal to 0"},
    {"{'spec':{'containers':[{'name':'c','image':'i','livenessProbe':{'exec':{'command':['x']},'"
     "periodSeconds':-1}}]}}",
     "spec.containers[0].livenessProbe.periodSeconds",
     "Invalid value: -1: must be greater than or equal to 0"},
    {"{'spec':{'containers':[{'name':'c','image':'i','livenessProbe':{'exec':{'command':['x']},'"
     "successThreshold':-1}}]}}",
     "spec.containers[0].livenessProbe.successThreshold",
     "Invalid value: -1: must be greater than or equal to 0"},
    {"{'spec':{'containers':[{'name':'c','image':'i','livenessProbe':{'exec':{'command':['x']},'"
     "failureThreshold':-1}}]}}",
     "spec.containers[0].livenessProbe.failureThreshold",
     "Invalid value: -1: must be greater than or equal to 0"},
    {"{'spec':{'containers':[{'name':'c','image':'i','livenessProbe':{'exec':{'command':['x']},'"
     "successThreshold':2}}]}}",
     "spec.containers[0].livenessProbe.successThreshold", "Invalid value: 2: must be 1"},
    {"{'spec':{'containers':[{'name':'c','image':'i','startupProbe':{'exec':{'command':['x']},'"
     "successThreshold':2}}]}}",
     "spec.containers[0].startupProbe.successThreshold", "Invalid value: 2: must be 1"},
    {"{'spec':{'containers':[{'name':'c','image':'i','livenessProbe':{'exec':{'command':['x']},'"
     "terminationGracePeriodSeconds':0}}]}}",
     "spec.containers[0].livenessProbe.terminationGracePeriodSeconds",
     "Invalid value: 0: must be greater than 0"},
    {"{'spec':{'containers':[{'name':'c','image':'i','readinessProbe':{'exec':{'command':['x']},'"
     "terminationGracePeriodSeconds':1}}]}}",
     "spec.containers[0].readinessProbe.terminationGracePeriodSeconds",
     "Invalid value: 1: must not be set for readinessProbes"},
    {"{'spec':{'containers':[{'name':'c','image':'i','lifecycle':{'preStop':{}}}]}}",
     "spec.containers[0].lifecycle.preStop", "Required value: must specify a handler type"},
    {"{'spec':{'containers':[{'name':'c','image':'i','lifecycle':{'postStart':{'exec':{'command':['"
     "x']},'sleep':{'seconds':1}}}}]}}",
     "spec.containers[0].lifecycle.postStart.sleep",
     "Forbidden: may not specify more than 1 handler type"},
    {"{'spec':{'containers':[{'name':'c','image':'i','lifecycle':{'preStop':{'sleep':{'seconds':31}"
     "}}}]}}",
     "spec.containers[0].lifecycle.preStop.sleep",
     "Invalid value: 31: must be non-negative and less than terminationGracePeriodSeconds (30)"},
    /* Security settings. */
    {"{'spec':{'containers':[{'name':'c','image':'i','securityContext':{'runAsUser':-1}}]}}",
     "spec.containers[0].securityContext.runAsUser",
     "Invalid value: -1: must be between 0 and 2147483647, inclusive"},
    {"{'spec':{'securityContext':{'runAsUser':-1}}}", "spec.securityContext.runAsUser",
     "Invalid value: -1: must be between 0 and 2147483647, inclusive"},
    {"{'spec':{'containers':[{'name':'c','image':'i','securityContext':{'runAsGroup':-1}}]}}",
     "spec.containers[0].securityContext.runAsGroup",
     "Invalid value: -1: must be between 0 and 2147483647, inclusive"},
    {"{'spec':{'securityContext':{'runAsGroup':-1}}}", "spec.securityContext.runAsGroup",
     "Invalid value: -1: must be between 0 and 2147483647, inclusive"},
    {"{'spec':{'securityContext':{'fsGroup':2147483648}}}", "spec.securityContext.fsGroup",
     "Invalid value: 2147483648: must be between 0 and 2147483647, inclusive"},
    {"{'spec':{'securityContext':{'supplementalGroups':[1,-1]}}}",
     "spec.securityContext.supplementalGroups[1]",
     "Invalid value: -1: must be between 0 and 2147483647, inclusive"},
    {"{'spec':{'securityContext':{'fsGroupChangePolicy':'X'}}}",
     "spec.securityContext.fsGroupChangePolicy",
     "Unsupported value: \"X\": supported values: \"Always\", \"OnRootMismatch\""},
    {"{'spec':{'securityContext':{'supplementalGroupsPolicy':'X'}}}",
     "spec.securityContext.supplementalGroupsPolicy",
     "Unsupported value: \"X\": supported values: \"Merge\", \"Strict\""},
    {"{'spec':{'securityContext':{'seLinuxChangePolicy':'X'}}}",
     "spec.securityContext.seLinuxChangePolicy",
     "Unsupported value: \"X\": supported values: \"MountOption\", \"Recursive\""},
    {"{'spec':{'containers':[{'name':'c','image':'i','securityContext':{'seccompProfile':{'type':''"
     "}}}]}}",
     "spec.containers[0].securityContext.seccompProfile.type",
     "Required value: type is required when seccompProfile is set"},
    {"{'spec':{'containers':[{'name':'c','image':'i','securityContext':{'seccompProfile':{'type':'"
     "X'}}}]}}",
     "spec.containers[0].securityContext.seccompProfile.type",
     "Unsupported value: \"X\": supported values: \"Localhost\", \"RuntimeDefault\", "
     "\"Unconfined\""},
    {"{'spec':{'containers':[{'name':'c','image':'i','securityContext':{'seccompProfile':{'type':'"
     "Localhost'}}}]}}",
     "spec.containers[0].securityContext.seccompProfile.localhostProfile",
     "Required value: must be set when seccomp type is Localhost"},
    {"{'spec':{'containers':[{'name':'c','image':'i','securityContext':{'seccompProfile':{'type':'"
     "Localhost','localhostProfile':'../x'}}}]}}",
     "spec.containers[0].securityContext.seccompProfile.localhostProfile",
     "Invalid value: \"../x\": must not contain '..'"},
    {"{'spec':{'containers':[{'name':'c','image':'i','securityContext':{'seccompProfile':{'type':'"
     "Localhost','localhostProfile':'/x'}}}]}}",
     "spec.containers[0].securityContext.seccompProfile.localhostProfile",
     "Invalid value: \"/x\": must be a relative path"},
    {"{'spec':{'containers':[{'name':'c','image':'i','securityContext':{'seccompProfile':{'type':'"
     "Unconfined','localhostProfile':'x'}}}]}}",
     "spec.containers[0].securityContext.seccompProfile.localhostProfile",
     "Invalid value: \"x\": can only be set when seccomp type is Localhost"},
    {"{'spec':{'containers':[{'name':'c','image':'i','securityContext':{'appArmorProfile':{'type':'"
     "'}}}]}}",
     "spec.containers[0].securityContext.appArmorProfile.type",
     "Required value: type is required when appArmorProfile is set"},
    {"{'spec':{'containers':[{'name':'c','image':'i','securityContext':{'appArmorProfile':{'type':'"
     "Localhost'}}}]}}",
     "spec.containers[0].securityContext.appArmorProfile.localhostProfile",
     "Required value: must be set when AppArmor type is Localhost"},
    {"{'spec':{'containers':[{'name':'c','image':'i','securityContext':{'appArmorProfile':{'type':'"
     "Localhost','localhostProfile':' x'}}}]}}",
     "spec.containers[0].securityContext.appArmorProfile.localhostProfile",
     "Invalid value: \" x\": must not be padded with whitespace"},
    {"{'spec':{'containers':[{'name':'c','image':'i','securityContext':{'appArmorProfile':{'type':'"
     "RuntimeDefault','localhostProfile':'x'}}}]}}",
     "spec.containers[0].securityContext.appArmorProfile.localhostProfile",
     "Invalid value: \"x\": can only be set when AppArmor type is Localhost"},
    {"{'spec':{'containers':[{'name':'c','image':'i','securityContext':{'windowsOptions':{'"
     "gmsaCredentialSpecName':'A'}}}]}}",
     "spec.containers[0].securityContext.windowsOptions.gmsaCredentialSpecName",
     "Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
     "characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
     "'example.com', regex used for validation is "
     "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"},
    {"{'spec':{'containers':[{'name':'c','image':'i','securityContext':{'windowsOptions':{'"
     "gmsaCredentialSpec':''}}}]}}",
     "spec.containers[0].securityContext.windowsOptions.gmsaCredentialSpec",
     "Invalid value: \"\": gmsaCredentialSpec cannot be an empty string"},
    {"{'spec':{'containers':[{'name':'c','image':'i','securityContext':{'windowsOptions':{'"
     "runAsUserName':''}}}]}}",
     "spec.containers[0].securityContext.windowsOptions.runAsUserName",
     "Invalid value: \"\": runAsUserName cannot be an empty string"},
    {"{'spec':{'securityContext':{'seccompProfile':{'type':''}}}}",
     "spec.securityContext.seccompProfile.type",
     "Required value: type is required when seccompProfile is set"},
    {"{'spec':{'securityContext':{'seccompProfile':{'type':'X'}}}}",
     "spec.securityContext.seccompProfile.type",
     "Unsupported value: \"X\": supported values: \"Localhost\", \"RuntimeDefault\", "
     "\"Unconfined\""},
    {"{'spec':{'securityContext':{'seccompProfile':{'type':'Localhost'}}}}",
     "spec.securityContext.seccompProfile.localhostProfile",
     "Required value: must be set when seccomp type is Localhost"},
    {"{'spec':{'securityContext':{'seccompProfile':{'type':'Localhost','localhostProfile':'../"
     "x'}}}}",
     "spec.securityContext.seccompProfile.localhostProfile",
     "Invalid value: \"../x\": must not contain '..'"},
    {"{'spec':{'securityContext':{'seccompProfile':{'type':'Localhost','localhostProfile':'/x'}}}}",
     "spec.securityContext.seccompProfile.localhostProfile",
     "Invalid value: \"/x\": must be a relative path"},
    {"{'spec':{'securityContext':{'seccompProfile':{'type':'Unconfined','localhostProfile':'x'}}}}",
     "spec.securityContext.seccompProfile.localhostProfile",
     "Invalid value: \"x\": can only be set when seccomp type is Localhost"},
    {"{'spec':{'securityContext':{'appArmorProfile':{'type':''}}}}",
     "spec.securityContext.appArmorProfile.type",
     "Required value: type is required when appArmorProfile is set"},
    {"{'spec':{'securityContext':{'appArmorProfile':{'type':'Localhost'}}}}",
     "spec.securityContext.appArmorProfile.localhostProfile",
     "Required value: must be set when AppArmor type is Localhost"},
    {"{'spec':{'securityContext':{'appArmorProfile':{'type':'Localhost','localhostProfile':' "
     "x'}}}}",
     "spec.securityContext.appArmorProfile.localhostProfile",
     "Invalid value: \" x\": must not be padded with whitespace"},
    {"{'spec':{'securityContext':{'appArmorProfile':{'type':'RuntimeDefault','localhostProfile':'x'"
     "}}}}",
     "spec.securityContext.appArmorProfile.localhostProfile",
     "Invalid value: \"x\": can only be set when AppArmor type is Localhost"},
    {"{'spec':{'securityContext':{'windowsOptions':{'gmsaCredentialSpecName':'A'}}}}",
     "spec.securityContext.windowsOptions.gmsaCredentialSpecName",
     "Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
     "characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
     "'example.com', regex used for validation is "
     "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"},
    {"{'spec':{'securityContext':{'windowsOptions':{'gmsaCredentialSpec':''}}}}",
     "spec.securityContext.windowsOptions.gmsaCredentialSpec",
     "Invalid value: \"\": gmsaCredentialSpec cannot be an empty string"},
    {"{'spec':{'securityContext':{'windowsOptions':{'runAsUserName':''}}}}",
     "spec.securityContext.windowsOptions.runAsUserName",
     "Invalid value: \"\": runAsUserName cannot be an empty string"},
    {"{'spec':{'securityContext':{'windowsOptions':{'runAsUserName':'a\\\\b\\\\c'}}}}",
     "spec.securityContext.windowsOptions.runAsUserName",
     "Invalid value: \"a\\\\b\\\\c\": runAsUserName cannot contain more than one backslash"},
    {"{'spec':{'securityContext':{'windowsOptions':{'runAsUserName':'d\\\\'}}}}",
     "spec.securityContext.windowsOptions.runAsUserName",
     "Invalid value: \"d\\\\\": runAsUserName's User cannot be empty"},
    {"{'spec':{'securityContext':{'windowsOptions':{'runAsUserName':'. .'}}}}",
     "spec.securityContext.windowsOptions.runAsUserName",
     "Invalid value: \". .\": runAsUserName's User cannot contain only periods or spaces"},
    {"{'spec':{'securityContext':{'windowsOptions':{'runAsUserName':'a@b'}}}}",
     "spec.securityContext.windowsOptions.runAsUserName",
     "Invalid value: \"a@b\": runAsUserName's User cannot contain the following characters: "
     "\"/\\:;|=,+*?<>@[]"},
    {"{'spec':{'securityContext':{'windowsOptions':{'runAsUserName':':\\\\a'}}}}",
     "spec.securityContext.windowsOptions.runAsUserName",
     "Invalid value: \":\\\\a\": runAsUserName's Domain doesn't match the NetBios nor the DNS "
     "format"},
    {"{'spec':{'containers':[{'name':'c','image':'i','securityContext':{'procMount':'X'}}]}}",
     "spec.containers[0].securityContext.procMount",
     "Unsupported value: \"X\": supported values: \"Default\", \"Unmasked\""},
    {"{'spec':{'containers':[{'name':'c','image':'i','securityContext':{'procMount':'Unmasked'}}]}"
     "}",
     "spec.containers[0].securityContext.procMount",
     "Invalid value: \"Unmasked\": `hostUsers` must be false to use `Unmasked`"},
    {"{'spec':{'containers':[{'name':'c','image':'i','securityContext':{'privileged':true,'"
     "allowPrivilegeEscalation':false}}]}}",
     "spec.containers[0].securityContext",
     "Invalid value: {\"privileged\":true,\"allowPrivilegeEscalation\":false}: cannot set "
     "`allowPrivilegeEscalation` to false and `privileged` to true"},
    {"{'spec':{'containers':[{'name':'c','image':'i','securityContext':{'capabilities':{'add':['"
     "CAP_SYS_ADMIN']},'allowPrivilegeEscalation':false}}]}}",
     "spec.containers[0].securityContext",
     "Invalid value: "
     "{\"capabilities\":{\"add\":[\"CAP_SYS_ADMIN\"]},\"allowPrivilegeEscalation\":false}: cannot "
     "set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"},
    {"{'spec':{'shareProcessNamespace':true,'hostPID':true}}",
     "spec.securityContext.shareProcessNamespace",
     "Invalid value: true: ShareProcessNamespace and HostPID cannot both be enabled"},
    {"{'spec':{'hostUsers':false,'hostNetwork':true}}", "spec.hostNetwork",
     "Forbidden: when `pod.Spec.HostUsers` is false"},
    {"{'spec':{'hostUsers':false,'hostPID':true}}", "spec.HostPID",
     "Forbidden: when `pod.Spec.HostUsers` is false"},
    {"{'spec':{'hostUsers':false,'hostIPC':true}}", "spec.HostIPC",
     "Forbidden: when `pod.Spec.HostUsers` is false"},
    {"{'spec':{'securityContext':{'sysctls':[{'name':'','value':'1'}]}}}",
     "spec.securityContext.sysctls[0].name", "Required value"},
    {"{'spec':{'securityContext':{'sysctls':[{'name':'a..b','value':'1'}]}}}",
     "spec.securityContext.sysctls[0].name",
     "Invalid value: \"a..b\": must have at most 253 characters and match regex "
     "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"},
    {"{'spec':{'securityContext':{'sysctls':[{'name':'A.b','value':'1'}]}}}",
     "spec.securityContext.sysctls[0].name",
     "Invalid value: \"A.b\": must have at most 253 characters and match regex "
     "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"},
    {"{'spec':{'securityContext':{'sysctls':[{'name':'.a','value':'1'}]}}}",
     "spec.securityContext.sysctls[0].name",
     "Invalid value: \".a\": must have at most 253 characters and match regex "
     "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"},
    {"{'spec':{'securityContext':{'sysctls':[{'name':'a.','value':'1'}]}}}",
     "spec.securityContext.sysctls[0].name",
     "Invalid value: \"a.\": must have at most 253 characters and match regex "
     "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"},
    {"{'spec':{'securityContext':{'sysctls':[{'name':'a_.b','value':'1'}]}}}",
     "spec.securityContext.sysctls[0].name",
     "Invalid value: \"a_.b\": must have at most 253 characters and match regex "
     "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"},
    {"{'spec':{'securityContext':{'sysctls':[{'name':'i,a','value':'1'}]}}}",
     "spec.securityContext.sysctls[0].name",
     "Invalid value: \"i,a\": must have at most 253 characters and match regex "
     "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"},
    {"{'spec':{'securityContext':{'sysctls':[{'name':'a.b','value':'1'},{'name':'a.b','value':'1'}]"
     "}}}",
     "spec.securityContext.sysctls[1].name", "Duplicate value: \"a.b\""},
    {"{'spec':{'securityContext':{'sysctls':[{'name':'net.ipv4.ip_forward','value':'1'}]},'"
     "hostNetwork':true}}",
     "spec.securityContext.sysctls[0].name",
     "Invalid value: \"net.ipv4.ip_forward\": may not be specified when 'hostNetwork' is true"},
    {"{'spec':{'securityContext':{'sysctls':[{'name':'net/ipv4/"
     "x.y','value':'1'}]},'hostNetwork':true}}",
     "spec.securityContext.sysctls[0].name",
     "Invalid value: \"net/ipv4/x.y\": may not be specified when 'hostNetwork' is true"},
    {"{'spec':{'securityContext':{'sysctls':[{'name':'kernel.shmmax','value':'1'}]},'hostIPC':true}"
     "}",
     "spec.securityContext.sysctls[0].name",
     "Invalid value: \"kernel.shmmax\": may not be specified when 'hostIPC' is true"},
    /* Operating systems. */
    {"{'spec':{'os':{'name':''}}}", "spec.os.name", "Required value: cannot be empty"},
    {"{'spec':{'os':{'name':'bsd'}}}", "spec.os",
     "Unsupported value: \"bsd\": supported values: \"linux\", \"windows\""},
    {"{'spec':{'os':{'name':'linux'},'securityContext':{'windowsOptions':{}}}}",
     "spec.securityContext.windowsOptions",
     "Forbidden: windows options cannot be set for a linux pod"},
    {"{'spec':{'os':{'name':'linux'},'containers':[{'name':'c','image':'i','securityContext':{'"
     "windowsOptions':{}}}]}}",
     "spec.containers[0].securityContext.windowsOptions",
     "Forbidden: windows options cannot be set for a linux pod"},
    {"{'spec':{'os':{'name':'windows'},'hostPID':true}}", "spec.hostPID",
     "Forbidden: cannot be set for a windows pod"},
    {"{'spec':{'os':{'name':'windows'},'hostUsers':true}}", "spec.hostUsers",
     "Forbidden: cannot be set for a windows pod"},
    {"{'spec':{'os':{'name':'windows'},'securityContext':{'runAsUser':1}}}",
     "spec.securityContext.runAsUser", "Forbidden: cannot be set for a windows pod"},
    {"{'spec':{'os':{'name':'windows'},'securityContext':{'sysctls':[{'name':'a','value':''}]}}}",
     "spec.securityContext.sysctls", "Forbidden: cannot be set for a windows pod"},
    {"{'spec':{'os':{'name':'windows'},'containers':[{'name':'c','image':'i','securityContext':{'"
     "privileged':false}}]}}",
     "spec.containers[0].securityContext.privileged", "Forbidden: cannot be set for a windows pod"},
    {"{'spec':{'securityContext':{'windowsOptions':{'hostProcess':true}}}}", "spec.hostNetwork",
     "Invalid value: false: hostNetwork must be true if pod contains any hostProcess containers"},
    {"{'spec':{'hostNetwork':true,'containers':[{'name':'c','image':'i','securityContext':{'"
     "windowsOptions':{'hostProcess':true}}},{'name':'d','image':'i'}]}}",
     "spec",
     "Invalid value: \"\": If pod contains any hostProcess containers then all containers must be "
     "HostProcess containers"},
    {"{'spec':{'securityContext':{'windowsOptions':{'hostProcess':false}},'containers':[{'name':'c'"
     ",'image':'i','securityContext':{'windowsOptions':{'hostProcess':true}}}]}}",
     "spec.containers[0].securityContext.windowsOptions.hostProcess",
     "Invalid value: true: pod hostProcess value must be identical if both are specified, was "
     "false"},
    /* The pod's other fields. */
    {"{'spec':{'restartPolicy':'X'}}", "spec.restartPolicy",
     "Unsupported value: \"X\": supported values: \"Always\", \"Never\", \"OnFailure\""},
    {"{'spec':{'activeDeadlineSeconds':0}}", "spec.activeDeadlineSeconds",
     "Invalid value: 0: must be between 1 and 2147483647, inclusive"},
    {"{'spec':{'activeDeadlineSeconds':2147483648}}", "spec.activeDeadlineSeconds",
     "Invalid value: 2147483648: must be between 1 and 2147483647, inclusive"},
    {"{'spec':{'hostname':'A'}}", "spec.hostname",
     "Invalid value: \"A\": a lowercase RFC 1123 label must consist of lower case alphanumeric "
     "characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  "
     "or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"},
    {"{'spec':{'subdomain':'A'}}", "spec.subdomain",
     "Invalid value: \"A\": a lowercase RFC 1123 label must consist of lower case alphanumeric "
     "characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  "
     "or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"},
    {"{'spec':{'serviceAccountName':'A'}}", "spec.serviceAccountName",
     "Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
     "characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
     "'example.com', regex used for validation is "
     "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"},
    {"{'spec':{'nodeName':'A'}}", "spec.nodeName",
     "Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
     "characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
     "'example.com', regex used for validation is "
     "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"},
    {"{'spec':{'priorityClassName':'A'}}", "spec.priorityClassName",
     "Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
     "characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
     "'example.com', regex used for validation is "
     "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"},
    {"{'spec':{'runtimeClassName':'A'}}", "spec.runtimeClassName",
     "Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
     "characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
     "'example.com', regex used for validation is "
     "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"},
    {"{'spec':{'preemptionPolicy':'X'}}", "spec.preemptionPolicy",
     "Unsupported value: \"X\": supported values: \"PreemptLowerPriority\", \"Never\""},
    {"{'spec':{'readinessGates':[{'conditionType':'-'}]}}", "spec.readinessGates[0].conditionType",
     "Invalid value: \"-\": name part must consist of alphanumeric characters, '-', '_' or '.', "
     "and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
     "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"},
    {"{'spec':{'hostAliases':[{'ip':'x','hostnames':['a']}]}}", "spec.hostAliases[0].ip",
     "Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"},
    {"{'spec':{'hostAliases':[{'ip':'1.1.1.1','hostnames':['A']}]}}",
     "spec.hostAliases[0].hostnames[0]",
     "Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
     "characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
     "'example.com', regex used for validation is "
     "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"},
    {"{'spec':{'nodeName':'n','schedulingGates':[{'name':'g'}]}}", "spec.nodeName",
     "Forbidden: cannot be set until all schedulingGates have been cleared"},
    /* Name resolution. */
    {"{'spec':{'dnsPolicy':'X'}}", "spec.dnsPolicy",
     "Unsupported value: \"X\": supported values: \"ClusterFirst\", \"ClusterFirstWithHostNet\", "
     "\"Default\", \"None\""},
    {"{'spec':{'dnsPolicy':'None'}}", "spec.dnsConfig",
     "Required value: must provide `dnsConfig` when `dnsPolicy` is None"},
    {"{'spec':{'dnsPolicy':'None','dnsConfig':{'searches':['a']}}}", "spec.dnsConfig.nameservers",
     "Required value: must provide at least one DNS nameserver when `dnsPolicy` is None"},
    {"{'spec':{'dnsConfig':{'nameservers':['1.1.1.1','1.1.1.2','1.1.1.3','1.1.1.4']}}}",
     "spec.dnsConfig.nameservers",
     "Invalid value: [\"1.1.1.1\",\"1.1.1.2\",\"1.1.1.3\",\"1.1.1.4\"]: must not have more than 3 "
     "nameservers"},
    {"{'spec':{'dnsConfig':{'nameservers':['x']}}}", "spec.dnsConfig.nameservers[0]",
     "Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"},
    {"{'spec':{'dnsConfig':{'searches':['A']}}}", "spec.dnsConfig.searches[0]",
     "Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
     "characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
     "'example.com', regex used for validation is "
     "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"},
    {"{'spec':{'dnsConfig':{'searches':['a','a','a','a','a','a','a','a','a','a','a','a','a','a','a'"
     ",'a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a']}}}",
     "spec.dnsConfig.searches",
     "Invalid value: "
     "[\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\","
     "\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\","
     "\"a\",\"a\",\"a\"]: must not have more than 32 search paths"},
    {"{'spec':{'dnsConfig':{'options':[{'value':'x'}]}}}", "spec.dnsConfig.options[0]",
     "Required value: must not be empty"},
    /* Tolerations. */
    {"{'spec':{'tolerations':[{'key':'a','operator':'X'}]}}", "spec.tolerations[0].operator",
     "Unsupported value: \"X\": supported values: \"Equal\", \"Exists\""},
    {"{'spec':{'tolerations':[{'key':'-','operator':'Exists'}]}}", "spec.tolerations[0].key",
     "Invalid value: \"-\": name part must consist of alphanumeric characters, '-', '_' or '.', "
     "and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
     "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"},
    {"{'spec':{'tolerations':[{'operator':'Equal'}]}}", "spec.tolerations[0].operator",
     "Invalid value: \"Equal\": operator must be Exists when `key` is empty, which means \"match "
     "all values and all keys\""},
    {"{'spec':{'tolerations':[{}]}}", "spec.tolerations[0].operator",
     "Invalid value: \"\": operator must be Exists when `key` is empty, which means \"match all "
     "values and all keys\""},
    {"{'spec':{'tolerations':[{'key':'a','operator':'Exists','value':'b'}]}}",
     "spec.tolerations[0].operator",
     "Invalid value: \"b\": value must be empty when `operator` is 'Exists'"},
    {"{'spec':{'tolerations':[{'key':'a','value':'-'}]}}", "spec.tolerations[0].operator",
     "Invalid value: \"-\": a valid label must be an empty string or consist of alphanumeric "
     "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
     "'MyValue',  or 'my_value',  or '12345', regex used for validation is "
     "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"},
    {"{'spec':{'tolerations':[{'key':'a','effect':'X'}]}}", "spec.tolerations[0].effect",
     "Unsupported value: \"X\": supported values: \"NoSchedule\", \"PreferNoSchedule\", "
     "\"NoExecute\""},
    {"{'spec':{'tolerations':[{'key':'a','effect':'NoSchedule','tolerationSeconds':1}]}}",
     "spec.tolerations[0].effect",
     "Invalid value: \"NoSchedule\": effect must be 'NoExecute' when `tolerationSeconds` is set"},
    /* Affinity. */
    {"{'spec':{'nodeSelector':{'-':'a'}}}", "spec.nodeSelector",
     "Invalid value: \"-\": name part must consist of alphanumeric characters, '-', '_' or '.', "
     "and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
     "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"},
    {"{'spec':{'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'"
     "nodeSelectorTerms':[]}}}}}",
     "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
     "Required value: must have at least one node selector term"},
    {"{'spec':{'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'"
     "nodeSelectorTerms':[{'matchExpressions':[{'key':'a','operator':'X'}]}]}}}}}",
     "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms["
     "0].matchExpressions[0].operator",
     "Invalid value: \"X\": not a valid selector operator"},
    {"{'spec':{'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'"
     "nodeSelectorTerms':[{'matchExpressions':[{'key':'a','operator':'In'}]}]}}}}}",
     "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms["
     "0].matchExpressions[0].values",
     "Required value: must be specified when `operator` is 'In' or 'NotIn'"},
    {"{'spec':{'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'"
     "nodeSelectorTerms':[{'matchExpressions':[{'key':'a','operator':'Exists','values':['b']}]}]}}}"
     "}}",
     "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms["
     "0].matchExpressions[0].values",
     "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"},
    {"{'spec':{'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'"
     "nodeSelectorTerms':[{'matchExpressions':[{'key':'a','operator':'Gt','values':['1','2']}]}]}}}"
     "}}",
     "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms["
     "0].matchExpressions[0].values",
     "Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"},
    {"{'spec':{'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'"
     "nodeSelectorTerms':[{'matchExpressions':[{'key':'-','operator':'Exists'}]}]}}}}}",
     "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms["
     "0].matchExpressions[0].key",
     "Invalid value: \"-\": name part must consist of alphanumeric characters, '-', '_' or '.', "
     "and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
     "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"},
    {"{'spec':{'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'"
     "nodeSelectorTerms':[{'matchFields':[{'key':'metadata.name','operator':'Exists'}]}]}}}}}",
     "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms["
     "0].matchFields[0].operator",
     "Invalid value: \"Exists\": not a valid selector operator"},
    {"{'spec':{'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'"
     "nodeSelectorTerms':[{'matchFields':[{'key':'metadata.name','operator':'In','values':['a','b']"
     "}]}]}}}}}",
     "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms["
     "0].matchFields[0].values",
     "Required value: must be only one value when `operator` is 'In' or 'NotIn' for node field "
     "selector"},
    {"{'spec':{'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'"
     "nodeSelectorTerms':[{'matchFields':[{'key':'x','operator':'In','values':['a']}]}]}}}}}",
     "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms["
     "0].matchFields[0].key",
     "Invalid value: \"x\": not a valid field selector key"},
    {"{'spec':{'affinity':{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{'"
     "weight':0,'preference':{}}]}}}}",
     "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight",
     "Invalid value: 0: must be in the range 1-100"},
    {"{'spec':{'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{'"
     "topologyKey':''}]}}}}",
     "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey",
     "Required value: can not be empty"},
    {"{'spec':{'affinity':{'podAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{'"
     "weight':101,'podAffinityTerm':{'topologyKey':'z'}}]}}}}",
     "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight",
     "Invalid value: 101: must be in the range 1-100"},
    {"{'spec':{'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{'"
     "topologyKey':'z','namespaces':['A']}]}}}}",
     "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespace",
     "Invalid value: \"A\": a lowercase RFC 1123 label must consist of lower case alphanumeric "
     "characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  "
     "or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"},
    {"{'spec':{'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{'"
     "topologyKey':'z','labelSelector':{'matchExpressions':[{'key':'a','operator':'X'}]}}]}}}}",
     "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector."
     "matchExpressions[0].operator",
     "Invalid value: \"X\": not a valid selector operator"},
    {"{'spec':{'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{'"
     "topologyKey':'z','matchLabelKeys':['a']}]}}}}",
     "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabelKeys",
     "Forbidden: must not be specified when labelSelector is not set"},
    {"{'spec':{'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{'"
     "topologyKey':'z','labelSelector':{},'matchLabelKeys':['a'],'mismatchLabelKeys':['a']}]}}}}",
     "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabelKeys["
     "0]",
     "Invalid value: \"a\": exists in both matchLabelKeys and mismatchLabelKeys"},
    {"{'spec':{'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{'"
     "topologyKey':''}]}}}}",
     "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey",
     "Required value: can not be empty"},
    {"{'spec':{'affinity':{'podAntiAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{'"
     "weight':101,'podAffinityTerm':{'topologyKey':'z'}}]}}}}",
     "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight",
     "Invalid value: 101: must be in the range 1-100"},
    {"{'spec':{'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{'"
     "topologyKey':'z','namespaces':['A']}]}}}}",
     "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespace",
     "Invalid value: \"A\": a lowercase RFC 1123 label must consist of lower case alphanumeric "
     "characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  "
     "or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"},
    {"{'spec':{'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{'"
     "topologyKey':'z','labelSelector':{'matchExpressions':[{'key':'a','operator':'X'}]}}]}}}}",
     "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]."
     "labelSelector.matchExpressions[0].operator",
     "Invalid value: \"X\": not a valid selector operator"},
    {"{'spec':{'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{'"
     "topologyKey':'z','matchLabelKeys':['a']}]}}}}",
     "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]."
     "matchLabelKeys",
     "Forbidden: must not be specified when labelSelector is not set"},
    {"{'spec':{'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{'"
     "topologyKey':'z','labelSelector':{},'matchLabelKeys':['a'],'mismatchLabelKeys':['a']}]}}}}",
     "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]."
     "matchLabelKeys[0]",
     "Invalid value: \"a\": exists in both matchLabelKeys and mismatchLabelKeys"},
    /* Spreading and gates. */
    {"{'spec':{'topologySpreadConstraints':[{'maxSkew':0,'topologyKey':'z','whenUnsatisfiable':'"
     "DoNotSchedule'}]}}",
     "spec.topologySpreadConstraints[0].maxSkew", "Invalid value: 0: must be greater than zero"},
    {"{'spec':{'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'','whenUnsatisfiable':'"
     "DoNotSchedule'}]}}",
     "spec.topologySpreadConstraints[0].topologyKey", "Required value: can not be empty"},
    {"{'spec':{'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'z','whenUnsatisfiable':'X'}"
     "]}}",
     "spec.topologySpreadConstraints[0].whenUnsatisfiable",
     "Unsupported value: \"X\": supported values: \"DoNotSchedule\", \"ScheduleAnyway\""},
    {"{'spec':{'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'z','whenUnsatisfiable':'"
     "ScheduleAnyway'},{'maxSkew':1,'topologyKey':'z','whenUnsatisfiable':'ScheduleAnyway'}]}}",
     "spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}",
     "Duplicate value: \"{z, ScheduleAnyway}\""},
    {"{'spec':{'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'z','whenUnsatisfiable':'"
     "ScheduleAnyway','minDomains':1}]}}",
     "spec.topologySpreadConstraints[0].minDomains",
     "Invalid value: 1: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not "
     "ScheduleAnyway"},
    {"{'spec':{'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'z','whenUnsatisfiable':'"
     "DoNotSchedule','minDomains':0}]}}",
     "spec.topologySpreadConstraints[0].minDomains", "Invalid value: 0: must be greater than zero"},
    {"{'spec':{'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'z','whenUnsatisfiable':'"
     "ScheduleAnyway','nodeAffinityPolicy':'X'}]}}",
     "spec.topologySpreadConstraints[0].nodeAffinityPolicy",
     "Unsupported value: \"X\": supported values: \"Honor\", \"Ignore\""},
    {"{'spec':{'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'z','whenUnsatisfiable':'"
     "ScheduleAnyway','nodeTaintsPolicy':'X'}]}}",
     "spec.topologySpreadConstraints[0].nodeTaintsPolicy",
     "Unsupported value: \"X\": supported values: \"Honor\", \"Ignore\""},
    {"{'spec':{'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'z','whenUnsatisfiable':'"
     "ScheduleAnyway','matchLabelKeys':['a']}]}}",
     "spec.topologySpreadConstraints[0].matchLabelKeys",
     "Forbidden: must not be specified when labelSelector is not set"},
    {"{'spec':{'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'z','whenUnsatisfiable':'"
     "ScheduleAnyway','labelSelector':{'matchLabels':{'a':'b'}},'matchLabelKeys':['a']}]}}",
     "spec.topologySpreadConstraints[0].matchLabelKeys[0]",
     "Invalid value: \"a\": exists in both matchLabelKeys and labelSelector"},
    {"{'spec':{'schedulingGates':[{'name':'-'}]}}", "spec.schedulingGates[0]",
     "Invalid value: \"-\": name part must consist of alphanumeric characters, '-', '_' or '.', "
     "and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
     "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"},
    {"{'spec':{'schedulingGates':[{'name':'a'},{'name':'a'}]}}", "spec.schedulingGates[1]",
     "Duplicate value: \"a\""},
    /* Volumes. */
    {"{'spec':{'volumes':[{'name':'','emptyDir':{}}]}}", "spec.volumes[0].name", "Required value"},
    {"{'spec':{'volumes':[{'name':'A','emptyDir':{}}]}}", "spec.volumes[0].name",
     "Invalid value: \"A\": a lowercase RFC 1123 label must consist of lower case alphanumeric "
     "characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  "
     "or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"},
    {"{'spec':{'volumes':[{'name':'a','emptyDir':{}},{'name':'a','emptyDir':{}}]}}",
     "spec.volumes[1].name", "Duplicate value: \"a\""},
    {"{'spec':{'volumes':[{'name':'v','emptyDir':{},'hostPath':{'path':'/'}}]}}",
     "spec.volumes[0].hostPath", "Forbidden: may not specify more than 1 volume type"},
    {"{'spec':{'volumes':[{'name':'v','secret':{'secretName':'a'},'configMap':{'name':'a'}}]}}",
     "spec.volumes[0].configMap", "Forbidden: may not specify more than 1 volume type"},
    {"{'spec':{'volumes':[{'name':'v','emptyDir':{'sizeLimit':'-1'}}]}}",
     "spec.volumes[0].emptyDir.sizeLimit",
     "Forbidden: SizeLimit field must be a valid resource quantity"},
    {"{'spec':{'volumes':[{'name':'v','hostPath':{'path':''}}]}}", "spec.volumes[0].hostPath.path",
     "Required value"},
    {"{'spec':{'volumes':[{'name':'v','hostPath':{'path':'/a/../b'}}]}}",
     "spec.volumes[0].hostPath.path", "Invalid value: \"/a/../b\": must not contain '..'"},
    {"{'spec':{'volumes':[{'name':'v','hostPath':{'path':'/a','type':'X'}}]}}",
     "spec.volumes[0].hostPath.type",
     "Unsupported value: \"X\": supported values: \"\", \"BlockDevice\", \"CharDevice\", "
     "\"Directory\", \"DirectoryOrCreate\", \"File\", \"FileOrCreate\", \"Socket\""},
    {"{'spec':{'volumes':[{'name':'v','gitRepo':{'repository':''}}]}}",
     "spec.volumes[0].gitRepo.repository", "Required value"},
    {"{'spec':{'volumes':[{'name':'v','gitRepo':{'repository':'r','directory':'/a'}}]}}",
     "spec.volumes[0].gitRepo.directory", "Invalid value: \"/a\": must be a relative path"},
    {"{'spec':{'volumes':[{'name':'v','secret':{}}]}}", "spec.volumes[0].secret.secretName",
     "Required value"},
    {"{'spec':{'volumes':[{'name':'v','secret':{'secretName':'s','defaultMode':512}}]}}",
     "spec.volumes[0].secret.defaultMode",
     "Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive"},
    {"{'spec':{'volumes':[{'name':'v','secret':{'secretName':'s','items':[{'key':'','path':'p'}]}}]"
     "}}",
     "spec.volumes[0].secret.items[0].key", "Required value"},
    {"{'spec':{'volumes':[{'name':'v','secret':{'secretName':'s','items':[{'key':'k','path':''}]}}]"
     "}}",
     "spec.volumes[0].secret.items[0].path", "Required value"},
    {"{'spec':{'volumes':[{'name':'v','secret':{'secretName':'s','items':[{'key':'k','path':'/"
     "p'}]}}]}}",
     "spec.volumes[0].secret.items[0].path", "Invalid value: \"/p\": must be a relative path"},
    {"{'spec':{'volumes':[{'name':'v','secret':{'secretName':'s','items':[{'key':'k','path':'a/../"
     "b'}]}}]}}",
     "spec.volumes[0].secret.items[0].path", "Invalid value: \"a/../b\": must not contain '..'"},
    {"{'spec':{'volumes':[{'name':'v','secret':{'secretName':'s','items':[{'key':'k','path':'..a'}]"
     "}}]}}",
     "spec.volumes[0].secret.items[0].path", "Invalid value: \"..a\": must not start with '..'"},
    {"{'spec':{'volumes':[{'name':'v','secret':{'secretName':'s','items':[{'key':'k','path':'p','"
     "mode':-1}]}}]}}",
     "spec.volumes[0].secret.items[0].mode",
     "Invalid value: -1: must be a number between 0 and 0777 (octal), both inclusive"},
    {"{'spec':{'volumes':[{'name':'v','configMap':{}}]}}", "spec.volumes[0].configMap.name",
     "Required value"},
    {"{'spec':{'volumes':[{'name':'v','configMap':{'name':'s','defaultMode':-1}}]}}",
     "spec.volumes[0].configMap.defaultMode",
     "Invalid value: -1: must be a number between 0 and 0777 (octal), both inclusive"},
    {"{'spec':{'volumes':[{'name':'v','nfs':{'server':'','path':'/'}}]}}",
     "spec.volumes[0].nfs.server", "Required value"},
    {"{'spec':{'volumes':[{'name':'v','nfs':{'server':'s','path':'a'}}]}}",
     "spec.volumes[0].nfs.path", "Invalid value: \"a\": must be an absolute path"},
    {"{'spec':{'volumes':[{'name':'v','iscsi':{'targetPortal':'p','iqn':'x','lun':0}}]}}",
     "spec.volumes[0].iscsi.iqn",
     "Invalid value: \"x\": must be valid format starting with iqn, eui, or naa"},
    {"{'spec':{'volumes':[{'name':'v','iscsi':{'targetPortal':'p','iqn':'iqn.x','lun':0}}]}}",
     "spec.volumes[0].iscsi.iqn", "Invalid value: \"iqn.x\": must be valid format"},
    {"{'spec':{'volumes':[{'name':'v','iscsi':{'targetPortal':'p','iqn':'eui.1','lun':0}}]}}",
     "spec.volumes[0].iscsi.iqn", "Invalid value: \"eui.1\": must be valid format"},
    {"{'spec':{'volumes':[{'name':'v','iscsi':{'targetPortal':'p','iqn':'iqn.2001-04.com.example:"
     "storage','lun':256}}]}}",
     "spec.volumes[0].iscsi.lun", "Invalid value: 256: must be between 0 and 255, inclusive"},
    {"{'spec':{'volumes':[{'name':'v','iscsi':{'targetPortal':'p','iqn':'iqn.2001-04.com.example:"
     "storage','lun':0,'chapAuthSession':true}}]}}",
     "spec.volumes[0].iscsi.secretRef", "Required value"},
    {"{'spec':{'volumes':[{'name':'v','iscsi':{'targetPortal':'p','iqn':'iqn.2001-04.com.example:"
     "storage','lun':0,'initiatorName':'x'}}]}}",
     "spec.volumes[0].iscsi.initiatorname",
     "Invalid value: \"x\": must be valid format starting with iqn, eui, or naa"},
    {"{'spec':{'volumes':[{'name':'v','glusterfs':{'endpoints':'','path':'p'}}]}}",
     "spec.volumes[0].glusterfs.endpoints", "Required value"},
    {"{'spec':{'volumes':[{'name':'v','flocker':{}}]}}", "spec.volumes[0].flocker",
     "Required value: one of datasetName and datasetUUID is required"},
    {"{'spec':{'volumes':[{'name':'v','flocker':{'datasetName':'a','datasetUUID':'b'}}]}}",
     "spec.volumes[0].flocker",
     "Invalid value: \"resource\": datasetName and datasetUUID can not be specified "
     "simultaneously"},
    {"{'spec':{'volumes':[{'name':'v','flocker':{'datasetName':'a/b'}}]}}",
     "spec.volumes[0].flocker.datasetName", "Invalid value: \"a/b\": must not contain '/'"},
    {"{'spec':{'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':''}}]}}",
     "spec.volumes[0].persistentVolumeClaim.claimName", "Required value"},
    {"{'spec':{'volumes':[{'name':'v','rbd':{'monitors':[],'image':'i'}}]}}",
     "spec.volumes[0].rbd.monitors", "Required value"},
    {"{'spec':{'volumes':[{'name':'v','rbd':{'monitors':['m'],'image':''}}]}}",
     "spec.volumes[0].rbd.image", "Required value"},
    {"{'spec':{'volumes':[{'name':'v','cinder':{'volumeID':''}}]}}",
     "spec.volumes[0].cinder.volumeID", "Required value"},
    {"{'spec':{'volumes':[{'name':'v','cinder':{'volumeID':'v','secretRef':{}}}]}}",
     "spec.volumes[0].cinder.secretRef.name", "Required value"},
    {"{'spec':{'volumes':[{'name':'v','cephfs':{'monitors':[]}}]}}",
     "spec.volumes[0].cephfs.monitors", "Required value"},
    {"{'spec':{'volumes':[{'name':'v','quobyte':{'registry':'r','volume':'v'}}]}}",
     "spec.volumes[0].quobyte.registry",
     "Invalid value: \"r\": must be a host:port pair or multiple pairs separated by commas"},
    {"{'spec':{'volumes':[{'name':'v','fc':{}}]}}", "spec.volumes[0].fc.targetWWNs",
     "Required value: must specify either targetWWNs or wwids, but not both"},
    {"{'spec':{'volumes':[{'name':'v','fc':{'targetWWNs':['a']}}]}}", "spec.volumes[0].fc.lun",
     "Required value: lun is required if targetWWNs is specified"},
    {"{'spec':{'volumes':[{'name':'v','fc':{'targetWWNs':['a'],'wwids':['a'],'lun':1}}]}}",
     "spec.volumes[0].fc.targetWWNs",
     "Invalid value: [\"a\"]: targetWWNs and wwids can not be specified simultaneously"},
    {"{'spec':{'volumes':[{'name':'v','flexVolume':{'driver':''}}]}}",
     "spec.volumes[0].flexVolume.driver", "Required value"},
    {"{'spec':{'volumes':[{'name':'v','flexVolume':{'driver':'d','options':{'a.K8s.io/x':'y'}}}]}}",
     "spec.volumes[0].flexVolume.options[a.K8s.io/x]",
     "Invalid value: \"a.K8s.io/x\": kubernetes.io and k8s.io namespaces are reserved"},
    {"{'spec':{'volumes':[{'name':'v','azureFile':{'secretName':'','shareName':'s'}}]}}",
     "spec.volumes[0].azureFile.secretName", "Required value"},
    {"{'spec':{'volumes':[{'name':'v','azureDisk':{'diskName':'d','diskURI':'x'}}]}}",
     "spec.volumes[0].azureDisk.diskURI",
     "Unsupported value: \"x\": supported values: "
     "\"https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd\""},
    {"{'spec':{'volumes':[{'name':'v','azureDisk':{'diskName':'d','diskURI':'x','kind':'Managed'}}]"
     "}}",
     "spec.volumes[0].azureDisk.diskURI",
     "Unsupported value: \"x\": supported values: "
     "\"/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/"
     "{disk-id}\""},
    {"{'spec':{'volumes':[{'name':'v','azureDisk':{'diskName':'d','diskURI':'https://"
     "x','cachingMode':'X'}}]}}",
     "spec.volumes[0].azureDisk.cachingMode",
     "Unsupported value: \"X\": supported values: \"None\", \"ReadOnly\", \"ReadWrite\""},
    {"{'spec':{'volumes':[{'name':'v','gcePersistentDisk':{'pdName':'p','partition':256}}]}}",
     "spec.volumes[0].gcePersistentDisk.partition",
     "Invalid value: 256: must be between 0 and 255, inclusive"},
    {"{'spec':{'volumes':[{'name':'v','awsElasticBlockStore':{'volumeID':''}}]}}",
     "spec.volumes[0].awsElasticBlockStore.volumeID", "Required value"},
    {"{'spec':{'volumes':[{'name':'v','vsphereVolume':{'volumePath':''}}]}}",
     "spec.volumes[0].vsphereVolume.volumePath", "Required value"},
    {"{'spec':{'volumes':[{'name':'v','photonPersistentDisk':{'pdID':''}}]}}",
     "spec.volumes[0].photonPersistentDisk.pdID", "Required value"},
    {"{'spec':{'volumes':[{'name':'v','portworxVolume':{'volumeID':''}}]}}",
     "spec.volumes[0].portworxVolume.volumeID", "Required value"},
    {"{'spec':{'volumes':[{'name':'v','scaleIO':{'gateway':'g','system':'s','secretRef':{}}}]}}",
     "spec.volumes[0].scaleIO.volumeName", "Required value"},
    {"{'spec':{'volumes':[{'name':'v','storageos':{}}]}}", "spec.volumes[0].storageos.volumeName",
     "Required value"},
    {"{'spec':{'volumes':[{'name':'v','csi':{'driver':''}}]}}", "spec.volumes[0].csi.driver",
     "Required value"},
    {"{'spec':{'volumes':[{'name':'v','csi':{'driver':'-'}}]}}", "spec.volumes[0].csi.driver",
     "Invalid value: \"-\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
     "characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
     "'example.com', regex used for validation is "
     "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"},
    {"{'spec':{'volumes':[{'name':'v','csi':{'driver':'d','nodePublishSecretRef':{}}}]}}",
     "spec.volumes[0].csi.nodePublishSecretRef.name", "Required value"},
    {"{'spec':{'volumes':[{'name':'v','image':{}}]}}", "spec.volumes[0].image.reference",
     "Required value"},
    {"{'spec':{'volumes':[{'name':'v','image':{'reference':'r','pullPolicy':'X'}}]}}",
     "spec.volumes[0].image.pullPolicy",
     "Unsupported value: \"X\": supported values: \"Always\", \"IfNotPresent\", \"Never\""},
    /* Files of the pod's own fields, and projected volumes. */
    {"{'spec':{'volumes':[{'name':'v','downwardAPI':{'items':[{'path':'p'}]}}]}}",
     "spec.volumes[0].downwardAPI",
     "Required value: one of fieldRef and resourceFieldRef is required"},
    {"{'spec':{'volumes':[{'name':'v','downwardAPI':{'items':[{'path':'p','fieldRef':{'fieldPath':'"
     "metadata.name'},'resourceFieldRef':{'containerName':'c','resource':'limits.cpu'}}]}}]}}",
     "spec.volumes[0].downwardAPI",
     "Invalid value: \"resource\": fieldRef and resourceFieldRef can not be specified "
     "simultaneously"},
    {"{'spec':{'volumes':[{'name':'v','downwardAPI':{'items':[{'path':'/"
     "p','fieldRef':{'fieldPath':'metadata.name'}}]}}]}}",
     "spec.volumes[0].downwardAPI.path", "Invalid value: \"/p\": must be a relative path"},
    {"{'spec':{'volumes':[{'name':'v','downwardAPI':{'items':[{'path':'p','fieldRef':{'fieldPath':'"
     "spec.nodeName'}}]}}]}}",
     "spec.volumes[0].downwardAPI.fieldRef.fieldPath",
     "Unsupported value: \"spec.nodeName\": supported values: \"metadata.annotations\", "
     "\"metadata.labels\", \"metadata.name\", \"metadata.namespace\", \"metadata.uid\""},
    {"{'spec':{'volumes':[{'name':'v','downwardAPI':{'items':[{'path':'p','resourceFieldRef':{'"
     "resource':'limits.cpu'}}]}}]}}",
     "spec.volumes[0].downwardAPI.resourceFieldRef.containerName", "Required value"},
    {"{'spec':{'volumes':[{'name':'v','downwardAPI':{'items':[{'path':'p','mode':512,'fieldRef':{'"
     "fieldPath':'metadata.name'}}]}}]}}",
     "spec.volumes[0].downwardAPI.mode",
     "Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive"},
    {"{'spec':{'volumes':[{'name':'v','projected':{'sources':[],'defaultMode':512}}]}}",
     "spec.volumes[0].projected.defaultMode",
     "Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive"},
    {"{'spec':{'volumes':[{'name':'v','projected':{'sources':[{'secret':{}}]}}]}}",
     "spec.volumes[0].projected.sources[0].secret.name", "Required value"},
    {"{'spec':{'volumes':[{'name':'v','projected':{'sources':[{'configMap':{'name':'a'},'secret':{'"
     "name':'a'}}]}}]}}",
     "spec.volumes[0].projected.sources[0]",
     "Forbidden: may not specify more than 1 volume type per source"},
    {"{'spec':{'volumes':[{'name':'v','projected':{'sources':[{'secret':{'name':'a','items':[{'key'"
     ":'k','path':'p'}]}},{'configMap':{'name':'a','items':[{'key':'k','path':'p'}]}}]}}]}}",
     "spec.volumes[0].projected", "Invalid value: \"p\": conflicting duplicate paths"},
    {"{'spec':{'volumes':[{'name':'v','projected':{'sources':[{'serviceAccountToken':{'path':'t'}}]"
     "}}]}}",
     "spec.volumes[0].projected.sources[0].serviceAccountToken",
     "Forbidden: must not be specified when serviceAccountName is not set"},
    {"{'spec':{'volumes':[{'name':'v','projected':{'sources':[{'serviceAccountToken':{'path':'t','"
     "expirationSeconds':599}}]}}]}}",
     "spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds",
     "Invalid value: 599: may not specify a duration less than 10 minutes"},
    {"{'spec':{'volumes':[{'name':'v','projected':{'sources':[{'serviceAccountToken':{'path':'t','"
     "expirationSeconds':4294967297}}]}}]}}",
     "spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds",
     "Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds"},
    {"{'spec':{'volumes':[{'name':'v','projected':{'sources':[{'serviceAccountToken':{'path':'../"
     "t'}}]}}]}}",
     "spec.volumes[0].projected.sources[0].serviceAccountToken.path",
     "Invalid value: \"../t\": must not contain '..'"},
    {"{'spec':{'volumes':[{'name':'v','projected':{'sources':[{'clusterTrustBundle':{'path':'p'}}]}"
     "}]}}",
     "spec.volumes[0].projected.sources[0].clusterTrustBundle",
     "Required value: either name or signerName must be specified"},
    {"{'spec':{'volumes':[{'name':'v','projected':{'sources':[{'clusterTrustBundle':{'path':'p','"
     "name':''}}]}}]}}",
     "spec.volumes[0].projected.sources[0].clusterTrustBundle.name",
     "Required value: must be a valid object name"},
    /* Claims that are made for the pod. */
    {"{'spec':{'volumes':[{'name':'v','ephemeral':{}}]}}",
     "spec.volumes[0].ephemeral.volumeClaimTemplate", "Required value"},
    {"{'spec':{'volumes':[{'name':'v','ephemeral':{'volumeClaimTemplate':{'metadata':{'name':'x'},'"
     "spec':{'accessModes':['ReadWriteOnce'],'resources':{'requests':{'storage':'1Gi'}}}}}}]}}",
     "spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.name",
     "Forbidden: cannot be set for an ephemeral volume"},
    {"{'spec':{'volumes':[{'name':'v','ephemeral':{'volumeClaimTemplate':{'spec':{'accessModes':['"
     "ReadWriteOnce']}}}}]}}",
     "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage]", "Required value"},
    {"{'spec':{'volumes':[{'name':'v','ephemeral':{'volumeClaimTemplate':{'spec':{'accessModes':[],"
     "'resources':{'requests':{'storage':'1Gi'}}}}}}]}}",
     "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes",
     "Required value: at least 1 access mode is required"},
    {"{'spec':{'volumes':[{'name':'v','ephemeral':{'volumeClaimTemplate':{'spec':{'accessModes':['"
     "ReadWriteOnce'],'resources':{'requests':{'storage':'1Gi'}}}}}},{'name':'w','"
     "persistentVolumeClaim':{'claimName':'p-v'}}]}}",
     "spec.volumes[1].persistentVolumeClaim.claimName",
     "Invalid value: \"p-v\": must not reference a PVC that gets created for an ephemeral volume"},
    /* Annotations. */
    {"{'metadata':{'annotations':{'kubernetes.io/config.mirror':'x'}}}",
     "metadata.annotations[kubernetes.io/config.mirror]",
     "Invalid value: \"x\": must set spec.nodeName if mirror pod annotation is set"},
    {"{'metadata':{'annotations':{'controller.kubernetes.io/pod-deletion-cost':'+1'}}}",
     "metadata.annotations[controller.kubernetes.io/pod-deletion-cost]",
     "Invalid value: \"+1\": must be a 32bit integer"},
    {"{'metadata':{'annotations':{'seccomp.security.alpha.kubernetes.io/pod':'x'}}}",
     "metadata.annotations.seccomp.security.alpha.kubernetes.io/pod",
     "Invalid value: \"x\": must be a valid seccomp profile"},
    {"{'metadata':{'annotations':{'container.apparmor.security.beta.kubernetes.io/"
     "z':'unconfined'}}}",
     "metadata.annotations[container.apparmor.security.beta.kubernetes.io/z]",
     "Invalid value: \"z\": container not found"},
    {"{'metadata':{'annotations':{'container.apparmor.security.beta.kubernetes.io/c':'x'}}}",
     "metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]",
     "Invalid value: \"x\": invalid AppArmor profile name: \"x\""},
    {"{'metadata':{'annotations':{'seccomp.security.alpha.kubernetes.io/"
     "pod':'unconfined'}},'spec':{'securityContext':{'seccompProfile':{'type':'RuntimeDefault'}}}}",
     "spec.securityContext.seccompProfile.type",
     "Forbidden: seccomp type in annotation and field must match"},
    {"{'metadata':{'annotations':{'seccomp.security.alpha.kubernetes.io/pod':'localhost/"
     "a'}},'spec':{'securityContext':{'seccompProfile':{'type':'Localhost','localhostProfile':'b'}}"
     "}}",
     "spec.securityContext.seccompProfile.localhostProfile",
     "Forbidden: seccomp profile in annotation and field must match"},
    {"{'metadata':{'annotations':{'container.seccomp.security.alpha.kubernetes.io/c':'runtime/"
     "default'}},'spec':{'containers':[{'name':'c','image':'i','securityContext':{'seccompProfile':"
     "{'type':'Unconfined'}}}]}}",
     "spec.containers[0].securityContext.seccompProfile.type",
     "Forbidden: seccomp type in annotation and field must match"},
    {"{'metadata':{'annotations':{'container.apparmor.security.beta.kubernetes.io/"
     "c':'unconfined'}},'spec':{'securityContext':{'appArmorProfile':{'type':'RuntimeDefault'}}}}",
     "spec.containers[0].securityContext.appArmorProfile.type",
     "Forbidden: apparmor type in annotation and field must match"},
    {"{'metadata':{'annotations':{'container.apparmor.security.beta.kubernetes.io/c':'localhost/"
     "a'}},'spec':{'containers':[{'name':'c','image':'i','securityContext':{'appArmorProfile':{'"
     "type':'Localhost','localhostProfile':'b'}}}]}}",
     "spec.containers[0].securityContext.appArmorProfile.localhostProfile",
     "Forbidden: apparmor profile in annotation and field must match"},
    {"{'spec':{'resources':{'limits':{'ephemeral-storage':'1'}}}}",
     "spec.resources.limits[ephemeral-storage]",
     "Unsupported value: \"ephemeral-storage\": supported values: \"cpu\", \"hugepages-\", "
     "\"memory\""},
    {"{'spec':{'resources':{'claims':[{'name':'a'}]}}}", "spec.resources.claims",
     "Forbidden: claims cannot be set for Resources at pod-level"},
    {"{'spec':{'resources':{'limits':{'cpu':'1'},'requests':{'cpu':'2'}}}}",
     "spec.resources.requests",
     "Invalid value: \"2\": must be less than or equal to cpu limit of 1"},
    {"{'spec':{'resources':{'limits':{'cpu':'1'}},'containers':[{'name':'c','image':'i','resources'"
     ":{'limits':{'cpu':'2'}}}]}}",
     "spec.resources.containers[0][cpu].limits",
     "Invalid value: \"2\": must be less than or equal to pod limits of 1"},
};

static void each_rule_of_a_new_pod_names_its_field(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CLEANUP(json_free) struct json *obj = rig_stored("pods", SAMPLE, bad[i].patch);
        CLEANUP(api_causes_done) struct api_causes c = {0};
        api_validate_object(rig_kind("pods"), obj, NULL, &c);
        rig_expect(&c, bad[i].patch, bad[i].field, bad[i].says);
    }
}

/* Templates keep the rules of a spec; the kinds that have one add that of the restart policy. */
static void a_template_keeps_the_same_rules(void **state)
{
    static const struct {
        const char *plural, *text, *path;
    } kinds[] = {
        {"podtemplates", "{'metadata':{'name':'p','namespace':'red'},'template':%s}", "template."},
        {"deployments",
         "{'metadata':{'name':'p','namespace':'red'},'spec':{'selector':{'matchLabels':{'a':'b'}},"
         "'template':%s}}",
         "spec.template."},
    };
    for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
            static const char *const of_pods[] = {"leading or trailing",
                                                  "set on create",
                                                  "schedulingGates have been cleared",
                                                  "serviceAccountName is not set",
                                                  "p-v",
                                                  "reference"};
            CLEANUP(json_free) struct json *pod = rig_parse(SAMPLE);
            CLEANUP(json_free) struct json *patch = rig_parse(bad[i].patch);
            CLEANUP(api_causes_done) struct api_causes c = {0};
            bool of_pod = str_has_suffix(bad[i].field, ".reference");
            for (size_t n = 0; n < ARRAY_SIZE(of_pods); n++) {
                of_pod |= strstr(bad[i].says, of_pods[n]) != NULL;
            }
            if (of_pod) {
                continue;
            }
            api_patch_merge(&pod, patch);
            json_remove(json_get(pod, "metadata"), "name");
            json_remove(json_get(pod, "metadata"), "namespace");
            json_set_string(json_ensure_object(json_get(pod, "metadata"), "labels"), "a", "b");
            CLEANUP_FREE char *template = json_to_text(pod);
            for (char *p = template; *p; p++) {
                *p = *p == '\'' ? '@' : *p;
            }
            CLEANUP_FREE char *whole = xasprintf(kinds[k].text, template);
            CLEANUP(json_free) struct json *obj = rig_stored(kinds[k].plural, whole, NULL);
            const char *field = bad[i].field;
            field = str_has_prefix(field, "metadata.annotations") ? field + 9 : field;
            CLEANUP_FREE char *at = xasprintf("%s%s", kinds[k].path, field);
            api_validate_object(rig_kind(kinds[k].plural), obj, NULL, &c);
            rig_expect(&c, whole, at, bad[i].says);
        }
    }
}

static const char *const good[] = {
    "{}",
    /* What is merged by a key may occur twice. */
    "{'spec':{'containers':[{'name':'c','image':'i','env':[{'name':'A','value':'1'},{'name':'A'}],"
    "'ports':[{'containerPort':1},{'containerPort':1}]}],'imagePullSecrets':[{'name':'a'},"
    "{'name':'a'}],'hostAliases':[{'ip':'1.1.1.1'},{'ip':'1.1.1.1'}]}}",
    "{'spec':{'hostNetwork':true,'containers':[{'name':'c','image':'i','ports':[{'containerPort':"
    "80}]}]}}",
    "{'spec':{'initContainers':[{'name':'s','image':'i','restartPolicy':'Always','readinessProbe':"
    "{'grpc':{'port':1}},'lifecycle':{'preStop':{'sleep':{'seconds':5}}}}]}}",
    "{'spec':{'terminationGracePeriodSeconds':-5,'activeDeadlineSeconds':1}}",
    "{'spec':{'containers':[{'name':'c','image':'i','env':[{'name':'A','valueFrom':{'fieldRef':{"
    "'fieldPath':'metadata.labels[@a/b@]'}}},{'name':'B','valueFrom':{'resourceFieldRef':{"
    "'resource':'requests.hugepages-2Mi','divisor':'1Mi'}}}]}]}}",
    "{'spec':{'containers':[{'name':'c','image':'i','resources':{'limits':{'cpu':'1','memory':"
    "'1Gi','hugepages-2Mi':'4Mi','a.b/c':'2','ephemeral-storage':'1Gi'},'requests':{'cpu':'0.5',"
    "'memory':'1024Mi'}}}]}}",
    "{'spec':{'volumes':[{'name':'a'},{'name':'b','projected':{'sources':[{'serviceAccountToken':{"
    "'path':'t'}},{'downwardAPI':{'items':[{'path':'l','fieldRef':{'fieldPath':'metadata.labels'}}"
    "]}}]}}],'serviceAccountName':'s','containers':[{'name':'c','image':'i','volumeMounts':[{"
    "'name':'a','mountPath':'/a'},{'name':'a','mountPath':'/b','subPath':'x'}]}]}}",
    "{'spec':{'volumes':[{'name':'i','iscsi':{'targetPortal':'p','iqn':"
    "'iqn.2001-04.com.example:storage','lun':0}},{'name':'e','iscsi':{'targetPortal':'p','iqn':"
    "'eui.02004567A425678D','lun':0}}]}}",
    "{'spec':{'dnsPolicy':'None','dnsConfig':{'nameservers':['1.1.1.1','2001:db8::1'],'searches':["
    "'a.b.'],'options':[{'name':'ndots','value':'2'}]}}}",
    "{'spec':{'tolerations':[{'operator':'Exists'},{'key':'a','value':'b'},{'key':'a','operator':"
    "'Exists','effect':'NoExecute','tolerationSeconds':-1}]}}",
    "{'spec':{'os':{'name':'windows'},'securityContext':{'windowsOptions':{'runAsUserName':"
    "'d.example\\\\user'}}}}",
    "{'spec':{'hostUsers':false,'containers':[{'name':'c','image':'i','securityContext':{"
    "'procMount':'Unmasked','privileged':true}}]}}",
    "{'spec':{'securityContext':{'sysctls':[{'name':'net.ipv4.conf/eth0.1/x','value':'1'}]}}}",
    "{'spec':{'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{"
    "'topologyKey':'kubernetes.io/hostname','labelSelector':{'matchLabels':{'a':'b'}}}]}}}}",
    "{'metadata':{'annotations':{'controller.kubernetes.io/pod-deletion-cost':'-7',"
    "'seccomp.security.alpha.kubernetes.io/pod':'localhost/a'}}}",
};

static void a_good_pod_passes(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        CLEANUP(json_free) struct json *obj = rig_stored("pods", SAMPLE, good[i]);
        CLEANUP(json_free) struct json *again = json_clone(obj);
        CLEANUP(api_causes_done) struct api_causes c = {0};
        api_validate_object(rig_kind("pods"), obj, NULL, &c);
        rig_complete(rig_kind("pods"), again, obj);
        api_validate_object(rig_kind("pods"), again, obj, &c);
        rig_expect(&c, good[i], NULL, NULL);
        assert_true(json_equal(again, obj));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rule_of_a_new_pod_names_its_field),
        cmocka_unit_test(a_template_keeps_the_same_rules),
        cmocka_unit_test(a_good_pod_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
