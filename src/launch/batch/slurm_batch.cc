// Slurm.
#include <fmt/ranges.h>

#include "base/errors.h"
#include "launch/batch/batch_system.h"

namespace kolo::launch {
namespace {

class Slurm final : public BatchSystem {
 public:
  [[nodiscard]] std::string_view name() const override { return "slurm"; }
  // --no-kill: when a node dies the launcher goes on with the others.
  [[nodiscard]] std::string_view script_template() const override {
    return R"(#!/bin/bash
#SBATCH --job-name=kolo
#SBATCH --nodes={{nodes}}
#SBATCH --time={{minutes}}
#SBATCH --output="{{log}}"
#SBATCH --no-kill
{{queue}}
{{project}}
{{flags}}
{{commands}}
)";
  }
  [[nodiscard]] std::string directive(std::string_view kind,
                                      const std::string& value) const override {
    if (kind == "queue") return "#SBATCH --partition=" + value;
    if (kind == "project") return "#SBATCH --account=" + value;
    return "#SBATCH " + value;
  }

  std::string submit(const std::filesystem::path& script) override {
    const auto result = ask({"sbatch", "--parsable", script.string()});
    // "123" or "123;cluster", perhaps after a greeting of the site.
    for (const auto& row : table_of(result.output)) {
      if (row.size() != 1) continue;
      const std::string id = row[0].substr(0, row[0].find(';'));
      if (!id.empty() && id.find_first_not_of("0123456789") == std::string::npos) return id;
    }
    throw_error(ErrorCode::unavailable, "sbatch did not answer with a job's number: {}",
                shortened(result.output + result.errors));
  }

  BatchAnswer status(const std::vector<std::string>& ids) override {
    const auto result = try_to_ask({"squeue", "--noheader", "--states=all", "--format=%i %T %r",
                                    fmt::format("--jobs={}", fmt::join(ids, ","))});
    // Jobs that are long gone are an error to squeue, and finished to us.
    const bool forgotten = result.errors.find("Invalid job id") != std::string::npos;
    return answer_from("squeue", result, forgotten, ids, state_of);
  }

  void cancel(const std::vector<std::string>& ids) override { ask(about({"scancel"}, ids)); }

 private:
  static BatchState state_of(std::string_view word) {
    for (const auto queued : {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SUSPENDED",
                              "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"})
      if (word == queued) return BatchState::queued;
    for (const auto running : {"RUNNING", "COMPLETING", "STAGE_OUT", "SIGNALING", "RESIZING"})
      if (word == running) return BatchState::running;
    for (const auto ended :
         {"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL",
          "DEADLINE", "OUT_OF_MEMORY", "REVOKED", "STOPPED"})
      if (word == ended) return BatchState::finished;
    return BatchState::unknown;
  }
  /// The template has quotes around it.
  [[nodiscard]] std::string_view not_in_log() const override { return "\"\\"; }
};

}  // namespace

std::unique_ptr<BatchSystem> make_slurm() { return std::make_unique<Slurm>(); }

}  // namespace kolo::launch
