// Batch systems: submit a script, ask about many jobs, cancel.
//
// A family like others: one small class, one table, `kolo list batch-systems`. What a batch system
// answers is text made for people, and it may be missing, late or not what it should be: that is
// said (BatchAnswer::trouble, or an Error with the text), never guessed, and never ends a caller.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/registry.h"
#include "base/subprocess.h"

namespace kolo::launch {

/// What a script asks for, and the values of {words} in its template.
struct BatchRequest {
  int nodes = 1;
  int minutes = 60;
  std::string queue{}, project{};
  std::vector<std::string> flags{};  ///< further directives
  std::string log;                   ///< file for its output
  std::string commands;              ///< what the script does, shell code
};

enum class BatchState { queued, running, finished, unknown };
std::string_view to_string(BatchState state);

struct BatchAnswer {
  std::map<std::string, BatchState> states;  ///< of the jobs asked for; finished ones may be gone
  std::string trouble;                       ///< why some are unknown; "" = none are
  std::map<std::string, std::string> reasons{};  ///< why jobs wait, where the system tells
};

class BatchSystem {
 public:
  virtual ~BatchSystem() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;

  /// {nodes} {minutes} {hours}: {queue} {project} {flags} as directives, {log} (for a shell:
  /// {log_word}), {commands}.
  [[nodiscard]] virtual std::string_view script_template() const = 0;
  /// The directive with which a queue, a project or a flag is written.
  [[nodiscard]] virtual std::string directive(std::string_view kind,
                                              const std::string& value) const = 0;
  /// Throws invalid_argument for what the system's own template cannot ask for.
  virtual void check(const BatchRequest& /*request*/) const {}

  /// The job's id. Throws unavailable with what was answered.
  virtual std::string submit(const std::filesystem::path& script) = 0;
  virtual BatchAnswer status(const std::vector<std::string>& ids) = 0;
  /// Throws unavailable.
  virtual void cancel(const std::vector<std::string>& ids) = 0;

  /// A script from `text`, the system's own template or the user's. Throws invalid_argument for an
  /// unknown {word}, and for a value that would end its line.
  [[nodiscard]] std::string write_script(std::string_view text, const BatchRequest& request) const;

 private:
  /// Characters that the path of the log must not have in the system's own template.
  [[nodiscard]] virtual std::string_view not_in_log() const { return " \t\"'\\"; }
  void check_lines(const BatchRequest& request) const;
};

using MakeBatchSystem = std::unique_ptr<BatchSystem> (*)();
const Registry<MakeBatchSystem>& batch_systems();
/// By name, or for "" the one whose commands are found here; `local` if there is none.
std::unique_ptr<BatchSystem> make_batch_system(const std::string& name = {});

std::unique_ptr<BatchSystem> make_slurm();
std::unique_ptr<BatchSystem> make_pbs();
std::unique_ptr<BatchSystem> make_cobalt();
std::unique_ptr<BatchSystem> make_lsf();
std::unique_ptr<BatchSystem> make_grid_engine();
std::unique_ptr<BatchSystem> make_local();

// For the systems themselves: their commands, with an end to every wait.

/// Throws unavailable: the command is not there, does not end, or fails.
CommandResult ask(const std::vector<std::string>& command);
/// As above; a failure is the caller's to judge.
CommandResult try_to_ask(const std::vector<std::string>& command);
/// Text for people: one line, not too long.
std::string shortened(std::string_view text);
/// Lines of words.
std::vector<std::vector<std::string>> table_of(std::string_view text);
/// `command` with the jobs it is about behind it.
std::vector<std::string> about(std::vector<std::string> command,
                               const std::vector<std::string>& ids);
/// The answer in a table of ids and words. `forgotten`: that `tool` failed because it knows some of
/// the jobs no more, which is no trouble.
BatchAnswer answer_from(std::string_view tool, const CommandResult& result, bool forgotten,
                        const std::vector<std::string>& ids,
                        BatchState (*state_of)(std::string_view word));
/// The answer when `tool` failed: all are unknown.
BatchAnswer trouble_with(std::string_view tool, const CommandResult& result,
                         const std::vector<std::string>& ids);
/// Marks what the answer does not have: `absent` if the answer as a whole was good.
void fill_in(BatchAnswer& answer, const std::vector<std::string>& ids, BatchState absent);

}  // namespace kolo::launch
