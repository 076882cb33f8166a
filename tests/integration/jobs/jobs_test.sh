#!/usr/bin/env bash
# kolo's commands about jobs, as users type them.
#
#   jobs_test.sh CASE KOLO
set -euo pipefail
case_name="$1" kolo="$2"
# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly whole='CREATED READY STAGED_IN PREPROCESSED RUNNING RUN_DONE POSTPROCESSED JOB_FINISHED '

# "Running on Theta", line by line.
session() {
  "$kolo" init testdb
  eval "$("$kolo" activate testdb)"
  same "$("$kolo" which)" "$scratch/testdb"
  "$kolo" app --name AMBS --exec "$kolo hps ambs"
  has "$("$kolo" ls apps)" AMBS
  "$kolo" job --name test --workflow TEST --app AMBS --node-packing-count=4 --env DEEPHYPER_WORKERS_PER_NODE=4 \
    --args '--evaluator balsam --problem deephyper.benchmark.hps.polynome2.Problem --run deephyper.benchmark.hps.polynome2.run --max-evals 40'
  has "$("$kolo" ls jobs)" 'test  TEST      AMBS         READY'
  PATH=/usr/bin:/bin KOLO_BATCH_SYSTEM=cobalt "$kolo" submit-launch -n 128 -q default -t 180 -A datascience \
    --job-mode serial --wf-filter TEST --dry-run >script
  for line in '#COBALT -n 128' '#COBALT -t 180' '#COBALT -q default' '#COBALT -A datascience' \
    'launcher --job-mode serial --time-limit-minutes 178 --wf-filter TEST'; do
    has "$(<script)" "$line"
  done
  # Here and now, on four nodes of this machine.
  "$kolo" submit-launch -n 4 -t 5 --scheduler local --job-mode serial --wf-filter TEST \
    --launcher-flags '--idle-seconds 0.3 --cpus-per-node 8'
  eventually 40 is_state 1 JOB_FINISHED
  has "$(cat testdb/data/TEST/test_1/test.out)" '40 evaluations'
  same "$(ls -d testdb/data/TEST/task*_* | wc -l)" 40
  same "$(grep -c ',DONE,' testdb/data/TEST/test_1/results.csv)" 40
  # (4 nodes − the master's) · 4 places − the search's own.
  has "$(cat testdb/data/TEST/test_1/init_infos.json)" '"num_workers": 11'
  same "$("$kolo" ls --by-states | awk '$2 == "JOB_FINISHED" { print $3 }')" 41
  # Node 0 is the master's.
  if "$kolo" ls --history | grep -q 'RUNNING\] on node0'; then fail 'a job ran on the master'; fi
  has "$("$kolo" ls wf)" TEST
  launch_finished() { "$kolo" ls queues | grep -q finished; }
  eventually 20 launch_finished
  has "$(cat testdb/log/launcher_*.log)" 'job 1 (test) starts on node'
  has "$(cat testdb/log/launcher_*.log)" '41 jobs finished, 0 failed'
  kolo_deactivate
  [[ -z "${KOLO_DB:-}" ]]
}

states() {
  new_database
  refused 1 'no launcher has run yet; `kolo launcher` starts one' "$kolo" log
  "$kolo" app --name hello --exec 'echo hello'
  "$kolo" app --name bad --exec "sh -c 'echo oh no; exit 3'"
  "$kolo" app --name flaky --exec "sh -c 'test -e again || { touch again; exit 1; }'"
  a="$("$kolo" job --name a --app hello --args 'x "y z" $(touch owned) ;')"
  b="$("$kolo" job --name b --app hello --parent "$a")"
  c="$("$kolo" job --name c --app bad)"
  d="$("$kolo" job --name d --app hello --parent "$c")"
  e="$("$kolo" job --name e --app flaky --max-retries 1)"
  f="$("$kolo" job --name f --app hello --num-nodes 2 --ranks-per-node 2)"
  g="$("$kolo" job --name g --app hello)"
  "$kolo" dep "$b" "$g"
  has "$("$kolo" ls --tree)" "└ $g g"
  refused 1 "job $a (a) has no output" "$kolo" log "$a"
  refused 1 "it is READY; \`kolo explain $a\` says why" "$kolo" log "$a"
  refused 1 'What a trial of a study printed is in its folder' env -u KOLO_DB "$kolo" log 1
  # Logs of a year ago make room.
  touch -d '1 year ago' "$KOLO_DB"/log/launcher_old_{1..120}.log
  has "$(launcher --nodes 2 --cpus-per-node 2)" '5 jobs finished, 1 failed'
  same "$(ls "$KOLO_DB/log" | wc -l)" 101
  same "$("$kolo" log "$a")" 'hello x y z $(touch owned) ;'
  has "$("$kolo" log)" '5 jobs finished, 1 failed'
  same "$(path_of "$a")" "$whole"
  same "$(<"$data/default/a_$a/a.out")" 'hello x y z $(touch owned) ;'
  [[ ! -e "$data/default/a_$a/owned" ]]
  same "$(path_of "$g")" "CREATED READY AWAITING_PARENTS READY ${whole#CREATED READY }"
  same "$(path_of "$c")" 'CREATED READY STAGED_IN PREPROCESSED RUNNING RUN_ERROR FAILED '
  has "$("$kolo" ls --history --id "$c")" 'exited with status 3; its output ends: oh no'
  same "$(path_of "$d")" 'CREATED AWAITING_PARENTS FAILED '
  same "$(path_of "$e")" 'CREATED READY STAGED_IN PREPROCESSED RUNNING RUN_ERROR RESTART_READY RUNNING RUN_DONE POSTPROCESSED JOB_FINISHED '
  same "$(grep -c hello "$data/default/f_$f/f.out")" 4
  has "$("$kolo" stats)" 'JOB_FINISHED       5'
  has "$("$kolo" ls --json --id "$c")" '"return_code": 3'
}

# What failed can be tried again, with what failed because of it; filters mean whole names.
retry() {
  new_database
  "$kolo" app --name bad --exec "sh -c 'echo oh no; exit 3'"
  "$kolo" app --name hello --exec 'echo hello'
  a="$("$kolo" job --name a --workflow TEST --app bad)"
  b="$("$kolo" job --name b --workflow TEST --app hello --parent "$a")"
  other="$("$kolo" job --name a --workflow S --app hello --num-nodes 9)"
  launcher --wf-filter TEST >/dev/null
  explained="$("$kolo" explain "$a")"
  for line in 'exited with status 3; its output ends: oh no' 'its exit status was 3' "$data/TEST/a_$a/a.out"; do
    has "$explained" "$line"
  done
  has "$("$kolo" explain "$b")" "kolo retry $a runs it again"
  refused 1 "retry job $a" "$kolo" retry "$b"
  "$kolo" app --name bad --exec 'echo good'
  same "$("$kolo" retry "$a")" '2 jobs run again'
  has "$(launcher --wf-filter 'T*T')" '2 jobs finished'
  same "$(state "$b")" JOB_FINISHED
  refused 1 'can be retried' "$kolo" retry "$a"
  refused 1 'has failed or was killed' "$kolo" retry --wf TEST
  # A part of a name selects nothing.
  refused 1 "no job has the workflow 'TES'" "$kolo" rm jobs --wf TES
  same "$("$kolo" kill --wf S)" 'killed 1 job'
  "$kolo" modify "$other" state RESTART_READY
  same "$(state "$other")" READY
  # A launcher that came for nothing says why.
  refused 1 'it needs 9 nodes, and 2 could be used' launcher --nodes 2
  refused 1 "no job has the workflow 'TSET'" launcher --wf-filter TSET
}

# Hooks, handlers, staging, inputs of parents, environment.
scripts() {
  new_database
  mkdir in && echo data >in/input.txt
  cat >pre <<'Y'
#!/bin/sh
echo "pre $KOLO_JOB_ID" >pre.txt
Y
  cat >post <<Y
#!/bin/sh
if [ "\${KOLO_JOB_ERROR:-}" = TRUE ]; then "$kolo" modify "\$KOLO_JOB_ID" state RESTART_READY; touch handled; fi
if [ "\${BALSAM_JOB_TIMEOUT:-}" = TRUE ]; then "$kolo" modify "\$KOLO_JOB_ID" state RUN_DONE; fi
echo post >>post.txt
Y
  chmod +x pre post
  echo 'export FROM_SCRIPT="set by script"' >env.sh
  "$kolo" app --name whole --exec "sh -c 'cat input.txt pre.txt; env'" --preprocess "$PWD/pre" --postprocess "$PWD/post" \
    --envscript env.sh
  "$kolo" app --name reader --exec 'cat out.dat'
  "$kolo" app --name writer --exec "sh -c 'echo parent >out.dat; echo no >secret.key'"
  "$kolo" app --name once --exec 'test -e handled' --postprocess "$PWD/post"
  "$kolo" app --name slow --exec 'sleep 60' --postprocess "$PWD/post"
  "$kolo" app --name badpre --exec true --preprocess 'sh -c "echo broken; exit 9"'
  "$kolo" app --name nothing --exec /no/such/program
  value=$'it\'s "so"\n$(touch owned) `x` $HOME'
  a="$("$kolo" job --name a --app whole --url-in "$PWD/in" --url-out "$PWD/out" --stage-out-files '*.txt' --env "ODD=$value" --threads-per-rank 2)"
  w="$("$kolo" job --name w --app writer)"
  r="$("$kolo" job --name r --app reader --parent "$w" --input-files '*.dat')"
  o="$("$kolo" job --name o --app once --post_handle_error)"
  s="$("$kolo" job --name s --app slow --time-limit 0.2 --post_handle_timeout)"
  p="$("$kolo" job --name p --app badpre)"
  n="$("$kolo" job --name n --app nothing)"
  launcher --nodes 2 --cpus-per-node 4 >/dev/null
  same "$(path_of "$a")" "$whole"
  output="$(<"$data/default/a_$a/a.out")"
  has "$output" data
  has "$output" "pre $a"
  has "$output" "ODD=$value"
  has "$output" 'FROM_SCRIPT=set by script'
  has "$output" 'OMP_NUM_THREADS=2'
  has "$output" "KOLO_DB=$KOLO_DB"
  has "$output" "BALSAM_JOB_ID=$a"
  [[ ! -e "$data/default/a_$a/owned" ]]
  same "$(<out/post.txt)" post
  same "$(<"$data/default/r_$r/r.out")" parent
  [[ ! -e "$data/default/r_$r/secret.key" ]]
  same "$(path_of "$o")" 'CREATED READY STAGED_IN PREPROCESSED RUNNING RUN_ERROR RESTART_READY RUNNING RUN_DONE POSTPROCESSED JOB_FINISHED '
  same "$(path_of "$s")" 'CREATED READY STAGED_IN PREPROCESSED RUNNING RUN_TIMEOUT RUN_DONE POSTPROCESSED JOB_FINISHED '
  same "$(path_of "$p")" 'CREATED READY STAGED_IN FAILED '
  has "$("$kolo" ls --history --id "$p")" 'broken'
  has "$("$kolo" ls --history --id "$n")" 'no such program'
  # A task makes jobs.
  "$kolo" app --name grow --exec "sh -c '\"$kolo\" job --name grown --app writer --parent \$KOLO_JOB_ID'"
  "$kolo" job --name grow --app grow >/dev/null
  launcher >/dev/null
  has "$("$kolo" ls --name grown)" JOB_FINISHED
}

limits() {
  new_database
  "$kolo" app --name sleep --exec 'sleep 60.25'
  "$kolo" app --name stubborn --exec "sh -c 'trap \"\" TERM; while :; do sleep 0.1; done'"
  a="$("$kolo" job --name a --app sleep --time-limit 0.3)"
  b="$("$kolo" job --name b --app stubborn --time-limit 0.3)"
  launcher --nodes 2 >/dev/null
  same "$(path_of "$a")" 'CREATED READY STAGED_IN PREPROCESSED RUNNING RUN_TIMEOUT FAILED '
  same "$(state "$b")" FAILED
  # The launcher's own time: what ran runs again later.
  c="$("$kolo" job --name c --app sleep)"
  d="$("$kolo" job --name d --app sleep --disable-auto-timeout-retry)"
  launcher --nodes 2 --time-limit-minutes 0.02 >/dev/null
  same "$(path_of "$c")" 'CREATED READY STAGED_IN PREPROCESSED RUNNING RUN_TIMEOUT RESTART_READY '
  same "$(state "$d")" FAILED
  # And when it is told to end.
  "$kolo" launcher --persistent --grace-seconds 1 >/dev/null &
  eventually 20 is_state "$c" RUNNING
  kill %1
  wait %1 || true
  eventually 20 is_state "$c" RESTART_READY
  # The same by the warning of a batch system, which may reach custodians too.
  "$kolo" launcher --persistent --grace-seconds 1 >/dev/null &
  eventually 20 is_state "$c" RUNNING
  for pid in $(pgrep -P $!) $!; do kill -USR2 "$pid"; done
  wait $! || true
  eventually 20 is_state "$c" RESTART_READY
  has "$("$kolo" ls --history --id "$c" | tail -n 2)" 'RUN_TIMEOUT] the launcher was told to end (signal 12)'
  if pgrep -f '^sleep 60.25$' >/dev/null; then fail 'a task was left behind'; fi
}

kill_jobs() {
  new_database
  "$kolo" app --name tree --exec "sh -c 'sleep 61 & sleep 61; wait'"
  a="$("$kolo" job --name a --app tree)"
  b="$("$kolo" job --name b --app tree --parent "$a")"
  c="$("$kolo" job --name c --app tree --parent "$b")"
  "$kolo" launcher --persistent --grace-seconds 1 &
  eventually 20 is_state "$a" RUNNING
  has "$("$kolo" explain "$b")" "it waits for job $a"
  why_waiting() { "$kolo" ls --history --id "$1" | sed -n 's/^.*AWAITING_PARENTS\] //p'; }
  same "$(why_waiting "$b")" 'waits for 1 job'
  d="$("$kolo" job --name d --app tree --parent "$a" --parent "$b")"
  same "$(why_waiting "$d")" 'waits for 2 jobs'
  has "$("$kolo" explain "$a")" 'has it'
  refused 1 'holds job' "$kolo" rm jobs --id "$a"
  has "$("$kolo" kill --id "$a" --recursive)" 'killed 4 jobs'
  same "$(state "$c")" USER_KILLED
  nothing_sleeps() { ! pgrep -f '^sleep 61$' >/dev/null; }
  eventually 20 nothing_sleeps
  let_go() { "$kolo" ls --json --id "$a" | grep -q '"launcher": 0'; }
  eventually 20 let_go
  kill %1
  wait %1 || true
}

# Killed without a word: its jobs run again with the next one, and its tasks end.
lost_launcher() {
  new_database
  "$kolo" app --name long --exec 'sleep 62'
  a="$("$kolo" job --name a --app long)"
  "$kolo" launcher --grace-seconds 1 & # its lease is 60 s
  first=$!
  eventually 20 is_state "$a" RUNNING
  kill -9 "$first"
  wait "$first" 2>/dev/null || true
  "$kolo" launcher --grace-seconds 1 --persistent &
  second=$!
  again() { [[ "$("$kolo" ls --history --id "$a" | grep -c 'RUNNING\] on')" == 2 ]]; }
  eventually 20 again
  has "$("$kolo" ls --history --id "$a")" "the process $first of launcher 1"
  one_sleeps() { [[ "$(pgrep -fc '^sleep 62$')" == 1 ]]; }
  eventually 20 one_sleeps
  kill "$second"
  wait "$second" || true
}

bad_input() {
  refused 1 'no database of jobs is active' env -u KOLO_DB "$kolo" ls
  refused 1 'does not contain a job database' "$kolo" activate nowhere
  refused 1 'cannot connect' "$kolo" init failed --db postgresql://nobody@127.0.0.1:1/none
  [[ ! -e failed ]] || fail 'what could not be made left a folder behind'
  has "$("$kolo" init 'two words')" "eval \"\$(kolo activate 'two words')\""
  new_database
  refused 1 'already contains a job database' "$kolo" init testdb
  refused 1 'no application' "$kolo" job --name a --app none
  has "$("$kolo" app --name hello --exec 'echo hullo')" 'added application hello'
  has "$("$kolo" app --name hello --exec 'echo hello')" 'changed application hello'
  refused 1 "did you mean 'hello'" "$kolo" job --name a --app helo
  refused 1 'no job 77' "$kolo" job --name a --app hello --parent 77
  refused 2 'not the number of a job' "$kolo" job --name a --app hello --parent x
  refused 2 'no name' "$kolo" job --app hello
  refused 2 'cannot be the name of a folder' "$kolo" job --name a/b --app hello
  refused 2 'there is no option --nonsense' "$kolo" job --nonsense 3
  refused 2 '--num-nodes' "$kolo" job --name a --app hello --num 3 --n 4
  refused 2 'NAME=VALUE' "$kolo" job --name a --app hello --env X
  refused 2 'has no end' "$kolo" app --name x --exec "echo 'a"
  head -c 10000000 /dev/zero | tr '\0' x | sed 's/^/{"args":"/; s/$/"}/' >big.jsonl
  refused 2 'write it to a file' "$kolo" job --name big --app hello --file big.jsonl
  printf '{"parents":[1.5]}\n' >odd.jsonl
  refused 2 'parents are numbers of jobs, not 1.5' "$kolo" job --name odd --app hello --file odd.jsonl
  printf '[{"name":"a"}]\n' >odd.jsonl
  refused 2 'odd.jsonl:1: each line is one JSON object' "$kolo" job --app hello --file odd.jsonl
  refused 1 "no job has the workflow 'nothing'" "$kolo" rm jobs --wf nothing
  refused 2 'no jobs are selected' "$kolo" rm jobs
  a="$("$kolo" job --name a --app hello)"
  b="$("$kolo" job --name b --app hello --parent "$a")"
  refused 2 'neither could start' "$kolo" dep "$b" "$a"
  refused 2 "job $a cannot wait for itself" "$kolo" dep "$a" "$a"
  refused 2 "column 'nme' is unknown; did you mean 'name'?" "$kolo" ls --columns nme
  refused 1 "runner 'srn' is unknown; did you mean 'srun'?" "$kolo" launcher --runner srn
  printf '{"nme":"a"}\n' >odd.jsonl
  refused 2 "odd.jsonl:1: field 'nme' is unknown; did you mean 'name'?" "$kolo" job --app hello --file odd.jsonl
  large="$("$kolo" job --name large --app hello --threads-per-rank 100000)"
  many="$("$kolo" job --name many --app hello --num-nodes 50)"
  other="$("$kolo" job --name other --workflow elsewhere --app hello)"
  has "$("$kolo" explain "$large")" 'no launcher is alive'
  "$kolo" launcher --nodes 2 --wf-filter default --persistent --grace-seconds 1 &
  eventually 20 is_state "$b" JOB_FINISHED
  has "$("$kolo" explain "$large")" 'it needs 100000 cores on a node'
  has "$("$kolo" explain "$many")" 'it needs 50 nodes, and 2 could be used'
  has "$("$kolo" explain "$other")" "it takes only jobs of the workflow default, and this one is of elsewhere"
  kill %1
  wait %1 || true
  refused 1 'no job 99' "$kolo" explain 99
  refused 1 "did you mean" "$kolo" modify "$large" thread_per_rank 1
  "$kolo" modify "$large" threads_per_rank 1
  refused 1 'cannot go from' "$kolo" modify "$large" state RUN_DONE
  same "$("$kolo" rm jobs --all)" 'removed 5 jobs'
  # A database of a newer version.
  sed -i 's/"version":1/"version":9/' "$KOLO_DB/kolo-jobs.json"
  refused 1 'use a newer kolo' "$kolo" ls
}

# Commands of batch systems on PATH that answer as the real ones do, and as they should not.
batch_fakes() {
  new_database
  mkdir bin
  fake() { printf '#!/bin/bash\necho "$0 $*" >>%q/calls\n%s\n' "$scratch" "$2" >"bin/$1"; chmod +x "bin/$1"; }
  export PATH="$scratch/bin:$PATH"
  submit() { "$kolo" submit-launch -n 3 -t 90 -q fast -A proj --sched-flags '-m be' --scheduler "$@"; }
  queue_says() { has "$("$kolo" ls queues 2>&1)" "$1"; }

  fake qsub 'grep "^#PBS" "${@: -1}" >seen; echo 1234.server.site'
  fake qstat 'printf "Job id  Name  User  Time Use S Queue\n------ ---- ---- ---- - ---\n1234.server  kolo  me  00:00:01 %s fast\n" "${ANSWER:-Q}"'
  fake qdel ''
  has "$(submit pbs)" 'pbs job 1234.server.site'
  for line in '#PBS -l select=3' '#PBS -l walltime=01:30:00' '#PBS -q fast' '#PBS -A proj' '#PBS -m be'; do has "$(<seen)" "$line"; done
  queue_says '1234.server.site  queued'
  ANSWER=R queue_says '1234.server.site  running'
  refused 1 'there is no launch 99' "$kolo" rm queues 99
  refused 2 'no launch is selected' "$kolo" rm queues
  same "$("$kolo" rm queues 1)" 'cancelled 1 launch'
  has "$(<calls)" 'qdel 1234.server.site'
  ANSWER='???' queue_says 'qstat answered: 1234.server kolo me 00:00:01 ??? fast'
  fake qstat 'echo "qstat: Unknown Job Id 1234.server" >&2; exit 153'
  queue_says '1234.server.site  finished'

  fake qsub '[[ "$1 $2" == "--mode script" ]] || exit 1; grep "^#COBALT" "$3" >seen; echo; echo "*** welcome ***"; echo 555'
  fake qstat 'printf "JobID  State\n============\n555  %s\n" "${ANSWER:-queued}"'
  has "$(submit cobalt)" 'cobalt job 555'
  has "$(<seen)" '#COBALT -t 90'
  queue_says '555               queued'
  ANSWER=running queue_says '555               running'
  ANSWER='<xml garbage>' queue_says 'qstat answered'
  fake qstat 'echo "no route to server" >&2; exit 1'
  queue_says 'no route to server'
  queue_says '555               unknown'
  fake qstat ''
  queue_says '555               finished'

  fake bsub 'grep "^#BSUB" >seen; echo "Job <777> is submitted to queue <fast>."'
  fake bjobs 'printf "777 %s\n" "${ANSWER:-PEND}"'
  has "$(submit lsf)" 'lsf job 777'
  for line in '#BSUB -nnodes 3' '#BSUB -W 1:30' '#BSUB -q fast' '#BSUB -P proj'; do has "$(<seen)" "$line"; done
  queue_says '777               queued'
  fake bkill 'echo "Job <777>: not yours"; exit 255'
  # Where one system refuses, the others are asked all the same.
  fake qsub 'echo 4321.server.site'
  fake qstat 'echo "4321.server  kolo  me  00:00:01 Q fast"'
  has "$(submit pbs)" 'pbs job 4321.server.site'
  refused 1 'not yours' "$kolo" rm queues --all
  has "$(<calls)" 'qdel 4321.server.site'
  fake qstat ''
  fake bkill ''
  same "$("$kolo" rm queues --all)" 'cancelled 1 launch'
  has "$(<calls)" 'bkill 777'
  ANSWER=EXIT queue_says '777               finished'

  fake sbatch 'echo 888'
  fake squeue 'echo "888 ${ANSWER:-PENDING Resources}"'
  has "$(submit slurm)" 'slurm job 888'
  queue_says 'Resources'
  ANSWER='RUNNING None' queue_says '888               running'
  fake squeue ''
  queue_says '888               finished'

  fake qsub '[[ "$1" == -terse ]] || exit 1; grep "^#\\$" "$2" >seen; echo 42'
  fake qstat 'printf "job-ID  prior   name user state submit/start at queue slots\n-----\n     42 0.50000 kolo me %s 01/01/2026 00:00:00 all.q 1\n" "${ANSWER:-qw}"'
  refused 2 "name one: --sched-flags '-pe NAME 3'" submit grid-engine
  has "$(submit grid-engine --sched-flags '-pe nodes 3')" 'grid-engine job 42'
  for line in '#$ -l h_rt=01:30:00' '#$ -notify' '#$ -pe nodes 3'; do has "$(<seen)" "$line"; done
  queue_says '42                queued'
  ANSWER=r queue_says '42                running'
  ANSWER=dr queue_says '42                running'
  ANSWER=Eqw queue_says '42                queued'
  ANSWER=Eqw queue_says 'qstat answered: 42 0.50000 kolo me Eqw'
  # What others have there is not our trouble.
  fake qstat 'printf "     43 0.50000 their job you r 01/01/2026 00:00:00 all.q 1\n"'
  queue_says '42                finished'
  # It is known by a command that the others do not have.
  mkdir alone
  for tool in qsub qconf; do ln -s "$scratch/bin/qsub" "alone/$tool"; done
  has "$(env -u SGE_ROOT -u KOLO_BATCH_SYSTEM PATH="$scratch/alone" "$kolo" submit-launch --dry-run)" '#$ -N kolo'

  # Answers that cannot be understood are shown, and change nothing.
  fake qsub 'echo "qsub: queue fast is closed" >&2; exit 3'
  refused 1 'queue fast is closed' submit pbs
  fake qsub 'echo "all good"'
  refused 1 'did not answer with a job'"'"'s number: all good' submit pbs
  rm bin/qsub
  PATH="$scratch/bin" refused 1 'cannot run qsub' submit pbs
  queue_says 'submit-failed'
  # One that fails although its job was taken: the job ends at once, and nothing is left to run twice.
  fake sbatch 'cp "${@: -1}" taken; echo "sbatch: error: Socket timed out on send/recv operation" >&2; exit 1'
  refused 1 'Socket timed out on send/recv operation; no launcher will run' submit slurm
  has "$(bash taken)" 'this launch was given up'
  search() { "$kolo" submit hps random -w again --problem benchmark.hps.ackley --max-evals 3 --scheduler slurm; }
  searches() { "$kolo" ls --wf again --json | grep -c '"state"' || true; }
  refused 1 'no launcher will run' search
  same "$(searches)" 0
  fake sbatch 'kill -9 $PPID; echo 889'
  search >/dev/null 2>&1 && fail 'kolo was not killed'
  same "$(searches)" 1
  fake sbatch 'echo 890'
  has "$(search)" 'found job'
  same "$(searches)" 1
  # The user's own template.
  printf '#!/bin/sh\n# mine: {{nodes}} nodes ${x}\n{{commands}}\n' >"$KOLO_DB/job-template.sh"
  has "$("$kolo" submit-launch -n 3 --scheduler pbs --dry-run)" '# mine: 3 nodes ${x}'
  printf '#!/bin/sh\n#$ -pe nodes {{nodes}}\n{{commands}}\n' >"$KOLO_DB/job-template.sh"
  has "$("$kolo" submit-launch -n 3 --scheduler grid-engine --dry-run)" '#$ -pe nodes 3'
  echo '{{nonsense}}' >"$KOLO_DB/job-template.sh"
  refused 2 'nonsense' "$kolo" submit-launch -n 3 --scheduler pbs --dry-run
  refused 1 'batch system' "$kolo" submit-launch --scheduler slurmy
}

# Nodes at the end of ssh; one of them is lost.
by_ssh() {
  new_database
  cat >ssh <<'Y'
#!/bin/bash
while [[ "$1" != -- ]]; do shift; done
exec env -i PATH="$PATH" HOME="$HOME" FAKE_HOST="$2" SSH_CONNECTION='127.0.0.1 1 127.0.0.1 2' sh -c "$3"
Y
  chmod +x ssh
  export KOLO_SSH="$scratch/ssh" CARRIED=yes
  "$kolo" app --name where --exec "sh -c 'echo at \$FAKE_HOST \$CARRIED'"
  "$kolo" app --name long --exec 'sleep 63'
  a="$("$kolo" job --name a --app where)"
  f="$("$kolo" job --name f --app where --num-nodes 2)"
  launcher -H alpha:2,beta:2 >/dev/null
  same "$(<"$data/default/a_$a/a.out")" 'at alpha yes'
  for host in alpha beta; do has "$(<"$data/default/f_$f/f.out")" "at $host yes"; done
  b="$("$kolo" job --name b --app long)"
  "$kolo" launcher -H alpha:2,beta:2 --persistent --grace-seconds 1 2>launcher.err &
  eventually 20 is_state "$b" RUNNING
  for pid in $(pgrep -f 'kolo custodian$'); do
    if grep -qsz '^FAKE_HOST=alpha$' "/proc/$pid/environ" && grep -qsz "^SSH_CONNECTION=" "/proc/$pid/environ"; then kill -9 "$pid"; fi
  done
  elsewhere() { "$kolo" ls --history --id "$b" | grep -q 'RUNNING\] on beta'; }
  eventually 20 elsewhere
  has "$("$kolo" ls --history --id "$b")" 'node alpha was lost'
  "$kolo" kill --id "$b" >/dev/null
  kill %1
  wait %1 || true
}

local_queue() {
  new_database
  "$kolo" app --name hello --exec 'echo hello'
  a="$("$kolo" job --name a --app hello)"
  "$kolo" submit-launch -n 2 -t 5 --scheduler local --launcher-flags '--idle-seconds 0.2'
  eventually 20 is_state "$a" JOB_FINISHED
  is_finished() { "$kolo" ls queues | grep -q finished; }
  eventually 20 is_finished
  has "$("$kolo" log)" '1 job finished'
  has "$("$kolo" log --id "$a")" hello
}

# What a job leaves behind, in a session of its own, ends with the job and with the launcher.
strays() {
  new_database
  "$kolo" app --name leaves --exec "sh -c 'setsid sleep 71.$$ & sleep 0.2'"
  "$kolo" app --name stays --exec "sh -c 'setsid sleep 72.$$ & sleep 60.25'"
  none_left() { ! pgrep -f "sleep $1.$$\$" >/dev/null; }
  some_left() { ! none_left "$1"; }
  a="$("$kolo" job --name a --app leaves)"
  launcher >/dev/null
  same "$(state "$a")" JOB_FINISHED
  none_left 71 || fail 'a child of a job outlives it'
  b="$("$kolo" job --name b --app stays)"
  "$kolo" launcher --persistent --grace-seconds 1 >/dev/null &
  eventually 20 some_left 72
  kill -9 %1
  wait %1 2>/dev/null || true
  eventually 20 none_left 72
}

case "$case_name" in
  kill) kill_jobs ;;
  session | states | retry | scripts | limits | lost_launcher | bad_input | batch_fakes | local_queue | by_ssh | strays)
    "$case_name" ;;
  *) printf 'unknown case %s\n' "$case_name" >&2; exit 2 ;;
esac
