#!/usr/bin/env bash
# Programs that Slurm starts: a real cluster of two nodes on this machine.
#
#   slurm_test.sh CASE KOLO RANK_PROGRAM
set -euo pipefail
here="$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=slurm.sh
source "$here/slurm.sh"
# shellcheck source=../hosts/hosts.sh
source "$here/../hosts/hosts.sh"
case_name="$1" kolo="$2" rank="$3"

# expect COUNT TEXT COMMAND…: it succeeds, and so many lines say that.
expect() {
  local count="$1" text="$2" output found
  shift 2
  local limit=(timeout 60)
  if declare -F "$1" >/dev/null; then limit=(); fi # functions run as they are
  if ! output="$(${limit[@]+"${limit[@]}"} "$@" 2>&1 </dev/null)"; then
    printf 'failed: %s\n%s\n' "$*" "$output"
    exit 1
  fi
  found="$(grep -cF -- "$text" <<<"$output" || true)"
  if [[ "$found" != "$count" ]]; then
    printf '%s lines with "%s" instead of %s: %s\n%s\n' "$found" "$text" "$count" "$*" "$output"
    exit 1
  fi
}

needs_plugin() {
  [[ -e "$(dirname "$kolo")/../lib/kolo/kolo_wire_$1.so" ]] && return
  printf 'skipped: the plug-in %s is not built here\n' "$1"
  exit 77
}

if [[ "$case_name" == several_hosts ]]; then
  hosts_up 2
  slurm_up_on_hosts
  trap 'slurm_down; hosts_down' EXIT
else
  slurm_up 2
fi
case "$case_name" in
  one_node) expect 2 'of 2 over shm: fine' srun -N1 -n2 "$rank" ;;
  pmix)
    needs_plugin openmpi
    # Open MPI's own shared memory takes two nodes with one host name for one, and crashes.
    export OMPI_MCA_btl=self,tcp
    expect 4 'of 4 over shm+mpi: fine' srun --mpi=pmix -N2 -n4 "$rank"
    expect 4 'of 4 over mpi: fine' env KOLO_TRANSPORT=mpi srun --mpi=pmix -N2 -n4 "$rank"
    ;;
  pmi2)
    needs_plugin mpich
    expect 4 'of 4 over shm+mpi: fine' srun --mpi=pmi2 -N2 -n4 "$rank"
    expect 4 'of 4 over mpi: fine' env KOLO_TRANSPORT=mpi srun --mpi=pmi2 -N2 -n4 "$rank"
    ;;
  # A script of sbatch is alone, whatever its variables say; kolo run inside takes the nodes.
  allocation)
    expect 1 'of 1 over solo: fine' salloc -Q -N1 -n2 "$rank"
    expect 2 'of 2 over shm: fine' salloc -Q -N1 -n2 "$kolo" run -H localhost:2 -np 2 "$rank"
    ;;
  # Nodes with networks of their own: kolo run finds them and reaches the other one by ssh.
  several_hosts)
    at=(slurm_at "${hosts[0]}" salloc -Q -N2 -n4)
    expect 4 'of 4 over shm+tcp: fine' "${at[@]}" "$kolo" run "$rank"
    expect 3 'of 3 over shm+tcp: fine' "${at[@]}" "$kolo" run -np 3 "$rank"
    ;;
  # Whoever is left learns that a rank has died.
  killed_rank)
    if output="$(timeout 60 srun -N1 -n2 "$rank" --die 1 2>&1 </dev/null)"; then
      printf 'srun succeeded although a rank was killed\n%s\n' "$output"
      exit 1
    fi
    grep -qF 'lost rank 1' <<<"$output" || { printf '%s\n' "$output"; exit 1; }
    ;;
  *)
    printf 'unknown case %s\n' "$case_name" >&2
    exit 2
    ;;
esac
