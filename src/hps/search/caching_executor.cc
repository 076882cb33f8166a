#include "hps/search/caching_executor.h"

#include <set>

#include "tune/protocol/value_text.h"

namespace kolo::hps {
namespace {

using tune::RunId;
using tune::Value;

/// What runs, and what it said last. Outlives the executor as long as the inbox does.
struct Running {
  struct One {
    Value config, report;
  };
  std::mutex mutex;
  std::map<std::int64_t, One> trials;
};

class CachingExecutor final : public tune::TrialExecutor {
 public:
  CachingExecutor(std::shared_ptr<tune::Inbox> inbox, std::unique_ptr<tune::TrialExecutor> inner,
                  std::shared_ptr<ResultCache> cache)
      : inbox_(std::move(inbox)), inner_(std::move(inner)), cache_(std::move(cache)) {
    inbox_->witness = [running = running_, cache = cache_](const tune::Message& message) {
      const std::lock_guard lock(running->mutex);
      const auto found = running->trials.find(message.id.trial);
      if (found == running->trials.end()) return;
      auto& [config, report] = found->second;
      if (message.kind == tune::Message::Kind::report) report = message.metrics;
      if (message.kind != tune::Message::Kind::ended) return;
      if (message.last_words) report = *message.last_words;
      if (message.error.empty() && report.is_dict()) cache->add(config, report);
      running->trials.erase(found);
    };
  }

  void start(tune::StartOrder order) override {
    if (auto known = cache_->find(order.config)) {
      own_.insert(order.id.trial);
      tune::Message end{tune::Message::Kind::ended, order.id};
      end.last_words = std::move(*known);
      inbox_->put(std::move(end));
      return;
    }
    {
      const std::lock_guard lock(running_->mutex);
      running_->trials[order.id.trial] = {order.config, {}};
    }
    inner_->start(std::move(order));
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
  std::shared_ptr<Running> running_ = std::make_shared<Running>();
  std::set<std::int64_t> own_;  // trials that were answered here
};

}  // namespace

void ResultCache::add(const Value& config, const Value& report) {
  Value::Dict kept;
  for (const auto& [name, value] : report.as_dict()) {
    const bool objective = name.starts_with("objective");
    if (objective && !value.is_number()) return;  // a failure may pass
    if (objective || name == "metadata") kept.emplace(name, value);
  }
  if (kept.empty()) return;
  const std::lock_guard lock(mutex_);
  reports_.insert_or_assign(tune::encode(config), Value(std::move(kept)));
}

std::optional<Value> ResultCache::find(const Value& config) {
  const std::lock_guard lock(mutex_);
  const auto found = reports_.find(tune::encode(config));
  if (found == reports_.end()) return std::nullopt;
  ++used_;
  return found->second;
}

std::int64_t ResultCache::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

std::unique_ptr<tune::TrialExecutor> make_caching_executor(
    std::shared_ptr<tune::Inbox> inbox, std::unique_ptr<tune::TrialExecutor> inner,
    std::shared_ptr<ResultCache> cache) {
  return std::make_unique<CachingExecutor>(std::move(inbox), std::move(inner), std::move(cache));
}

}  // namespace kolo::hps
