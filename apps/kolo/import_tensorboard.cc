// TensorBoard's event files as a study: a folder is a trial, its hyperparameters are the
// configuration, and the scalars of one step are a report.
#include <set>

#include "events/event_reader.h"
#include "hps/results/results_csv.h"
#include "imported_study.h"

namespace kolo::app {
namespace {

namespace fs = std::filesystem;
using tune::Value;

/// Ray Tune's name for its tags, and kolo's.
constexpr std::string_view kTunePrefix = "ray/tune/";

ImportedTrial trial_of(const events::RunEvents& run) {
  ImportedTrial trial;
  Value config(Value::Dict{});
  for (const auto& [name, value] : run.hparams)
    std::visit([&dict = config.as_dict(),
                &name = name](const auto& one) { dict.insert_or_assign(name, Value(one)); },
               value);
  trial.config = hps::nested_config(config);
  for (const auto& [step, scalars] : run.scalars) {
    Value::Dict report{{"step", step}};
    for (const auto& [tag, value] : scalars)
      report.insert_or_assign(tag.substr(tag.starts_with(kTunePrefix) ? kTunePrefix.size() : 0),
                              Value(value));
    trial.reports.push_back(hps::nested_config(Value(std::move(report))));
  }
  if (run.success == false) trial.error = "the session ended with a failure";
  trial.began = run.began;
  trial.ended = run.ended;
  return trial;
}

}  // namespace

ImportedStudy import_tensorboard(const fs::path& folder) {
  std::set<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && events::is_event_file(entry.path())) files.insert(entry.path());
  // Sorted, so that the files of a run come in the order in which they were begun.
  std::map<fs::path, events::RunEvents> runs;
  for (const auto& file : files) events::read_events(file, runs[file.parent_path()]);
  ImportedStudy study{.name = name_of_folder(folder), .tool = "TensorBoard"};
  for (const auto& [place, run] : runs) study.trials.push_back(trial_of(run));
  return study;
}

}  // namespace kolo::app
