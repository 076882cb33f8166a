#include "launch/batch/batch_system.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "base/env.h"
#include "base/errors.h"
#include "base/words.h"

namespace kolo::launch {
namespace {

constexpr Entry<MakeBatchSystem> kBatchSystems[] = {
    {"slurm", "sbatch, squeue, scancel", make_slurm},
    {"pbs", "PBS Professional, OpenPBS, Torque: qsub, qstat, qdel", make_pbs},
    {"cobalt", "Argonne's Cobalt: qsub, qstat, qdel", make_cobalt},
    {"lsf", "bsub, bjobs, bkill", make_lsf},
    {"grid-engine", "Grid Engine: qsub -terse, qstat, qdel", make_grid_engine},
    {"local", "no batch system: a process of this machine", make_local},
};
constexpr Registry<MakeBatchSystem> kBatchTable{"batch system", kBatchSystems};

constexpr auto kPatience = std::chrono::seconds(60);

bool on_path(const char* program) {
  try {
    find_program(program, environment("PATH").value_or(""));
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::string_view to_string(BatchState state) {
  constexpr std::string_view kNames[] = {"queued", "running", "finished", "unknown"};
  return kNames[static_cast<std::size_t>(state)];
}

const Registry<MakeBatchSystem>& batch_systems() { return kBatchTable; }

std::unique_ptr<BatchSystem> make_batch_system(const std::string& name) {
  if (!name.empty()) return kBatchTable.at(name).make();
  if (auto chosen = environment("KOLO_BATCH_SYSTEM")) return kBatchTable.at(*chosen).make();
  if (on_path("sbatch")) return make_slurm();
  if (on_path("bsub")) return make_lsf();
  if (on_path("qsub")) {
    // Three systems have a command of this name. Debian's Grid Engine sets no variables.
    if (environment("SGE_ROOT") || on_path("qconf")) return make_grid_engine();
    if (environment("COBALT_CONFIG_FILES") || on_path("cqstat")) return make_cobalt();
    return make_pbs();
  }
  return make_local();
}

namespace {

/// A value ends where its line ends: what followed would be a command of the script.
void check_line(std::string_view what, const std::string& value) {
  if (std::any_of(value.begin(), value.end(),
                  [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
    throw_error(ErrorCode::invalid_argument,
                "{} of a batch job has a line break or another control character: {}", what,
                shell_quoted(value));
}

}  // namespace

void BatchSystem::check_lines(const BatchRequest& request) const {
  check_line("the queue", request.queue);
  check_line("the project", request.project);
  for (const auto& flag : request.flags) check_line("a flag", flag);
  check_line("the log", request.log);
  if (request.log.find_first_of(not_in_log()) != std::string::npos)
    throw_error(ErrorCode::invalid_argument,
                "{} cannot write its log to {}: the path has blanks, quotes or backslashes", name(),
                request.log);
}

std::string BatchSystem::write_script(std::string_view text, const BatchRequest& request) const {
  check_lines(request);
  std::string directives_queue, directives_project, directives_flags;
  if (!request.queue.empty()) directives_queue = directive("queue", request.queue);
  if (!request.project.empty()) directives_project = directive("project", request.project);
  for (const auto& flag : request.flags) directives_flags += directive("flag", flag) + "\n";
  if (!directives_flags.empty()) directives_flags.pop_back();
  const std::map<std::string_view, std::string> values = {
      {"nodes", std::to_string(request.nodes)},
      {"minutes", std::to_string(request.minutes)},
      {"hours", fmt::format("{:02}:{:02}:00", request.minutes / 60, request.minutes % 60)},
      {"lsf_hours", fmt::format("{}:{:02}", request.minutes / 60, request.minutes % 60)},
      {"queue", directives_queue},
      {"project", directives_project},
      {"flags", directives_flags},
      {"log", request.log},
      {"log_word", shell_quoted(request.log)},
      {"commands", request.commands}};
  std::string script;
  std::size_t at = 0;
  for (;;) {
    // {{word}}: the braces of a shell's ${x} stay as they are.
    const auto open = text.find("{{", at);
    script += text.substr(at, open - at);
    if (open == std::string_view::npos) break;
    const auto end = text.find("}}", open);
    const auto name = text.substr(open + 2, end == std::string_view::npos ? 0 : end - open - 2);
    const auto value = values.find(name);
    if (value == values.end())
      throw_error(ErrorCode::invalid_argument,
                  "the script's template has {{{{{}}}}}, which is unknown; known: nodes, minutes, "
                  "hours, lsf_hours, queue, project, flags, log, log_word, commands",
                  name);
    script += value->second;
    at = end + 2;
    // A line that held nothing else is not left empty.
    if (value->second.empty() && (script.empty() || script.back() == '\n') && at < text.size() &&
        text[at] == '\n')
      ++at;
  }
  return script;
}

CommandResult try_to_ask(const std::vector<std::string>& command) {
  try {
    return run_command(command, Deadline::after(kPatience));
  } catch (const Error& error) {
    throw_error(ErrorCode::unavailable, "{}", error.message());
  }
}

CommandResult ask(const std::vector<std::string>& command) {
  CommandResult result = try_to_ask(command);
  if (!result.ok())
    throw_error(ErrorCode::unavailable, "{} {}: {}", command[0],
                describe_wait_status(result.status), shortened(result.errors + result.output));
  return result;
}

std::string shortened(std::string_view text) {
  std::string line(text.substr(0, 400));
  for (char& c : line)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  while (line.ends_with(' ')) line.pop_back();
  if (text.size() > 400) line += " …";
  return line.empty() ? "(no answer)" : line;
}

std::vector<std::vector<std::string>> table_of(std::string_view text) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    rows.emplace_back(std::istream_iterator<std::string>(words),
                      std::istream_iterator<std::string>());
  }
  return rows;
}

std::vector<std::string> about(std::vector<std::string> command,
                               const std::vector<std::string>& ids) {
  command.insert(command.end(), ids.begin(), ids.end());
  return command;
}

BatchAnswer trouble_with(std::string_view tool, const CommandResult& result,
                         const std::vector<std::string>& ids) {
  BatchAnswer answer;
  answer.trouble = fmt::format("{} {}: {}", tool, describe_wait_status(result.status),
                               shortened(result.errors + result.output));
  fill_in(answer, ids, BatchState::unknown);
  return answer;
}

BatchAnswer answer_from(std::string_view tool, const CommandResult& result, bool forgotten,
                        const std::vector<std::string>& ids,
                        BatchState (*state_of)(std::string_view word)) {
  if (!result.ok() && !forgotten) return trouble_with(tool, result, ids);
  BatchAnswer answer;
  for (const auto& row : table_of(result.output)) {
    if (row.empty()) continue;
    const BatchState state = row.size() >= 2 ? state_of(row[1]) : BatchState::unknown;
    if (state == BatchState::unknown)
      answer.trouble =
          fmt::format("{} answered: {}", tool, shortened(fmt::format("{}", fmt::join(row, " "))));
    answer.states[row[0]] = state;
    if (row.size() > 2 && state == BatchState::queued)
      answer.reasons[row[0]] = fmt::format("{}", fmt::join(row.begin() + 2, row.end(), " "));
  }
  fill_in(answer, ids, answer.trouble.empty() ? BatchState::finished : BatchState::unknown);
  return answer;
}

void fill_in(BatchAnswer& answer, const std::vector<std::string>& ids, BatchState absent) {
  for (const auto& id : ids) answer.states.try_emplace(id, absent);
}

}  // namespace kolo::launch
