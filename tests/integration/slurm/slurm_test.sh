#!/usr/bin/env bash
# Programs that Slurm starts: a real cluster of two nodes on this machine.
#
#   slurm_test.sh CASE KOLO RANK_PROGRAM
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/slurm.sh"
case_name="$1" kolo="$2" rank="$3"

# expect COUNT TEXT COMMAND…: it succeeds, and so many lines say that.
expect() {
  local count="$1" text="$2" output found
  shift 2
  if ! output="$(timeout 60 "$@" 2>&1 </dev/null)"; then
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

slurm_up 2
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
