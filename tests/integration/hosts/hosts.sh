# Hosts for tests and benches: network namespaces of this machine that look like separate computers.
# Sourced, not run.
#
#   hosts_up 3            makes ${hosts[0]} … ${hosts[2]}, each with eth0 on one switch, its own host name and
#                         its own sshd; exports KOLO_SSH. Returns 77 (after saying why) where that is not permitted.
#   run_on HOST CMD…      runs a command there, as if logged in
#   hosts_rate RATE|off   limits what each host may send ("1gbit")
#   cut_link HOST         nothing goes in or out any more, and nobody is told (as a pulled cable)
#   heal_link HOST
#   pids_on HOST          processes whose network is that host's
#   hosts_down            ends all processes on the hosts, removes them; called at exit by itself
#
# Names, addresses, ports and files carry the process id of the caller, so that several runs at once do not meet.
# The root namespace gets no device, no address and no route.
# shellcheck shell=bash

hosts=()
hosts_dir=''
declare -A hosts_sshd=() # process id of each host's listening sshd

_hosts_say() { printf 'hosts: %s\n' "$*" >&2; }

# Is everything here that it takes? Says what is missing.
_hosts_possible() {
  local tool
  if ((EUID != 0)); then
    _hosts_say 'skipped: making network namespaces needs root'
    return 77
  fi
  for tool in ip tc nft ssh ssh-keygen unshare /usr/sbin/sshd; do
    if ! command -v "$tool" >/dev/null; then
      _hosts_say "skipped: $tool is not installed (packages iproute2, nftables, openssh-client, openssh-server)"
      return 77
    fi
  done
  if ! ip netns add "$_hosts_switch" 2>"$hosts_dir/why"; then
    _hosts_say "skipped: network namespaces are not permitted here: $(<"$hosts_dir/why")"
    return 77
  fi
  if ! ip -n "$_hosts_switch" link add br0 type bridge 2>"$hosts_dir/why"; then
    _hosts_say "skipped: virtual network devices are not permitted here: $(<"$hosts_dir/why")"
    return 77
  fi
}

hosts_up() {
  local count="$1" i name
  hosts_dir="$(mktemp -d "${TMPDIR:-/tmp}/kolo-hosts.XXXXXX")"
  _hosts_switch="kolo$$sw"
  trap hosts_down EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  _hosts_possible || return
  ip -n "$_hosts_switch" link set lo up
  ip -n "$_hosts_switch" link set br0 up
  # Each host's network is its own: runs that exist at the same time may use the same addresses.
  for ((i = 1; i <= count; i++)); do hosts+=("kolo$$h$i"); done
  for ((i = 1; i <= count; i++)); do
    name="${hosts[i - 1]}"
    ip netns add "$name"
    ip -n "$name" link add eth0 type veth peer name "v$i" netns "$_hosts_switch"
    ip -n "$_hosts_switch" link set "v$i" master br0 up
    ip -n "$name" addr add "10.77.0.$i/24" dev eth0
    ip -n "$name" link set lo up
    ip -n "$name" link set eth0 up
    mkdir -p "/etc/netns/$name"
    _hosts_file >"/etc/netns/$name/hosts"
  done
  _hosts_start_sshds
}

_hosts_file() {
  local i
  printf '127.0.0.1 localhost\n'
  for i in "${!hosts[@]}"; do printf '10.77.0.%d %s\n' "$((i + 1))" "${hosts[i]}"; done
}

_hosts_start_sshds() {
  local name
  mkdir -p /run/sshd
  ssh-keygen -q -t ed25519 -N '' -f "$hosts_dir/id"
  ssh-keygen -q -t ed25519 -N '' -f "$hosts_dir/hostkey"
  cp "$hosts_dir/id.pub" "$hosts_dir/authorized_keys"
  cat >"$hosts_dir/sshd_config" <<X
Port 2222
HostKey $hosts_dir/hostkey
AuthorizedKeysFile $hosts_dir/authorized_keys
PermitRootLogin prohibit-password
PasswordAuthentication no
StrictModes no
UsePAM no
PidFile none
SetEnv XDG_STATE_HOME=$hosts_dir/state
MaxStartups 100
X
  local i
  # Names as in the hosts' own lists, for whoever came to a host by another way than on-host.
  for i in "${!hosts[@]}"; do printf 'Host %s\n  HostName 10.77.0.%d\n' "${hosts[i]}" "$((i + 1))"; done \
    >"$hosts_dir/ssh_config"
  cat >>"$hosts_dir/ssh_config" <<X
Host kolo*
  Port 2222
  User root
  IdentityFile $hosts_dir/id
  IdentitiesOnly yes
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
X
  _hosts_write_programs
  export KOLO_SSH="ssh -F $hosts_dir/ssh_config"
  for name in "${hosts[@]}"; do
    "$hosts_dir/on-host" "$name" /usr/sbin/sshd -D -e -f "$hosts_dir/sshd_config" \
      >>"$hosts_dir/sshd.log" 2>&1 </dev/null &
    hosts_sshd[$name]=$!
  done
  for name in "${hosts[@]}"; do
    if ! _hosts_until 10 _hosts_listens "$name"; then
      _hosts_say "the sshd of $name does not answer: $(tail -n 5 "$hosts_dir/sshd.log")"
      return 1
    fi
  done
}

# Programs of their own, for drivers that cannot call a function of this shell.
_hosts_write_programs() {
  cat >"$hosts_dir/on-host" <<'X'
#!/usr/bin/env bash
# on-host HOST COMMAND…
name="$1"
shift
exec ip netns exec "$name" unshare --uts bash -c 'hostname "$0" && exec "$@"' "$name" "$@"
X
  cat >"$hosts_dir/set-rate" <<X
#!/usr/bin/env bash
# set-rate RATE|off
for name in ${hosts[*]}; do
  if [[ "\$1" == off ]]; then
    tc -n "\$name" qdisc del dev eth0 root 2>/dev/null || true
  else
    tc -n "\$name" qdisc replace dev eth0 root tbf rate "\$1" burst 256kb latency 20ms || exit 1
  fi
done
X
  chmod +x "$hosts_dir/on-host" "$hosts_dir/set-rate"
}

_hosts_listens() { [[ -n "$(ip netns exec "$1" ss -Hltn 'sport = 2222')" ]]; }

# _hosts_until SECONDS CONDITION…: polls; false when the time is over.
_hosts_until() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep 0.02
  done
}

run_on() { "$hosts_dir/on-host" "$@"; }

hosts_rate() { "$hosts_dir/set-rate" "$1"; }

cut_link() {
  ip netns exec "$1" nft -f - <<'X'
table inet kolo_cut {
  chain in { type filter hook input priority 0; iifname "eth0" drop; }
  chain out { type filter hook output priority 0; oifname "eth0" drop; }
}
X
}

heal_link() { ip netns exec "$1" nft delete table inet kolo_cut; }

pids_on() { ip netns pids "$1"; }

_hosts_empty() {
  local name pid
  for name in "${hosts[@]}"; do
    # A process that has ended but is not yet reaped counts as ended.
    for pid in $(pids_on "$name" 2>/dev/null); do
      [[ "$(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null)" == [ZX]* ]] || return 1
    done
  done
}

hosts_down() {
  local status=$? name signal
  trap - EXIT
  for signal in TERM KILL; do
    for name in "${hosts[@]}"; do
      # shellcheck disable=SC2046
      kill -s "$signal" $(pids_on "$name" 2>/dev/null) 2>/dev/null || true
    done
    _hosts_until 3 _hosts_empty && break
  done
  for name in "${hosts[@]}" ${_hosts_switch:+"$_hosts_switch"}; do
    ip netns del "$name" 2>/dev/null || true
    rm -rf "/etc/netns/$name"
  done
  [[ -z "$hosts_dir" ]] || rm -rf "$hosts_dir"
  hosts=()
  return "$status"
}
