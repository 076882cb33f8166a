#!/usr/bin/env bash
# Checks a model with spin: model_test.sh NAME.pml [-DDEFINE …] [-- -DDEFINE …]. The safety properties in all states;
# then, on the instance after the dashes, the claim that the model makes of its progress.
set -euo pipefail
model="$(realpath "$1")"
shift
instance=()
while (($# > 0)) && [[ "$1" != -- ]]; do instance+=("$1"); shift; done
command -v spin >/dev/null || { echo "spin is not installed (scripts/setup test)"; exit 77; }
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

# check WHAT SPIN-FLAGS -- CC-FLAGS -- PAN-FLAGS
check() {
  local what="$1" spin_flags=() cc_flags=() pan_flags=()
  shift
  while [[ "$1" != -- ]]; do spin_flags+=("$1"); shift; done
  shift
  while [[ "$1" != -- ]]; do cc_flags+=("$1"); shift; done
  shift
  pan_flags=("$@")
  spin "${spin_flags[@]}" -a "$model" >spin.log 2>&1 || { cat spin.log; exit 1; }
  cc -O2 -w -o pan pan.c "${cc_flags[@]}"
  ./pan "${pan_flags[@]}" >pan.log 2>&1 || { cat pan.log; exit 1; }
  grep -q 'errors: 0' pan.log || { cat pan.log; exit 1; }
  if grep -q 'max search depth too small' pan.log; then cat pan.log; exit 1; fi
  printf '%s: %s states\n' "$what" "$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' pan.log)"
}

# Wrong variants, which spin must find.
mapfile -t wrong < <(sed -n 's/^#ifdef \(UN[A-Z]*\)$/\1/p' "$model" | sort -u)
((${#wrong[@]} > 0)) || { echo "the model has no wrong variant"; exit 1; }
for variant in "${wrong[@]}"; do
  spin "${instance[@]}" -D"$variant" -a "$model" >spin.log 2>&1
  cc -O2 -w -DSAFETY -DNOCLAIM -DMEMLIM=1024 -o pan pan.c
  ./pan -m200000 >pan.log 2>&1 || true
  grep -q 'assertion violated' pan.log || { echo "wrong variant $variant passes"; cat pan.log; exit 1; }
  echo "$variant: found"
done

check safety "${instance[@]}" -- -DSAFETY -DNOCLAIM -DCOLLAPSE -DMEMLIM=1024 -- -m200000
(($# > 0)) || exit 0
shift
check progress "$@" -- -DCOLLAPSE -DMEMLIM=1024 -DNFAIR=3 -- -m200000 -a -f
