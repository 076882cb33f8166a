#!/usr/bin/env bash
# An elastic job over two hosts of which one is lost and comes back: elastic_test.sh KOLO PROGRAM
# Ends with 77 where hosts cannot be made.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/hosts.sh"
source "$(dirname "${BASH_SOURCE[0]}")/job_log.sh"

kolo="$1"
program="$2"

list() { printf '%s\n' "$@" >"$hosts_dir/list.new" && mv "$hosts_dir/list.new" "$hosts_dir/list"; }

hosts_up 2
log="$hosts_dir/log"
home="${hosts[0]}"
other="${hosts[1]}"
list "$home:1" "$other:1"
# A host that hears nothing for two seconds ends its workers.
export KOLO_HOST_LEASE=2 KOLO_SSH="$KOLO_SSH -o ServerAliveInterval=1 -o ServerAliveCountMax=2"
"$hosts_dir/on-host" "$home" "$kolo" run -np 2 --min-np 1 --host-discovery-script "cat $hosts_dir/list" \
  --blacklist-cooldown-range 1,2 "$program" --steps 100000 --pause-ms 10 \
  >"$log" 2>&1 </dev/null &
launcher=$!
until_said 20 'is rank 1 of 2'
zombie="$(sed -n 's/.*process \([0-9]*\) is rank 1 of 2 .*/\1/p' "$log" | head -n 1)"

# Cut off: the job goes on with one rank, and the worker over there ends.
cut_link "$other"
until_said 30 'is rank 0 of 1'
grep -q "host $other was lost" "$log" || bad "the job does not say that $other was lost"
_hosts_until 10 bash -c "! kill -0 $zombie 2>/dev/null" || bad 'a worker lives on a host that is cut off'
list "$home:1"

# Back again, by the list.
heal_link "$other"
list "$home:1" "$other:1"
until_said 30 'is rank 1 of 2' 2
if grep 'is rank 1 of 2 from step 0 on' "$log" | tail -n +2 | grep -q .; then bad 'the new rank did not get the state'; fi

# No longer listed: it leaves at the end of its step, which is no failure.
list "$home:1"
until_said 20 'is rank 0 of 1' 2
until_said 20 'has left at step [0-9]*, correct'
status=0
kill -TERM "$launcher"
wait "$launcher" || status=$?
((status == 143)) || bad "kolo run ended with $status"
(($(grep -c 'has left at step [0-9]*, correct' "$log") == 2)) || bad 'the ranks that left have no correct result'
printf 'passed\n'
