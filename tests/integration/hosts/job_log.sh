# What a job over hosts says, for tests that wait for it. Sourced after hosts.sh; $log is the job's output.

bad() {
  printf 'FAILED: %s\n' "$*" >&2
  cat "$log" >&2
  exit 1
}

# until_said SECONDS TEXT [COUNT]
until_said() {
  said() { (($(grep -c -- "$1" "$log") >= $2)); }
  _hosts_until "$1" said "$2" "${3:-1}" || bad "not within $1 s: $2"
}
