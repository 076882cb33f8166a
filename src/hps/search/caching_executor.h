// An evaluator that does not evaluate a configuration twice (cache key "to_dict").
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "tune/executor/executor.h"

namespace kolo::hps {

/// Reports by configuration. Safe for several threads.
class ResultCache {
 public:
  void add(const tune::Value& config, const tune::Value& report);
  /// What was reported of this configuration; counts as a use.
  [[nodiscard]] std::optional<tune::Value> find(const tune::Value& config);
  [[nodiscard]] std::int64_t used() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, tune::Value> reports_;
  std::int64_t used_ = 0;
};

/// Answers what the cache knows by itself and leaves the rest to `inner`, whose results it adds.
/// Becomes the witness of the inbox.
std::unique_ptr<tune::TrialExecutor> make_caching_executor(
    std::shared_ptr<tune::Inbox> inbox, std::unique_ptr<tune::TrialExecutor> inner,
    std::shared_ptr<ResultCache> cache);

}  // namespace kolo::hps
