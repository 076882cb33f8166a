#!/usr/bin/env bash
# Architecture searches with real training, by the real program.
#
#   nas_training.sh BIN [--quick]
#
# linear_reg and polynome2_reg: what 50 evaluations of regevo reach, and in what time, on all cores.
# digits: the convolutional cells, tpe against random search at equal evaluations (100), seed by seed; a tie is no win. The
# search was chosen by runs with seeds 1 to 3, so others are measured.
set -euo pipefail
bin="$1"
shift
seeds=10
case "${1:-}" in
  --quick) seeds=2 ;;
  '') ;;
  *) echo "nas_training.sh: unknown argument '$1'" >&2; exit 2 ;;
esac
scratch="$(mktemp -d "${TMPDIR:-/tmp}/kolo-bench.XXXXXX")"
trap 'rm -rf "$scratch"' EXIT

# search NAME ARGUMENTS…: the best objective.
search() {
  local folder="$scratch/$1"
  shift
  "$bin/kolo" nas "$@" --log-dir "$folder" --quiet | sed -n 's/^best: objective \([^ ]*\) of.*$/\1/p'
}
# ratio NAME VALUE OPERATOR GOAL
ratio() {
  local verdict=FALLS-SHORT
  if awk "BEGIN { exit !($2 $3 $4) }"; then verdict=PASS; fi
  printf 'RATIO %s %s goal %s%s %s\n' "$1" "$2" "$3" "$4" "$verdict"
}

for problem in linear_reg polynome2_reg; do
  begun=$EPOCHREALTIME
  best="$(search $problem regevo --problem benchmark.nas.$problem --max-evals 50)"
  ratio ${problem}_r2 "$best" '>=' 0.95
  ratio ${problem}_s "$(awk "BEGIN { printf \"%.1f\", $EPOCHREALTIME - $begun }")" '<=' 180
done

wins=0
for ((seed = 11; seed < 11 + seeds; ++seed)); do
  common=(--problem benchmark.nas.digits --evaluator thread --max-evals 100 --seed $seed)
  random="$(search random$seed random "${common[@]}")"
  tpe="$(search tpe$seed tpe "${common[@]}")"
  echo "digits, seed $seed: tpe $tpe, random $random"
  if awk "BEGIN { exit !($tpe > $random) }"; then wins=$((wins + 1)); fi
done
ratio digits_wins_of_$seeds $wins '>=' $((seeds * 8 / 10))
