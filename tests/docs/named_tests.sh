#!/usr/bin/env bash
# Checks that each test in the last column of a page's tables exists: named_tests.sh PAGE BUILD_DIR
set -euo pipefail
known="$(ctest --test-dir "$2" -N | awk '$1 == "Test" {print $3}')"
named="$(awk -F'|' '/^\|/ && NF == 5 {print $4}' "$1" | grep -oE '`[a-z0-9_]+`' | tr -d '`' | sort -u)"
(($(wc -l <<<"$named") > 20)) || { echo "$1 names hardly any test"; exit 1; }
missing="$(comm -23 <(echo "$named") <(sort -u <<<"$known"))"
[[ -z "$missing" ]] || { printf '%s names tests that do not exist:\n%s\n' "$1" "$missing"; exit 1; }
