#!/usr/bin/env bash
# A cluster that speaks TiKV's protocol, on this machine: a placement driver and storage nodes. README.md says what it consists of.
#   cluster.sh build              builds both programs into $CLUSTER_HOME/bin; about 3 minutes each on one core
#   cluster.sh start [N]          removes the data of an earlier one, starts the driver on 127.0.0.1:23790 and N nodes (3) on 127.0.0.1:20161 and up
#   cluster.sh kill I | up I      kills node I; starts it again on its data
#   cluster.sh pause I | resume I stops node I without ending it; lets it go on
#   cluster.sh pd-kill | pd-up    the same for the placement driver
#   cluster.sh restart            kills all nodes and the driver, and starts them again on their data
#   cluster.sh leader             prints which node leads the region where the keys of Slate begin
#   cluster.sh cut I | mend I     cuts node I (or pd) off from all others, if PROXY or DELAY is set; ends that
#   cluster.sh trouble S          for S seconds kills, pauses or cuts off a node, or kills the driver or all, one after the other, and brings each back
#   cluster.sh exits              prints the reason of each node that has ended by itself since the start; fails if one has
#   cluster.sh stop               stops all that this script has started
#   cluster.sh with COMMAND …     builds what is missing, starts a cluster, runs the command with SLATE_TIKV=127.0.0.1:23790, and stops it
# CLUSTER_HOME has programs, data and logs: target/tikv-cluster by default; CLUSTER_DATA data and logs, if they are to be elsewhere.
# SPLIT (keys) and RSZ (bytes) let regions split early. PROXY=1 puts a proxy before each node and the driver, DELAY=1ms makes every round
# trip through them longer by that time. TLS=1 lets them accept TLS, with certificates that it makes in $CLUSTER_DATA/tls.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
home=${CLUSTER_HOME:-${CARGO_TARGET_DIR:-$here/../target}/tikv-cluster}
mkdir -p "$home/bin" "${CLUSTER_DATA:=$home/data}"
home=$(cd "$home" && pwd)
bin=$home/bin data=$(cd "$CLUSTER_DATA" && pwd)
driver=127.0.0.1:23790
[ -z "${DELAY:-}${TLS:-}" ] || PROXY=1

have_go() {
    command -v go >/dev/null && return
    echo "skipped: the cluster of TiKV's protocol is built with Go, which is missing" >&2
    return 1
}
build() {
    [ -x "$bin/pd-server" ] || (cd "$here/pd" && go build -tags without_dashboard -o "$bin/pd-server" github.com/tikv/pd/cmd/pd-server)
    [ "$bin/proxy" -nt "$here/proxy/main.go" ] || (cd "$here/proxy" && go build -o "$bin/proxy" .)
    local source
    for source in "$here/cluster.sh" "$here/node/main.go" "$here"/unistore/*.go; do
        if ! [ "$bin/node" -nt "$source" ]; then
            build_node
            break
        fi
    done
}
build_node() {
    # Copies with four faults mended, of which each let a snapshot show what was committed after it, or hid what it should show:
    # - unistore's commits in one phase change snapshots with later timestamps that were read before: unistore/one_phase.go lets these reads wait.
    # - unistore opens the iterator of a reverse scan before it sets its timestamp: the two lines change places.
    # - badger, the tree beneath it, finds keys of a file on disk by their hash. Where two keys share a slot it searches, and returns the
    #   latest version instead of that of the timestamp.
    # - badger's builder of files takes offset 0 for "no older versions", which the first key of a second file has.
    own_copy github.com/ngaut/unistore unistore
    sed -i '/) ReverseScan(/,/^}/{/iter := r.getReverseIter()/d;s/^\tr.txn.SetReadTS(startTS)$/&\n\titer := r.getReverseIter()/}' \
        "$home/unistore/tikv/dbreader/db_reader.go"
    cp "$here/unistore/one_phase.go" "$home/unistore/tikv/"
    sed -i -e '/) prewriteMutations(/,/^}/s/^\tvar minCommitTS uint64$/&\n\tif req.TryOnePc {\n\t\tdefer beginOnePhase(mutations)()\n\t}/' \
        -e '/) CheckKeysLock(/,/^}/s/^\tvar buf \[\]byte$/&\n\tawaitOnePhaseOf(keys)/' \
        -e '/) collectRangeLock(/,/^}/s/^\tvar pairs \[\]\*kvrpcpb.KvPair$/&\n\tawaitOnePhaseIn(startKey, endKey)/' "$home/unistore/tikv/mvcc.go"
    [ "$(grep -c OnePhase "$home/unistore/tikv/mvcc.go")" = 3 ]
    # Regions split early: unistore does not split the first one, and the others only when they have grown by 12 MiB, into ten at a time.
    cp "$here/unistore/first_region.go" "$home/unistore/tikv/raftstore/"
    sed -i 's/_, startKey, err := codec.DecodeBytes(region.StartKey, nil)/startKey, err := firstKey(region.StartKey)/' \
        "$home/unistore/tikv/raftstore/worker.go"
    sed -i 's|\(RegionSplitCheckDiff: *\)splitSize / 8,|\164 * KB,|' "$home/unistore/tikv/raftstore/config.go"
    sed -i 's/^\(\tbatchSplitLimit uint64 =\) 10$/\1 100/' "$home/unistore/tikv/raftstore/config.go"
    sed -i '/) PostSplit()/,/^}/s/p.SizeDiffHint = 0/p.SizeDiffHint = MB/' "$home/unistore/tikv/raftstore/peer.go"
    grep -q 'firstKey(' "$home/unistore/tikv/raftstore/worker.go"
    grep -q 'RegionSplitCheckDiff: *64 \* KB' "$home/unistore/tikv/raftstore/config.go"
    own_copy github.com/pingcap/badger badger
    sed -i '/^func (t \*Table) Get(/,/^}/s/^\t\tresultKey, resultVs = it.Key(), it.Value()$/\t\tif !y.SeekToVersion(it, key.Version) {\n\t\t\treturn y.ValueStruct{}, nil\n\t\t}\n&/' \
        "$home/badger/table/sstable/table.go"
    sed -i '/^func (b \*Builder) resetBuffers/,/^}/s/b.oldBlock = b.oldBlock\[:0\]/b.oldBlock = append(b.oldBlock[:0], 0)/' \
        "$home/badger/table/sstable/builder.go"
    cp "$here/node/go.mod" "$home/node.mod"
    cp "$here/node/go.sum" "$home/node.sum"
    go mod edit -replace "github.com/ngaut/unistore=$home/unistore" -replace "github.com/pingcap/badger=$home/badger" "$home/node.mod"
    (cd "$here/node" && go build -modfile "$home/node.mod" -ldflags=-checklinkname=0 -o "$bin/node" .)
}
own_copy() { # a module and the folder of its copy
    local source
    source=$(cd "$here/node" && go mod download "$1" && go list -m -f '{{.Dir}}' "$1")
    rm -rf "${home:?}/$2"
    cp -r "$source" "$home/$2"
    chmod -R u+w "$home/$2"
    [ -f "$home/$2/go.mod" ] || echo "module $1" >"$home/$2/go.mod"
}
wait_for() { # a condition, up to 60 seconds
    for _ in $(seq 300); do
        "$@" >/dev/null 2>&1 && return
        sleep 0.2
    done
    echo "the cluster does not start; its logs are in $data" >&2
    return 1
}
has_stores() { [ "$(curl -sf "http://$driver/pd/api/v1/stores" | grep -c '"state_name": "Up"')" -ge "$1" ]; }
# proxied NAME ADDRESS BEHIND: the address to listen on, and a proxy on the other one if there are to be proxies
proxied() {
    if [ -z "${PROXY:-}" ]; then
        echo "$2"
        return
    fi
    if ! [ -f "$data/proxy-$1.pid" ]; then
        nohup "$bin/proxy" -listen "$2" -to "$3" -delay "${DELAY:-0}" ${TLS:+-tls "$data/tls"} >>"$data/proxy-$1.out" 2>&1 &
        echo $! >"$data/proxy-$1.pid"
    fi
    echo "$3"
}
certify() { # an authority, and certificates of it for the proxies and for clients
    local new=(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes) name
    mkdir "$data/tls" && cd "$data/tls"
    openssl req -x509 "${new[@]}" -days 30 -subj /CN=authority -keyout ca.key -out ca.pem 2>/dev/null
    echo subjectAltName=IP:127.0.0.1 >extensions
    for name in server client; do
        openssl req "${new[@]}" -subj "/CN=$name" -keyout $name.key -out $name.csr 2>/dev/null
        openssl x509 -req -in $name.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -extfile extensions -out $name.pem 2>/dev/null
    done
}
start_pd() {
    local at
    at=$(proxied pd "$driver" 127.0.0.1:24790)
    nohup "$bin/pd-server" --name=pd --data-dir="$data/pd" --client-urls="http://$at" --advertise-client-urls="http://$driver" \
        --peer-urls=http://127.0.0.1:23800 \
        --config="$data/pd.toml" --log-file="$data/pd.log" >>"$data/pd.out" 2>&1 &
    echo $! >"$data/pd.pid"
    wait_for curl -sf "http://$driver/pd/api/v1/members"
}
start_node() { # with a limit of memory: the nodes have locks and recent values in memory
    local at
    at=$(proxied "$1" "127.0.0.1:2016$1" "127.0.0.1:2116$1")
    (
        ulimit -v 8000000
        GOMEMLIMIT=1500MiB exec nohup "$bin/node" -pd "$driver" -addr "127.0.0.1:2016$1" -listen "$at" -data-dir "$data/s$1" \
            -split-keys "${SPLIT:-960000}" -region-size "${RSZ:-67108864}" >>"$data/s$1.out" 2>&1
    ) &
    echo $! >"$data/s$1.pid"
}
ports_are_free() {
    if curl -sf --max-time 5 -o /dev/null "http://$driver/pd/api/v1/version"; then
        echo "a cluster is there already, at $driver; stop it first" >&2
        return 1
    fi
}
start() {
    rm -rf "$data"
    mkdir -p "$data"
    [ -z "${TLS:-}" ] || (certify)
    printf '[replication]\nmax-replicas = %s\n' "$1" >"$data/pd.toml"
    start_pd
    for i in $(seq "$1"); do
        start_node "$i"
        sleep 1
    done
    wait_for has_stores "$1"
    # A rule of the placement driver for TiKV's keyspaces, which the nodes do not know, keeps the first regions from being replicated.
    curl -sf -X DELETE "http://$driver/pd/api/v1/config/region-label/rule/keyspaces%2F0" >/dev/null || true
}
restart() { # a node can have ended by itself
    local file nodes=()
    for file in "$data"/s[0-9].pid; do
        file=${file##*/s}
        nodes+=("${file%.pid}")
    done
    for file in "$data"/s[0-9].pid "$data/pd.pid"; do
        kill -9 "$(cat "$file")" 2>/dev/null || true
    done
    start_pd
    for i in "${nodes[@]}"; do
        start_node "$i"
    done
    wait_for has_stores "${#nodes[@]}"
}
# The first number with this name in what the driver answers.
number_of() { curl -sf "http://$driver/pd/api/v1/$2" | sed -n "s/^ *\"$1\": *\"\{0,1\}\([0-9.:]*\).*/\1/p" | head -n 1; }
leader() { # the region's leader is a store, whose address ends with the number of the node
    local store address
    store=$(curl -sf "http://$driver/pd/api/v1/region/key/mslate" | tr -d ' \n' | sed -n 's/.*"leader":{[^}]*"store_id":\([0-9]*\).*/\1/p')
    [ -n "$store" ] || return 1
    address=$(number_of address "store/$store")
    echo "${address##*:2016}"
}
exits() { # what Go and unistore write when they end a process
    ! grep -HE -m 1 '^panic: |^fatal error: |\[(FATAL|PANIC)\]' "$data"/s[0-9].out
}
stop() {
    for file in "$data"/s*.pid "$data/pd.pid" "$data"/proxy-*.pid; do
        if [ -f "$file" ]; then
            kill -9 "$(cat "$file")" 2>/dev/null || true
            rm -f "$file"
        fi
    done
}
trouble() { # for how many seconds; a node can have ended by itself
    local end=$((SECONDS + $1)) i
    while [ $SECONDS -lt "$end" ]; do
        i=$((RANDOM % $(find "$data" -name 's[0-9].pid' | wc -l) + 1))
        case $((RANDOM % 9)) in
        0 | 1 | 2) "$0" kill $i || true; sleep 4; "$0" up $i ;;
        3 | 4) ! "$0" pause $i || { sleep 7; "$0" resume $i || true; } ;;
        5 | 6) ! "$0" cut $i || { sleep 7; "$0" mend $i; } ;;
        7) "$0" pd-kill; sleep 3; "$0" pd-up ;;
        8) "$0" restart ;;
        esac
        sleep 5
    done
}

case ${1:-} in
build) have_go && build ;;
start) ports_are_free && start "${2:-3}" ;;
up) start_node "$2" ;;
kill) kill -9 "$(cat "$data/s$2.pid")" ;;
pause) kill -STOP "$(cat "$data/s$2.pid")" ;;
resume) kill -CONT "$(cat "$data/s$2.pid")" ;;
cut) kill -STOP "$(cat "$data/proxy-$2.pid")" ;;
mend) kill -CONT "$(cat "$data/proxy-$2.pid")" ;;
trouble) trouble "$2" ;;
pd-up) start_pd ;;
restart) restart ;;
leader) wait_for leader && leader ;;
exits) exits ;;
pd-kill) kill -9 "$(cat "$data/pd.pid")" ;;
stop) stop ;;
with)
    shift
    have_go || exit "${REQUIRED:-0}"
    if ! "$here/cluster.sh" build; then
        echo "skipped: the programs of the cluster could not be built, perhaps because Go's module proxy is not reachable" >&2
        exit "${REQUIRED:-0}"
    fi
    ports_are_free
    trap stop EXIT
    start "${NODES:-3}"
    [ -z "${TLS:-}" ] || export SLATE_TIKV_TLS=$data/tls
    SLATE_TIKV=$driver SLATE_TIKV_CLUSTER=$here/cluster.sh CLUSTER_HOME=$home CLUSTER_DATA=$data "$@"
    ;;
*) sed -n '2,17p' "$0"; exit 2 ;;
esac
