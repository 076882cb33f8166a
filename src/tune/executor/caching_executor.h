// An executor around another one that does not run a configuration twice (DeepHyper's cache key
// "to_dict").
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "tune/executor/executor.h"

namespace kolo::tune {

/// Reports by configuration. Safe for several threads.
class ResultCache {
 public:
  /// Keeps reports in which each of these metrics is a number: a failure may pass.
  explicit ResultCache(std::vector<std::string> metrics) : metrics_(std::move(metrics)) {}

  void add(const Value& config, const Value& report);
  /// What was reported of this configuration; counts as a use.
  [[nodiscard]] std::optional<Value> find(const Value& config);
  [[nodiscard]] std::int64_t used() const;

 private:
  const std::vector<std::string> metrics_;
  mutable Mutex mutex_;
  std::map<std::string, Value> reports_ KOLO_GUARDED_BY(mutex_);
  std::int64_t used_ KOLO_GUARDED_BY(mutex_) = 0;
};

/// Answers what the cache knows by itself and leaves the rest to `inner`, whose results it adds.
/// Becomes the witness of the inbox.
std::unique_ptr<TrialExecutor> make_caching_executor(std::shared_ptr<Inbox> inbox,
                                                     std::unique_ptr<TrialExecutor> inner,
                                                     std::shared_ptr<ResultCache> cache);

}  // namespace kolo::tune
