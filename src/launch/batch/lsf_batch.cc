// LSF.
#include "base/errors.h"
#include "launch/batch/batch_system.h"

namespace kolo::launch {
namespace {

class Lsf final : public BatchSystem {
 public:
  [[nodiscard]] std::string_view name() const override { return "lsf"; }
  [[nodiscard]] std::string_view script_template() const override {
    return R"(#!/bin/bash
#BSUB -J kolo
#BSUB -nnodes {{nodes}}
#BSUB -W {{lsf_hours}}
#BSUB -o {{log}}
{{queue}}
{{project}}
{{flags}}
{{commands}}
)";
  }
  [[nodiscard]] std::string directive(std::string_view kind,
                                      const std::string& value) const override {
    if (kind == "queue") return "#BSUB -q " + value;
    if (kind == "project") return "#BSUB -P " + value;
    return "#BSUB " + value;
  }

  std::string submit(const std::filesystem::path& script) override {
    // bsub reads directives from its input alone.
    const auto result = ask({"sh", "-c", R"(exec bsub < "$0")", script.string()});
    // "Job <123> is submitted to queue <normal>."
    const auto open = result.output.find("Job <");
    const auto close = result.output.find('>', open);
    if (open != std::string::npos && close != std::string::npos)
      return result.output.substr(open + 5, close - open - 5);
    throw_error(ErrorCode::unavailable, "bsub did not answer with a job's number: {}",
                shortened(result.output + result.errors));
  }

  BatchAnswer status(const std::vector<std::string>& ids) override {
    const auto result = try_to_ask(about({"bjobs", "-noheader", "-a", "-o", "jobid stat"}, ids));
    const bool forgotten = result.errors.find("is not found") != std::string::npos;
    return answer_from("bjobs", result, forgotten, ids, state_of);
  }

  void cancel(const std::vector<std::string>& ids) override { ask(about({"bkill"}, ids)); }

 private:
  static BatchState state_of(std::string_view word) {
    if (word == "PEND" || word == "PSUSP" || word == "WAIT" || word == "PROV")
      return BatchState::queued;
    if (word == "RUN" || word == "USUSP" || word == "SSUSP") return BatchState::running;
    if (word == "DONE" || word == "EXIT" || word == "ZOMBI") return BatchState::finished;
    return BatchState::unknown;
  }
};

}  // namespace

std::unique_ptr<BatchSystem> make_lsf() { return std::make_unique<Lsf>(); }

}  // namespace kolo::launch
