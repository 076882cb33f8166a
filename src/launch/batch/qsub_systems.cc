// PBS, Cobalt and Grid Engine: three systems whose commands are called qsub, qstat and qdel, and
// whose answers differ.
#include <fmt/ranges.h>

#include <algorithm>

#include "base/errors.h"
#include "launch/batch/batch_system.h"

namespace kolo::launch {
namespace {

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

/// What is the same in all three.
class QsubSystem : public BatchSystem {
 public:
  std::string submit(const std::filesystem::path& script) override {
    const auto result = ask(submit_command(script.string()));
    std::string id;
    // The last line is the answer; sites greet before it.
    for (const auto& row : table_of(result.output))
      if (row.size() == 1 && is_id(row[0])) id = row[0];
    if (id.empty())
      throw_error(ErrorCode::unavailable, "qsub did not answer with a job's number: {}",
                  shortened(result.output + result.errors));
    return id;
  }

  BatchAnswer status(const std::vector<std::string>& ids) override {
    const auto result = try_to_ask(status_command(ids));
    if (!result.ok() && !is_about_unknown_jobs(result.errors + result.output))
      return trouble_with("qstat", result, ids);
    BatchAnswer answer;
    bool understood = true;
    for (const auto& row : table_of(result.output)) {
      // Other lines are titles and rules. qstat may shorten the server's name.
      const std::string number = row.empty() ? "" : row[0].substr(0, row[0].find('.'));
      if (!is_number(number)) continue;
      const std::string word = row.size() > state_column() ? row[state_column()] : "";
      for (const auto& id : ids) {
        if (id.substr(0, id.find('.')) != number) continue;
        const BatchState state = answer.states[id] = state_of(word);
        understood = understood && state != BatchState::unknown;
        if (state == BatchState::unknown || is_stuck(word))
          answer.trouble = "qstat answered: " + shortened(fmt::format("{}", fmt::join(row, " ")));
      }
    }
    fill_in(answer, ids, understood ? BatchState::finished : BatchState::unknown);
    return answer;
  }

  void cancel(const std::vector<std::string>& ids) override { ask(about({"qdel"}, ids)); }

 protected:
  [[nodiscard]] virtual std::vector<std::string> submit_command(const std::string& script) const {
    return {"qsub", script};
  }
  [[nodiscard]] virtual std::vector<std::string> status_command(
      const std::vector<std::string>& ids) const {
    return about({"qstat"}, ids);
  }
  [[nodiscard]] virtual bool is_id(const std::string& word) const { return is_number(word); }
  [[nodiscard]] virtual std::size_t state_column() const = 0;
  [[nodiscard]] virtual BatchState state_of(const std::string& word) const = 0;
  /// It waits, and will not run unless somebody helps.
  [[nodiscard]] virtual bool is_stuck(const std::string& /*word*/) const { return false; }
  [[nodiscard]] virtual bool is_about_unknown_jobs(const std::string& /*errors*/) const {
    return false;
  }
};

class Pbs final : public QsubSystem {
 public:
  [[nodiscard]] std::string_view name() const override { return "pbs"; }
  [[nodiscard]] std::string_view script_template() const override {
    return R"(#!/bin/bash
#PBS -N kolo
#PBS -l select={{nodes}}
#PBS -l walltime={{hours}}
#PBS -j oe
#PBS -o {{log}}
{{queue}}
{{project}}
{{flags}}
{{commands}}
)";
  }
  [[nodiscard]] std::string directive(std::string_view kind,
                                      const std::string& value) const override {
    if (kind == "queue") return "#PBS -q " + value;
    if (kind == "project") return "#PBS -A " + value;
    return "#PBS " + value;
  }

 protected:
  // "Job id  Name  User  Time Use  S  Queue"
  [[nodiscard]] std::size_t state_column() const override { return 4; }
  [[nodiscard]] bool is_id(const std::string& word) const override {
    return is_number(word.substr(0, word.find('.')));
  }
  [[nodiscard]] BatchState state_of(const std::string& word) const override {
    if (word.size() != 1) return BatchState::unknown;
    if (std::string_view("QHWTSU").find(word) != std::string_view::npos) return BatchState::queued;
    if (std::string_view("RBE").find(word) != std::string_view::npos) return BatchState::running;
    if (std::string_view("FCXM").find(word) != std::string_view::npos) return BatchState::finished;
    return BatchState::unknown;
  }
  [[nodiscard]] bool is_about_unknown_jobs(const std::string& errors) const override {
    return errors.find("Unknown Job") != std::string::npos ||
           errors.find("has finished") != std::string::npos;
  }
};

class Cobalt final : public QsubSystem {
 public:
  [[nodiscard]] std::string_view name() const override { return "cobalt"; }
  [[nodiscard]] std::string_view script_template() const override {
    return R"(#!/bin/bash
#COBALT -n {{nodes}}
#COBALT -t {{minutes}}
#COBALT -o {{log}}
#COBALT -e {{log}}
{{queue}}
{{project}}
{{flags}}
{{commands}}
)";
  }
  [[nodiscard]] std::string directive(std::string_view kind,
                                      const std::string& value) const override {
    if (kind == "queue") return "#COBALT -q " + value;
    if (kind == "project") return "#COBALT -A " + value;
    return "#COBALT " + value;
  }

 protected:
  [[nodiscard]] std::vector<std::string> submit_command(const std::string& script) const override {
    return {"qsub", "--mode", "script", script};
  }
  [[nodiscard]] std::vector<std::string> status_command(
      const std::vector<std::string>& ids) const override {
    return about({"qstat", "--header", "JobID:State"}, ids);
  }
  [[nodiscard]] std::size_t state_column() const override { return 1; }
  [[nodiscard]] BatchState state_of(const std::string& word) const override {
    if (word == "queued" || word.ends_with("_hold") || word == "dep_fail")
      return BatchState::queued;
    if (word == "running" || word == "starting" || word == "killing" || word == "exiting")
      return BatchState::running;
    if (word == "done") return BatchState::finished;
    return BatchState::unknown;
  }
};

class GridEngine final : public QsubSystem {
 public:
  [[nodiscard]] std::string_view name() const override { return "grid-engine"; }
  [[nodiscard]] std::string_view script_template() const override {
    // -notify: the launcher hears SIGUSR2 before the SIGKILL of qdel and of the end of its time.
    return R"(#!/bin/bash
#$ -N kolo
#$ -S /bin/bash
#$ -V
#$ -notify
#$ -j y
#$ -o {{log}}
#$ -l h_rt={{hours}}
{{queue}}
{{project}}
{{flags}}
{{commands}}
)";
  }
  [[nodiscard]] std::string directive(std::string_view kind,
                                      const std::string& value) const override {
    if (kind == "queue") return "#$ -q " + value;
    if (kind == "project") return "#$ -P " + value;
    return "#$ " + value;
  }
  // Which parallel environment gives whole nodes is the site's own affair.
  void check(const BatchRequest& request) const override {
    const bool parallel = std::any_of(
        request.flags.begin(), request.flags.end(),
        [](const std::string& flag) { return (" " + flag).find(" -pe ") != std::string::npos; });
    if (request.nodes > 1 && !parallel)
      throw_error(ErrorCode::invalid_argument,
                  "Grid Engine gives several nodes by a parallel environment of the site (qconf "
                  "-spl lists them); name one: --sched-flags '-pe NAME {}'",
                  request.nodes);
  }

 protected:
  [[nodiscard]] std::vector<std::string> submit_command(const std::string& script) const override {
    return {"qsub", "-terse", script};
  }
  // All jobs: those that have ended are not in it.
  [[nodiscard]] std::vector<std::string> status_command(
      const std::vector<std::string>& /*ids*/) const override {
    return {"qstat", "-u", "*"};
  }
  // "job-ID prior name user state submit/start at queue slots"
  [[nodiscard]] std::size_t state_column() const override { return 4; }
  [[nodiscard]] BatchState state_of(const std::string& word) const override {
    if (word.empty()) return BatchState::unknown;
    const bool known = word.find_first_not_of("qwhrtsSTRdE") == std::string::npos;
    if (!known) return BatchState::unknown;
    return word.find('q') != std::string::npos ? BatchState::queued : BatchState::running;
  }
  [[nodiscard]] bool is_stuck(const std::string& word) const override {
    return word.find('E') != std::string::npos;
  }
};

}  // namespace

std::unique_ptr<BatchSystem> make_pbs() { return std::make_unique<Pbs>(); }
std::unique_ptr<BatchSystem> make_cobalt() { return std::make_unique<Cobalt>(); }
std::unique_ptr<BatchSystem> make_grid_engine() { return std::make_unique<GridEngine>(); }

}  // namespace kolo::launch
