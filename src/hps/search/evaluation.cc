#include "hps/search/evaluation.h"

#include <charconv>

#include "base/errors.h"

namespace kolo::hps {
namespace fs = std::filesystem;

Value report_of(const RunResult& result, std::size_t objectives) {
  Value::Dict report;
  if (result.failed()) {
    report.emplace(objective_name(0, objectives),
                   result.failure.starts_with('F') ? result.failure : "F_" + result.failure);
  } else {
    if (result.objectives.size() != objectives)
      throw_error(ErrorCode::invalid_argument,
                  "the run function gave {} objectives where the problem has {}",
                  result.objectives.size(), objectives);
    for (std::size_t i = 0; i < objectives; ++i)
      report.emplace(objective_name(i, objectives), result.objectives[i]);
  }
  if (!result.metadata.empty())
    report.emplace("metadata", Value::Dict(result.metadata.begin(), result.metadata.end()));
  return Value(std::move(report));
}

std::int64_t evaluation_number(std::string_view trial_id) {
  const auto digits = trial_id.substr(trial_id.rfind('_') + 1);
  std::int64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

tune::Runnable runnable_of(RunFunction run, fs::path log_dir, std::size_t objectives) {
  return tune::Runnable([run = std::move(run), log_dir = std::move(log_dir), objectives](
                            const Value& config, tune::Session& session) {
           RunningJob job(evaluation_number(session.trial_id()), config, session.trial_dir(),
                          log_dir, &session, objectives);
           const Value report = report_of(run(job), objectives);
           // What the search decided meanwhile is for the study to know; the result counts.
           static_cast<void>(session.try_report(report));
         })
      .named("evaluation");
}

}  // namespace kolo::hps
