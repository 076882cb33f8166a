#!/usr/bin/env bash
# Folders and databases that may only be read. Permissions mean nothing to root, so the commands run as nobody.
#
#   read_only_test.sh CASE KOLO
set -euo pipefail
case_name="$1" kolo="$2"

if ((EUID != 0)) || ! command -v setpriv >/dev/null; then
  printf 'skipped: becoming another user needs root and setpriv (package util-linux)\n' >&2
  exit 77
fi
scratch="$(mktemp -d "${TMPDIR:-/tmp}/kolo-read-only.XXXXXX")"
trap 'rm -rf "$scratch"' EXIT
chmod 755 "$scratch"
cd "$scratch"
# The build folder may be closed to others.
install -m 755 "$kolo" kolo
mkdir shut open home
chmod 555 shut
chown 65534 shut open home
printf 'x: {uniform: [0, 1]}\n' >space.yaml

fail() {
  printf 'failed: %s\n' "$*" >&2
  exit 1
}
has() { [[ "$1" == *"$2"* ]] || fail "\"$2\" is not in: $1"; }

nobody() {
  timeout 60 setpriv --reuid=65534 --regid=65534 --clear-groups \
    env HOME="$scratch/home" TMPDIR="$scratch/home" PATH="$scratch:$PATH" ./kolo "$@"
}

# as_nobody ARGUMENTS…: kolo, its output and errors in $said, its status in $code.
as_nobody() {
  code=0
  said="$(nobody "$@" 2>&1 </dev/null)" || code=$?
}
works() {
  as_nobody "$@"
  ((code == 0)) || fail "status $code: kolo $*: $said"
}
# refused PART ARGUMENTS…: one clear line with this part, and status 1.
refused() {
  local part="$1"
  shift
  as_nobody "$@"
  ((code == 1)) || fail "status $code instead of 1: kolo $*: $said"
  has "$said" "$part"
  [[ "$(wc -l <<<"$said")" == 1 ]] || fail "more than one line: $said"
}
tune=(tune --space space.yaml --metric loss --mode min -q)
program=(-- sh -c 'echo loss=$KOLO_PARAM_X')

case "$case_name" in
  study)
    export KOLO_RESULTS="$scratch/shut"
    refused "$scratch/shut" "${tune[@]}" --name a "${program[@]}"
    # The database elsewhere, results here: nothing is begun.
    export KOLO_STORAGE="$scratch/open/kolo.db"
    refused "cannot make $scratch/shut/a: Permission denied" "${tune[@]}" --name a "${program[@]}"
    works studies
    [[ "$said" != *shut* ]] || fail "a study was made: $said"
    export KOLO_RESULTS="$scratch/open"
    works "${tune[@]}" --name b --num-samples 2 "${program[@]}"
    # A database that may only be read can be looked at, and nothing else.
    chmod 444 open/kolo.db*
    chmod 555 open
    works studies
    has "$said" finished
    works trials b
    works best b
    refused 'kolo.db' resume b --num-samples 4
    refused "$scratch/open/d: Permission denied" "${tune[@]}" --name d "${program[@]}"
    chmod 755 open
    chmod 644 open/kolo.db*
    works resume b --num-samples 4
    works trials b --json
    [[ "$(grep -o TERMINATED <<<"$said" | wc -l)" == 4 ]] || fail "not four trials: $said"
    ;;
  # The study's folder is shut while it runs: the study says so, waits, and goes on.
  study_under_way)
    export KOLO_RESULTS="$scratch/open" KOLO_STORAGE="$scratch/open/kolo.db"
    : >said
    nobody tune --space space.yaml --metric loss --mode min --name c --num-samples 4 --total-cpus 1 \
      -- sh -c 'cd "$KOLO_TRIAL_DIR/.."; test -e once || { touch once; chmod 555 .; }; echo loss=1' >said 2>&1 &
    study=$!
    # tail ends with the study, should that end without a word.
    grep -qm1 'is tried again: cannot make' < <(tail -n +1 -f --pid="$study" said) || fail "$(<said)"
    chmod 755 open/c
    wait "$study" || fail "the study ended with $?: $(<said)"
    has "$(<said)" 'the storage of the study works again'
    works trials c --json
    [[ "$(grep -o TERMINATED <<<"$said" | wc -l)" == 4 ]] || fail "not four trials: $said"
    ;;
  jobs)
    refused 'cannot create the folder shut/db: Permission denied' init shut/db
    works init open/db
    export KOLO_DB="$scratch/open/db"
    works app --name hi --exec 'echo hi'
    works job --name a --app hi
    # No folder for a job can be made: the job has failed, and says why.
    chmod 555 open/db/data
    works launcher --idle-seconds 0.2
    works ls --history
    has "$said" 'FAILED] cannot create'
    chmod 755 open/db/data
    chmod 444 open/db/kolo.db*
    refused 'it may only be read' job --name b --app hi
    refused 'it may only be read' launcher --idle-seconds 0.2
    works ls
    chmod 555 open/db
    works ls
    chmod 755 open/db
    chmod 644 open/db/kolo.db*
    works job --name b --app hi
    works launcher --idle-seconds 0.2
    has "$said" '1 job finished'
    ;;
  *) fail "unknown case $case_name" ;;
esac
