#!/usr/bin/env bash
# Whether ranks train as one process does, searches as with 1, 2, 4 and 8 ranks, and what came out.
#
#   nas_ranks.sh BIN [--quick] [--json FILE] [--markdown FILE] [--svg FILE]
set -euo pipefail
bin="$1"
shift
quick=()
lines=''
report=()
while (($#)); do
  case "$1" in
    --quick) quick=(--quick) ;;
    --json) lines="$2"; shift ;;
    --markdown | --svg) report+=("$1" "$2"); shift ;;
    *) echo "nas_ranks.sh: unknown argument '$1'" >&2; exit 2 ;;
  esac
  shift
done
scratch="$(mktemp -d "${TMPDIR:-/tmp}/kolo-bench.XXXXXX")"
trap 'rm -rf "$scratch"' EXIT
lines="${lines:-$scratch/searches.jsonl}"
: >"$lines"
for ranks in 2 4 8; do "$bin/kolo" run -np "$ranks" "$bin/nas_ranks_study" check; done
"$bin/nas_ranks_study" measure --out "$lines" ${quick[@]+"${quick[@]}"}
"$bin/nas_ranks_study" report "$lines" ${report[@]+"${report[@]}"}
