#!/bin/bash
# Completes command lines in a real shell: completion_test.sh bash|fish|zsh KOLO
set -euo pipefail
shell="$1" kolo="$2"
command -v "$shell" >/dev/null || { echo "$shell is not installed"; exit 77; }

scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
mkdir bin home
ln -s "$kolo" bin/kolo
export PATH="$scratch/bin:$PATH" HOME="$scratch/home" KOLO_DB="$scratch/jobs" TERM=dumb
unset KOLO_STORAGE
touch space.yaml

kolo init jobs >/dev/null
kolo app --name hello --executable 'echo hello' >/dev/null
printf 'x: {uniform: [0, 1]}\n' >uniform.yaml
kolo tune --space uniform.yaml --metric x --mode min --name mnist --quiet -- sh -c 'echo x=1' >/dev/null

# What the shell offers for a line, one word on each line.
in_bash() {
  bash --norc --noprofile -c '
    source <(kolo completion bash)
    # Words as readline cuts them: at blanks, and around "=".
    line="$1"
    read -ra COMP_WORDS <<<"${line//=/ = }"
    [[ "$line" == *" " || "$line" == *= ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    complete -p kolo >/dev/null
    _kolo
    printf "%s\n" "${COMPREPLY[@]}"' bash "$1"
}
in_fish() {
  fish --no-config -c 'kolo completion fish | source; complete -C $argv[1]' "$1" | cut -f1
}
# zsh completes at a terminal only. So its own functions that show what was found print it here; that
# the real ones know the command is seen below.
in_zsh() {
  zsh -f -c '
    compdef() { : }
    _files() { print -rl -- ${words[CURRENT]}*(N) }
    _describe() {
      local item
      for item in "${(@P)2}"; do
        item="${${item//\\:/$'\''\1'\''}%%:*}"
        print -r -- "${item//$'\''\1'\''/:}"
      done
    }
    source <(kolo completion zsh)
    words=(${(z)1})
    [[ "$1" == *" " ]] && words+=("")
    CURRENT=$#words
    _kolo
    true' zsh "$1"
}
fail() {
  echo "FAIL: $*" >&2
  exit 1
}
offers() { # LINE WORD…
  local line="$1" found word
  shift
  found="$("in_$shell" "$line")"
  for word in "$@"; do
    grep -qxF -- "$word" <<<"$found" || fail "'$line' does not offer '$word', but: $found"
  done
}
hides() { # LINE WORD
  if "in_$shell" "$1" | grep -qxF -- "$2"; then fail "'$1' offers '$2'"; fi
}

offers 'kolo tr' trials
offers 'kolo re' resume report report-html
hides 'kolo ' custodian
offers 'kolo analytics ' topk compare
offers 'kolo help tr' trials
offers 'kolo --v' --version
offers 'kolo run --ho' --hosts --hostfile
offers 'kolo tune --evalu' --evaluator
offers 'kolo run --bind-to ' core socket none
offers 'kolo tune --space sp' space.yaml
offers 'kolo best ' mnist
offers 'kolo job --application ' hello
offers 'kolo nas post-train --num' --num-epochs
offers 'kolo hps --problem ' benchmark.hps.ackley
offers 'kolo submit hps --problem ' benchmark.hps.ackley
hides 'kolo nas --problem ' benchmark.hps.ackley
if [[ -x "$(dirname "$kolo")/kolo-nas" ]]; then
  offers 'kolo nas --problem ' benchmark.nas.digits
  offers 'kolo nas draw --problem ' benchmark.nas.digits
  offers 'kolo submit nas --problem ' benchmark.nas.digits
fi
offers 'kolo manual ' run analytics
offers 'kolo manual analytics ' topk
case "$shell" in
  bash) offers 'kolo tune --mode=m' min max ;;
  fish) offers 'kolo tune --mode=m' --mode=min --mode=max ;;
  zsh)
    known="$(zsh -f -c 'autoload -Uz compinit && compinit -u -D && source <(kolo completion zsh) && print $_comps[kolo]')"
    [[ "$known" == _kolo ]] || fail "zsh completes kolo by '$known'"
    ;;
esac
