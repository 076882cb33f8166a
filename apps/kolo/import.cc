// kolo import: studies of other tools, so that kolo's commands show and compare them.
#include <fmt/format.h>

#include <set>

#include "base/errors.h"
#include "base/plural.h"
#include "base/registry.h"
#include "commands.h"
#include "imported_study.h"
#include "study_store.h"
#include "tune/protocol/value_text.h"
#include "tune/study/study.h"

namespace kolo::app {
namespace {

struct ImportOptions {
  std::string path, name, mode, storage;
  ImportChoice choice;
  void declare(OptionSet& set);
};
constexpr Option<ImportOptions> kImportPath[] = {
    {&ImportOptions::path, "PATH", "",
     "A database or a journal file of Optuna, a results.csv of DeepHyper or the folder that has "
     "it, the folder of an experiment of Ray Tune, or a folder with event files of TensorBoard."},
};
constexpr Option<ImportOptions> kImportRows[] = {
    {&ImportOptions::name, "name", "NAME", "Give the study this name.",
     fallback("the name that it has there")},
    {&ImportOptions::mode, "mode", "min|max",
     "Look for the smallest (min) or the largest (max) value.",
     fallback("as the files say; min for Ray Tune and TensorBoard, whose files do not"),
     choices("min|max")},
};
constexpr Option<ImportChoice> kImportChoice[] = {
    {&ImportChoice::study, "study", "NAME", "Take this one of several studies in a file of Optuna.",
     fallback("the only one")},
    {&ImportChoice::metric, "metric", "NAME",
     "Compare trials by this metric of Ray Tune's files or tag of TensorBoard's, or give the "
     "objective this name.",
     fallback("value, objective, or none for Ray Tune and TensorBoard")},
};
void ImportOptions::declare(OptionSet& set) {
  set.add("Arguments", kImportPath, *this);
  set.add("Options", kImportRows, *this);
  set.add("Options", kImportChoice, choice);
  set.add("Options", kStorage, &storage);
}

/// Throws invalid_argument if no trial has reported this.
void require_metric(const ImportedStudy& study, const std::string& metric) {
  std::set<std::string> known;
  for (const auto& trial : study.trials)
    for (const auto& report : trial.reports) {
      if (report.find_path(metric) != nullptr) return;
      for (const auto& [name, value] : tune::flatten(report)) known.insert(name);
    }
  throw_unknown_name("metric", metric, {known.begin(), known.end()}, ErrorCode::invalid_argument);
}

/// Files of Ray Tune and TensorBoard do not say what was looked for.
void choose_objective(ImportedStudy& study, const ImportOptions& options) {
  const std::string& metric = options.choice.metric;
  if (metric.empty() && !options.mode.empty())
    throw_error(ErrorCode::invalid_argument,
                "--mode needs --metric here: files of {} do not say which metric counts",
                study.tool);
  if (metric.empty()) return;
  require_metric(study, metric);
  study.objectives = {{metric}};
}

int run_import(ImportOptions& options) {
  ImportedStudy study = import_study(options.path, options.choice);
  if (!options.choice.study.empty() && study.tool != "Optuna")
    throw_error(ErrorCode::invalid_argument,
                "--study is for files of Optuna; {} has one study of {}", options.path, study.tool);
  if (!options.name.empty()) study.name = options.name;
  if (study.objectives.empty()) choose_objective(study, options);
  if (!options.mode.empty())
    for (auto& objective : study.objectives)
      objective.direction =
          options.mode == "min" ? search::Direction::minimize : search::Direction::maximize;
  tune::Options place;
  place.storage = options.storage;
  const auto database = store::open_database(tune::storage_url(place));
  store::StudyStore store(*database);
  if (store.find(study.name))
    throw_error(ErrorCode::already_exists,
                "a study '{}' is already in {}; give the imported one another name with --name",
                study.name, database->name());
  write_imported(store, study);
  fmt::print("imported {} of {} as the study {}\n", counted(std::ssize(study.trials), "trial"),
             study.tool, study.name);
  return 0;
}

}  // namespace

constinit const Command kImport{
    .name = "import",
    .summary = "Take a study of Optuna, Ray Tune, DeepHyper or TensorBoard into the database",
    .examples =
        "kolo import study.db\nkolo import ~/ray_results/mnist --metric loss --mode min\n"
        "kolo import search/results.csv --name ambs\n",
    .notes = "An imported study can be shown, compared and exported, but not continued.",
    .options = declared<ImportOptions>,
    .run = run_declared<ImportOptions, run_import>,
};

}  // namespace kolo::app
