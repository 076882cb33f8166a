#include "exec/start_task.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/errors.h"
#include "base/files.h"
#include "base/pipe.h"
#include "base/socket.h"
#include "base/subprocess.h"
#include "exec/binding.h"
#include "exec/process_tree.h"

namespace kolo::exec {
namespace {

/// Logs of a user are the user's alone. An earlier task may have put something else in their place.
Fd open_log(const std::filesystem::path& path) {
  if (!path.empty()) return open_plain_file(path, O_WRONLY | O_CREAT | O_APPEND);
  Fd nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (!nowhere.valid()) throw_errno("cannot open /dev/null");
  return nowhere;
}

std::size_t size_of(const Fd& file) {
  struct stat facts {};
  return ::fstat(file.get(), &facts) == 0 && S_ISREG(facts.st_mode)
             ? static_cast<std::size_t>(facts.st_size)
             : 0;
}

/// The task's own processors, as a set.
std::optional<cpu_set_t> processors_of(const Task& task) {
  if (task.share.bind_to != BindTo::none)
    return processors_for_ranks(task.share.bind_to, task.share.count)
        .at(static_cast<std::size_t>(task.share.index));
  if (task.cpus.empty()) return std::nullopt;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : task.cpus)
    if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(static_cast<std::size_t>(cpu), &set);
  return set;
}

Environment environment_of(const Task& task, const std::vector<Fd>& passed,
                           const TaskGround& ground, const std::optional<cpu_set_t>& cpus) {
  Environment environment = merge_environment(ground.environment, task.environment);
  Environment additions = {mark_entry(environment, ground.mark)};
  for (std::size_t i = 0; i < passed.size(); ++i)
    additions.push_back(fmt::format("{}={}", task.descriptors[i].variable, passed[i].get()));
  if (ground.secret >= 0) {
    additions.push_back(fmt::format("KOLO_SECRET_FD={}", ground.secret));
    additions.push_back(fmt::format("KOLO_CUSTODIAN_PID={}", ::getpid()));
  }
  environment = merge_environment(std::move(environment), additions);
  if (task.share.count > 0)
    add_default(environment,
                fmt::format("OMP_NUM_THREADS={}", threads_for_rank(cpus, task.share.count)));
  // Without it lines of Python programs come late, in blocks.
  if (task.streams.to_owner) add_default(environment, "PYTHONUNBUFFERED=1");
  return environment;
}

}  // namespace

StartedTask start_task(const Task& task, const std::vector<Fd>& passed, const TaskGround& ground) {
  StartedTask started;
  SpawnOptions options;
  options.argv = task.argv;
  options.cpus = processors_of(task);
  options.environment = environment_of(task, passed, ground, options.cpus);
  options.directory = task.directory;
  options.own_process_group = true;
  options.die_with_parent = true;
  Fd out, err;
  if (task.streams.to_owner) {
    Pipe out_pipe = make_pipe(), err_pipe = make_pipe();
    out = std::move(out_pipe.write);
    err = std::move(err_pipe.write);
    started.out = std::move(out_pipe.read);
    started.err = std::move(err_pipe.read);
    set_non_blocking(started.out.get());
    set_non_blocking(started.err.get());
  } else {
    out = open_log(task.streams.out);
    if (task.streams.err != task.streams.out) err = open_log(task.streams.err);
    started.said_in = task.streams.err;
    started.said_from = size_of(err.valid() ? err : out);
  }
  options.standard_output = out.get();
  options.standard_error = err.valid() ? err.get() : out.get();
  for (const Fd& one : passed) options.keep.push_back(one.get());
  for (const int one : {ground.family_lock, ground.secret})
    if (one >= 0) options.keep.push_back(one);
  started.leader = spawn(options);
  return started;
}

}  // namespace kolo::exec
