#!/usr/bin/env bash
# Each script says what it does when it is asked with --help, and does nothing then; an argument that it does not know is
# an error, not ignored.
#
#   scripts_help.sh SOURCE_DIR
set -uo pipefail
bad=0
complain() {
  printf '%s: %s\n' "$1" "$2"
  bad=1
}
asked=0
for script in "$1"/scripts/*; do
  head -n 1 "$script" | grep -q '^#!.*bash' || continue
  name="$(basename "$script")"
  asked=$((asked + 1))
  for word in --help -h; do
    text="$(timeout 20 "$script" "$word" 2>/dev/null)" || complain "$name" "$word ends with status $?"
    grep -q "scripts/$name" <<<"$text" || complain "$name" "$word does not say how the script is called"
    if grep -q '^#' <<<"$text"; then complain "$name" "$word prints the marks of comments"; fi
  done
  if timeout 20 "$script" --no-such-argument >/dev/null 2>&1; then complain "$name" "takes any argument"; fi
done
((asked >= 10)) || complain scripts "only $asked of them were found"
exit "$bad"
