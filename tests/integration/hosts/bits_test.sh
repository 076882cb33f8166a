#!/usr/bin/env bash
# Virtual ranks on three hosts have the weights of one rank, bit for bit: bits_test.sh KOLO RANK-PROGRAM [STEPS]
# Ends with 77 where hosts cannot be made.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/hosts.sh"

kolo="$1"
program="$2"
steps="${3:-${KOLO_TEST_STEPS:-30}}"

# bits TRANSPORT RANKS HOSTS: what rank 0 says of the weights after each step
bits() {
  run_on "${hosts[0]}" timeout 60 "$kolo" run -np "$2" -H "$3" --transport "$1" --virtual-ranks 8 "$program" \
    "$steps" 2>&1 </dev/null | sed 's/^\[0\]<stdout>://'
}

hosts_up 3
export OMP_NUM_THREADS=1
alone="$(bits auto 1 "${hosts[0]}")"
[[ "$(wc -l <<<"$alone")" == "$steps" ]] || {
  printf 'FAILED: one rank says: %s\n' "$alone" >&2
  exit 1
}
for transport in auto tcp; do
  for slots in 1:1:1 2:1:1 3:3:2; do
    IFS=: read -r a b c <<<"$slots"
    together="$(bits "$transport" "$((a + b + c))" "${hosts[0]}:$a,${hosts[1]}:$b,${hosts[2]}:$c")"
    [[ "$together" == "$alone" ]] || {
      printf 'FAILED: %s, ranks %s: not the weights of one rank\n' "$transport" "$slots" >&2
      diff <(printf '%s\n' "$alone") <(printf '%s\n' "$together") | head -n 10 >&2
      exit 1
    }
  done
done
printf 'passed: %s steps\n' "$steps"
