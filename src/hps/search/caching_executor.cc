#include "hps/search/caching_executor.h"

#include <set>

#include "hps/search/evaluation.h"
#include "tune/value_text.h"

namespace kolo::hps {
namespace {

using tune::RunId;
using tune::Value;

class CachingExecutor final : public tune::TrialExecutor {
 public:
  CachingExecutor(std::shared_ptr<tune::Inbox> inbox, std::unique_ptr<tune::TrialExecutor> inner,
                  std::shared_ptr<ResultCache> cache)
      : inbox_(std::move(inbox)), inner_(std::move(inner)), cache_(std::move(cache)) {}

  void start(tune::StartOrder order) override {
    const Value* known = cache_->find(order.config);
    if (known == nullptr) {
      inner_->start(std::move(order));
      return;
    }
    cache_->count_use();
    own_.insert(order.id.trial);
    tune::Message end{tune::Message::Kind::ended, order.id};
    end.last_words = *known;
    inbox_->put(std::move(end));
  }

  void answer(RunId id, tune::Answer answer) override {
    if (!own_.contains(id.trial)) inner_->answer(id, answer);
  }
  void stop(RunId id) override {
    if (!own_.contains(id.trial)) inner_->stop(id);
  }
  void kill(RunId id) override {
    if (!own_.contains(id.trial)) inner_->kill(id);
  }
  void forget(RunId id) override {
    if (own_.erase(id.trial) == 0) inner_->forget(id);
  }
  [[nodiscard]] bool can_kill() const noexcept override { return inner_->can_kill(); }

 private:
  std::shared_ptr<tune::Inbox> inbox_;
  std::unique_ptr<tune::TrialExecutor> inner_;
  std::shared_ptr<ResultCache> cache_;
  std::set<std::int64_t> own_;  // trials that were answered here
};

}  // namespace

void ResultCache::add(const Value& config, const Value& report) {
  Value::Dict kept;
  for (const auto& [name, value] : report.as_dict())
    if (name.starts_with("objective") || name == "metadata") kept.emplace(name, value);
  if (!kept.empty()) reports_.insert_or_assign(tune::encode(config), Value(std::move(kept)));
}

const Value* ResultCache::find(const Value& config) const {
  const auto found = reports_.find(tune::encode(config));
  return found == reports_.end() ? nullptr : &found->second;
}

void ResultCache::on_trial_complete(const tune::TrialInfo& trial) {
  if (trial.last_result.is_dict()) add(trial.config, trial.last_result);
}

std::unique_ptr<tune::TrialExecutor> make_caching_executor(
    std::shared_ptr<tune::Inbox> inbox, std::unique_ptr<tune::TrialExecutor> inner,
    std::shared_ptr<ResultCache> cache) {
  return std::make_unique<CachingExecutor>(std::move(inbox), std::move(inner), std::move(cache));
}

}  // namespace kolo::hps
