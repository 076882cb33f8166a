// An evaluator that does not evaluate a configuration twice (cache key "to_dict").
#pragma once

#include <map>
#include <memory>
#include <string>

#include "tune/executor.h"
#include "tune/observer.h"

namespace kolo::hps {

/// Reports by configuration. It is also the observer that fills itself.
class ResultCache final : public tune::Observer {
 public:
  void add(const tune::Value& config, const tune::Value& report);
  [[nodiscard]] const tune::Value* find(const tune::Value& config) const;
  [[nodiscard]] std::int64_t used() const noexcept { return used_; }
  void count_use() noexcept { ++used_; }

  void on_trial_complete(const tune::TrialInfo& trial) override;
  void on_step(const std::function<tune::StudyView(std::size_t)>& /*view*/) override {}
  void on_end(const std::function<tune::StudyView(std::size_t)>& /*view*/) override {}

 private:
  std::map<std::string, tune::Value> reports_;
  std::int64_t used_ = 0;
};

/// Answers what the cache knows by itself and leaves the rest to `inner`.
std::unique_ptr<tune::TrialExecutor> make_caching_executor(
    std::shared_ptr<tune::Inbox> inbox, std::unique_ptr<tune::TrialExecutor> inner,
    std::shared_ptr<ResultCache> cache);

}  // namespace kolo::hps
