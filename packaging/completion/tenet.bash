# SPDX-License-Identifier: Apache-2.0
# Made by "make generate" from the rows of the commands.
# bash completion of tenet(1).

# Names of objects of kind $1, from the cluster that the line so far means.
_tenet_names() {
    local -a where=()
    local i
    for ((i = 2; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        -n | --namespace | -s | --server | --kubeconfig)
            where+=("${COMP_WORDS[i]}" "${COMP_WORDS[i + 1]}")
            ;;
        esac
    done
    timeout 2 tenet get "$1" --no-headers -o custom-columns=N:.metadata.name "${where[@]}" 2>/dev/null
}

# The first word after the command that is no option: the kind.
_tenet_kind() {
    local i
    for ((i = 2; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        -n | --namespace | -s | --server | --kubeconfig | -o | --output | -l | --selector | --field-selector | --timeout | --grace-period)
            ((i++))
            ;;
        -*) ;;
        *)
            echo "${COMP_WORDS[i]}"
            return
            ;;
        esac
    done
}

# Adds to COMPREPLY what the words $1 stand for: themselves, or what @... means.
_tenet_expand() {
    local word kind list=""
    for word in $1; do
        case $word in
        @file) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
        @kinds)
            kind=$(_tenet_kind)
            if [[ -n $kind ]]; then list+=" $(_tenet_names "$kind")"; else list+=" $kinds"; fi
            ;;
        @*) list+=" $(_tenet_names "${word#@}")" ;;
        *) list+=" $word" ;;
        esac
    done
    mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "$list" -- "$cur")
}

_tenet() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local command=${COMP_WORDS[1]} words="" options="" values=""
    local kinds="componentstatuses configmaps endpoints events limitranges namespaces nodes persistentvolumes persistentvolumeclaims pods podtemplates replicationcontrollers resourcequotas secrets services serviceaccounts clusternetworks hostsubnets netnamespaces egressnetworkpolicies leases endpointslices projects users identities groups oauthclients oauthaccesstokens oauthauthorizetokens oauthclientauthorizations useroauthaccesstokens clusterresourcequotas appliedclusterresourcequotas customresourcedefinitions controllerrevisions daemonsets deployments replicasets statefulsets deploymentconfigs cronjobs jobs scheduledjobs horizontalpodautoscalers poddisruptionbudgets csidrivers csinodes csistoragecapacities storageclasses volumeattachments volumeattributesclasses priorityclasses deviceclasses resourceclaims resourceclaimtemplates resourceslices mutatingwebhookconfigurations validatingwebhookconfigurations validatingadmissionpolicies validatingadmissionpolicybindings runtimeclasses networkpolicies ingresses ingressclasses ipaddresses servicecidrs adminnetworkpolicies baselineadminnetworkpolicies roles clusterroles rolebindings clusterrolebindings securitycontextconstraints templates templateinstances routes certificatesigningrequests rolebindingrestrictions policies policybindings clusterpolicies clusterpolicybindings"
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        _tenet_expand "master apiserver controllers node kubelet csi-controller router lab setup collect store get create process delete describe edit patch label annotate wait logs status run expose rollout rollback deploy scale autoscale set idle adm token trace flows check dns deployer login logout whoami project projects new-project can policy sa secrets scc export help --help --version"
        return
    fi
    if ((COMP_CWORD > 2)); then
        case "$command ${COMP_WORDS[2]}" in
        "node flows") command="node flows" ;;
        "node maps") command="node maps" ;;
        "setup check") command="setup check" ;;
        "setup master") command="setup master" ;;
        "setup node") command="setup node" ;;
        "setup remove") command="setup remove" ;;
        "rollout cancel") command="rollout cancel" ;;
        "rollout history") command="rollout history" ;;
        "rollout latest") command="rollout latest" ;;
        "rollout pause") command="rollout pause" ;;
        "rollout restart") command="rollout restart" ;;
        "rollout resume") command="rollout resume" ;;
        "rollout retry") command="rollout retry" ;;
        "rollout status") command="rollout status" ;;
        "rollout undo") command="rollout undo" ;;
        "set deployment-hook") command="set deployment-hook" ;;
        "set env") command="set env" ;;
        "set image") command="set image" ;;
        "set probe") command="set probe" ;;
        "set resources") command="set resources" ;;
        "set selector") command="set selector" ;;
        "set triggers") command="set triggers" ;;
        "set serviceaccount") command="set serviceaccount" ;;
        "set volumes") command="set volumes" ;;
        "adm clear-route-status") command="adm clear-route-status" ;;
        "adm config") command="adm config" ;;
        "adm cordon") command="adm cordon" ;;
        "adm create-master-certs") command="adm create-master-certs" ;;
        "adm drain") command="adm drain" ;;
        "adm groups") command="adm groups" ;;
        "adm import") command="adm import" ;;
        "adm manage-node") command="adm manage-node" ;;
        "adm new-project") command="adm new-project" ;;
        "adm pod-network") command="adm pod-network" ;;
        "adm policy") command="adm policy" ;;
        "adm prometheus-targets") command="adm prometheus-targets" ;;
        "adm storage") command="adm storage" ;;
        "adm uncordon") command="adm uncordon" ;;
        "policy can-i") command="policy can-i" ;;
        "scc why") command="scc why" ;;
        "scc list") command="scc list" ;;
        esac
    fi
    case "$command $prev" in
    "master -c" | "master --config") values="@file" ;;
    "master --plugin") values="redhat/openshift-ovs-subnet redhat/openshift-ovs-multitenant redhat/openshift-ovs-networkpolicy flannel" ;;
    "master --scheduler-config") values="@file" ;;
    "master --scheduler") values="true false" ;;
    "master --workloads") values="true false" ;;
    "master --deploy-in-process") values="true false" ;;
    "master --local-storage-class") values="true false" ;;
    "master --volume-snapshots") values="true false" ;;
    "master --tls") values="auto off" ;;
    "master --pki-dir") values="@file" ;;
    "master --tls-cert-file") values="@file" ;;
    "master --tls-key-file") values="@file" ;;
    "master --client-ca-file") values="@file" ;;
    "master --tls-min-version") values="VersionTLS12 VersionTLS13" ;;
    "master --kubelet-certificate-authority") values="@file" ;;
    "master --kubelet-client-certificate") values="@file" ;;
    "master --kubelet-client-key") values="@file" ;;
    "master --authorization-mode") values="RBAC AlwaysAllow" ;;
    "master --anonymous-auth") values="true false" ;;
    "master --service-account-signing-key-file") values="@file" ;;
    "master --audit-log-path") values="@file" ;;
    "master --audit-policy-file") values="@file" ;;
    "master --storage-backend") values="sqlite etcd memory" ;;
    "master --storage-path") values="@file" ;;
    "master --encryption-provider-config") values="@file" ;;
    "master --etcd-ca-file") values="@file" ;;
    "master --etcd-cert-file") values="@file" ;;
    "master --etcd-key-file") values="@file" ;;
    "master --cluster-signing-cert-file") values="@file" ;;
    "master --cluster-signing-key-file") values="@file" ;;
    "master --dns-isolate-projects") values="true false" ;;
    "master --log-format") values="text json" ;;
    "apiserver -c" | "apiserver --config") values="@file" ;;
    "apiserver --plugin") values="redhat/openshift-ovs-subnet redhat/openshift-ovs-multitenant redhat/openshift-ovs-networkpolicy flannel" ;;
    "apiserver --tls") values="auto off" ;;
    "apiserver --pki-dir") values="@file" ;;
    "apiserver --tls-cert-file") values="@file" ;;
    "apiserver --tls-key-file") values="@file" ;;
    "apiserver --client-ca-file") values="@file" ;;
    "apiserver --tls-min-version") values="VersionTLS12 VersionTLS13" ;;
    "apiserver --kubelet-certificate-authority") values="@file" ;;
    "apiserver --kubelet-client-certificate") values="@file" ;;
    "apiserver --kubelet-client-key") values="@file" ;;
    "apiserver --authorization-mode") values="RBAC AlwaysAllow" ;;
    "apiserver --anonymous-auth") values="true false" ;;
    "apiserver --service-account-signing-key-file") values="@file" ;;
    "apiserver --audit-log-path") values="@file" ;;
    "apiserver --audit-policy-file") values="@file" ;;
    "apiserver --storage-backend") values="sqlite etcd memory" ;;
    "apiserver --storage-path") values="@file" ;;
    "apiserver --encryption-provider-config") values="@file" ;;
    "apiserver --etcd-ca-file") values="@file" ;;
    "apiserver --etcd-cert-file") values="@file" ;;
    "apiserver --etcd-key-file") values="@file" ;;
    "apiserver --dns-isolate-projects") values="true false" ;;
    "apiserver --log-format") values="text json" ;;
    "controllers -c" | "controllers --config") values="@file" ;;
    "controllers --kubeconfig") values="@file" ;;
    "controllers --plugin") values="redhat/openshift-ovs-subnet redhat/openshift-ovs-multitenant redhat/openshift-ovs-networkpolicy flannel" ;;
    "controllers --scheduler-config") values="@file" ;;
    "controllers --scheduler") values="true false" ;;
    "controllers --workloads") values="true false" ;;
    "controllers --deploy-in-process") values="true false" ;;
    "controllers --local-storage-class") values="true false" ;;
    "controllers --volume-snapshots") values="true false" ;;
    "controllers --cluster-signing-cert-file") values="@file" ;;
    "controllers --cluster-signing-key-file") values="@file" ;;
    "controllers --log-format") values="text json" ;;
    "node --config") values="@file" ;;
    "node --kubeconfig") values="@file" ;;
    "node --master-kubeconfig") values="@file" ;;
    "node --bootstrap-kubeconfig") values="@file" ;;
    "node --plugin") values="redhat/openshift-ovs-subnet redhat/openshift-ovs-multitenant redhat/openshift-ovs-networkpolicy" ;;
    "node --block-metadata") values="true false" ;;
    "node --datapath") values="ovs ebpf hostgw" ;;
    "node --run-dir") values="@file" ;;
    "node --cni-conf-dir") values="@file" ;;
    "node --cni-plugins") values="portmap bandwidth portmap,bandwidth none" ;;
    "node --ebpf-without") values="tcx redirect_peer scrub ringbuf encap" ;;
    "node --hostgw-subnet-file") values="@file" ;;
    "node --ovs-database") values="@file" ;;
    "node --ovs-run-dir") values="@file" ;;
    "node --ovs-datapath-type") values="system netdev" ;;
    "node --proxy-mode") values="iptables nftables userspace" ;;
    "node --log-format") values="text json" ;;
    "node --dns-resolv-conf") values="@file" ;;
    "node --dns-isolate-projects") values="true false" ;;
    "node flows --socket") values="@file" ;;
    "node flows --kubeconfig") values="@file" ;;
    "node flows -o" | "node flows --output") values="json" ;;
    "node maps --socket") values="@file" ;;
    "node maps --kubeconfig") values="@file" ;;
    "node maps -o" | "node maps --output") values="json" ;;
    "kubelet --config") values="@file" ;;
    "kubelet --kubeconfig") values="@file" ;;
    "kubelet --master-kubeconfig") values="@file" ;;
    "kubelet --runtime") values="cri" ;;
    "kubelet --root-dir") values="@file" ;;
    "kubelet --pod-logs-dir") values="@file" ;;
    "kubelet --tls-cert-file") values="@file" ;;
    "kubelet --tls-private-key-file") values="@file" ;;
    "kubelet --resolv-conf") values="@file" ;;
    "kubelet --cgroup-driver") values="cgroupfs systemd" ;;
    "kubelet --seccomp-dir") values="@file" ;;
    "kubelet --register-node") values="true false" ;;
    "kubelet --node-lease") values="true false" ;;
    "kubelet --pod-manifest-path") values="@file" ;;
    "kubelet --volume-dir") values="@file" ;;
    "kubelet --log-format") values="text json" ;;
    "csi-controller --csi-address") values="@file" ;;
    "csi-controller --kubeconfig") values="@file" ;;
    "router --kubeconfig") values="@file" ;;
    "router --dir") values="@file" ;;
    "router --haproxy") values="@file" ;;
    "router --default-certificate") values="@file" ;;
    "router --default-destination-ca") values="@file" ;;
    "router --load-balance-algorithm") values="roundrobin leastconn source random" ;;
    "router --tcp-balance-scheme") values="roundrobin leastconn source random" ;;
    "router --errorfile-503") values="@file" ;;
    "router --syslog-level") values="emerg alert crit err warning notice info debug" ;;
    "router --access-log-format") values="httplog json" ;;
    "lab -o" | "lab --output") values="json" ;;
    "lab --plugin") values="redhat/openshift-ovs-subnet redhat/openshift-ovs-multitenant redhat/openshift-ovs-networkpolicy flannel" ;;
    "lab --store") values="sqlite etcd" ;;
    "lab --datapath") values="ovs ebpf ovs,ebpf hostgw" ;;
    "lab --datapath-type") values="netdev system" ;;
    "setup check --datapath") values="ovs ebpf" ;;
    "setup master --plugin") values="ovs-subnet ovs-multitenant ovs-networkpolicy" ;;
    "setup master --prefix") values="@file" ;;
    "setup node --datapath") values="ovs ebpf" ;;
    "setup node --kubelet") values="yes no" ;;
    "setup node --prefix") values="@file" ;;
    "setup remove --prefix") values="@file" ;;
    "collect -o" | "collect --output") values="@file" ;;
    "collect --kubeconfig") values="@file" ;;
    "collect --run-dir") values="@file" ;;
    "collect --prefix") values="@file" ;;
    "store -c" | "store --config") values="@file" ;;
    "store --storage-backend") values="sqlite etcd memory" ;;
    "store --storage-path") values="@file" ;;
    "store --encryption-provider-config") values="@file" ;;
    "store --etcd-ca-file") values="@file" ;;
    "store --etcd-cert-file") values="@file" ;;
    "store --etcd-key-file") values="@file" ;;
    "get -o" | "get --output") values="wide json yaml name jsonpath= custom-columns=" ;;
    "get -n" | "get --namespace") values="@namespaces" ;;
    "get --kubeconfig") values="@file" ;;
    "create -f" | "create --filename") values="@file" ;;
    "create -o" | "create --output") values="json yaml name" ;;
    "create --restart") values="Never OnFailure" ;;
    "create --service") values="@services" ;;
    "create --cert") values="@file" ;;
    "create --key") values="@file" ;;
    "create --ca-cert") values="@file" ;;
    "create --dest-ca-cert") values="@file" ;;
    "create --insecure-policy") values="None Allow Redirect" ;;
    "create --wildcard-policy") values="None Subdomain" ;;
    "create -n" | "create --namespace") values="@namespaces" ;;
    "create --kubeconfig") values="@file" ;;
    "process -f" | "process --filename") values="@file" ;;
    "process --param-file") values="@file" ;;
    "process -o" | "process --output") values="json yaml name" ;;
    "process -n" | "process --namespace") values="@namespaces" ;;
    "process --kubeconfig") values="@file" ;;
    "delete -f" | "delete --filename") values="@file" ;;
    "delete --cascade") values="background foreground orphan" ;;
    "delete -o" | "delete --output") values="name" ;;
    "delete -n" | "delete --namespace") values="@namespaces" ;;
    "delete --kubeconfig") values="@file" ;;
    "describe -n" | "describe --namespace") values="@namespaces" ;;
    "describe --kubeconfig") values="@file" ;;
    "edit -f" | "edit --filename") values="@file" ;;
    "edit --dry-run") values="client server none" ;;
    "edit -o" | "edit --output") values="json yaml name jsonpath=" ;;
    "edit -n" | "edit --namespace") values="@namespaces" ;;
    "edit --kubeconfig") values="@file" ;;
    "patch --patch-file") values="@file" ;;
    "patch --type") values="strategic merge json" ;;
    "patch --subresource") values="status scale" ;;
    "patch -f" | "patch --filename") values="@file" ;;
    "patch --dry-run") values="client server none" ;;
    "patch -o" | "patch --output") values="json yaml name jsonpath=" ;;
    "patch -n" | "patch --namespace") values="@namespaces" ;;
    "patch --kubeconfig") values="@file" ;;
    "label --overwrite") values="true false" ;;
    "label -f" | "label --filename") values="@file" ;;
    "label --dry-run") values="client server none" ;;
    "label -o" | "label --output") values="json yaml name jsonpath=" ;;
    "label -n" | "label --namespace") values="@namespaces" ;;
    "label --kubeconfig") values="@file" ;;
    "annotate --overwrite") values="true false" ;;
    "annotate -f" | "annotate --filename") values="@file" ;;
    "annotate --dry-run") values="client server none" ;;
    "annotate -o" | "annotate --output") values="json yaml name jsonpath=" ;;
    "annotate -n" | "annotate --namespace") values="@namespaces" ;;
    "annotate --kubeconfig") values="@file" ;;
    "wait --for") values="condition= delete create jsonpath=" ;;
    "wait -f" | "wait --filename") values="@file" ;;
    "wait --dry-run") values="client server none" ;;
    "wait -o" | "wait --output") values="json yaml name jsonpath=" ;;
    "wait -n" | "wait --namespace") values="@namespaces" ;;
    "wait --kubeconfig") values="@file" ;;
    "logs -n" | "logs --namespace") values="@namespaces" ;;
    "logs --kubeconfig") values="@file" ;;
    "status -n" | "status --namespace") values="@namespaces" ;;
    "status --kubeconfig") values="@file" ;;
    "run --restart") values="Always OnFailure Never" ;;
    "run --dry-run") values="client server none" ;;
    "run -o" | "run --output") values="json yaml name jsonpath=" ;;
    "run -n" | "run --namespace") values="@namespaces" ;;
    "run --kubeconfig") values="@file" ;;
    "expose --protocol") values="TCP UDP SCTP" ;;
    "expose --type") values="ClusterIP NodePort LoadBalancer" ;;
    "expose --session-affinity") values="ClientIP None" ;;
    "expose --wildcard-policy") values="None Subdomain" ;;
    "expose --dry-run") values="client server none" ;;
    "expose -o" | "expose --output") values="json yaml name jsonpath=" ;;
    "expose -n" | "expose --namespace") values="@namespaces" ;;
    "expose --kubeconfig") values="@file" ;;
    "rollout cancel -f" | "rollout cancel --filename") values="@file" ;;
    "rollout cancel --dry-run") values="client server none" ;;
    "rollout cancel -o" | "rollout cancel --output") values="json yaml name jsonpath=" ;;
    "rollout cancel -n" | "rollout cancel --namespace") values="@namespaces" ;;
    "rollout cancel --kubeconfig") values="@file" ;;
    "rollout history -f" | "rollout history --filename") values="@file" ;;
    "rollout history --dry-run") values="client server none" ;;
    "rollout history -o" | "rollout history --output") values="json yaml name jsonpath=" ;;
    "rollout history -n" | "rollout history --namespace") values="@namespaces" ;;
    "rollout history --kubeconfig") values="@file" ;;
    "rollout latest -f" | "rollout latest --filename") values="@file" ;;
    "rollout latest --dry-run") values="client server none" ;;
    "rollout latest -o" | "rollout latest --output") values="json yaml name jsonpath=" ;;
    "rollout latest -n" | "rollout latest --namespace") values="@namespaces" ;;
    "rollout latest --kubeconfig") values="@file" ;;
    "rollout pause -f" | "rollout pause --filename") values="@file" ;;
    "rollout pause --dry-run") values="client server none" ;;
    "rollout pause -o" | "rollout pause --output") values="json yaml name jsonpath=" ;;
    "rollout pause -n" | "rollout pause --namespace") values="@namespaces" ;;
    "rollout pause --kubeconfig") values="@file" ;;
    "rollout restart -f" | "rollout restart --filename") values="@file" ;;
    "rollout restart --dry-run") values="client server none" ;;
    "rollout restart -o" | "rollout restart --output") values="json yaml name jsonpath=" ;;
    "rollout restart -n" | "rollout restart --namespace") values="@namespaces" ;;
    "rollout restart --kubeconfig") values="@file" ;;
    "rollout resume -f" | "rollout resume --filename") values="@file" ;;
    "rollout resume --dry-run") values="client server none" ;;
    "rollout resume -o" | "rollout resume --output") values="json yaml name jsonpath=" ;;
    "rollout resume -n" | "rollout resume --namespace") values="@namespaces" ;;
    "rollout resume --kubeconfig") values="@file" ;;
    "rollout retry -f" | "rollout retry --filename") values="@file" ;;
    "rollout retry --dry-run") values="client server none" ;;
    "rollout retry -o" | "rollout retry --output") values="json yaml name jsonpath=" ;;
    "rollout retry -n" | "rollout retry --namespace") values="@namespaces" ;;
    "rollout retry --kubeconfig") values="@file" ;;
    "rollout status -w" | "rollout status --watch") values="true false" ;;
    "rollout status -f" | "rollout status --filename") values="@file" ;;
    "rollout status --dry-run") values="client server none" ;;
    "rollout status -o" | "rollout status --output") values="json yaml name jsonpath=" ;;
    "rollout status -n" | "rollout status --namespace") values="@namespaces" ;;
    "rollout status --kubeconfig") values="@file" ;;
    "rollout undo -f" | "rollout undo --filename") values="@file" ;;
    "rollout undo --dry-run") values="client server none" ;;
    "rollout undo -o" | "rollout undo --output") values="json yaml name jsonpath=" ;;
    "rollout undo -n" | "rollout undo --namespace") values="@namespaces" ;;
    "rollout undo --kubeconfig") values="@file" ;;
    "rollback -f" | "rollback --filename") values="@file" ;;
    "rollback --dry-run") values="client server none" ;;
    "rollback -o" | "rollback --output") values="json yaml name jsonpath=" ;;
    "rollback -n" | "rollback --namespace") values="@namespaces" ;;
    "rollback --kubeconfig") values="@file" ;;
    "deploy -f" | "deploy --filename") values="@file" ;;
    "deploy --dry-run") values="client server none" ;;
    "deploy -o" | "deploy --output") values="json yaml name jsonpath=" ;;
    "deploy -n" | "deploy --namespace") values="@namespaces" ;;
    "deploy --kubeconfig") values="@file" ;;
    "scale -f" | "scale --filename") values="@file" ;;
    "scale --dry-run") values="client server none" ;;
    "scale -o" | "scale --output") values="json yaml name jsonpath=" ;;
    "scale -n" | "scale --namespace") values="@namespaces" ;;
    "scale --kubeconfig") values="@file" ;;
    "autoscale -f" | "autoscale --filename") values="@file" ;;
    "autoscale --dry-run") values="client server none" ;;
    "autoscale -o" | "autoscale --output") values="json yaml name jsonpath=" ;;
    "autoscale -n" | "autoscale --namespace") values="@namespaces" ;;
    "autoscale --kubeconfig") values="@file" ;;
    "set deployment-hook --failure-policy") values="abort retry ignore" ;;
    "set deployment-hook -f" | "set deployment-hook --filename") values="@file" ;;
    "set deployment-hook --dry-run") values="client server none" ;;
    "set deployment-hook -o" | "set deployment-hook --output") values="json yaml name jsonpath=" ;;
    "set deployment-hook -n" | "set deployment-hook --namespace") values="@namespaces" ;;
    "set deployment-hook --kubeconfig") values="@file" ;;
    "set env --overwrite") values="true false" ;;
    "set env -f" | "set env --filename") values="@file" ;;
    "set env --dry-run") values="client server none" ;;
    "set env -o" | "set env --output") values="json yaml name jsonpath=" ;;
    "set env -n" | "set env --namespace") values="@namespaces" ;;
    "set env --kubeconfig") values="@file" ;;
    "set image -f" | "set image --filename") values="@file" ;;
    "set image --dry-run") values="client server none" ;;
    "set image -o" | "set image --output") values="json yaml name jsonpath=" ;;
    "set image -n" | "set image --namespace") values="@namespaces" ;;
    "set image --kubeconfig") values="@file" ;;
    "set probe -f" | "set probe --filename") values="@file" ;;
    "set probe --dry-run") values="client server none" ;;
    "set probe -o" | "set probe --output") values="json yaml name jsonpath=" ;;
    "set probe -n" | "set probe --namespace") values="@namespaces" ;;
    "set probe --kubeconfig") values="@file" ;;
    "set resources -f" | "set resources --filename") values="@file" ;;
    "set resources --dry-run") values="client server none" ;;
    "set resources -o" | "set resources --output") values="json yaml name jsonpath=" ;;
    "set resources -n" | "set resources --namespace") values="@namespaces" ;;
    "set resources --kubeconfig") values="@file" ;;
    "set selector -f" | "set selector --filename") values="@file" ;;
    "set selector --dry-run") values="client server none" ;;
    "set selector -o" | "set selector --output") values="json yaml name jsonpath=" ;;
    "set selector -n" | "set selector --namespace") values="@namespaces" ;;
    "set selector --kubeconfig") values="@file" ;;
    "set triggers -f" | "set triggers --filename") values="@file" ;;
    "set triggers --dry-run") values="client server none" ;;
    "set triggers -o" | "set triggers --output") values="json yaml name jsonpath=" ;;
    "set triggers -n" | "set triggers --namespace") values="@namespaces" ;;
    "set triggers --kubeconfig") values="@file" ;;
    "set serviceaccount -f" | "set serviceaccount --filename") values="@file" ;;
    "set serviceaccount --dry-run") values="client server none" ;;
    "set serviceaccount -o" | "set serviceaccount --output") values="json yaml name jsonpath=" ;;
    "set serviceaccount -n" | "set serviceaccount --namespace") values="@namespaces" ;;
    "set serviceaccount --kubeconfig") values="@file" ;;
    "set volumes -t" | "set volumes --type") values="emptyDir persistentVolumeClaim secret configMap hostPath" ;;
    "set volumes --claim-mode") values="rwo rox rwx" ;;
    "set volumes -f" | "set volumes --filename") values="@file" ;;
    "set volumes --dry-run") values="client server none" ;;
    "set volumes -o" | "set volumes --output") values="json yaml name jsonpath=" ;;
    "set volumes -n" | "set volumes --namespace") values="@namespaces" ;;
    "set volumes --kubeconfig") values="@file" ;;
    "idle -n" | "idle --namespace") values="@namespaces" ;;
    "idle --kubeconfig") values="@file" ;;
    "adm clear-route-status -n" | "adm clear-route-status --namespace") values="@namespaces" ;;
    "adm clear-route-status --kubeconfig") values="@file" ;;
    "adm config --kind") values="MasterConfig NodeConfig KubeletConfiguration" ;;
    "adm config -o" | "adm config --output-dir") values="@file" ;;
    "adm cordon -n" | "adm cordon --namespace") values="@namespaces" ;;
    "adm cordon --kubeconfig") values="@file" ;;
    "adm create-master-certs -c" | "adm create-master-certs --config") values="@file" ;;
    "adm create-master-certs --dir") values="@file" ;;
    "adm drain -n" | "adm drain --namespace") values="@namespaces" ;;
    "adm drain --kubeconfig") values="@file" ;;
    "adm groups --sync-config") values="@file" ;;
    "adm groups --type") values="ldap openshift" ;;
    "adm groups --whitelist") values="@file" ;;
    "adm groups --blacklist") values="@file" ;;
    "adm groups -n" | "adm groups --namespace") values="@namespaces" ;;
    "adm groups --kubeconfig") values="@file" ;;
    "adm import -f" | "adm import --filename") values="@file" ;;
    "adm import --from-kubeconfig") values="@file" ;;
    "adm import -n" | "adm import --namespace") values="@namespaces" ;;
    "adm import --kubeconfig") values="@file" ;;
    "adm manage-node -n" | "adm manage-node --namespace") values="@namespaces" ;;
    "adm manage-node --kubeconfig") values="@file" ;;
    "adm new-project -n" | "adm new-project --namespace") values="@namespaces" ;;
    "adm new-project --kubeconfig") values="@file" ;;
    "adm pod-network --to") values="@namespaces" ;;
    "adm pod-network -n" | "adm pod-network --namespace") values="@namespaces" ;;
    "adm pod-network --kubeconfig") values="@file" ;;
    "adm policy --role-namespace") values="@namespaces" ;;
    "adm policy -f" | "adm policy --filename") values="@file" ;;
    "adm policy -n" | "adm policy --namespace") values="@namespaces" ;;
    "adm policy --kubeconfig") values="@file" ;;
    "adm prometheus-targets -o" | "adm prometheus-targets --output") values="@file" ;;
    "adm prometheus-targets -n" | "adm prometheus-targets --namespace") values="@namespaces" ;;
    "adm prometheus-targets --kubeconfig") values="@file" ;;
    "adm storage -n" | "adm storage --namespace") values="@namespaces" ;;
    "adm storage --kubeconfig") values="@file" ;;
    "adm uncordon -n" | "adm uncordon --namespace") values="@namespaces" ;;
    "adm uncordon --kubeconfig") values="@file" ;;
    "token --uses") values="one many" ;;
    "token --write-kubeconfig") values="@file" ;;
    "token -n" | "token --namespace") values="@namespaces" ;;
    "token --kubeconfig") values="@file" ;;
    "trace --socket") values="@file" ;;
    "trace --kubeconfig") values="@file" ;;
    "trace -o" | "trace --output") values="json" ;;
    "flows -n" | "flows --namespace") values="@namespaces" ;;
    "flows --socket") values="@file" ;;
    "flows --kubeconfig") values="@file" ;;
    "flows -o" | "flows --output") values="json" ;;
    "check --socket") values="@file" ;;
    "check --kubeconfig") values="@file" ;;
    "check -o" | "check --output") values="json" ;;
    "dns --resolv-conf") values="@file" ;;
    "dns --kubeconfig") values="@file" ;;
    "deployer -n" | "deployer --namespace") values="@namespaces" ;;
    "deployer --until") values="start pre mid 0% 50% 100%" ;;
    "deployer --kubeconfig") values="@file" ;;
    "login --certificate-authority") values="@file" ;;
    "login -n" | "login --namespace") values="@namespaces" ;;
    "login --kubeconfig") values="@file" ;;
    "logout -n" | "logout --namespace") values="@namespaces" ;;
    "logout --kubeconfig") values="@file" ;;
    "whoami -n" | "whoami --namespace") values="@namespaces" ;;
    "whoami --kubeconfig") values="@file" ;;
    "project -n" | "project --namespace") values="@namespaces" ;;
    "project --kubeconfig") values="@file" ;;
    "projects -n" | "projects --namespace") values="@namespaces" ;;
    "projects --kubeconfig") values="@file" ;;
    "new-project -n" | "new-project --namespace") values="@namespaces" ;;
    "new-project --kubeconfig") values="@file" ;;
    "can -n" | "can --namespace") values="@namespaces" ;;
    "can --kubeconfig") values="@file" ;;
    "policy can-i -n" | "policy can-i --namespace") values="@namespaces" ;;
    "policy can-i --kubeconfig") values="@file" ;;
    "sa -n" | "sa --namespace") values="@namespaces" ;;
    "sa --kubeconfig") values="@file" ;;
    "secrets --for") values="pull mount pull,mount" ;;
    "secrets --ssh-privatekey") values="@file" ;;
    "secrets --ca-cert") values="@file" ;;
    "secrets --gitconfig") values="@file" ;;
    "secrets -n" | "secrets --namespace") values="@namespaces" ;;
    "secrets --kubeconfig") values="@file" ;;
    "scc why -f" | "scc why --filename") values="@file" ;;
    "scc why -n" | "scc why --namespace") values="@namespaces" ;;
    "scc why --kubeconfig") values="@file" ;;
    "scc list -n" | "scc list --namespace") values="@namespaces" ;;
    "scc list --kubeconfig") values="@file" ;;
    "export -o" | "export --output") values="yaml json" ;;
    "export -n" | "export --namespace") values="@namespaces" ;;
    "export --kubeconfig") values="@file" ;;
    esac
    if [[ -n $values ]]; then
        _tenet_expand "$values"
        return
    fi
    case $command in
    help) words="master apiserver controllers node kubelet csi-controller router lab setup collect store get create process delete describe edit patch label annotate wait logs status run expose rollout rollback deploy scale autoscale set idle adm token trace flows check dns deployer login logout whoami project projects new-project can policy sa secrets scc export help" ;;
    "master")
        words=""
        options=" --config --cluster-network --service-network --external-ip-network --ingress-ip-network --foreign-pod-network --reserved-address --plugin --vxlan-port --mtu --service-node-port-range --scheduler-config --scheduler --workloads --deployer-image --deploy-in-process --local-storage-class --volume-snapshots --node-monitor-grace --terminated-pod-gc-threshold --master-node --bind-address --tls --pki-dir --tls-cert-file --tls-key-file --client-ca-file --tls-min-version --tls-cipher-suites --cors-allowed-origins --kubelet-certificate-authority --kubelet-client-certificate --kubelet-client-key --authorization-mode --anonymous-auth --default-node-selector --uid-allocator-range --mcs-allocator-range --mcs-labels-per-project --routing-subdomain --node-selector-label-blacklist --disable-admission-plugins --service-account-signing-key-file --audit-log-path --audit-policy-file --storage-backend --storage-path --encryption-provider-config --storage-endpoints --etcd-ca-file --etcd-cert-file --etcd-key-file --cluster-signing-cert-file --cluster-signing-key-file --status-bind-address --controller-lease-ttl --dns-bind-address --dns-isolate-projects --master --public-master --listen --etcd --etcd-dir --dns --network-cidr --network-plugin --portal-net --images --limit --log-format --log-level --help"
        ;;
    "apiserver")
        words=""
        options=" --config --cluster-network --service-network --external-ip-network --ingress-ip-network --foreign-pod-network --reserved-address --plugin --vxlan-port --mtu --service-node-port-range --master-node --bind-address --tls --pki-dir --tls-cert-file --tls-key-file --client-ca-file --tls-min-version --tls-cipher-suites --cors-allowed-origins --kubelet-certificate-authority --kubelet-client-certificate --kubelet-client-key --authorization-mode --anonymous-auth --default-node-selector --uid-allocator-range --mcs-allocator-range --mcs-labels-per-project --routing-subdomain --node-selector-label-blacklist --disable-admission-plugins --service-account-signing-key-file --audit-log-path --audit-policy-file --storage-backend --storage-path --encryption-provider-config --storage-endpoints --etcd-ca-file --etcd-cert-file --etcd-key-file --dns-bind-address --dns-isolate-projects --master --public-master --listen --etcd --etcd-dir --dns --network-cidr --network-plugin --portal-net --images --limit --log-format --log-level --help"
        ;;
    "controllers")
        words=""
        options=" --config --kubeconfig --network-only --cluster-network --service-network --external-ip-network --ingress-ip-network --foreign-pod-network --reserved-address --plugin --vxlan-port --mtu --service-node-port-range --scheduler-config --scheduler --workloads --deployer-image --deploy-in-process --local-storage-class --volume-snapshots --node-monitor-grace --terminated-pod-gc-threshold --master-node --default-node-selector --cluster-signing-cert-file --cluster-signing-key-file --status-bind-address --controller-lease-ttl --network-cidr --network-plugin --portal-net --log-format --log-level --help"
        ;;
    "node")
        words="flows maps"
        options=" --config --make-mounts --kubeconfig --node-name --node-ip --master-kubeconfig --master-servers --bootstrap-kubeconfig --plugin --mtu --block-metadata --datapath --run-dir --cni-conf-dir --cni-conf-name --cni-plugins --ebpf-without --ebpf-max-entries --hostgw-subnet-file --ovs-database --ovs-run-dir --ovs-bridge --ovs-datapath-type --proxy-mode --metrics-bind-address --hostname --network-plugin --log-format --log-level --dns-domain --dns-bind-address --dns-ip --dns-nameservers --dns-resolv-conf --dns-isolate-projects --help"
        ;;
    "node flows")
        words=""
        options=" --node --used --drops --lab --socket --kubeconfig --server --output --help"
        ;;
    "node maps")
        words="pods ports routes vteps services backends serving settings affinity conns refusals drops policy classes blocks pairs port_sets tracked shares fragments"
        options=" --node --lab --socket --kubeconfig --server --output --help"
        ;;
    "kubelet")
        words=""
        options=" --config --kubeconfig --node-name --node-ip --master-kubeconfig --master-servers --runtime --container-runtime-endpoint --root-dir --pod-logs-dir --server-address --healthz-address --tls-cert-file --tls-private-key-file --cluster-dns --cluster-domain --resolv-conf --cgroup-driver --cgroup-root --seccomp-dir --local-volumes-margin --recycle-path-prefixes --allowed-unsafe-sysctls --max-pods --max-parallel-image-pulls --container-log-max-size --container-log-max-files --pod-max-pids --kube-reserved --system-reserved --eviction-hard --eviction-soft --eviction-soft-grace-period --eviction-minimum-reclaim --eviction-pressure-transition-period --eviction-max-pod-grace-period --shutdown-grace-period --shutdown-grace-period-critical-pods --image-gc-high-threshold --image-gc-low-threshold --minimum-image-ttl-duration --pod-infra-container-image --register-node --node-lease --pod-manifest-path --file-check-frequency --manifest-url --manifest-url-header --http-check-frequency --hostname --volume-dir --log-format --log-level --help"
        ;;
    "csi-controller")
        words=""
        options=" --csi-address --kubeconfig --log-level --help"
        ;;
    "router")
        words=""
        options=" --kubeconfig --log-level --listen-address --http-port --https-port --stats-address --dir --haproxy --name --canonical-hostname --update-status --route-labels --namespace-labels --project-labels --namespace --allowed-domains --denied-domains --hostname-template --override-hostname --override-domains --allow-wildcard-routes --disable-namespace-ownership-check --default-certificate --default-destination-ca --load-balance-algorithm --tcp-balance-scheme --cookie-name --ciphers --strict-sni --http2 --proxy-protocol --max-connections --threads --compression --compression-mime --errorfile-503 --syslog-address --syslog-level --access-log-format --bind-ports-after-sync --connect-timeout --client-timeout --client-fin-timeout --server-timeout --server-fin-timeout --tunnel-timeout --slowloris-timeout --keepalive-timeout --check-interval --hard-stop-after --reload-interval --shutdown-timeout --help"
        ;;
    "lab")
        words="up down status project pod exec node ovs master"
        options=" --name --output --node --label --port --no-service-links --nodes --masters --plugin --store --datapath --datapath-type --cluster-network --host-subnet-length --mtu --vxlan-port --no-containers --tls --oauth --keep --help"
        ;;
    "setup")
        words="check master node remove"
        options=" --help"
        ;;
    "setup check")
        words="master node"
        options=" --address --port --etcd --datapath --help"
        ;;
    "setup master")
        words=""
        options=" --address --port --name --cluster-network --service-network --plugin --mtu --etcd --dns --set --ignore-checks --no-start --prefix --help"
        ;;
    "setup node")
        words=""
        options=" --join --address --node-name --datapath --kubelet --set --ignore-checks --no-start --prefix --help"
        ;;
    "setup remove")
        words="master node"
        options=" --purge --force --prefix --help"
        ;;
    "collect")
        words=""
        options=" --output --kubeconfig --no-objects --log-lines --run-dir --prefix --help"
        ;;
    "store")
        words="export import backup restore check repair release defrag @file"
        options=" --config --force --min-revision --storage-backend --storage-path --encryption-provider-config --storage-endpoints --etcd-ca-file --etcd-cert-file --etcd-key-file --help"
        ;;
    "get")
        words="@kinds"
        options=" --output --all-namespaces --selector --field-selector --watch --watch-only --no-headers --show-labels --ignore-not-found --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "create")
        words="namespace project deployment deploymentconfig job cronjob route token"
        options=" --filename --output --dry-run --image --replicas --port --schedule --restart --from --service --hostname --path --cert --key --ca-cert --dest-ca-cert --insecure-policy --wildcard-policy --duration --audience --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "process")
        words=""
        options=" --filename --param --param-file --labels --output --raw --parameters --ignore-unknown-parameters --local --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "delete")
        words="@kinds"
        options=" --filename --selector --field-selector --all --all-namespaces --ignore-not-found --grace-period --now --force --cascade --wait --timeout --output --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "describe")
        words="@kinds"
        options=" --selector --all-namespaces --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "edit")
        words="@kinds"
        options=" --filename --selector --all --dry-run --output --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "patch")
        words="@kinds"
        options=" --patch --patch-file --type --subresource --filename --selector --all --dry-run --output --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "label")
        words="@kinds"
        options=" --overwrite --list --resource-version --filename --selector --all --dry-run --output --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "annotate")
        words="@kinds"
        options=" --overwrite --list --resource-version --filename --selector --all --dry-run --output --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "wait")
        words="@kinds"
        options=" --for --timeout --all-namespaces --filename --selector --all --dry-run --output --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "logs")
        words="@kinds"
        options=" --container --follow --previous --selector --all-containers --prefix --tail --since --since-time --timestamps --limit-bytes --version --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "status")
        words=""
        options=" --suggest --problems --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "run")
        words=""
        options=" --image --env --port --labels --restart --command --dry-run --output --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "expose")
        words="@kinds"
        options=" --port --target-port --protocol --name --type --selector --labels --cluster-ip --external-ip --session-affinity --hostname --path --wildcard-policy --dry-run --output --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "rollout")
        words="cancel history latest pause restart resume retry status undo"
        options=" --help"
        ;;
    "rollout cancel")
        words=""
        options=" --filename --selector --all --dry-run --output --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "rollout history")
        words="@kinds"
        options=" --revision --filename --selector --all --dry-run --output --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "rollout latest")
        words=""
        options=" --again --filename --selector --all --dry-run --output --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "rollout pause")
        words="@kinds"
        options=" --filename --selector --all --dry-run --output --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "rollout restart")
        words="@kinds"
        options=" --filename --selector --all --dry-run --output --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "rollout resume")
        words="@kinds"
        options=" --filename --selector --all --dry-run --output --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "rollout retry")
        words=""
        options=" --filename --selector --all --dry-run --output --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "rollout status")
        words="@kinds"
        options=" --watch --revision --timeout --filename --selector --all --dry-run --output --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "rollout undo")
        words="@kinds"
        options=" --to-revision --filename --selector --all --dry-run --output --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "rollback")
        words=""
        options=" --to-version --change-triggers --change-strategy --change-scaling-settings --filename --selector --all --dry-run --output --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "deploy")
        words=""
        options=" --latest --retry --cancel --enable-triggers --filename --selector --all --dry-run --output --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "scale")
        words="@kinds"
        options=" --replicas --current-replicas --resource-version --timeout --filename --selector --all --dry-run --output --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "autoscale")
        words="@kinds"
        options=" --min --max --cpu-percent --name --filename --selector --all --dry-run --output --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "set")
        words="deployment-hook env image probe resources selector triggers serviceaccount volumes"
        options=" --help"
        ;;
    "set deployment-hook")
        words=""
        options=" --pre --mid --post --remove --container --environment --volumes --failure-policy --filename --selector --all --dry-run --output --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "set env")
        words="@kinds"
        options=" --containers --env --list --from --prefix --keys --overwrite --filename --selector --all --dry-run --output --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "set image")
        words="@kinds"
        options=" --filename --selector --all --dry-run --output --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "set probe")
        words="@kinds"
        options=" --containers --liveness --readiness --startup --remove --get-url --open-tcp --initial-delay-seconds --timeout-seconds --period-seconds --success-threshold --failure-threshold --filename --selector --all --dry-run --output --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "set resources")
        words="@kinds"
        options=" --containers --limits --requests --filename --selector --all --dry-run --output --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "set selector")
        words="@kinds"
        options=" --filename --selector --all --dry-run --output --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "set triggers")
        words="@kinds"
        options=" --from-config --from-image --containers --auto --manual --remove --remove-all --filename --selector --all --dry-run --output --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "set serviceaccount")
        words="@kinds"
        options=" --filename --selector --all --dry-run --output --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "set volumes")
        words="@kinds"
        options=" --add --remove --name --type --mount-path --sub-path --read-only --containers --claim-name --claim-size --claim-mode --claim-class --secret-name --configmap-name --path --overwrite --confirm --filename --selector --all --dry-run --output --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "idle")
        words="@services"
        options=" --selector --all --dry-run --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "adm")
        words="clear-route-status config cordon create-master-certs drain groups import manage-node new-project pod-network policy prometheus-targets storage uncordon"
        options=" --help"
        ;;
    "adm clear-route-status")
        words=""
        options=" --all --all-namespaces --router --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "adm config")
        words="check convert"
        options=" --kind --output-dir --help"
        ;;
    "adm cordon")
        words="@nodes"
        options=" --selector --dry-run --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "adm create-master-certs")
        words=""
        options=" --config --dir --quiet --help"
        ;;
    "adm drain")
        words="@nodes"
        options=" --selector --dry-run --pod-selector --grace-period --force --timeout --ignore-daemonsets --delete-emptydir-data --disable-eviction --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "adm groups")
        words="new add-users remove-users sync prune"
        options=" --sync-config --type --whitelist --blacklist --confirm --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "adm import")
        words="openshift-sdn"
        options=" --filename --from-kubeconfig --dry-run --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "adm manage-node")
        words="@nodes"
        options=" --selector --dry-run --pod-selector --grace-period --force --timeout --schedulable --evacuate --list-pods --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "adm new-project")
        words=""
        options=" --admin --admin-role --node-selector --display-name --description --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "adm pod-network")
        words="join-projects isolate-projects make-projects-global @namespaces"
        options=" --to --selector --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "adm policy")
        words="add-role-to-user add-role-to-group remove-role-from-user remove-role-from-group add-cluster-role-to-user add-cluster-role-to-group remove-cluster-role-from-user remove-cluster-role-from-group add-scc-to-user add-scc-to-group remove-scc-from-user remove-scc-from-group scc-subject-review scc-review who-can reconcile-cluster-roles reconcile-cluster-role-bindings reconcile-sccs"
        options=" --role-namespace --rolebinding-name --filename --user --groups --serviceaccount --all-namespaces --subresource --confirm --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "adm prometheus-targets")
        words=""
        options=" --output --node-port --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "adm storage")
        words=""
        options=" --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "adm uncordon")
        words="@nodes"
        options=" --selector --dry-run --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "token")
        words="create list delete own revoke"
        options=" --print-join-command --ttl --node --uses --description --all --write-kubeconfig --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "trace")
        words="icmp tcp udp sctp @nodes"
        options=" --lab --socket --kubeconfig --server --output --help"
        ;;
    "flows")
        words=""
        options=" --watch --for --namespace --dropped --node --lab --socket --kubeconfig --server --output --help"
        ;;
    "check")
        words=""
        options=" --outside --dns --lab --socket --kubeconfig --server --output --help"
        ;;
    "dns")
        words=""
        options=" --listen --domain --nameservers --resolv-conf --networks --allow-recursion --threads --metrics-bind-address --kubeconfig --server --help"
        ;;
    "deployer")
        words=""
        options=" --deployment --namespace --until --kubeconfig --server --help"
        ;;
    "login")
        words=""
        options=" --username --password --token --web --callback-port --certificate-authority --insecure-skip-tls-verify --namespace --kubeconfig --server --help"
        ;;
    "logout")
        words=""
        options=" --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "whoami")
        words=""
        options=" --show-context --show-console --show-server --show-token --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "project")
        words="@projects"
        options=" --short --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "projects")
        words=""
        options=" --short --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "new-project")
        words=""
        options=" --display-name --description --skip-config-write --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "can")
        words="get list watch create update patch delete @kinds"
        options=" --why --list --quiet --subresource --all-namespaces --user --groups --scopes --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "policy")
        words="can-i"
        options=" --help"
        ;;
    "policy can-i")
        words=""
        options=" --why --list --quiet --subresource --all-namespaces --user --groups --scopes --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "sa")
        words="get-token new-token create-kubeconfig @serviceaccounts"
        options=" --duration --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "secrets")
        words="link unlink new new-dockercfg new-basicauth new-sshauth"
        options=" --for --type --docker-server --docker-username --docker-password --docker-email --username --password --prompt --ssh-privatekey --ca-cert --gitconfig --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "scc")
        words="why list"
        options=" --help"
        ;;
    "scc why")
        words="@kinds"
        options=" --filename --user --groups --serviceaccount --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "scc list")
        words=""
        options=" --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    "export")
        words="@kinds"
        options=" --output --selector --as-template --raw --namespace --kubeconfig --server --context --token --as --as-group --loglevel --help"
        ;;
    esac
    if [[ $cur == -* || -z $words ]]; then
        words=$options
    fi
    _tenet_expand "$words"
}
complete -F _tenet tenet
