#include "tune/study/population_policy.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "base/errors.h"
#include "base/files.h"
#include "kolo/search/scheduler.h"
#include "tune/protocol/value_text.h"

namespace kolo::tune {
namespace fs = std::filesystem;
namespace {

std::int64_t target_of(const Value& line) { return line.as_list().at(0).as_integer(); }
std::int64_t source_of(const Value& line) { return line.as_list().at(1).as_integer(); }

Value read_policy(const fs::path& file) {
  std::istringstream text(read_file(file));
  Value::List lines;
  for (std::string line; std::getline(text, line);)
    if (!line.empty()) lines.push_back(decode(line, file.string()));
  return Value(std::move(lines));
}

/// Before a trial became a copy, its history was that of the other.
std::string lines_that_led_to(std::int64_t trial, const Value::List& lines) {
  std::vector<std::string> chain;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (target_of(*line) != trial) continue;
    chain.push_back(encode(*line) + "\n");
    trial = source_of(*line);
  }
  std::string text;
  for (auto line = chain.rbegin(); line != chain.rend(); ++line) text += *line;
  return text;
}

}  // namespace

Value policy_to_repeat(const Scheduling& scheduling) {
  if (const auto file = scheduling.settings.find("policy_file"); file != scheduling.settings.end())
    return read_policy(file->second.as_string());
  const auto policy = scheduling.settings.find("policy");
  if (policy == scheduling.settings.end())
    throw_error(ErrorCode::invalid_argument,
                "the scheduler 'pbt_replay' needs its setting policy_file");
  return policy->second;
}

Value first_config(const Value& policy) {
  const auto& lines = policy.as_list();
  if (lines.empty())
    throw_error(ErrorCode::invalid_argument,
                "the policy file is empty, so there is nothing to replay");
  return search::follow_policy(policy, search::TrialId(target_of(lines.back()))).initial;
}

void PolicyFiles::update(const Value& policy,
                         const std::function<std::string(std::int64_t)>& trial_id) {
  const auto& lines = policy.as_list();
  if (written_ == lines.size()) return;
  std::set<std::int64_t> changed;
  std::string added;
  for (std::size_t i = written_; i < lines.size(); ++i) {
    changed.insert(target_of(lines[i]));
    added += encode(lines[i]) + "\n";
  }
  const fs::path all = directory_ / "pbt_global.txt";
  if (written_ == 0) {
    write_file_atomically(all, added);
  } else if (!(std::ofstream(all, std::ios::app) << added << std::flush)) {
    throw_error(ErrorCode::io, "cannot write {}", all.string());
  }
  for (const std::int64_t trial : changed)
    write_file_atomically(directory_ / ("pbt_policy_" + trial_id(trial) + ".txt"),
                          lines_that_led_to(trial, lines));
  written_ = lines.size();
}

}  // namespace kolo::tune
