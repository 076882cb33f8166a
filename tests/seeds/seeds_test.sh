#!/usr/bin/env bash
# A guide from its first command to its last, as its reader types it. Where a guide speaks of hundreds
# of nodes or of hours, there are a few of each; where it submits to a batch system that is not here,
# the script that would be submitted is read.
#
#   seeds_test.sh CASE PREFIX EXAMPLES COMPILER
set -euo pipefail
case_name="$1" prefix="$2" examples="$3" compiler="$4"
kolo="$prefix/bin/kolo"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source=../integration/jobs/lib.sh
source "$here/../integration/jobs/lib.sh"
export PATH="$prefix/bin:$PATH" KOLO_RESULTS="$scratch/results"

at_least() { awk "BEGIN { exit !($1 >= $2) }" || fail "$1 is below $2"; }
best() { sed -n 's/^.*best: objective \([^ ]*\) of.*$/\1/p'; }

# Horovod's "Distributed hyperparameter search" with Ray Tune.
tune_with_ranks() {
  CXX="$compiler" CMAKE_PREFIX_PATH="$prefix" cmake -S "$here/tune" -B build >cmake.log || fail "$(<cmake.log)"
  cmake --build build >build.log || fail "$(<build.log)"
  ./build/horovod_simple >out
  same "$(<out)" "basic: 18 trials, 36 reports of 2 ranks, best has 2 parameters
bayesian: found the rate
spaces: 2 trials of the grid, bar in range 1, alpha in range 1, const hello
results: best trial made 20 iterations, its folder 1, its checkpoint 1, its last result 20, as a table 1"
  # What a person looks at afterwards.
  has "$(kolo studies)" basic
  has "$(kolo best horovod)" lr
  same "$(kolo trials basic --json | grep -c '"TERMINATED"')" 18
  kolo report-html horovod -o page.html
  has "$(<page.html)" '</html>'
}

# DeepHyper's "Running on Theta", the search for hyperparameters.
running_on_theta() {
  kolo init testdb
  eval "$(kolo activate testdb)"
  kolo app --name AMBS --exec "$(command -v kolo) hps ambs"
  has "$(kolo ls apps)" AMBS
  KOLO_BATCH_SYSTEM=cobalt kolo submit hps -w test -p deephyper.benchmark.hps.polynome2.Problem \
    -r deephyper.benchmark.hps.polynome2.run -t 60 -q debug-cache-quad -n 4 -A datascience -j mpi --dry-run >script
  for line in '#COBALT -n 4' '#COBALT -t 60' '#COBALT -q debug-cache-quad' '#COBALT -A datascience' '--job-mode mpi'; do
    has "$(<script)" "$line"
  done
  # Four workers per node: the searcher and the evaluators.
  kolo job --name test --application AMBS --workflow TEST --node-packing-count=4 --env DEEPHYPER_WORKERS_PER_NODE=4 \
    --args '--evaluator balsam --problem deephyper.benchmark.hps.polynome2.Problem --run deephyper.benchmark.hps.polynome2.run --max-evals 30'
  has "$(kolo ls jobs)" test
  export PROJECT_NAME=datascience
  KOLO_BATCH_SYSTEM=cobalt kolo submit-launch -n 128 -q default -t 180 -A $PROJECT_NAME --job-mode serial --wf-filter TEST --dry-run >script
  has "$(<script)" '#COBALT -n 128'
  has "$(<script)" '--job-mode serial'
  kolo submit-launch -n 4 -q default -t 5 -A $PROJECT_NAME --scheduler local --job-mode serial --wf-filter TEST \
    --launcher-flags '--idle-seconds 0.3 --cpus-per-node 8'
  eventually 60 is_state 1 JOB_FINISHED
  # One folder with the logs of the search, and one for each evaluation.
  has "$(cat testdb/data/TEST/test_1/test.out)" '30 evaluations'
  same "$(ls -d testdb/data/TEST/task*_* | wc -l)" 30
  same "$(grep -c ',DONE,' testdb/data/TEST/test_1/results.csv)" 30
  has "$(kolo analytics topk testdb/data/TEST/test_1 -k 1)" 'x'
}

# The same guide, the search for architectures: PPO on several nodes, and evolution on one.
architectures_on_theta() {
  kolo init testdb
  eval "$(kolo activate testdb)"
  kolo app --name PPO --exec "$(command -v kolo) nas ppo"
  kolo app --name EVO --exec "$(command -v kolo) nas regevo"
  kolo app --name RAN --exec "$(command -v kolo) nas random"
  kolo job --name ppo_test --workflow ppo_test --app PPO --num-nodes 2 --args '--evaluator balsam
    --run deephyper.search.nas.model.run.quick.run --problem benchmark.nas.digits_dense --ent-coef 0.01 --noptepochs 10
    --network ppo_lnlstm_128 --gamma 1.0 --lam 0.95 --max-evals 6'
  kolo job --name evo_test --workflow evo_test --app EVO --num-nodes 1 --args '--evaluator balsam
    --run deephyper.search.nas.model.run.quick.run --problem benchmark.nas.digits_dense --max-evals 6'
  KOLO_BATCH_SYSTEM=cobalt kolo submit-launch -n 128 -q default -t 180 -A datascience --job-mode mpi --wf-filter ppo_test --dry-run >script
  has "$(<script)" '--wf-filter ppo_test'
  has "$(timeout 120 kolo launcher --nodes 4 --cpus-per-node 2 --job-mode mpi --idle-seconds 1 --wf-filter ppo_test)" '7 jobs finished, 0 failed'
  has "$(timeout 120 kolo launcher --nodes 4 --cpus-per-node 2 --job-mode mpi --idle-seconds 1 --wf-filter evo_test)" '7 jobs finished, 0 failed'
  same "$(grep -c ',DONE,' testdb/data/ppo_test/ppo_test_1/results.csv)" 6
  same "$(grep -c ',DONE,' testdb/data/evo_test/evo_test_2/results.csv)" 6
}

# DeepHyper's "Data parallelism": evaluations of two nodes, and the script of a GPU cluster.
data_parallel_searches() {
  kolo init testdb
  eval "$(kolo activate testdb)"
  kolo app --name EVO --exec "$(command -v kolo) nas regevo"
  kolo job --name search --workflow ranks --app EVO --args '--problem deephyper.benchmark.nas.linearReg.Problem
    --evaluator balsam --max-evals 5 --num-nodes-per-eval 2 --num-ranks-per-node 1 --num-threads-per-rank 1
    --run deephyper.nas.run.horovod.run'
  has "$(timeout 150 kolo launcher --nodes 3 --cpus-per-node 2 --job-mode mpi --idle-seconds 1)" '6 jobs finished, 0 failed'
  same "$(grep -c ',DONE,' testdb/data/ranks/search_1/results.csv)" 5
  at_least "$(best <testdb/data/ranks/search_1/search.out)" 0.9
  kolo_deactivate
  printf 'export FROM_SETUP=yes\n' >SetUpEnv.sh
  KOLO_BATCH_SYSTEM=cobalt kolo submit nas regevo -w combo_2gpu -n 1 -t 60 -A project -q full-node \
    --problem benchmark.nas.linear_reg --run deephyper.nas.run.tf_distributed.run --max-evals 10000 \
    --num-cpus-per-task 2 --num-gpus-per-task 2 -as SetUpEnv.sh --dry-run >script
  for line in '#COBALT -n 1' '#COBALT -t 60' '#COBALT -A project' '#COBALT -q full-node'; do has "$(<script)" "$line"; done
}

# "Distributed training on a supercomputer": the eight steps, and how efficient more ranks are.
eight_steps() {
  local accuracy
  for ranks in 1 2; do
    OMP_NUM_THREADS=1 kolo run -np $ranks "$examples/kolo_digits_distributed" >out$ranks
    accuracy="$(sed -n 's/.*accuracy \([0-9.]*\).*/\1/p' out$ranks | tail -n 1)"
    at_least "$accuracy" 0.95
  done
  OMP_NUM_THREADS=1 kolo run -np 2 "$examples/kolo_scaling_test" --model mlp --rounds 3 --svg scaling.svg >table
  has "$(<table)" efficiency
  has "$(<scaling.svg)" '</svg>'
}

# "Run Horovod examples on a GPU cluster": the synthetic benchmark on devices by number.
synthetic_benchmark() {
  for ranks in 4 2; do
    CUDA_VISIBLE_DEVICES=0,1,2,3 kolo run -np $ranks -H localhost:$ranks "$examples/kolo_synthetic_benchmark" \
      --model mlp --batch 2 --warmup 1 --rounds 2 --steps 1 >out
    has "$(<out)" "[0]<stdout>:samples/s of $ranks rank(s)"
  done
}

"$case_name"
