# SPDX-License-Identifier: Apache-2.0
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

_tenet() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local kinds="configmaps endpoints events namespaces nodes pods podtemplates secrets services serviceaccounts clusternetworks hostsubnets netnamespaces leases endpointslices projects customresourcedefinitions controllerrevisions priorityclasses runtimeclasses networkpolicies adminnetworkpolicies baselineadminnetworkpolicies roles clusterroles rolebindings clusterrolebindings certificatesigningrequests"
    local connect="--kubeconfig --server --namespace --help"
    local agents="--lab --socket --kubeconfig --server --help"
    local words=""
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W "master node lab store get create delete describe idle adm token trace flows check dns help --help --version" -- "$cur")
        return
    fi
    case $prev in
    -f | --filename | -c | --config | --kubeconfig | --master-kubeconfig | --storage-path | --etcd-ca-file | --etcd-cert-file | --etcd-key-file | --resolv-conf | --dns-resolv-conf)
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    -n | --namespace | --to)
        mapfile -t COMPREPLY < <(compgen -W "$(_tenet_names namespaces)" -- "$cur")
        return
        ;;
    -o | --output)
        mapfile -t COMPREPLY < <(compgen -W "wide json yaml name jsonpath= custom-columns=" -- "$cur")
        return
        ;;
    --plugin)
        mapfile -t COMPREPLY < <(compgen -W "redhat/openshift-ovs-subnet redhat/openshift-ovs-multitenant redhat/openshift-ovs-networkpolicy" -- "$cur")
        return
        ;;
    --proxy-mode)
        mapfile -t COMPREPLY < <(compgen -W "iptables nftables userspace" -- "$cur")
        return
        ;;
    --cni-plugins)
        mapfile -t COMPREPLY < <(compgen -W "portmap bandwidth portmap,bandwidth none" -- "$cur")
        return
        ;;
    --storage-backend | --store)
        mapfile -t COMPREPLY < <(compgen -W "sqlite etcd" -- "$cur")
        return
        ;;
    esac
    case ${COMP_WORDS[1]} in
    master)
        words="--config --cluster-network --service-network --service-node-port-range --external-ip-network --ingress-ip-network --foreign-pod-network --reserved-address --master-node --plugin --vxlan-port --mtu --bind-address --tls --pki-dir --tls-cert-file --tls-key-file --client-ca-file --authorization-mode --anonymous-auth --service-account-signing-key-file --audit-log-path --audit-policy-file --storage-backend --storage-path --storage-endpoints --etcd-ca-file --etcd-cert-file --etcd-key-file --controller-lease-ttl --dns-bind-address --dns-isolate-projects --controllers-only --kubeconfig --limit --log-level --help"
        ;;
    node)
        words="--config --make-mounts --node-name --node-ip --kubeconfig --master-kubeconfig --master-servers --bootstrap-kubeconfig --plugin --mtu --run-dir --cni-conf-dir --cni-conf-name --cni-plugins --datapath --ebpf-without --ebpf-max-entries --ovs-database --ovs-run-dir --ovs-bridge --ovs-datapath-type --proxy-mode --metrics-bind-address --dns-domain --dns-bind-address --dns-ip --dns-nameservers --dns-resolv-conf --dns-isolate-projects --log-level --help"
        if [[ ${COMP_WORDS[2]} == flows ]]; then
            words="--node --used --drops --output $agents"
        elif [[ ${COMP_WORDS[2]} == maps ]]; then
            words="pods ports routes vteps services backends serving settings affinity conns refusals drops policy classes blocks pairs port_sets tracked shares fragments --node --output $agents"
        elif ((COMP_CWORD == 2)); then
            words+=" flows maps"
        fi
        ;;
    lab)
        words="up down status project node pod exec ovs master --name --nodes --masters --plugin --store --tls --label --port --no-service-links --output --help"
        ;;
    token)
        words="create list delete --ttl --description --write-kubeconfig --kubeconfig --server --help"
        ;;
    store)
        words="export import backup restore check repair release hostsubnets netnamespaces defrag --config --storage-backend --storage-path --storage-endpoints --etcd-ca-file --etcd-cert-file --etcd-key-file --force --min-revision --help"
        if ((COMP_CWORD == 3)); then
            mapfile -t COMPREPLY < <(compgen -f -W "$words" -- "$cur")
            return
        fi
        ;;
    create)
        words="namespace project --filename --output --dry-run $connect"
        ;;
    get)
        words="--output --all-namespaces --selector --field-selector --watch --watch-only --no-headers --show-labels --ignore-not-found $connect"
        ;;
    delete)
        words="--filename --selector --field-selector --all --all-namespaces --ignore-not-found --grace-period --now --force --wait --timeout --output $connect"
        ;;
    describe)
        words="--selector --all-namespaces $connect"
        ;;
    idle)
        words="--selector --all --dry-run $connect"
        if [[ $cur != -* ]]; then
            words=$(_tenet_names services)
        fi
        ;;
    dns)
        words="--listen --domain --nameservers --resolv-conf --networks --allow-recursion --threads --metrics-bind-address --kubeconfig --server --help"
        ;;
    trace)
        words="--output $agents"
        if [[ $cur != -* ]]; then
            words="icmp tcp udp sctp $(_tenet_names nodes)"
        fi
        ;;
    flows)
        words="--watch --for --namespace --dropped --node --output $agents"
        ;;
    check)
        words="--outside --dns --output $agents"
        ;;
    adm)
        if ((COMP_CWORD == 2)); then
            words="pod-network --help"
        elif ((COMP_CWORD == 3)); then
            words="join-projects isolate-projects make-projects-global --help"
        elif [[ $cur == -* ]]; then
            words="--selector $connect"
            [[ ${COMP_WORDS[3]} == join-projects ]] && words="--to $words"
        else
            words=$(_tenet_names namespaces)
        fi
        ;;
    help)
        words="master node lab store get create delete describe idle adm token trace check"
        ;;
    esac
    case ${COMP_WORDS[1]} in
    get | delete | describe)
        if [[ $cur != -* ]]; then
            local kind
            kind=$(_tenet_kind)
            words=$kinds
            if [[ -n $kind ]]; then
                words=$(_tenet_names "$kind")
            fi
        fi
        ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -F _tenet tenet
