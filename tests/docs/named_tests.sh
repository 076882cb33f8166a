#!/usr/bin/env bash
# Checks the tables of a page, whose rows are a capability, a page and tests: no cell is empty, and each test or file
# that the last column names exists.
#
#   named_tests.sh PAGE BUILD_DIR SOURCE_DIR
set -euo pipefail
known="$(ctest --test-dir "$2" -N 2>/dev/null | awk '$1 == "Test" {print $3}' | sort -u)"
rows=0
bad=0
complain() {
  printf '%s: %s\n' "$1" "$2"
  bad=1
}
while IFS='|' read -r _ capability page tests _; do
  rows=$((rows + 1))
  [[ "$capability" == *[![:space:]]* ]] || complain "a row" "no capability before $page"
  [[ "$page" == *'['*']('*')'* ]] || complain "$capability" "no page explains it"
  named="$(grep -oE '`[A-Za-z0-9_./]+`' <<<"$tests" | tr -d '`')" || complain "$capability" "no test shows it"
  for name in $named; do
    if [[ "$name" == */* ]]; then
      [[ -e "$3/$name" ]] || complain "$capability" "there is no file $name"
    else
      grep -qxF "$name" <<<"$known" || complain "$capability" "there is no test $name"
    fi
  done
done < <(awk -F'|' '/^\|/ && NF == 5 && $2 !~ /^(-+| capability )$/' "$1")
((rows > 50)) || complain "$1" "only $rows rows"
exit "$bad"
