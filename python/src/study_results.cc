#include "study_results.h"

#include <filesystem>

#include "base/errors.h"
#include "blocking.h"
#include "store/database.h"
#include "store/study_store.h"
#include "tune/study/study_reader.h"
#include "values.h"

namespace kolo::python {

namespace py = pybind11;
using tune::Value;

py::dict info_to_python(const tune::TrialInfo& trial) {
  py::dict out;
  out["number"] = trial.number;
  out["trial_id"] = trial.id;
  out["name"] = trial.name;
  out["status"] = std::string(to_string(trial.status));
  out["config"] = to_python(trial.config);
  out["last_result"] = to_python(trial.last_result);
  out["logdir"] = trial.directory.string();
  out["checkpoint"] =
      trial.checkpoint ? py::object(py::str(trial.checkpoint->string())) : py::none();
  out["iteration"] = trial.iteration;
  out["num_failures"] = trial.failures;
  out["seconds"] = trial.seconds;
  out["error"] = trial.error;
  out["why"] = trial.why;
  out["stopped"] = trial.stopped;
  return out;
}

py::dict analysis_to_python(const tune::Analysis& analysis, bool was_interrupted) {
  py::dict out;
  out["name"] = analysis.name();
  out["directory"] = analysis.directory().string();
  out["was_interrupted"] = was_interrupted;
  py::list objectives;
  for (const auto& objective : analysis.objectives())
    objectives.append(py::make_tuple(
        objective.metric, objective.direction == search::Direction::maximize ? "max" : "min"));
  out["objectives"] = objectives;
  py::list trials;
  for (const auto& trial : analysis.trials()) {
    py::dict row = info_to_python(trial);
    py::list results, checkpoints;
    for (const Value& result : trial.results) results.append(to_python(result));
    for (const auto& checkpoint : trial.checkpoints)
      checkpoints.append(py::make_tuple(checkpoint.path.string(), checkpoint.iteration));
    row["results"] = results;
    row["checkpoints"] = checkpoints;
    trials.append(row);
  }
  out["trials"] = trials;
  return out;
}

py::dict read_study(const std::string& storage, const std::string& name) {
  if (storage.find("://") == std::string::npos && !std::filesystem::exists(storage))
    throw_error(ErrorCode::not_found, "there is no database {}", storage);
  const auto analysis = blocking([&] {
    const auto database = store::open_database(storage);
    store::StudyStore studies(*database);
    return tune::read_study(studies, name);
  });
  return analysis_to_python(analysis, false);
}

}  // namespace kolo::python
