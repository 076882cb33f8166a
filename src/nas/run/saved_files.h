// What an evaluation leaves behind: save/{model,history,config}/ID below the folder of the search.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kolo/nas/problem.h"

namespace kolo::nas {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

void save_config(const std::filesystem::path& log_dir, std::int64_t id, const Value& config);
void save_history(const std::filesystem::path& log_dir, std::int64_t id, const History& history);
/// `model` is a new one of the same architecture, whose weights become those given.
void save_model(const std::filesystem::path& log_dir, std::int64_t id, std::shared_ptr<Model> model,
                const NamedTensors& weights);

}  // namespace kolo::nas
