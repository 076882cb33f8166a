#include "nas/run/saved_files.h"

#include <sstream>

#include "base/errors.h"
#include "base/files.h"
#include "base/json.h"
#include "kolo/nas/run.h"
#include "search/space/json_value.h"

namespace kolo::nas {
namespace {

std::filesystem::path path_of(const std::filesystem::path& log_dir, const char* kind,
                              std::int64_t id, const char* extension) {
  return log_dir / "save" / kind / (std::to_string(id) + extension);
}

void write(const std::filesystem::path& path, std::string_view content) {
  std::error_code failed;
  std::filesystem::create_directories(path.parent_path(), failed);
  if (failed)
    throw_error(ErrorCode::io, "cannot create the folder {}: {}", path.parent_path().string(),
                failed.message());
  write_file_atomically(path, content);
}

}  // namespace

void save_config(const std::filesystem::path& log_dir, std::int64_t id, const Value& config) {
  write(path_of(log_dir, "config", id, ".json"),
        json_text(search::json_from_value(config), 2) + "\n");
}

void save_history(const std::filesystem::path& log_dir, std::int64_t id, const History& history) {
  Json json = history;
  json["kolo_history"] = 1;
  write(path_of(log_dir, "history", id, ".json"), json_text(json) + "\n");
}

void save_model(const std::filesystem::path& log_dir, std::int64_t id, std::shared_ptr<Model> model,
                const NamedTensors& weights) {
  torch::NoGradGuard no_grad;
  auto parameters = model->named_parameters();
  auto buffers = model->named_buffers();
  for (const auto& [name, value] : weights) {
    torch::Tensor* place = parameters.find(name);
    if (place == nullptr) place = buffers.find(name);
    KOLO_CHECK(place != nullptr);
    place->copy_(value);
  }
  std::ostringstream bytes;
  torch::save(model, bytes);
  write(path_of(log_dir, "model", id, ".pt"), bytes.str());
}

std::shared_ptr<Model> load_model(const NaProblem& problem, const std::filesystem::path& log_dir,
                                  std::int64_t id) {
  const auto config_path = path_of(log_dir, "config", id, ".json");
  const Value config =
      search::value_from_json(parse_json(read_file(config_path), config_path.string()));
  std::shared_ptr<Model> model = problem.model(NaProblem::arch_seq_of(config));
  const auto model_path = path_of(log_dir, "model", id, ".pt");
  std::istringstream bytes(read_file(model_path));
  try {
    torch::load(model, bytes);
  } catch (const c10::Error& error) {
    throw_error(ErrorCode::corruption, "{} does not hold the weights of the architecture in {}: {}",
                model_path.string(), config_path.string(), error.what_without_backtrace());
  }
  model->eval();
  return model;
}

}  // namespace kolo::nas
