#!/usr/bin/env bash
# kolo nas, as users type it.
#
#   nas_test.sh CASE KOLO COMPILER
set -euo pipefail
case_name="$1" kolo="$2" compiler="$3"
# shellcheck source=../jobs/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../jobs/lib.sh"

rows() { grep -c ',DONE,' "$1/results.csv"; }
ids() { sed -E '1d; s/"[^"]*"//g' "$1/results.csv" | cut -d, -f3; }
best() { sed -n 's/^.*best: objective \([^ ]*\) of.*$/\1/p'; }
at_least() { awk "BEGIN { exit !($1 >= $2) }" || fail "$1 is below $2"; }
enough_rows() { [[ -e log/results.csv && "$(rows log)" -ge "$1" ]]; }

# Real training, by each evaluator.
training() {
  at_least "$("$kolo" nas regevo --problem deephyper.benchmark.nas.linearReg.Problem --max-evals 8 --num-workers 2 \
    --log-dir process --quiet | best)" 0.95
  at_least "$("$kolo" nas random --problem benchmark.nas.linear_reg --evaluator thread --max-evals 8 --log-dir thread --quiet | best)" 0.95
  at_least "$("$kolo" nas random --problem benchmark.nas.linear_reg --evaluator ranks --num-ranks-per-node 2 \
    --run deephyper.nas.run.horovod.run --max-evals 4 --log-dir ranks --quiet | best)" 0.9
  for part in model/0.pt history/0.json config/0.json; do
    [[ -s "process/save/$part" ]] || fail "process/save/$part is missing"
  done
  # The same seed gives the same searches and the same numbers.
  for twin in a b; do
    "$kolo" nas regevo --problem benchmark.nas.linear_reg --evaluator serial --max-evals 4 --seed 3 --log-dir $twin --quiet >/dev/null
  done
  same "$(cut -d, -f1-3 a/results.csv)" "$(cut -d, -f1-3 b/results.csv)"
}

# Without training, every search finds the largest operations: DenseSkipCo(3) has 3·30 + 6·1.
searches() {
  local search
  for search in regevo agebo ppo local_search; do
    "$kolo" nas $search --problem benchmark.nas.digits_dense --run quick --evaluator thread --num-workers 10 --max-evals 1500 \
      --log-dir $search --quiet >out || fail "$search: $(cat out)"
    same "$search $(best <out)" "$search 96"
  done
  # One evaluation at a time: what the model learns from does not depend on who is faster.
  at_least "$("$kolo" nas ambsmixed --problem benchmark.nas.digits_dense --run quick --evaluator serial --max-evals 200 \
    --log-dir ambsmixed --quiet | best)" 88
}

# Three agents learn together: all evaluations are there, each agent has its share.
agents() {
  "$kolo" nas ppo --problem benchmark.nas.digits_dense --run quick --evaluator thread --num-agents 3 --num-workers 10 \
    --max-evals 100 --log-dir log --quiet >out
  same "$(rows log)" 100
  for agent in 0 1 2; do has "$(cat out)" "agent $agent: "; done
  same "$(ids log | cut -d. -f1 | sort | uniq -c | tr -s ' ' | tr '\n' ';')" ' 40 0; 30 1; 30 2;'
  # More evaluations of the same search.
  "$kolo" nas ppo --problem benchmark.nas.digits_dense --run quick --evaluator thread --num-agents 3 --num-workers 10 \
    --max-evals 200 --log-dir log --resume --quiet >out
  same "$(rows log)" 200
}

# Stopped again and again by a signal to all of its processes, as a terminal or a batch system does it: agents say that
# they can go on, no evaluation fails of it, none is lost and none is there twice.
agents_stopped() {
  set -m # a process group for each search
  local search=("$kolo" nas ppo --problem benchmark.nas.digits_dense --run quick --evaluator thread --num-agents 3 --num-workers 10
    --max-evals 400 --log-dir log --resume --quiet)
  local wanted pid before='' status
  for wanted in 20 80 140 200; do
    "${search[@]}" >out 2>&1 &
    pid=$!
    eventually 60 enough_rows "$wanted"
    kill -TERM -- "-$pid"
    status=0
    wait "$pid" || status=$?
    same "$status" 143
    same "$(grep -c ']<stderr>:stopped.*; --resume continues the search' out)" 3
    has "$(cat log/results.csv)" "$before"
    before="$(sed 1d log/results.csv)"
    [[ "$before" != *F_* ]] || fail "an evaluation failed of the signal: $before"
  done
  "${search[@]}" >out 2>&1
  same "$(grep -c ' 0 failed' out)" 3
  has "$(cat log/results.csv)" "$before"
  same "$(rows log)" 400
  same "$(ids log | sort -u | wc -l)" 400
}

# "Running on Theta": PPO as a job of several nodes, its evaluations as jobs; here 3 agents on 8 nodes. DeepHyper would
# leave the workers idle that do not divide evenly: 5 of them are 2, 2 and 1.
agents_as_jobs() {
  new_database
  "$kolo" app --name PPO --exec "$kolo nas ppo"
  "$kolo" job --name ppo_test --workflow ppo_test --app PPO --num-nodes 3 --args '--evaluator balsam
    --run deephyper.search.nas.model.run.quick.run --problem benchmark.nas.digits_dense --ent-coef 0.01 --noptepochs 10
    --network ppo_lnlstm_128 --gamma 1.0 --lam 0.95 --max-evals 10'
  has "$(timeout 150 "$kolo" launcher --nodes 8 --cpus-per-node 2 --job-mode mpi --idle-seconds 1 --wf-filter ppo_test)" \
    '11 jobs finished, 0 failed'
  local log="$data/ppo_test/ppo_test_1"
  same "$(ids "$log" | cut -d. -f1 | sort | uniq -c | tr -s ' ' | tr '\n' ';')" ' 4 0; 4 1; 2 2;'
}

# Killed with -9 again and again: no evaluation is lost, none is there twice.
ranks_killed() {
  local search=("$kolo" nas regevo --problem benchmark.nas.digits --evaluator ranks --num-ranks-per-node 2 --max-evals 12
    --log-dir log --resume --quiet)
  local wanted
  for wanted in 2 5 9; do
    "${search[@]}" >/dev/null 2>&1 &
    eventually 60 enough_rows "$wanted"
    kill -9 $! 2>/dev/null || true
    wait $! 2>/dev/null || true
  done
  before="$(sed 1d log/results.csv)"
  has "$("${search[@]}")" '12 evaluations, 0 failed'
  has "$(cat log/results.csv)" "$before"
  same "$(ids log | sort -n | tr '\n' ' ')" "$(seq 0 11 | tr '\n' ' ')"
}

after_the_search() {
  "$kolo" nas random --problem benchmark.nas.linear_reg --evaluator thread --max-evals 6 --log-dir log --quiet >/dev/null
  has "$("$kolo" nas post-train --problem benchmark.nas.linear_reg --log-dir log -k 2 --num-epochs 2 --repeat 2)" 'post_training has'
  [[ -s log/post_training/results.json ]] || fail 'no results of post-training'
  has "$("$kolo" analytics topk log -k 1)" 'arch_seq'
  "$kolo" nas draw --problem benchmark.nas.polynome2_reg -o space.svg
  grep -q '</svg>' space.svg || fail 'no picture'
  for arch in '[3]' '3' ' 3 '; do
    has "$("$kolo" nas draw --problem benchmark.nas.linear_reg --arch "$arch" --dot)" 'digraph'
  done
  has "$("$kolo" nas list)" 'benchmark.nas.digits'
}

new_problem() {
  "$kolo" new-problem nas mine >/dev/null
  CXX="$compiler" cmake -S mine -B mine/build >/dev/null && cmake --build mine/build >/dev/null
  at_least "$("$kolo" nas regevo --problem mine/build/libmine.so:Problem --max-evals 6 --num-workers 2 --log-dir log --quiet | best)" 0.9
  cat >>mine/problem.cc <<'CODE'
KOLO_HPS_RUN(half) {
  kolo::hps::RunResult result = kolo::nas::alpha(kolo_nas_make_Problem(), job);
  if (!result.failed()) result.objectives[0] = 2 + result.objectives[0] / 2;
  return result;
}
CODE
  cmake --build mine/build >/dev/null
  for evaluator in thread subprocess; do
    at_least "$("$kolo" nas random --problem mine/build/libmine.so:Problem --run mine/build/libmine.so:half --evaluator "$evaluator" \
      --max-evals 2 --log-dir "half-$evaluator" --quiet | best)" 2
  done
  refused 1 "run 'hafl' is unknown" "$kolo" nas random --problem mine/build/libmine.so --run mine/build/libmine.so:hafl --max-evals 1
  # A library of another libtorch is not loaded: two in one process crash.
  LC_ALL=C sed 's/\(kolo: built with libtorch \)[0-9]/\19/' mine/build/libmine.so >other.so
  refused 1 'other.so: it was built with libtorch 9.' "$kolo" nas random --problem ./other.so:Problem --max-evals 1
  refused 1 'other.so: it was built with libtorch 9.' "$kolo" nas random --problem benchmark.nas.linear_reg --run ./other.so:half --max-evals 1
}

bad_input() {
  refused 2 "did you mean 'regevo'" "$kolo" nas regvo --problem benchmark.nas.linear_reg
  refused 1 'benchmark.nas.linear_reg' "$kolo" nas random --problem benchmark.nas.linear_rag
  refused 1 'alpha' "$kolo" nas random --problem benchmark.nas.linear_reg --run beta
  refused 2 'the search random has no option --ent-coef' "$kolo" nas random --problem benchmark.nas.linear_reg --ent-coef 1
  refused 1 'ppo_lnlstm_128' "$kolo" nas ppo --problem benchmark.nas.linear_reg --run quick --evaluator thread --network ppo_cnn --max-evals 4 --log-dir log
  for arch in abc '[0.5]' 0.5 '[a]' '[1' '[[1]]' '[true]' 99999999999999999999; do
    refused 2 "--arch: '$arch' is no list of choices; write whole numbers, as in 1,0,3" \
      "$kolo" nas draw --problem benchmark.nas.linear_reg --arch "$arch"
  done
  refused 2 "--arch '1,2': arch_seq: 2 numbers for 1 variable node" "$kolo" nas draw --problem benchmark.nas.linear_reg --arch 1,2
  refused 2 'pictures are SVG' "$kolo" nas draw --problem benchmark.nas.linear_reg -o space.png
  [[ ! -e space.png ]] || fail 'what was refused left a picture behind'
  # Where only the architecture varies, the search says what it is.
  has "$("$kolo" nas agebo --problem benchmark.nas.linear_reg --run quick --evaluator thread --max-evals 2 --log-dir agebo --quiet 2>&1)" \
    'agebo searches as regevo does'
  printf 'space: graph\nnonsense: 3\n' >bad.yaml
  refused 2 "'data' is missing" "$kolo" nas random --problem bad.yaml --max-evals 1
  # An objective that no training measures is said before the first one.
  printf 'space: one_layer\ndata: digits\nloss: cross_entropy\nmetrics: [acc]\nobjective: val_acx\n' >typo.yaml
  refused 1 "metric 'val_acx' is unknown; did you mean 'val_acc'?" "$kolo" nas random --problem typo.yaml --max-evals 1 --log-dir typo
  [[ ! -e typo ]] || fail 'what was refused left a folder behind'
}

# What the search would refuse on its node is refused before it waits in a queue, and nothing stays behind.
submit() {
  unset KOLO_DB
  nas() { "$kolo" submit nas "$1" -w y --problem benchmark.nas.linear_reg --scheduler local --dry-run "${@:2}"; }
  refused 1 "run function 'beta' is unknown" nas regevo --run beta
  refused 1 "network 'ppo_cnn' is unknown" nas ppo --network ppo_cnn
  refused 2 'nminibatches' nas ppo --num-workers 2 --set nminibatches=3
  refused 2 'the search random has no option --ent-coef' nas random --ent-coef 1
  refused 2 'the search random has no option --num-agents' nas random -n 2 --num-agents 2
  refused 2 'popualtion' nas regevo --set popualtion=3
  refused 2 'max-evals' nas regevo --max-evals 0
  refused 1 'cannot read' nas regevo --warm-start nothing.csv
  refused 1 'benchmark.nas.linear_reg' "$kolo" submit nas regevo -w y --problem benchmark.nas.linear_rag
  same "$(ls -A)" ''
  has "$(nas agebo 2>&1)" 'agebo searches as regevo does'
  # How many workers there are is known on the nodes.
  has "$(nas ppo --set nminibatches=30 --num-evals-per-node 2 --num-nodes-per-eval 3 --network ppo_lstm_32)" 'nas ppo'
  same "$(ls -A)" ''
}

"$case_name"
