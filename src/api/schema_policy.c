/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas of AdminNetworkPolicy and BaselineAdminNetworkPolicy (policy.networking.k8s.io/v1alpha1), which are
 * the same but for the priority. */
#include "api/policy_fields.h"
#include "api/schema.h"

#define POLICY "io.k8s.networking.policy.v1alpha1."

static const struct api_field pods_fields[] = {
    {"namespaceSelector", &api_schema_label_selector, "Namespaces of the pods", true},
    {"podSelector", &api_schema_label_selector, "Pods of these namespaces", true},
};
static const struct api_schema pods =
    API_OBJECT_OF(pods_fields, POLICY "NamespacedPod", "Pods of some namespaces");

static const struct api_field subject_fields[] = {
    {"namespaces", &api_schema_label_selector, "All pods of these namespaces"},
    {"pods", &pods, "Some pods of some namespaces"},
};
static const struct api_schema subject =
    API_OBJECT_OF(subject_fields, POLICY "AdminNetworkPolicySubject",
                  "The pods that the policy is for: one member");

static const struct api_field ingress_peer_fields[] = {
    {"namespaces", &api_schema_label_selector, "All pods of these namespaces"},
    {"pods", &pods, "Some pods of some namespaces"},
};
static const struct api_schema ingress_peer =
    API_OBJECT_OF(ingress_peer_fields, POLICY "AdminNetworkPolicyIngressPeer",
                  "Where traffic comes from: one member");

static const struct api_field egress_peer_fields[] = {
    {"namespaces", &api_schema_label_selector, "All pods of these namespaces"},
    {"networks", &api_schema_string_set, "Ranges of addresses, at most 25"},
    {"nodes", &api_schema_label_selector, "Addresses of these nodes"},
    {"pods", &pods, "Some pods of some namespaces"},
};
static const struct api_schema egress_peer = API_OBJECT_OF(
    egress_peer_fields, POLICY "AdminNetworkPolicyEgressPeer", "Where traffic goes to: one member");

static const struct api_field number_fields[] = {
    {"port", &api_schema_int32, "Number of the port, 1 to 65535", true},
    {"protocol", &api_schema_string, "TCP, UDP or SCTP; TCP by default"},
};
static const struct api_schema number =
    API_OBJECT_OF(number_fields, POLICY "Port", "One port of a protocol");

static const struct api_field range_fields[] = {
    {"end", &api_schema_int32, "Last port, greater than start", true},
    {"protocol", &api_schema_string, "TCP, UDP or SCTP; TCP by default"},
    {"start", &api_schema_int32, "First port", true},
};
static const struct api_schema range =
    API_OBJECT_OF(range_fields, POLICY "PortRange", "Ports of a protocol that follow each other");

static const struct api_field port_fields[] = {
    {"namedPort", &api_schema_string, "Name of a port of the pods"},
    {"portNumber", &number, "A port by its number"},
    {"portRange", &range, "Ports from one number to another"},
};
static const struct api_schema port = API_OBJECT_OF(port_fields, POLICY "AdminNetworkPolicyPort",
                                                    "Ports that traffic goes to: one member");

#define RULE_ACTION                                                                   \
    {                                                                                 \
        "action", &api_schema_string,                                                 \
            "What becomes of the traffic: Allow, Deny, and Pass, which leaves it to " \
            "NetworkPolicies (not in a baseline)",                                    \
            true                                                                      \
    }
#define RULE_NAME                                                        \
    {                                                                    \
        "name", &api_schema_string, "For people, at most 100 characters" \
    }
#define RULE_PORTS                                                         \
    {                                                                      \
        "ports", API_LIST_OF(&port),                                       \
            "Ports, one of which must match, at most 100; all when absent" \
    }

static const struct api_field ingress_fields[] = {
    RULE_ACTION,
    {"from", API_LIST_OF(&ingress_peer), "Sources, one of which must match, at most 100", true},
    RULE_NAME,
    RULE_PORTS,
};
static const struct api_schema ingress =
    API_OBJECT_OF(ingress_fields, POLICY "AdminNetworkPolicyIngressRule",
                  "What becomes of traffic to the pods; the first rule that matches counts.");

static const struct api_field egress_fields[] = {
    RULE_ACTION,
    RULE_NAME,
    RULE_PORTS,
    {"to", API_LIST_OF(&egress_peer), "Destinations, one of which must match, at most 100", true},
};
static const struct api_schema egress =
    API_OBJECT_OF(egress_fields, POLICY "AdminNetworkPolicyEgressRule",
                  "What becomes of traffic from the pods; the first rule that matches counts.");

#define SPEC_EGRESS                                                            \
    {                                                                          \
        "egress", API_LIST_OF(&egress), "Rules of what pods send, at most 100" \
    }
#define SPEC_INGRESS                                                                \
    {                                                                               \
        "ingress", API_LIST_OF(&ingress), "Rules of what reaches pods, at most 100" \
    }
#define SPEC_SUBJECT                                        \
    {                                                       \
        "subject", &subject, "Pods the policy is for", true \
    }

static const struct api_field status_fields[] = {
    {"conditions", &api_schema_conditions, "What those who enforce the policy tell of it"},
};
static const struct api_schema admin_status = API_OBJECT_OF(
    status_fields, POLICY "AdminNetworkPolicyStatus", "What those who enforce the policy tell");
static const struct api_schema baseline_status =
    API_OBJECT_OF(status_fields, POLICY "BaselineAdminNetworkPolicyStatus",
                  "What those who enforce the policy tell");

static const struct api_field admin_fields[] = {
    SPEC_EGRESS,
    SPEC_INGRESS,
    {"priority", &api_schema_int32, "Rank among the policies, 0 (comes first) to 1000", true},
    SPEC_SUBJECT,
};
static const struct api_schema admin_spec =
    API_OBJECT_OF(admin_fields, POLICY "AdminNetworkPolicySpec", "Pods, and what they may do");

static const struct api_field baseline_fields[] = {
    SPEC_EGRESS,
    SPEC_INGRESS,
    SPEC_SUBJECT,
};
static const struct api_schema baseline_spec = API_OBJECT_OF(
    baseline_fields, POLICY "BaselineAdminNetworkPolicySpec", "Pods, and what they may do");

static const struct api_field admin_root_fields[] = {
    API_ROOT_API_VERSION,
    API_ROOT_KIND,
    API_ROOT_METADATA,
    {"spec", &admin_spec, "Pods, and what they may do", true},
    {"status", &admin_status, "What those who enforce the policy tell"},
};
const struct api_schema policy_admin_schema = API_OBJECT_OF(
    admin_root_fields, POLICY "AdminNetworkPolicy",
    "AdminNetworkPolicy has the administrator's rules, which come before NetworkPolicy.");

static const struct api_field baseline_root_fields[] = {
    API_ROOT_API_VERSION,
    API_ROOT_KIND,
    API_ROOT_METADATA,
    {"spec", &baseline_spec, "Pods, and what they may do", true},
    {"status", &baseline_status, "What those who enforce the policy tell"},
};
const struct api_schema policy_baseline_schema =
    API_OBJECT_OF(baseline_root_fields, POLICY "BaselineAdminNetworkPolicy",
                  "BaselineAdminNetworkPolicy has the administrator's rules for pods that no "
                  "NetworkPolicy selects; there is one, called default.");
