# A Grid Engine for tests: sge_qmaster on the first of the hosts of hosts.sh, which must be up, and sge_execd on each of them.
# Sourced, not run.
#
#   grid_engine_possible      returns 77 (after saying why) where it cannot be
#   grid_engine_up_on_hosts   starts it and waits until all hosts answer; exports SGE_ROOT and SGE_CELL, so that qsub, qstat …
#                             use it: run_on "${hosts[0]}" qstat.
#                             It has the queue all.q, a slot on each host, and the parallel environment "nodes" for -pe nodes 3.
#   grid_engine_stop_master   ends sge_qmaster at once, as if its host had been lost; jobs go on
#   grid_engine_start_master  starts it (again)
#   grid_engine_down          ends the daemons at once; their jobs end and their files go with the hosts: hosts_down
#
# All files are the caller's own, and networks are those of the hosts, so that several can exist at once. What the packages
# have set up on this machine is not touched.
# shellcheck shell=bash disable=SC2154

grid_engine_dir=''

# A command whose words matter only if it fails.
_grid_engine_do() {
  local output
  if ! output="$("$@" 2>&1)"; then
    _grid_engine_say "$* failed: $output"
    return 1
  fi
}

_grid_engine_say() { printf 'grid engine: %s\n' "$*" >&2; }

grid_engine_possible() {
  local tool
  if ((EUID != 0)); then
    _grid_engine_say 'skipped: the daemons need root'
    return 77
  fi
  for tool in sge_qmaster sge_execd qsub qstat qhost /usr/lib/gridengine/spooldefaults /usr/share/gridengine/util/arch; do
    if ! command -v "$tool" >/dev/null; then
      _grid_engine_say "skipped: $tool is not installed (packages gridengine-master, gridengine-exec, gridengine-client)"
      return 77
    fi
  done
}

grid_engine_up_on_hosts() {
  local name
  grid_engine_possible || return
  grid_engine_dir="$hosts_dir/grid_engine"
  export SGE_ROOT="$grid_engine_dir" SGE_CELL=kolo
  _grid_engine_write_cell
  grid_engine_start_master || return
  _grid_engine_set_up_queue
  for name in "${hosts[@]}"; do
    run_on "$name" env SGE_ND=1 sge_execd >"$grid_engine_dir/execd.$name.out" 2>&1 </dev/null &
  done
  _hosts_until 30 _grid_engine_ready && return
  tail -n 5 "$grid_engine_dir"/*.out "$grid_engine_dir"/spool/*/messages "$grid_engine_dir"/spool/messages >&2
  run_on "${hosts[0]}" qstat -f >&2
  _grid_engine_say 'some hosts did not answer the master within 30 s'
  return 1
}

grid_engine_start_master() {
  run_on "${hosts[0]}" env SGE_ND=1 sge_qmaster >>"$grid_engine_dir/qmaster.out" 2>&1 </dev/null &
  _hosts_until 30 _grid_engine_answers && return
  tail -n 5 "$grid_engine_dir/qmaster.out" "$grid_engine_dir/spool/messages" >&2
  _grid_engine_say 'the master did not answer within 30 s'
  return 1
}

grid_engine_stop_master() {
  _grid_engine_kill sge_qmaster
  _hosts_until 30 _grid_engine_is_silent && return
  _grid_engine_say 'the master was there 30 s after its end'
  return 1
}

# They take their time when they are asked.
grid_engine_down() {
  _grid_engine_kill sge_execd
  _grid_engine_kill sge_qmaster
}

_grid_engine_kill() {
  local name pid
  for name in "${hosts[@]}"; do
    for pid in $(pids_on "$name"); do
      if [[ "$(ps -o comm= -p "$pid" || true)" == "$1" ]]; then kill -9 "$pid" 2>/dev/null || true; fi
    done
  done
}

_grid_engine_answers() { run_on "${hosts[0]}" qhost >/dev/null 2>&1; }
_grid_engine_is_silent() { ! _grid_engine_answers; }
# Queues of hosts that have not reported a load have state "au".
_grid_engine_ready() {
  [[ "$(run_on "${hosts[0]}" qstat -f 2>/dev/null | awk '/^all.q@/ && NF == 5' | wc -l)" == "${#hosts[@]}" ]]
}

# What the master does not take from files.
_grid_engine_set_up_queue() {
  local at=(run_on "${hosts[0]}" qconf) dir="$grid_engine_dir"
  "${at[@]}" -ssconf | sed -e 's/^schedule_interval .*/schedule_interval 0:0:1/' \
    -e 's/^\(flush_[a-z]*_sec\) .*/\1 1/' -e 's/^job_load_adjustments .*/job_load_adjustments NONE/' >"$dir/scheduler"
  _grid_engine_do "${at[@]}" -Msconf "$dir/scheduler"
  "${at[@]}" -sq | sed -e 's/^qname .*/qname all.q/' -e "s/^hostlist .*/hostlist ${hosts[*]}/" -e 's/^pe_list .*/pe_list nodes/' \
    -e 's/^load_thresholds .*/load_thresholds NONE/' -e 's,^shell .*,shell /bin/bash,' >"$dir/all.q"
  _grid_engine_do "${at[@]}" -Aq "$dir/all.q"
}

# A cell as the installation makes one: files, from which the master begins.
_grid_engine_write_cell() {
  local dir="$grid_engine_dir" common="$grid_engine_dir/kolo/common" i name
  local resources=/usr/share/gridengine/util/resources tool=/usr/lib/gridengine
  mkdir -p "$common" "$dir/spool" "$dir/admin" "$dir/exec" "$dir/pe"
  ln -s /usr/share/gridengine/util "$dir/util"
  for name in bin lib utilbin; do
    mkdir "$dir/$name"
    ln -s /usr/lib/gridengine "$dir/$name/$(/usr/share/gridengine/util/arch)"
  done
  cat >"$common/bootstrap" <<X
admin_user              none
default_domain          none
ignore_fqdn             false
spooling_method         classic
spooling_lib            libspoolc
spooling_params         $common;$dir/spool
binary_path             /usr/sbin
qmaster_spool_dir       $dir/spool
security_mode           none
listener_threads        2
worker_threads          2
scheduler_threads       1
X
  printf '%s\n' "${hosts[0]}" >"$common/act_qmaster"
  # As it comes, jobs of root are refused, and hosts are heard of every 40 s.
  sed -e "s,^execd_spool_dir .*,execd_spool_dir $dir/spool," -e 's/^min_\([ug]\)id .*/min_\1id 0/' \
    -e 's,^mailer .*,mailer /bin/true,' -e 's/^load_report_time .*/load_report_time 0:0:2/' \
    -e 's/^loglevel .*/loglevel log_info/' /usr/share/gridengine/default-configuration >"$dir/global"
  for name in "${hosts[@]}"; do
    printf 'hostname %s\n' "$name" >"$dir/admin/$name"
    {
      printf 'hostname %s\n' "$name"
      printf '%s NONE\n' load_scaling complex_values user_lists xuser_lists projects xprojects usage_scaling report_variables
    } >"$dir/exec/$name"
  done
  sed -e 's/^pe_name .*/pe_name nodes/' -e 's/^allocation_rule .*/allocation_rule 1/' "$resources/pe/mpi" >"$dir/pe/nodes"
  _grid_engine_do "$tool/spoolinit" classic libspoolc "$common;$dir/spool" init
  local fill=(_grid_engine_do run_on "${hosts[0]}" "$tool/spooldefaults")
  "${fill[@]}" configuration "$dir/global"
  for i in "${!hosts[@]}"; do
    # Daemons end what has a group of their range: on one machine each needs its own.
    printf 'gid_range %d-%d\n' $((100000000 + $$ * 40 + i * 10)) $((100000000 + $$ * 40 + i * 10 + 9)) >"$dir/local"
    "${fill[@]}" local_conf "$dir/local" "${hosts[i]}"
  done
  "${fill[@]}" complexes "$resources/centry"
  "${fill[@]}" usersets "$resources/usersets"
  "${fill[@]}" managers root
  "${fill[@]}" adminhosts "$dir/admin"
  "${fill[@]}" submithosts "$dir/admin"
  "${fill[@]}" exechosts "$dir/exec"
  "${fill[@]}" pes "$dir/pe"
}
