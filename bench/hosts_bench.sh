#!/usr/bin/env bash
# Makes three hosts of this machine and measures between them. Called by scripts/bench: BIN JSON [--quick].
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "$here/../tests/integration/hosts/hosts.sh"
bin="$1"
json="$2"
shift 2

hosts_up 3
mkdir "$hosts_dir/bench"
names="$(IFS=, && printf '%s' "${hosts[*]}")"
"$bin/comm_hosts_bench" --bin "$bin" --scratch "$hosts_dir/bench" --on-host "$hosts_dir/on-host" \
  --set-rate "$hosts_dir/set-rate" --ssh "$KOLO_SSH" --hosts "$names" ${json:+--json "$json"} "$@"
