#!/usr/bin/env bash
# `scripts/bench search-quality`, which has built what this needs:
#
#   search_quality.sh BIN [--data DIR] [--lc DIR] [--seeds N] [--samplers a,b] [--only a,b]
#                     [--no-optuna] [--no-functions] [--no-curves] [--quick]
set -euo pipefail
bin="$1"
shift
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
peer="$root/bench/search_optuna_peer.py"

data=''
curves=''
seeds=30
optuna=yes
problems=()
others=()
while (($#)); do
  case "$1" in
    --data | --lc | --seeds | --samplers | --only)
      (($# >= 2)) || {
        printf 'bench: %s needs a value\n' "$1" >&2
        exit 2
      }
      ;;&
    --data | --lc)
      [[ -d "$2" ]] || {
        printf "bench: %s: there is no folder '%s'\n" "$1" "$2" >&2
        exit 2
      }
      ;;&
    --data) data="$2" && shift ;;
    --lc) curves="$2" && shift ;;
    --seeds) seeds="$2" && shift ;;
    --samplers) others+=(--samplers "$2") && shift ;;
    --only) problems+=(--only "$2") && shift ;;
    --no-optuna) optuna='' ;;
    --no-functions) problems+=(--no-functions) ;;
    --no-curves) others+=(--no-curves) ;;
    --quick)
      seeds=5
      problems+=(--no-functions)
      ;;
    *)
      printf "bench: unknown argument '%s'\n" "$1" >&2
      exit 2
      ;;
  esac
  shift
done

if [[ -n "$data" ]]; then
  problems+=(--data "$data")
else
  printf 'MISSING tables: --data DIR names a folder of tables (kolo-hpo-table-1)\n'
fi
if [[ -n "$curves" ]]; then
  others+=(--lc "$curves")
else
  printf 'MISSING learning curves: --lc DIR names a folder of curves (kolo-lc-table-1)\n'
fi
cache="$root/build/search-quality/optuna.jsonl"
if [[ -n "$optuna" ]]; then
  "$peer" quality --program "$bin/search_quality_bench" --cache "$cache" --seeds "$seeds" -- \
    ${problems[@]+"${problems[@]}"} ||
    printf 'FAILED Optuna; comparisons with it are missing\n'
fi
"$bin/search_quality_bench" --seeds "$seeds" --peers "$cache" ${problems[@]+"${problems[@]}"} \
  ${others[@]+"${others[@]}"}
