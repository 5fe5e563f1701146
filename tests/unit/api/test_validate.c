/* SPDX-License-Identifier: Apache-2.0 */
/* Validation, table-driven: each case changes one field of a valid object and says which cause, of which
 * field, must come of it. */
#include "api/kind.h"
#include "api/patch/patch.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

struct sample {
    const char *plural;
    const char *text;
};

static const struct sample samples[] = {
    {"namespaces", "{\"metadata\":{\"name\":\"red\"}}"},
    {"nodes", "{\"metadata\":{\"name\":\"node1.example\"},\"spec\":{},\"status\":{\"addresses\":[{"
              "\"type\":\"InternalIP\",\"address\":\"192.0.2.1\"}],\"conditions\":[{\"type\":"
              "\"Ready\",\"status\":\"True\"}]}}"},
    {"pods",
     "{\"metadata\":{\"name\":\"web\",\"namespace\":\"red\"},\"spec\":{\"nodeName\":"
     "\"node1\",\"containers\":[{\"name\":\"a\",\"image\":\"x:1\"},{\"name\":\"b\",\"image\":"
     "\"y\"}]},"
     "\"status\":{\"phase\":\"Running\",\"podIP\":\"10.128.0.2\",\"podIPs\":[{\"ip\":"
     "\"10.128.0.2\"}]}}"},
    {"events", "{\"metadata\":{\"name\":\"e\",\"namespace\":\"red\"},\"involvedObject\":{\"kind\":"
               "\"Pod\",\"namespace\":\"red\",\"name\":\"web\"},\"reason\":\"R\",\"type\":"
               "\"Normal\"}"},
    {"clusternetworks",
     "{\"metadata\":{\"name\":\"default\"},\"network\":\"10.128.0.0/14\",\"hostsubnetlength\":9,"
     "\"serviceNetwork\":\"172.30.0.0/16\",\"pluginName\":\"redhat/openshift-ovs-subnet\","
     "\"clusterNetworks\":[{\"CIDR\":\"10.128.0.0/14\",\"hostSubnetLength\":9},{\"CIDR\":"
     "\"10.4.0.0/14\",\"hostSubnetLength\":8}],\"vxlanPort\":4789,\"mtu\":1450}"},
    {"hostsubnets",
     "{\"metadata\":{\"name\":\"node1\",\"annotations\":{\"a\":\"b\"}},\"host\":\"node1\","
     "\"hostIP\":\"192.0.2.1\",\"subnet\":\"10.128.0.0/23\",\"egressIPs\":[\"192.0.2.7\"],"
     "\"egressCIDRs\":[\"192.0.2.0/24\"]}"},
    {"netnamespaces", "{\"metadata\":{\"name\":\"red\"},\"netname\":\"red\",\"netid\":11,"
                      "\"egressIPs\":[\"192.0.2.7\"]}"},
    {"egressnetworkpolicies",
     "{\"metadata\":{\"name\":\"e\",\"namespace\":\"red\"},\"spec\":{\"egress\":["
     "{\"type\":\"Allow\",\"to\":{\"cidrSelector\":\"192.0.2.0/24\"}},"
     "{\"type\":\"Deny\",\"to\":{\"dnsName\":\"www.example.com\"}}]}}"},
    {"runtimeclasses", "{\"metadata\":{\"name\":\"gvisor\"},\"handler\":\"runsc\"}"},
    {"priorityclasses",
     "{\"metadata\":{\"name\":\"high\"},\"value\":1000,\"preemptionPolicy\":\"Never\"}"},
    {"podtemplates", "{\"metadata\":{\"name\":\"t\",\"namespace\":\"red\"},\"template\":{\"spec\":{"
                     "\"containers\":[{\"name\":\"a\",\"image\":\"i\"}]}}}"},
    {"controllerrevisions",
     "{\"metadata\":{\"name\":\"r\",\"namespace\":\"red\"},\"data\":{\"a\":1},\"revision\":3}"},
    {"leases", "{\"metadata\":{\"name\":\"l\",\"namespace\":\"red\"},\"spec\":{\"holderIdentity\":"
               "\"a\",\"leaseDurationSeconds\":15,\"leaseTransitions\":0,\"acquireTime\":"
               "\"2026-01-02T03:04:05.000006Z\",\"renewTime\":\"2026-01-02T03:04:05.000006Z\"}}"},
    {"networkpolicies",
     "{\"metadata\":{\"name\":\"p\",\"namespace\":\"red\"},\"spec\":{\"podSelector\":{"
     "\"matchLabels\":{\"app\":\"db\"},\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\","
     "\"values\":[\"b\"]},{\"key\":\"c\",\"operator\":\"Exists\"}]},\"policyTypes\":[\"Ingress\","
     "\"Egress\"],\"ingress\":[{\"from\":[{\"ipBlock\":{\"cidr\":\"172.17.0.1/16\",\"except\":["
     "\"172.17.1.0/24\"]}},{\"namespaceSelector\":{},\"podSelector\":{}},{\"ipBlock\":{\"cidr\":"
     "\"2001:db8::/32\",\"except\":[\"2001:db8:1::/48\"]}}],\"ports\":[{\"protocol\":\"TCP\","
     "\"port\":6379,\"endPort\":6379},{\"protocol\":\"SCTP\",\"port\":\"http-1\"},{\"protocol\":"
     "\"UDP\"}]},{}],\"egress\":[{\"to\":[]}]}}"},
    {"adminnetworkpolicies",
     "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"priority\":0,\"subject\":{\"namespaces\":{}},"
     "\"ingress\":[{\"name\":\"r\",\"action\":\"Pass\",\"from\":[{\"pods\":{\"namespaceSelector\":{"
     "},"
     "\"podSelector\":{}}}],\"ports\":[{\"portNumber\":{\"protocol\":\"TCP\",\"port\":80}},{"
     "\"portRange\":{\"protocol\":\"UDP\",\"start\":1,\"end\":65535}},{\"namedPort\":\"web\"}]}],"
     "\"egress\":[{\"action\":\"Deny\",\"to\":[{\"networks\":[\"10.0.0.0/8\",\"::/"
     "0\"]},{\"nodes\":{}"
     "},{\"namespaces\":{}}]}]}}"},
    {"baselineadminnetworkpolicies", "{\"metadata\":{\"name\":\"default\"},\"spec\":{\"subject\":{"
                                     "\"pods\":{\"namespaceSelector\":{},"
                                     "\"podSelector\":{\"matchLabels\":{\"a\":\"b\"}}}},"
                                     "\"ingress\":[{\"action\":\"Allow\",\"from\":[{"
                                     "\"namespaces\":{}}]}]}}"},
};

static const struct api_kind *kind_of(const char *plural)
{
    for (size_t i = 0; api_kinds[i]; i++) {
        if (streq(api_kinds[i]->plural, plural)) {
            return api_kinds[i];
        }
    }
    fail_msg("no kind %s", plural);
    return NULL;
}

static struct json *parse(const char *text)
{
    struct json *v = NULL;
    struct err e = {0};
    if (json_parse(text, strlen(text), &v, &e) < 0) {
        fail_msg("%s: %s", text, e.text);
    }
    return v;
}

static struct json *sample(const char *plural)
{
    for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
        if (streq(samples[i].plural, plural)) {
            return parse(samples[i].text);
        }
    }
    fail_msg("no sample of %s", plural);
    return NULL;
}

static void validate(const struct api_kind *k, const struct json *obj, const struct json *old,
                     struct api_causes *c)
{
    api_validate_object(k, obj, old, c);
}

struct bad {
    const char *plural;
    const char *patch; /* Merge patch of the sample. */
    const char *field, *reason;
    const char *says; /* Part of the message; NULL: any. */
};

#define I "FieldValueInvalid"
#define R "FieldValueRequired"
#define D "FieldValueDuplicate"
#define N "FieldValueNotSupported"
#define F "FieldValueForbidden"
#define T "FieldValueTypeInvalid"

static const struct bad bad[] = {
    /* Metadata, of any kind. */
    {"namespaces", "{\"metadata\":{\"name\":null}}", "metadata.name", R, "generateName"},
    {"namespaces", "{\"metadata\":{\"name\":\"Red\"}}", "metadata.name", I, "RFC 1123 label"},
    {"namespaces", "{\"metadata\":{\"name\":\"a.b\"}}", "metadata.name", I, NULL},
    {"namespaces", "{\"metadata\":{\"name\":7}}", "metadata.name", T, "must be of type"},
    {"namespaces", "{\"metadata\":{\"namespace\":\"x\"}}", "metadata.namespace", F, NULL},
    {"namespaces", "{\"metadata\":{\"generateName\":\"A-\"}}", "metadata.generateName", I, NULL},
    {"namespaces", "{\"metadata\":{\"labels\":{\"a b\":\"c\"}}}", "metadata.labels", I,
     "name part"},
    {"namespaces", "{\"metadata\":{\"labels\":{\"/a\":\"c\"}}}", "metadata.labels", I, "prefix"},
    {"namespaces", "{\"metadata\":{\"labels\":{\"a\":\"-c\"}}}", "metadata.labels", I,
     "valid label"},
    {"namespaces", "{\"metadata\":{\"labels\":{\"a\":5}}}", "metadata.labels.a", T,
     "must be of type"},
    {"namespaces", "{\"metadata\":{\"labels\":[]}}", "metadata.labels", T, "must be of type"},
    {"namespaces", "{\"metadata\":{\"annotations\":{\"a b\":\"c\"}}}", "metadata.annotations", I,
     NULL},
    {"namespaces", "{\"metadata\":{\"annotations\":{\"a\":{}}}}", "metadata.annotations.a", T,
     "must be of type"},
    {"namespaces", "{\"metadata\":{\"finalizers\":[\"nope\"]}}", "metadata.finalizers[0]", I,
     "fully qualified"},
    {"namespaces", "{\"metadata\":{\"finalizers\":{}}}", "metadata.finalizers", T,
     "must be of type"},
    {"namespaces",
     "{\"metadata\":{\"ownerReferences\":[{\"kind\":\"a\",\"name\":\"b\","
     "\"apiVersion\":\"v1\"}]}}",
     "metadata.ownerReferences[0].uid", R, NULL},
    {"pods", "{\"metadata\":{\"namespace\":null}}", "metadata.namespace", R, NULL},
    {"pods", "{\"metadata\":{\"namespace\":\"A\"}}", "metadata.namespace", I, NULL},
    {"pods", "{\"metadata\":{\"name\":\"a/b\"}}", "metadata.name", I, "subdomain"},
    {"nodes", "{\"metadata\":{\"name\":\"a..b\"}}", "metadata.name", I, NULL},
    {"hostsubnets", "{\"metadata\":{\"name\":\"a/b\"}}", "metadata.name", I, "'/'"},
    /* Namespace. */
    {"namespaces", "{\"spec\":{\"finalizers\":[\"bad\"]}}", "spec.finalizers[0]", I, NULL},
    {"namespaces", "{\"status\":{\"phase\":\"Happy\"}}", "status.phase", N, "\"Active\""},
    {"namespaces", "{\"status\":{\"phase\":\"Terminating\"}}", "status.phase", I, NULL},
    /* Node. */
    {"nodes", "{\"spec\":{\"podCIDR\":\"10.1.2.3/16\"}}", "spec.podCIDR", I, NULL},
    {"nodes", "{\"spec\":{\"unschedulable\":\"yes\"}}", "spec.unschedulable", T, "must be of type"},
    {"nodes", "{\"spec\":{\"taints\":[{\"key\":\"a\",\"effect\":\"No\"}]}}",
     "spec.taints[0].effect", N, NULL},
    {"nodes", "{\"spec\":{\"taints\":[{\"effect\":\"NoSchedule\"}]}}", "spec.taints[0].key", R,
     NULL},
    {"nodes", "{\"status\":{\"addresses\":[{\"type\":\"InternalIP\",\"address\":\"1.2.3\"}]}}",
     "status.addresses[0].address", I, "IP address"},
    {"nodes", "{\"status\":{\"addresses\":[{\"type\":\"Mail\",\"address\":\"x\"}]}}",
     "status.addresses[0].type", N, NULL},
    {"nodes", "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":true}]}}",
     "status.conditions[0].status", T, "must be of type"},
    {"nodes",
     "{\"spec\":{\"taints\":[{\"key\":\"a\",\"effect\":\"NoSchedule\"},{\"key\":\"a\",\"effect\":"
     "\"NoSchedule\"}]}}",
     "spec.taints[1]", D, NULL},
    {"nodes", "{\"spec\":{\"podCIDRs\":[\"10.1.0.0/24\",\"10.2.0.0/24\"]}}", "spec.podCIDRs", I,
     "may specify no more than one CIDR for each IP family"},
    {"nodes", "{\"spec\":{\"podCIDRs\":[\"x\"]}}", "spec.podCIDRs[0]", I, NULL},
    {"nodes", "{\"status\":{\"capacity\":{\"cpu\":\"-1\"}}}", "status.capacity.cpu", I,
     "must be greater than or equal to 0"},
    {"nodes", "{\"status\":{\"allocatable\":{\"cpu\":\"-1\"}}}", "status.allocatable.cpu", I,
     "must be greater than or equal to 0"},
    /* Pod. */
    {"pods", "{\"spec\":{\"containers\":[{\"name\":\"a\"},{\"name\":\"a\"}]}}",
     "spec.containers[1].name", D, "\"a\""},
    {"pods", "{\"spec\":{\"containers\":[{}]}}", "spec.containers[0].name", R, NULL},
    {"pods", "{\"spec\":{\"containers\":[3]}}", "spec.containers[0]", T, "must be of type"},
    {"pods", "{\"spec\":{\"initContainers\":[{\"name\":\"b\"}]}}", "spec.initContainers[0].name", D,
     NULL},
    {"pods", "{\"spec\":{\"nodeName\":\"Node_1\"}}", "spec.nodeName", I, NULL},
    {"pods", "{\"spec\":{\"restartPolicy\":\"Sometimes\"}}", "spec.restartPolicy", N, "OnFailure"},
    {"pods", "{\"spec\":{\"hostNetwork\":1}}", "spec.hostNetwork", T, "must be of type"},
    {"pods", "{\"spec\":[]}", "spec", T, "must be of type"},
    {"pods", "{\"status\":{\"phase\":\"Up\"}}", "status.phase", N, NULL},
    {"pods", "{\"status\":{\"podIP\":\"10.128.0.300\",\"podIPs\":null}}", "status.podIP", I, NULL},
    /* Event. */
    {"events", "{\"involvedObject\":null}", "involvedObject", R, NULL},
    {"events", "{\"involvedObject\":{\"namespace\":\"blue\"}}", "involvedObject.namespace", I,
     "does not match"},
    {"events", "{\"involvedObject\":{\"namespace\":null}}", "involvedObject.namespace", I, NULL},
    {"events", "{\"lastTimestamp\":\"yesterday\"}", "lastTimestamp", I, "RFC 3339"},
    {"events", "{\"count\":-1}", "count", I, NULL},
    /* RuntimeClass. */
    {"runtimeclasses", "{\"handler\":null}", "handler", R, NULL},
    {"runtimeclasses", "{\"handler\":\"Run_SC\"}", "handler", I, "RFC 1123 label"},
    {"runtimeclasses", "{\"overhead\":{\"podFixed\":[]}}", "overhead.podFixed", T, NULL},
    /* PriorityClass. */
    {"priorityclasses", "{\"value\":1.5}", "value", T, NULL},
    {"priorityclasses", "{\"value\":1000000001}", "value", F, "1000000000"},
    {"priorityclasses", "{\"value\":2000001001}", "value", I, "2000001000"},
    {"priorityclasses", "{\"metadata\":{\"name\":\"system-mine\"}}", "metadata.name", F,
     "reserved"},
    {"priorityclasses", "{\"preemptionPolicy\":\"Maybe\"}", "preemptionPolicy", N, "Never"},
    /* PodTemplate. */
    {"podtemplates", "{\"template\":{\"spec\":{\"containers\":[{\"name\":\"A\"}]}}}",
     "template.spec.containers[0].name", I, NULL},
    {"podtemplates", "{\"template\":{\"spec\":{\"dnsPolicy\":\"Mine\"}}}",
     "template.spec.dnsPolicy", N, "ClusterFirst"},
    {"podtemplates", "{\"template\":[]}", "template", T, NULL},
    /* ControllerRevision. */
    {"controllerrevisions", "{\"revision\":-1}", "revision", I, "greater than or equal to 0"},
    {"controllerrevisions", "{\"revision\":\"1\"}", "revision", T, NULL},
    /* Lease. */
    {"leases", "{\"spec\":[]}", "spec", T, "must be of type"},
    {"leases", "{\"spec\":{\"holderIdentity\":7}}", "spec.holderIdentity", T, "must be of type"},
    {"leases", "{\"spec\":{\"leaseDurationSeconds\":0}}", "spec.leaseDurationSeconds", I, NULL},
    {"leases", "{\"spec\":{\"leaseTransitions\":-1}}", "spec.leaseTransitions", I, NULL},
    {"leases", "{\"spec\":{\"renewTime\":\"soon\"}}", "spec.renewTime", I, "parsing time"},
    /* ClusterNetwork. */
    {"clusternetworks", "{\"serviceNetwork\":null}", "serviceNetwork", R, NULL},
    {"clusternetworks", "{\"serviceNetwork\":\"172.30.1.0/16\"}", "serviceNetwork", I, NULL},
    {"clusternetworks", "{\"serviceNetwork\":\"10.128.64.0/18\"}", "clusterNetworks[0].CIDR", I,
     "overlaps with the service network 10.128.64.0/18"},
    {"clusternetworks", "{\"network\":\"10.132.0.0/14\"}", "network", I, "clusterNetworks[0].CIDR"},
    {"clusternetworks", "{\"network\":null}", "network", I, "identical"},
    {"clusternetworks", "{\"hostsubnetlength\":8}", "hostsubnetlength", I, "identical"},
    {"clusternetworks", "{\"clusterNetworks\":[]}", "clusterNetworks", R, NULL},
    {"clusternetworks", "{\"clusterNetworks\":{}}", "clusterNetworks", T, "must be of type"},
    {"clusternetworks",
     "{\"clusterNetworks\":[{\"CIDR\":\"10.128.0.0/14\",\"hostSubnetLength\":9},{\"CIDR\":"
     "\"10.129.0.0/16\",\"hostSubnetLength\":8}]}",
     "clusterNetworks[1].CIDR", I, "overlaps with the cluster network 10.128.0.0/14"},
    {"clusternetworks",
     "{\"network\":\"10.128.0.0/14\",\"hostsubnetlength\":1,\"clusterNetworks\":[{\"CIDR\":"
     "\"10.128.0.0/14\",\"hostSubnetLength\":1}]}",
     "clusterNetworks[0].hostSubnetLength", I, "between 2 and 30"},
    {"clusternetworks",
     "{\"hostsubnetlength\":19,\"clusterNetworks\":[{\"CIDR\":\"10.128.0.0/14\","
     "\"hostSubnetLength\":19}]}",
     "clusterNetworks[0].hostSubnetLength", I, "at most 18 bits"},
    {"clusternetworks",
     "{\"clusterNetworks\":[{\"CIDR\":\"10.128.0.0/14\",\"hostSubnetLength\":9},{"
     "\"hostSubnetLength\":9}]}",
     "clusterNetworks[1].CIDR", R, NULL},
    {"clusternetworks",
     "{\"clusterNetworks\":[{\"CIDR\":\"10.128.0.0/14\",\"hostSubnetLength\":9},{\"CIDR\":"
     "\"fd00::/48\",\"hostSubnetLength\":9}]}",
     "clusterNetworks[1].CIDR", I, "IPv4"},
    {"clusternetworks", "{\"clusterNetworks\":null,\"network\":null}", "clusterNetworks", R, NULL},
    {"clusternetworks", "{\"clusterNetworks\":null,\"hostsubnetlength\":null}", "clusterNetworks",
     R, NULL},
    {"clusternetworks", "{\"vxlanPort\":0}", "vxlanPort", I, "between 1 and 65535"},
    {"clusternetworks", "{\"vxlanPort\":65536}", "vxlanPort", I, NULL},
    {"clusternetworks", "{\"vxlanPort\":\"4789\"}", "vxlanPort", T, "must be of type"},
    {"clusternetworks", "{\"mtu\":575}", "mtu", I, "between 576 and 65536"},
    {"clusternetworks", "{\"mtu\":65537}", "mtu", I, NULL},
    {"clusternetworks", "{\"mtu\":1450.5}", "mtu", T, "must be of type"},
    {"clusternetworks", "{\"pluginName\":\"calico\"}", "pluginName", N, "ovs-multitenant"},
    /* EgressNetworkPolicy. */
    {"egressnetworkpolicies",
     "{\"spec\":{\"egress\":[{\"type\":\"Log\",\"to\":{\"dnsName\":\"a\"}}]}}",
     "spec.egress[0].type", N, NULL},
    {"egressnetworkpolicies", "{\"spec\":{\"egress\":[{\"to\":{\"dnsName\":\"a\"}}]}}",
     "spec.egress[0].type", R, NULL},
    {"egressnetworkpolicies", "{\"spec\":{\"egress\":[{\"type\":\"Deny\",\"to\":{}}]}}",
     "spec.egress[0].to", R, "must specify cidrSelector or dnsName"},
    {"egressnetworkpolicies", "{\"spec\":{\"egress\":[{\"type\":\"Deny\"}]}}", "spec.egress[0].to",
     R, "must specify cidrSelector or dnsName"},
    {"egressnetworkpolicies",
     "{\"spec\":{\"egress\":[{\"type\":\"Deny\",\"to\":{\"dnsName\":\"a\","
     "\"cidrSelector\":\"192.0.2.0/24\"}}]}}",
     "spec.egress[0].to", I, "not both"},
    {"egressnetworkpolicies",
     "{\"spec\":{\"egress\":[{\"type\":\"Deny\",\"to\":{\"cidrSelector\":\"192.0.2.1/24\"}}]}}",
     "spec.egress[0].to.cidrSelector", I, "192.0.2.0/24"},
    {"egressnetworkpolicies",
     "{\"spec\":{\"egress\":[{\"type\":\"Deny\",\"to\":{\"cidrSelector\":\"2001:db8::/64\"}}]}}",
     "spec.egress[0].to.cidrSelector", I, "IPv4"},
    {"egressnetworkpolicies",
     "{\"spec\":{\"egress\":[{\"type\":\"Deny\",\"to\":{\"dnsName\":\"*.example.com\"}}]}}",
     "spec.egress[0].to.dnsName", I, NULL},
    /* HostSubnet. */
    {"hostsubnets", "{\"host\":\"node2\"}", "host", I, "\"node1\""},
    {"hostsubnets", "{\"host\":null}", "host", R, NULL},
    {"hostsubnets", "{\"hostIP\":null}", "hostIP", R, NULL},
    {"hostsubnets", "{\"hostIP\":\"node1\"}", "hostIP", I, "IPv4"},
    {"hostsubnets", "{\"hostIP\":\"0.0.0.0\"}", "hostIP", I, "one host"},
    {"hostsubnets", "{\"hostIP\":\"224.0.0.1\"}", "hostIP", I, "one host"},
    {"hostsubnets", "{\"hostIP\":\"10.128.1.1\"}", "hostIP", I, "10.128.0.0/23"},
    {"hostsubnets", "{\"subnet\":null}", "subnet", R, NULL},
    {"hostsubnets", "{\"subnet\":\"\"}", "subnet", R, NULL},
    {"hostsubnets", "{\"subnet\":\"10.128.0.1/23\"}", "subnet", I, NULL},
    {"hostsubnets", "{\"subnet\":\"10.128.0.0/31\"}", "subnet", I, "2 bits"},
    {"hostsubnets", "{\"egressIPs\":[\"192.0.2.7\",\"x\"]}", "egressIPs[1]", I, NULL},
    {"hostsubnets", "{\"egressIPs\":[\"192.0.2.7\",\"192.0.2.7\"]}", "egressIPs[1]", D, NULL},
    {"hostsubnets", "{\"egressIPs\":\"192.0.2.7\"}", "egressIPs", T, "must be of type"},
    {"hostsubnets", "{\"egressCIDRs\":[\"192.0.2.1/24\"]}", "egressCIDRs[0]", I, NULL},
    {"hostsubnets",
     "{\"metadata\":{\"annotations\":{\"pod.network.openshift.io/fixed-vnid-host\":\"0x10\"}}}",
     "metadata.annotations[pod.network.openshift.io/fixed-vnid-host]", I, "decimal"},
    {"hostsubnets",
     "{\"metadata\":{\"annotations\":{\"pod.network.openshift.io/fixed-vnid-host\":\"16777216\"}}}",
     "metadata.annotations[pod.network.openshift.io/fixed-vnid-host]", I, "16777215"},
    /* NetNamespace. */
    {"netnamespaces", "{\"netname\":\"blue\"}", "netname", I, "\"red\""},
    {"netnamespaces", "{\"netname\":null}", "netname", R, NULL},
    {"netnamespaces", "{\"netid\":null}", "netid", R, NULL},
    {"netnamespaces", "{\"netid\":-1}", "netid", I, "between 0 and 16777215"},
    {"netnamespaces", "{\"netid\":16777216}", "netid", I, NULL},
    {"netnamespaces", "{\"netid\":9}", "netid", I, "reserved"},
    {"netnamespaces", "{\"netid\":99999999999999999999}", "netid", I, NULL},
    {"netnamespaces", "{\"egressIPs\":[\"::1\"]}", "egressIPs[0]", I, NULL},
    /* Policies, with the paths and texts of Kubernetes. */
    {"networkpolicies", "{\"spec\":null}", "spec", R, NULL},
    {"networkpolicies", "{\"spec\":[]}", "spec", T, "must be of type"},
    {"networkpolicies", "{\"spec\":{\"podSelector\":{\"matchLabels\":{\"a b\":\"c\"}}}}",
     "spec.podSelector.matchLabels", I, "name part"},
    {"networkpolicies", "{\"spec\":{\"podSelector\":{\"matchLabels\":{\"a\":\"c d\"}}}}",
     "spec.podSelector.matchLabels", I, "valid label"},
    {"networkpolicies", "{\"spec\":{\"podSelector\":{\"matchLabels\":{\"a\":1}}}}",
     "spec.podSelector.matchLabels.a", T, "must be of type"},
    {"networkpolicies",
     "{\"spec\":{\"podSelector\":{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\"}]}}}",
     "spec.podSelector.matchExpressions[0].values", R, "'In' or 'NotIn'"},
    {"networkpolicies",
     "{\"spec\":{\"podSelector\":{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"NotIn\","
     "\"values\":[]}]}}}",
     "spec.podSelector.matchExpressions[0].values", R, NULL},
    {"networkpolicies",
     "{\"spec\":{\"podSelector\":{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\","
     "\"values\":[\"b\"]}]}}}",
     "spec.podSelector.matchExpressions[0].values", F, "'Exists' or 'DoesNotExist'"},
    {"networkpolicies",
     "{\"spec\":{\"podSelector\":{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Gt\","
     "\"values\":[\"1\"]}]}}}",
     "spec.podSelector.matchExpressions[0].operator", I, "not a valid selector operator"},
    {"networkpolicies", "{\"spec\":{\"podSelector\":{\"matchExpressions\":[{\"key\":\"a\"}]}}}",
     "spec.podSelector.matchExpressions[0].operator", R, NULL},
    {"networkpolicies",
     "{\"spec\":{\"podSelector\":{\"matchExpressions\":[{\"operator\":\"Exists\"}]}}}",
     "spec.podSelector.matchExpressions[0].key", R, NULL},
    {"networkpolicies",
     "{\"spec\":{\"podSelector\":{\"matchExpressions\":[{\"key\":\"-\",\"operator\":\"Exists\"}]}}"
     "}",
     "spec.podSelector.matchExpressions[0].key", I, "name part"},
    {"networkpolicies",
     "{\"spec\":{\"podSelector\":{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\","
     "\"values\":[\"-\"]}]}}}",
     "spec.podSelector.matchExpressions[0].values[0]", I, "valid label"},
    {"networkpolicies", "{\"spec\":{\"policyTypes\":[\"Ingress\",\"Sideways\"]}}",
     "spec.policyTypes[1]", N, "Egress"},
    {"networkpolicies", "{\"spec\":{\"policyTypes\":[\"Ingress\",\"Egress\",\"Egress\"]}}",
     "spec.policyTypes", I, "more than two"},
    {"networkpolicies", "{\"spec\":{\"ingress\":[{\"from\":[{}]}]}}", "spec.ingress[0].from[0]", R,
     "must specify a peer"},
    {"networkpolicies",
     "{\"spec\":{\"egress\":[{\"to\":[{\"podSelector\":{}},{\"podSelector\":{},\"ipBlock\":{"
     "\"cidr\":\"10.0.0.0/8\"}}]}]}}",
     "spec.egress[0].to[1]", F, "both ipBlock and another peer"},
    {"networkpolicies",
     "{\"spec\":{\"ingress\":[{\"from\":[{\"namespaceSelector\":{\"matchLabels\":{\"a\":\"!\"}}}]}]"
     "}}",
     "spec.ingress[0].from[0].namespaceSelector.matchLabels", I, NULL},
    {"networkpolicies", "{\"spec\":{\"ingress\":[{\"from\":[{\"ipBlock\":{}}]}]}}",
     "spec.ingress[0].from[0].ipBlock.cidr", R, NULL},
    {"networkpolicies",
     "{\"spec\":{\"ingress\":[{\"from\":[{\"ipBlock\":{\"cidr\":\"10.0.0.1\"}}]}]}}",
     "spec.ingress[0].from[0].ipBlock.cidr", I, "valid CIDR"},
    {"networkpolicies",
     "{\"spec\":{\"ingress\":[{\"from\":[{\"ipBlock\":{\"cidr\":\"10.0.0.0/33\"}}]}]}}",
     "spec.ingress[0].from[0].ipBlock.cidr", I, NULL},
    {"networkpolicies",
     "{\"spec\":{\"ingress\":[{\"from\":[{\"ipBlock\":{\"cidr\":\"10.0.0.0/"
     "8\",\"except\":[\"10.1.0.0/16\",\"11.0.0.0/16\"]}}]}]}}",
     "spec.ingress[0].from[0].ipBlock.except[1]", I, "strict subset"},
    {"networkpolicies",
     "{\"spec\":{\"ingress\":[{\"from\":[{\"ipBlock\":{\"cidr\":\"10.0.0.0/"
     "8\",\"except\":[\"10.0.0.0/8\"]}}]}]}}",
     "spec.ingress[0].from[0].ipBlock.except[0]", I, "strict subset"},
    {"networkpolicies",
     "{\"spec\":{\"ingress\":[{\"from\":[{\"ipBlock\":{\"cidr\":\"10.0.0.0/"
     "8\",\"except\":[\"x\"]}}]}]}}",
     "spec.ingress[0].from[0].ipBlock.except[0]", I, "valid CIDR"},
    {"networkpolicies",
     "{\"spec\":{\"ingress\":[{\"from\":[{\"ipBlock\":{\"cidr\":\"10.0.0.0/"
     "8\",\"except\":[\"2001:db8::/32\"]}}]}]}}",
     "spec.ingress[0].from[0].ipBlock.except[0]", I, "strict subset"},
    {"networkpolicies", "{\"spec\":{\"ingress\":[{\"ports\":[{\"protocol\":\"ICMP\"}]}]}}",
     "spec.ingress[0].ports[0].protocol", N, "SCTP"},
    {"networkpolicies",
     "{\"spec\":{\"ingress\":[{\"ports\":[{\"protocol\":\"TCP\",\"port\":0}]}]}}",
     "spec.ingress[0].ports[0].port", I, "between 1 and 65535"},
    {"networkpolicies",
     "{\"spec\":{\"ingress\":[{\"ports\":[{\"protocol\":\"TCP\",\"port\":65536}]}]}}",
     "spec.ingress[0].ports[0].port", I, NULL},
    {"networkpolicies",
     "{\"spec\":{\"ingress\":[{\"ports\":[{\"protocol\":\"TCP\",\"port\":\"a--b\"}]}]}}",
     "spec.ingress[0].ports[0].port", I, "consecutive"},
    {"networkpolicies",
     "{\"spec\":{\"ingress\":[{\"ports\":[{\"protocol\":\"TCP\",\"port\":\"UPPER\"}]}]}}",
     "spec.ingress[0].ports[0].port", I, "alpha-numeric"},
    {"networkpolicies",
     "{\"spec\":{\"ingress\":[{\"ports\":[{\"protocol\":\"TCP\",\"port\":\"-a\"}]}]}}",
     "spec.ingress[0].ports[0].port", I, "hyphen"},
    {"networkpolicies",
     "{\"spec\":{\"ingress\":[{\"ports\":[{\"protocol\":\"TCP\",\"port\":\"123\"}]}]}}",
     "spec.ingress[0].ports[0].port", I, "letter"},
    {"networkpolicies",
     "{\"spec\":{\"ingress\":[{\"ports\":[{\"protocol\":\"TCP\",\"port\":\"a234567890123456\"}]}]}"
     "}",
     "spec.ingress[0].ports[0].port", I, "15 characters"},
    {"networkpolicies",
     "{\"spec\":{\"ingress\":[{\"ports\":[{\"protocol\":\"TCP\",\"port\":\"\"}]}]}}",
     "spec.ingress[0].ports[0].port", I, NULL},
    {"networkpolicies",
     "{\"spec\":{\"ingress\":[{\"ports\":[{\"protocol\":\"TCP\",\"endPort\":90}]}]}}",
     "spec.ingress[0].ports[0].endPort", I, "`port` is not specified"},
    {"networkpolicies",
     "{\"spec\":{\"ingress\":[{\"ports\":[{\"protocol\":\"TCP\",\"port\":\"web\",\"endPort\":90}]}]"
     "}}",
     "spec.ingress[0].ports[0].endPort", I, "non-numeric"},
    {"networkpolicies",
     "{\"spec\":{\"ingress\":[{\"ports\":[{\"protocol\":\"TCP\",\"port\":91,\"endPort\":90}]}]}}",
     "spec.ingress[0].ports[0].endPort", I, "greater than or equal to `port`"},
    {"networkpolicies",
     "{\"spec\":{\"ingress\":[{\"ports\":[{\"protocol\":\"TCP\",\"port\":91,\"endPort\":65536}]}]}"
     "}",
     "spec.ingress[0].ports[0].endPort", I, "between 1 and 65535"},
    {"networkpolicies", "{\"spec\":{\"ingress\":{}}}", "spec.ingress", T, "must be of type"},
    {"adminnetworkpolicies", "{\"spec\":{\"priority\":null}}", "spec.priority", R, NULL},
    {"adminnetworkpolicies", "{\"spec\":{\"priority\":1001}}", "spec.priority", I,
     "between 0 and 1000"},
    {"adminnetworkpolicies", "{\"spec\":{\"priority\":-1}}", "spec.priority", I, NULL},
    {"adminnetworkpolicies", "{\"spec\":{\"subject\":null}}", "spec.subject", R, NULL},
    {"adminnetworkpolicies", "{\"spec\":{\"subject\":{\"namespaces\":null}}}", "spec.subject", R,
     "namespaces, pods"},
    {"adminnetworkpolicies",
     "{\"spec\":{\"subject\":{\"pods\":{\"namespaceSelector\":{},\"podSelector\":{}}}}}",
     "spec.subject", F, "both namespaces and pods"},
    {"adminnetworkpolicies",
     "{\"spec\":{\"subject\":{\"namespaces\":null,\"pods\":{\"podSelector\":{}}}}}",
     "spec.subject.pods.namespaceSelector", R, NULL},
    {"adminnetworkpolicies",
     "{\"spec\":{\"egress\":[{\"action\":\"Deny\",\"to\":[{\"namespaces\":{}},{\"networks\":"
     "[\"10.0.0.0/8\"]}],\"ports\":[{\"namedPort\":\"web\"}]}]}}",
     "spec.egress[0].ports", I, "networks and nodes have no named ports"},
    {"adminnetworkpolicies",
     "{\"spec\":{\"ingress\":[{\"action\":\"Maybe\",\"from\":[{\"namespaces\":{}}]}]}}",
     "spec.ingress[0].action", N, "Pass"},
    {"adminnetworkpolicies",
     "{\"spec\":{\"ingress\":[{\"action\":null,\"from\":[{\"namespaces\":{}}]}]}}",
     "spec.ingress[0].action", T, "must be of type"},
    {"adminnetworkpolicies",
     "{\"spec\":{\"ingress\":[{\"action\":\"Allow\",\"from\":[{\"namespaces\":{}}],\"name\":"
     "\"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
     "nnnnnnnnnn\"}]}}",
     "spec.ingress[0].name", "FieldValueTooLong", "100"},
    {"adminnetworkpolicies", "{\"spec\":{\"ingress\":[{\"action\":\"Allow\"}]}}",
     "spec.ingress[0].from", R, NULL},
    {"adminnetworkpolicies", "{\"spec\":{\"ingress\":[{\"action\":\"Allow\",\"from\":[{}]}]}}",
     "spec.ingress[0].from[0]", R, "namespaces, pods"},
    {"adminnetworkpolicies",
     "{\"spec\":{\"ingress\":[{\"action\":\"Allow\",\"from\":[{\"networks\":[\"10.0.0.0/8\"]}]}]}}",
     "spec.ingress[0].from[0]", R, "namespaces, pods"},
    {"adminnetworkpolicies",
     "{\"spec\":{\"egress\":[{\"action\":\"Allow\",\"to\":[{\"networks\":[\"10.0.0.0/"
     "8\"],\"nodes\":{}}]}]}}",
     "spec.egress[0].to[0]", F, "nodes and networks"},
    {"adminnetworkpolicies",
     "{\"spec\":{\"egress\":[{\"action\":\"Allow\",\"to\":[{\"networks\":[]}]}]}}",
     "spec.egress[0].to[0].networks", R, NULL},
    {"adminnetworkpolicies",
     "{\"spec\":{\"egress\":[{\"action\":\"Allow\",\"to\":[{\"networks\":[\"10.0.0.0/"
     "8\",\"10.0.0.0/8\"]}]}]}}",
     "spec.egress[0].to[0].networks[1]", D, NULL},
    {"adminnetworkpolicies",
     "{\"spec\":{\"egress\":[{\"action\":\"Allow\",\"to\":[{\"networks\":[\"10.0.0.0\"]}]}]}}",
     "spec.egress[0].to[0].networks[0]", I, "CIDR"},
    {"adminnetworkpolicies",
     "{\"spec\":{\"egress\":[{\"action\":\"Allow\",\"to\":[{\"nodes\":{\"matchExpressions\":[{"
     "\"key\":\"a\",\"operator\":\"Is\"}]}}]}]}}",
     "spec.egress[0].to[0].nodes.matchExpressions[0].operator", I, NULL},
    {"adminnetworkpolicies",
     "{\"spec\":{\"ingress\":[{\"action\":\"Allow\",\"from\":[{\"namespaces\":{}}],\"ports\":[{}]}]"
     "}}",
     "spec.ingress[0].ports[0]", R, "portNumber"},
    {"adminnetworkpolicies",
     "{\"spec\":{\"ingress\":[{\"action\":\"Allow\",\"from\":[{\"namespaces\":{}}],\"ports\":[{"
     "\"portNumber\":{\"protocol\":\"X\",\"port\":1}}]}]}}",
     "spec.ingress[0].ports[0].portNumber.protocol", N, NULL},
    {"adminnetworkpolicies",
     "{\"spec\":{\"ingress\":[{\"action\":\"Allow\",\"from\":[{\"namespaces\":{}}],\"ports\":[{"
     "\"portNumber\":{\"protocol\":\"TCP\",\"port\":0}}]}]}}",
     "spec.ingress[0].ports[0].portNumber.port", I, NULL},
    {"adminnetworkpolicies",
     "{\"spec\":{\"ingress\":[{\"action\":\"Allow\",\"from\":[{\"namespaces\":{}}],\"ports\":[{"
     "\"portRange\":{\"protocol\":\"TCP\",\"start\":9,\"end\":9}}]}]}}",
     "spec.ingress[0].ports[0].portRange.end", I, "greater than `start`"},
    {"adminnetworkpolicies",
     "{\"spec\":{\"ingress\":[{\"action\":\"Allow\",\"from\":[{\"namespaces\":{}}],\"ports\":[{"
     "\"namedPort\":\"_\"}]}]}}",
     "spec.ingress[0].ports[0].namedPort", I, NULL},
    {"baselineadminnetworkpolicies", "{\"metadata\":{\"name\":\"other\"}}", "metadata.name", I,
     "default"},
    {"baselineadminnetworkpolicies",
     "{\"spec\":{\"ingress\":[{\"action\":\"Pass\",\"from\":[{\"namespaces\":{}}]}]}}",
     "spec.ingress[0].action", N, "Deny"},
    {"pods", "{\"spec\":{\"containers\":[{\"name\":\"a\",\"ports\":[{\"containerPort\":0}]}]}}",
     "spec.containers[0].ports[0].containerPort", R, NULL},
    {"pods", "{\"spec\":{\"containers\":[{\"name\":\"a\",\"ports\":[{\"name\":\"web\"}]}]}}",
     "spec.containers[0].ports[0].containerPort", R, NULL},
    {"pods",
     "{\"spec\":{\"containers\":[{\"name\":\"a\",\"ports\":[{\"name\":\"web\",\"containerPort\":1},"
     "{\"name\":\"web\",\"containerPort\":2}]}]}}",
     "spec.containers[0].ports[1].name", D, NULL},
    {"pods",
     "{\"spec\":{\"containers\":[{\"name\":\"a\",\"ports\":[{\"name\":\"9\",\"containerPort\":1}]}]"
     "}}",
     "spec.containers[0].ports[0].name", I, "letter"},
    {"pods",
     "{\"spec\":{\"containers\":[{\"name\":\"a\",\"ports\":[{\"protocol\":\"ICMP\","
     "\"containerPort\":1}]}]}}",
     "spec.containers[0].ports[0].protocol", N, NULL},
};

static const struct api_cause *find(const struct api_causes *c, const char *field)
{
    for (size_t i = 0; i < c->n; i++) {
        if (streq(c->list[i].field, field)) {
            return &c->list[i];
        }
    }
    return NULL;
}

static void a_good_object_of_each_kind_passes(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
        CLEANUP(json_free) struct json *obj = parse(samples[i].text);
        CLEANUP(api_causes_done) struct api_causes c = {0};
        validate(kind_of(samples[i].plural), obj, NULL, &c);
        if (c.n) {
            fail_msg("%s: %s: %s", samples[i].plural, c.list[0].field, c.list[0].message);
        }
    }
}

static void each_wrong_field_is_named_with_its_reason(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        const struct bad *b = &bad[i];
        struct json *obj = sample(b->plural);
        CLEANUP(json_free) struct json *patch = parse(b->patch);
        CLEANUP(api_causes_done) struct api_causes c = {0};
        api_patch_merge(&obj, patch);
        validate(kind_of(b->plural), obj, NULL, &c);
        const struct api_cause *cause = find(&c, b->field);
        if (!cause) {
            fail_msg("%s with %s: no cause for %s, first of %zu is %s", b->plural, b->patch,
                     b->field, c.n, c.n ? c.list[0].field : "none");
        }
        assert_string_equal(cause->reason, b->reason);
        if (b->says && !strstr(cause->message, b->says)) {
            fail_msg("%s with %s: \"%s\" does not say \"%s\"", b->plural, b->patch, cause->message,
                     b->says);
        }
        json_free(obj);
    }
}

static const struct bad bad_changes[] = {
    {"hostsubnets", "{\"metadata\":{\"name\":\"n2\"},\"host\":\"n2\"}", "host", I, "immutable"},
    {"hostsubnets", "{\"subnet\":\"10.128.2.0/23\"}", "subnet", I, "midflight"},
    {"netnamespaces", "{\"metadata\":{\"name\":\"b\"},\"netname\":\"b\"}", "netname", I,
     "immutable"},
    {"clusternetworks", "{\"serviceNetwork\":\"172.31.0.0/16\"}", "serviceNetwork", I, "immutable"},
    {"runtimeclasses", "{\"handler\":\"other\"}", "handler", I, "immutable"},
    {"priorityclasses", "{\"value\":2}", "value", I, "immutable"},
    {"priorityclasses", "{\"preemptionPolicy\":\"PreemptLowerPriority\"}", "preemptionPolicy", I,
     "immutable"},
    {"controllerrevisions", "{\"data\":{\"a\":2}}", "data", I, "immutable"},
    {"pods", "{\"spec\":{\"nodeName\":\"node2\"}}", "spec", F, "pod updates may not change"},
    {"pods", "{\"spec\":{\"nodeName\":null}}", "spec", F, "pod updates may not change"},
    {"pods", "{\"spec\":{\"hostNetwork\":true}}", "spec", F, "pod updates may not change"},
};

/* Changes of a node whose fields were set once. */
static void a_node_keeps_what_was_set_once(void **state)
{
    static const struct bad rows[] = {
        {"nodes", "{\"spec\":{\"podCIDR\":\"10.2.0.0/24\"}}", "spec.podCIDR", F,
         "node updates may not change podCIDR except from \"\" to valid"},
        {"nodes", "{\"spec\":{\"podCIDRs\":null}}", "spec.podCIDRs", F,
         "node updates may not change podCIDR except from \"\" to valid"},
        {"nodes", "{\"spec\":{\"providerID\":\"b\"}}", "spec.providerID", F,
         "node updates may not change providerID except from \"\" to valid"},
        {"nodes", "{\"spec\":{\"providerID\":null}}", "spec.providerID", F, NULL},
        {"nodes", "{\"spec\":{\"externalID\":\"b\"}}", "spec.externalID", F, "may not be updated"},
        {"nodes",
         "{\"status\":{\"addresses\":[{\"type\":\"InternalIP\",\"address\":\"192.0.2.1\"},{"
         "\"type\":\"InternalIP\",\"address\":\"192.0.2.1\"}]}}",
         "status.addresses[1]", D, "192.0.2.1"},
        {"nodes", "{\"spec\":{\"unschedulable\":true}}", NULL, NULL, NULL},
    };
    CLEANUP(json_free)
    struct json *set =
        parse("{\"spec\":{\"podCIDR\":\"10.1.0.0/24\",\"podCIDRs\":[\"10.1.0.0/24\"],"
              "\"providerID\":\"a\",\"externalID\":\"a\"}}");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct json *old = sample("nodes");
        CLEANUP(api_causes_done) struct api_causes c = {0};
        CLEANUP(json_free) struct json *patch = parse(rows[i].patch);
        api_patch_merge(&old, set);
        struct json *obj = json_clone(old);
        api_patch_merge(&obj, patch);
        validate(kind_of("nodes"), obj, old, &c);
        json_free(obj);
        json_free(old);
        assert_int_equal(c.n, rows[i].field ? 1 : 0);
        if (rows[i].field) {
            assert_string_equal(c.list[0].field, rows[i].field);
            assert_string_equal(c.list[0].reason, rows[i].reason);
            assert_true(!rows[i].says || strstr(c.list[0].message, rows[i].says));
        }
    }
}

static void immutable_fields_cannot_change(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(bad_changes); i++) {
        const struct bad *b = &bad_changes[i];
        CLEANUP(json_free) struct json *old = sample(b->plural);
        struct json *obj = json_clone(old);
        CLEANUP(json_free) struct json *patch = parse(b->patch);
        CLEANUP(api_causes_done) struct api_causes c = {0};
        api_patch_merge(&obj, patch);
        validate(kind_of(b->plural), obj, old, &c);
        const struct api_cause *cause = find(&c, b->field);
        if (!cause || !strstr(cause->message, b->says)) {
            fail_msg("%s with %s: %s", b->plural, b->patch, cause ? cause->message : "no cause");
        }
        json_free(obj);
    }
}

static void a_pod_gets_a_node_later(void **state)
{
    CLEANUP(json_free) struct json *obj = sample("pods");
    CLEANUP(json_free) struct json *old = json_clone(obj);
    CLEANUP(api_causes_done) struct api_causes c = {0};
    json_remove(json_get(old, "spec"), "nodeName");
    api_validate_part(kind_of("pods"), "binding", obj, old, &c);
    assert_int_equal(c.n, 0);
}

static void an_egress_firewall_has_at_most_50_rules(void **state)
{
    CLEANUP(json_free) struct json *obj = sample("egressnetworkpolicies");
    struct json *rules = json_path(obj, "spec", "egress", NULL);
    CLEANUP(api_causes_done) struct api_causes fits = {0}, exceeds = {0};
    while (json_count(rules) < 50) {
        json_append(rules, json_clone(json_at(rules, 0)));
    }
    validate(kind_of("egressnetworkpolicies"), obj, NULL, &fits);
    assert_int_equal(fits.n, 0);
    json_append(rules, json_clone(json_at(rules, 0)));
    validate(kind_of("egressnetworkpolicies"), obj, NULL, &exceeds);
    const struct api_cause *cause = find(&exceeds, "spec.egress");
    assert_non_null(cause);
    assert_non_null(strstr(cause->message, "too many egress rules (max 50)"));
}

static void a_ghost_host_may_wait_for_its_subnet(void **state)
{
    CLEANUP(json_free) struct json *obj = sample("hostsubnets");
    CLEANUP(api_causes_done) struct api_causes c = {0};
    json_set_string(json_path(obj, "metadata", "annotations", NULL),
                    "pod.network.openshift.io/assign-subnet", "true");
    json_set_string(obj, "subnet", "");
    validate(kind_of("hostsubnets"), obj, NULL, &c);
    assert_int_equal(c.n, 0);
}

static void too_large_annotations_are_refused(void **state)
{
    CLEANUP(json_free) struct json *obj = sample("namespaces");
    CLEANUP(api_causes_done) struct api_causes c = {0};
    size_t n = (size_t) 256 << 10;
    CLEANUP_FREE char *big = xmalloc(n + 1);
    memset(big, 'x', n);
    big[n] = '\0';
    json_set_string(json_ensure_object(json_get(obj, "metadata"), "annotations"), "a", big);
    validate(kind_of("namespaces"), obj, NULL, &c);
    assert_int_equal(c.n, 1);
    assert_string_equal(c.list[0].reason, "FieldValueTooLong");
}

static void an_empty_text_is_absent_where_nothing_needs_it(void **state)
{
    static const struct bad cases[] = {
        {"pods", "{\"spec\":{\"dnsPolicy\":\"\",\"nodeName\":\"\"}}", NULL, NULL, NULL},
        {"nodes", "{\"spec\":{\"taints\":[{\"key\":\"a\",\"value\":\"\",\"effect\":\"\"}]}}",
         "spec.taints[0].effect", R, NULL},
        {"nodes", "{\"spec\":{\"taints\":[{\"key\":\"\",\"effect\":\"NoSchedule\"}]}}",
         "spec.taints[0].key", R, NULL},
        {"hostsubnets", "{\"egressIPs\":[\"\"]}", "egressIPs[0]", R, NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct json *obj = sample(cases[i].plural);
        CLEANUP(json_free) struct json *patch = parse(cases[i].patch);
        CLEANUP(api_causes_done) struct api_causes c = {0};
        api_patch_merge(&obj, patch);
        validate(kind_of(cases[i].plural), obj, NULL, &c);
        assert_int_equal(c.n, cases[i].field ? 1 : 0);
        if (cases[i].field) {
            assert_string_equal(c.list[0].field, cases[i].field);
            assert_string_equal(c.list[0].reason, cases[i].reason);
        }
        json_free(obj);
    }
}

static void a_wrong_name_is_told_beside_wrong_fields(void **state)
{
    CLEANUP(json_free) struct json *obj = sample("pods");
    CLEANUP(json_free)
    struct json *patch = parse("{\"metadata\":{\"name\":\"A\"},\"spec\":{\"dnsPolicy\":\"Mine\"}}");
    CLEANUP(api_causes_done) struct api_causes c = {0};
    api_patch_merge(&obj, patch);
    validate(kind_of("pods"), obj, NULL, &c);
    assert_int_equal(c.n, 2);
    assert_string_equal(c.list[0].field, "spec.dnsPolicy");
    assert_string_equal(c.list[1].field, "metadata.name");
}

static void a_cause_does_not_repeat_a_value_of_a_secret(void **state)
{
    CLEANUP(json_free)
    struct json *obj =
        parse("{\"metadata\":{\"name\":\"s\",\"namespace\":\"red\"},\"type\":\"Opaque\","
              "\"data\":{\"a\":\"pass-word\"}}");
    CLEANUP(api_causes_done) struct api_causes c = {0};
    validate(kind_of("secrets"), obj, NULL, &c);
    assert_int_equal(c.n, 1);
    assert_string_equal(c.list[0].field, "data.a");
    assert_string_equal(c.list[0].message, "Invalid value: must be base64");
}

static void causes_are_bounded(void **state)
{
    CLEANUP(json_free) struct json *obj = sample("namespaces");
    CLEANUP(api_causes_done) struct api_causes c = {0};
    struct json *labels = json_ensure_object(json_get(obj, "metadata"), "labels");
    for (int i = 0; i < 1000; i++) {
        char key[32];
        snprintf(key, sizeof key, "-bad%d", i);
        json_set_string(labels, key, "x");
    }
    validate(kind_of("namespaces"), obj, NULL, &c);
    assert_int_equal(c.n, API_MAX_CAUSES);
}

static void finalizers_cannot_be_added_while_deleting(void **state)
{
    CLEANUP(json_free) struct json *old = sample("pods");
    json_set_string(json_get(old, "metadata"), "deletionTimestamp", "2026-01-01T00:00:00Z");
    json_append(json_ensure_array(json_get(old, "metadata"), "finalizers"), json_string("a/b"));
    CLEANUP(json_free) struct json *obj = json_clone(old);
    CLEANUP(api_causes_done) struct api_causes c = {0};
    validate(kind_of("pods"), obj, old, &c);
    assert_int_equal(c.n, 0);
    json_append(json_ensure_array(json_get(obj, "metadata"), "finalizers"), json_string("c/d"));
    validate(kind_of("pods"), obj, old, &c);
    assert_int_equal(c.n, 1);
    assert_string_equal(c.list[0].reason, "FieldValueForbidden");
}

/* Who may write Events of a namespace writes none about another; those about what is in no namespace are in two. */
static void an_event_is_where_its_object_is(void **state)
{
    static const struct {
        const char *own, *about;
        bool good;
    } rows[] = {{"red", "red", true},      {"red", "blue", false},
                {"red", NULL, false},      {"red", "", false},
                {"default", NULL, true},   {"kube-system", "", true},
                {"default", "red", false}, {"kube-system", "default", false}};
    const struct api_kind *k = api_kind_find("events.k8s.io", "v1", "events");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_FREE char *text = xasprintf(
            "{\"metadata\":{\"name\":\"e\",\"namespace\":\"%s\"},\"regarding\":{\"kind\":\"Pod\","
            "\"name\":\"a\"},\"eventTime\":\"2026-01-02T03:04:05.000006Z\","
            "\"reportingController\":\"a/b\","
            "\"reportingInstance\":\"i\",\"action\":\"A\",\"reason\":\"R\",\"type\":\"Normal\"}",
            rows[i].own);
        CLEANUP(json_free) struct json *obj = parse(text);
        json_set_string(json_get(obj, "regarding"), "namespace", rows[i].about);
        CLEANUP(api_causes_done) struct api_causes c = {0};
        validate(k, obj, NULL, &c);
        if (c.n != !rows[i].good || (c.n && !streq(c.list[0].field, "regarding.namespace"))) {
            fail_msg("row %zu: %s", i, c.n ? c.list[0].field : "good");
        }
    }
}

static void texts_of_an_event_are_bounded(void **state)
{
    static const struct {
        const char *field;
        size_t max;
        bool needed;
    } rows[] = {{"reportingController", 316, true},
                {"reportingInstance", 128, true},
                {"action", 128, true},
                {"reason", 128, true},
                {"note", 1024, false}};
    const struct api_kind *k = api_kind_find("events.k8s.io", "v1", "events");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        for (size_t n = 0; n <= rows[i].max + 1; n += n ? 1 : rows[i].max) {
            CLEANUP(json_free)
            struct json *obj = parse("{\"metadata\":{\"name\":\"e\",\"namespace\":\"red\"},"
                                     "\"regarding\":{\"kind\":\"Pod\",\"name\":\"a\","
                                     "\"namespace\":\"red\"},\"eventTime\":\"2026-01-02T03:04:05."
                                     "000006Z\",\"reportingController\":\"a/b\","
                                     "\"reportingInstance\":\"i\",\"action\":\"A\",\"reason\":"
                                     "\"R\",\"type\":\"Normal\",\"note\":\"n\"}");
            CLEANUP(api_causes_done) struct api_causes c = {0};
            char text[1100] = {0};
            memset(text, 'a', n);
            json_set_string(obj, rows[i].field, text);
            validate(k, obj, NULL, &c);
            bool good = n ? n <= rows[i].max : !rows[i].needed;
            if (c.n != !good) {
                fail_msg("%s of %zu bytes: %zu causes", rows[i].field, n, c.n);
            }
            /* One in the older form goes on as it was. */
            CLEANUP(api_causes_done) struct api_causes later = {0};
            validate(k, obj, obj, &later);
            assert_int_equal(later.n, 0);
        }
    }
}

static void policy_types_are_a_list_of_two_at_most(void **state)
{
    static const char *const rows[][2] = {
        {"[]", NULL},
        {"[\"Ingress\",\"Egress\"]", NULL},
        {"[\"Ingress\",\"Egress\",\"Ingress\"]", "spec.policyTypes"},
        {"{\"a\":\"b\"}", "spec.policyTypes"},
        {"[\"ingress\"]", "spec.policyTypes[0]"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(json_free) struct json *obj = sample("networkpolicies");
        CLEANUP(api_causes_done) struct api_causes c = {0};
        json_set(json_get(obj, "spec"), "policyTypes", parse(rows[i][0]));
        validate(kind_of("networkpolicies"), obj, NULL, &c);
        assert_int_equal(c.n, rows[i][1] != NULL);
        assert_string_equal(c.n ? c.list[0].field : "", rows[i][1] ? rows[i][1] : "");
    }
}

/* Only what runs on a node is given time to end. */
static void a_pod_ends_in_its_time(void **state)
{
    static const struct {
        const char *pod;
        int64_t asked, want; /* 'asked' INT64_MAX: nothing. */
    } rows[] = {
        {"{}", 60, 0},
        {"{\"spec\":{\"nodeName\":\"\"}}", 60, 0},
        {"{\"spec\":{\"nodeName\":\"n\"}}", 60, 60},
        {"{\"spec\":{\"nodeName\":\"n\"}}", 0, 0},
        {"{\"spec\":{\"nodeName\":\"n\"}}", -1, 1},
        {"{\"spec\":{\"nodeName\":\"n\"}}", INT64_MAX, 30},
        {"{\"spec\":{\"nodeName\":\"n\",\"terminationGracePeriodSeconds\":7}}", INT64_MAX, 7},
        {"{\"spec\":{\"nodeName\":\"n\",\"terminationGracePeriodSeconds\":0}}", INT64_MAX, 0},
        {"{\"spec\":{\"nodeName\":\"n\",\"terminationGracePeriodSeconds\":-1}}", INT64_MAX, 1},
        {"{\"spec\":{\"nodeName\":\"n\"},\"status\":{\"phase\":\"Running\"}}", 60, 60},
        {"{\"spec\":{\"nodeName\":\"n\"},\"status\":{\"phase\":\"Failed\"}}", 60, 0},
        {"{\"spec\":{\"nodeName\":\"n\"},\"status\":{\"phase\":\"Succeeded\"}}", 60, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(json_free) struct json *pod = parse(rows[i].pod);
        const int64_t *asked = rows[i].asked == INT64_MAX ? NULL : &rows[i].asked;
        assert_int_equal(kind_of("pods")->grace_s(pod, asked), rows[i].want);
    }
}

static void lists_of_addresses_are_bounded(void **state)
{
    CLEANUP(json_free) struct json *obj = sample("netnamespaces");
    struct json *list = json_set(obj, "egressIPs", json_array());
    for (int i = 0; i < 1025; i++) {
        CLEANUP(api_causes_done) struct api_causes c = {0};
        CLEANUP_FREE char *ip = xasprintf("192.0.%d.%d", 2 + i / 200, 1 + i % 200);
        json_append(list, json_string(ip));
        if (i >= 1022) {
            validate(kind_of("netnamespaces"), obj, NULL, &c);
            assert_int_equal(c.n, i == 1024);
        }
    }
}

static void an_object_has_so_many_finalizers(void **state)
{
    CLEANUP(json_free) struct json *obj = sample("pods");
    struct json *list = json_ensure_array(json_get(obj, "metadata"), "finalizers");
    for (int i = 0; i < 1001; i++) {
        CLEANUP(api_causes_done) struct api_causes c = {0};
        CLEANUP_FREE char *name = xasprintf("a/b%d", i);
        json_append(list, json_string(name));
        if (i >= 998) {
            validate(kind_of("pods"), obj, NULL, &c);
            assert_int_equal(c.n, i == 1000);
        }
    }
}

/* Only ports that have a name need one of their own. */
static void ports_may_be_without_names(void **state)
{
    CLEANUP(json_free)
    struct json *obj = parse(
        "{\"metadata\":{\"name\":\"web\",\"namespace\":\"red\"},\"spec\":{\"containers\":[{"
        "\"name\":\"a\",\"image\":\"x\",\"ports\":[{\"containerPort\":1},{\"containerPort\":2},"
        "{\"containerPort\":3,\"name\":\"c\"},{\"containerPort\":4,\"name\":\"d\"}]}]}}");
    CLEANUP(api_causes_done) struct api_causes c = {0};
    validate(kind_of("pods"), obj, NULL, &c);
    assert_int_equal(c.n, 0);
}

static void names_are_checked_as_kubernetes_does(void **state)
{
    char label63[64], label64[65];
    memset(label63, 'a', 63);
    label63[63] = '\0';
    memset(label64, 'a', 64);
    label64[64] = '\0';
    assert_null(api_check_dns_label("a"));
    assert_null(api_check_dns_label("a-b-9"));
    assert_null(api_check_dns_label(label63));
    assert_non_null(api_check_dns_label(label64));
    assert_non_null(api_check_dns_label(""));
    assert_non_null(api_check_dns_label("-a"));
    assert_non_null(api_check_dns_label("a-"));
    assert_non_null(api_check_dns_label("a_b"));
    assert_null(api_check_dns_subdomain("a.b-c.d"));
    assert_non_null(api_check_dns_subdomain("a."));
    assert_non_null(api_check_dns_subdomain(".a"));
    assert_null(api_check_qualified_name("example.com/My_Name.x"));
    assert_null(api_check_qualified_name("x"));
    assert_non_null(api_check_qualified_name("a/b/c"));
    assert_non_null(api_check_qualified_name("Example.com/a"));
    assert_non_null(api_check_qualified_name("a/"));
    assert_null(api_check_label_value(""));
    assert_null(api_check_label_value("V1.2_x"));
    assert_non_null(api_check_label_value("a b"));
    assert_non_null(api_check_label_value(label64));
    assert_non_null(api_check_path_segment(".."));
    assert_non_null(api_check_path_segment("a%b"));
    assert_null(api_check_path_segment("Any name"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_object_of_each_kind_passes),
        cmocka_unit_test(each_wrong_field_is_named_with_its_reason),
        cmocka_unit_test(immutable_fields_cannot_change),
        cmocka_unit_test(a_node_keeps_what_was_set_once),
        cmocka_unit_test(a_pod_gets_a_node_later),
        cmocka_unit_test(an_egress_firewall_has_at_most_50_rules),
        cmocka_unit_test(a_ghost_host_may_wait_for_its_subnet),
        cmocka_unit_test(too_large_annotations_are_refused),
        cmocka_unit_test(an_empty_text_is_absent_where_nothing_needs_it),
        cmocka_unit_test(a_wrong_name_is_told_beside_wrong_fields),
        cmocka_unit_test(a_cause_does_not_repeat_a_value_of_a_secret),
        cmocka_unit_test(causes_are_bounded),
        cmocka_unit_test(finalizers_cannot_be_added_while_deleting),
        cmocka_unit_test(an_event_is_where_its_object_is),
        cmocka_unit_test(texts_of_an_event_are_bounded),
        cmocka_unit_test(policy_types_are_a_list_of_two_at_most),
        cmocka_unit_test(a_pod_ends_in_its_time),
        cmocka_unit_test(lists_of_addresses_are_bounded),
        cmocka_unit_test(an_object_has_so_many_finalizers),
        cmocka_unit_test(ports_may_be_without_names),
        cmocka_unit_test(names_are_checked_as_kubernetes_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
