#!/usr/bin/env bash
# Studies of other tools, taken over by kolo import: import_test.sh KOLO
set -euo pipefail
kolo="$1"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
export KOLO_STORAGE="$scratch/kolo.db" KOLO_RESULTS="$scratch/results"
fail() {
  printf 'failed: %s\n' "$*" >&2
  exit 1
}
has() { [[ "$1" == *"$2"* ]] || fail "\"$2\" is not in: $1"; }
refused() { # STATUS PART COMMAND…
  local status="$1" part="$2" code=0 output
  shift 2
  output="$("$@" 2>&1)" || code=$?
  [[ "$code" == "$status" ]] || fail "status $code instead of $status: $* — $output"
  has "$output" "$part"
}

# DeepHyper: a failure among the rows.
mkdir search
cat >search/results.csv <<'END'
p:lr,p:units,objective,job_id,m:timestamp_submit,m:timestamp_gather
0.1,32,0.5,0,0.5,2.5
0.01,64,0.9,1,0.5,3.5
0.5,16,F_timeout,2,2.5,4.5
END
has "$("$kolo" import search)" 'imported 3 trials of DeepHyper as the study search'
has "$("$kolo" best search)" '0.9'
has "$("$kolo" best search)" 'lr=0.01, units=64'
has "$("$kolo" trials search --csv)" F_timeout
refused 1 'was imported from DeepHyper, and only its own tool' "$kolo" resume search
refused 1 'give the imported one another name with --name' "$kolo" import search
has "$("$kolo" import search/results.csv --name again --metric accuracy)" 'the study again'
has "$("$kolo" best again)" accuracy

# Ray Tune: one folder for each trial, one line for each report.
mkdir -p mnist/train_a mnist/train_b
printf '{"lr": 0.1}\n' >mnist/train_a/params.json
printf '{"loss": 3, "training_iteration": 1, "time_total_s": 1, "timestamp": 100, "config": {"lr": 0.1}}\n{"loss": 1.5, "training_iteration": 2, "time_total_s": 2, "timestamp": 101}\n' >mnist/train_a/result.json
printf '{"lr": 0.2}\n' >mnist/train_b/params.json
printf '{"loss": NaN, "training_iteration": 1, "timestamp": 100}\n{"loss": 2, "trai' >mnist/train_b/result.json # torn
printf 'oh no\n' >mnist/train_b/error.txt
has "$("$kolo" import mnist --metric loss)" 'imported 2 trials of Ray Tune'
has "$("$kolo" best mnist)" '1.5'
has "$("$kolo" trials mnist --csv)" ERROR

# Names as a shell completes them; names that are mistyped.
has "$("$kolo" import mnist/ --name slash)" 'as the study slash'
mkdir nested && cp -r mnist nested/inner
has "$("$kolo" import nested/inner/)" 'as the study inner'
has "$(cd nested/inner && KOLO_STORAGE="$scratch/other.db" "$kolo" import .)" 'as the study inner'
mkdir here && cp search/results.csv here
has "$(cd here && "$kolo" import .)" 'as the study here'
refused 2 "did you mean 'loss'" "$kolo" import mnist --metric los --name typo
refused 2 '--mode needs --metric' "$kolo" import mnist --mode min --name typo
refused 2 '--study is for files of Optuna' "$kolo" import mnist --study x --name typo
# Files that are not as Ray Tune writes them.
for file in params.json result.json; do
  rm -rf damaged && cp -r mnist damaged
  printf '[1]\n' >damaged/train_a/$file
  refused 1 "damaged/train_a/$file: it must have objects" "$kolo" import damaged
done

# Optuna: a journal with a pruned trial, a categorical value and a line that is not whole.
cat >journal.log <<'END'
{"op_code": 0, "worker_id": "w", "study_name": "tpe", "directions": [1]}
{"op_code": 4, "worker_id": "w", "study_id": 0, "datetime_start": "2026-01-02T03:04:05.000000"}
{"op_code": 5, "worker_id": "w", "trial_id": 0, "param_name": "kind", "param_value_internal": 1, "distribution": "{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [\"a\", \"b\"]}}"}
{"op_code": 5, "worker_id": "w", "trial_id": 0, "param_name": "n", "param_value_internal": 3.0, "distribution": "{\"name\": \"IntDistribution\", \"attributes\": {\"log\": false, \"step\": 1, \"low\": 1, \"high\": 9}}"}
{"op_code": 7, "worker_id": "w", "trial_id": 0, "step": 1, "intermediate_value": 0.75}
{"op_code": 6, "worker_id": "w", "trial_id": 0, "state": 1, "values": [0.25], "datetime_complete": "2026-01-02T03:04:15.000000"}
{"op_code": 4, "worker_id": "w", "study_id": 0, "datetime_start": "2026-01-02T03:04:06.000000"}
{"op_code": 7, "worker_id": "w", "trial_id": 1, "step": 0, "intermediate_value": NaN}
{"op_code": 7, "worker_id": "w", "trial_id": 1, "step": 1, "intermediate_value": 9.5}
{"op_code": 6, "worker_id": "w", "trial_id": 1, "state": 2, "values": [9.5], "datetime_complete": "2026-01-02T03:04:16.000000"}
END
printf '{"op_code": 4, "wor' >>journal.log
has "$("$kolo" import journal.log)" 'imported 2 trials of Optuna as the study tpe'
has "$("$kolo" best tpe)" '0.25'
has "$("$kolo" best tpe)" 'kind=b, n=3'
refused 2 'there is no study' "$kolo" import journal.log --study tpee
# Trials that were added whole, or wait in the queue without a date.
cat >added.log <<'END'
{"op_code": 0, "worker_id": "w", "study_name": "added", "directions": [1]}
{"op_code": 4, "worker_id": "w", "study_id": 0, "state": 1, "value": 0.125, "values": null, "datetime_start": "2026-01-02T03:04:05.000000", "datetime_complete": "2026-01-02T03:04:06.000000", "distributions": {"n": "{\"name\": \"IntDistribution\", \"attributes\": {\"log\": false, \"step\": 1, \"low\": 1, \"high\": 9}}"}, "params": {"n": 4.0}, "user_attrs": {}, "system_attrs": {}, "intermediate_values": {"1": 0.5}}
{"op_code": 4, "worker_id": "w", "study_id": 0, "state": 4, "value": null, "values": null, "datetime_start": null, "datetime_complete": null, "distributions": {}, "params": {}, "user_attrs": {}, "system_attrs": {"fixed_params": {"n": 2}}, "intermediate_values": {}}
{"op_code": 5, "worker_id": "w", "trial_id": 1, "param_name": "n", "param_value_internal": 2.0, "distribution": "{\"name\": \"IntDistribution\", \"attributes\": {}}"}
{"op_code": 6, "worker_id": "w", "trial_id": 1, "state": 1, "values": [0.5], "datetime_start": "-2147483648-1-1 0:0:0", "datetime_complete": "2026-01-02T03:04:16.000000"}
END
has "$("$kolo" import added.log)" 'imported 2 trials of Optuna as the study added'
has "$("$kolo" best added)" 'n=4'
has "$("$kolo" trials added --csv)" '0.5'
for wrong in NaN -1 2 1e300; do
  sed '3,$d;s/"param_value_internal": [0-9.]*//' journal.log >wrong.log
  printf '{"op_code": 5, "worker_id": "w", "trial_id": 0, "param_name": "k", "param_value_internal": %s, "distribution": "{\\"name\\": \\"CategoricalDistribution\\", \\"attributes\\": {\\"choices\\": [1, 2]}}"}\n' "$wrong" >>wrong.log
  refused 1 'wrong.log, line 3: a categorical value has no choice' "$kolo" import wrong.log --name wrong
done
printf '{"op_code": 6, "trial_id": 7, "state": 1}\n' >broken.log
refused 1 'broken.log, line 1: no line before it has begun trial 7' "$kolo" import broken.log
printf '{"op_code": 1e300}\n' >broken.log
refused 1 "broken.log, line 1: an operation: 'op_code' must be" "$kolo" import broken.log
printf 'nothing\n' >broken.txt
refused 2 'neither a database nor a journal' "$kolo" import broken.txt

# TensorBoard: what kolo's own logger writes, with hyperparameters; a writer was killed in the middle.
printf 'x: {uniform: [0, 1]}\nkind: {choice: [a, b]}\n' >space.yaml
"$kolo" tune --space space.yaml --search random --num-samples 3 --metric loss --mode min --name written --quiet \
  -- sh -c 'for i in 1 2 3; do "$0" report loss=$((10 - i)); done' "$kolo" >/dev/null
mkdir board
for folder in results/written/*/; do
  mkdir "board/$(basename "$folder")"
  cp "$folder"/events.out.tfevents.* "board/$(basename "$folder")/"
done
for file in board/*/events*; do truncate -s -3 "$file"; break; done
has "$("$kolo" import board --metric loss)" 'imported 3 trials of TensorBoard as the study board'
has "$("$kolo" best board)" 'kind='
has "$("$kolo" best board --json)" '"value":7'
for file in board/*/events*; do printf 'xxxx' | dd of="$file" bs=1 seek=40 conv=notrunc status=none; break; done
refused 1 'the checksum of a' "$kolo" import board --name damaged
mkdir empty
refused 2 'no event files of TensorBoard' "$kolo" import empty

# A database of another program, and one that is cut short.
refused 1 'kolo.db: it cannot be read as a database of Optuna: ' "$kolo" import kolo.db
head -c 3000 kolo.db >short.db
refused 1 'short.db: it cannot be read as a database of Optuna: ' "$kolo" import short.db

# Values and names that are nested so deeply that nothing could read them again.
mkdir deep
deep="$(printf '/a%.0s' {1..300})"
printf 'p:a%s,objective,job_id\n1,0.5,0\n' "$deep" >deep/results.csv
refused 2 "has 100 or more '/'" "$kolo" import deep
mkdir -p deeper/trial
deep="$(printf '[%.0s' {1..150})1$(printf ']%.0s' {1..150})"
printf '{"loss": 1, "deep": %s}\n' "$deep" >deeper/trial/result.json
refused 2 'nested more than 100 deep' "$kolo" import deeper
has "$("$kolo" studies)" search

# What has no end.
mkfifo pipe.csv
refused 2 'pipe.csv: it is a pipe' timeout 10 "$kolo" import pipe.csv
mkdir pipes
mkfifo pipes/results.csv
refused 2 'results.csv: it is a pipe' timeout 10 "$kolo" import pipes
rm pipes/results.csv
mkdir pipes/trial
mkfifo pipes/trial/result.json
refused 2 'result.json: it is a pipe' timeout 10 "$kolo" import pipes
refused 2 '/dev/zero: it is a pipe, a device' bash -c 'ulimit -v 4000000; timeout 20 "$0" import /dev/zero' "$kolo"

# And back: what kolo writes for Optuna is what kolo reads, and what Optuna reads.
refused 2 'journal file of Optuna has all reports' "$kolo" export written --format optuna --reports
"$kolo" export written --format optuna -o written.log
has "$("$kolo" import written.log --name back)" 'imported 3 trials of Optuna as the study back'
has "$("$kolo" best back)" 'kind='
if /usr/bin/python3 -c 'import optuna' 2>/dev/null; then
  has "$(/usr/bin/python3 2>/dev/null <<'END'
import optuna
storage = optuna.storages.JournalStorage(optuna.storages.JournalFileStorage("written.log"))
study = optuna.load_study(study_name="written", storage=storage)
assert [t.state.name for t in study.trials] == ["COMPLETE"] * 3, study.trials
assert all(t.value == 7 and t.intermediate_values == {1: 9, 2: 8, 3: 7} for t in study.trials)
assert all(t.params["kind"] in ("a", "b") and 0 <= t.params["x"] <= 1 for t in study.trials)
assert study.trials[0].distributions["x"] == optuna.distributions.FloatDistribution(0, 1)
study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
print("trials:", len(study.trials))
END
)" 'trials: 4'
fi

# Its database, by Optuna itself where it is installed.
if /usr/bin/python3 -c 'import optuna' 2>/dev/null; then
  /usr/bin/python3 - >/dev/null 2>&1 <<'END'
import optuna
def objective(trial):
    x, kind = trial.suggest_float("x", 0, 1), trial.suggest_categorical("kind", ["a", "b"])
    n = trial.suggest_int("n", 1, 4)
    trial.report(x + 5, 1)
    return x + n + (kind == "b")
for name in ("one", "two"):
    optuna.create_study(storage="sqlite:///optuna.db", study_name=name, direction="maximize").optimize(objective, n_trials=5)
END
  before="$(sha256sum optuna.db)"
  refused 2 'choose one by --study: one, two' "$kolo" import optuna.db
  has "$("$kolo" import optuna.db --study two --name three)" 'imported 5 trials of Optuna as the study three'
  has "$("$kolo" best three)" 'kind='
  [[ "$(sha256sum optuna.db)" == "$before" ]] || fail 'the file of Optuna was changed'
fi
printf 'passed\n'
