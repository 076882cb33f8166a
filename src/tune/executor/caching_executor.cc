#include "tune/executor/caching_executor.h"

#include <set>

#include "tune/protocol/value_text.h"

namespace kolo::tune {
namespace {

/// What runs, and what it said last. Outlives the executor as long as the inbox does.
struct Running {
  struct One {
    Value config, report;
  };
  Mutex mutex;
  std::map<std::int64_t, One> trials KOLO_GUARDED_BY(mutex);
};

class CachingExecutor final : public TrialExecutor {
 public:
  CachingExecutor(std::shared_ptr<Inbox> inbox, std::unique_ptr<TrialExecutor> inner,
                  std::shared_ptr<ResultCache> cache)
      : inbox_(std::move(inbox)), inner_(std::move(inner)), cache_(std::move(cache)) {
    inbox_->witness = [running = running_, cache = cache_](const Message& message) {
      const MutexLock lock(running->mutex);
      const auto found = running->trials.find(message.id.trial);
      if (found == running->trials.end()) return;
      auto& [config, report] = found->second;
      if (message.kind == Message::Kind::report) report = message.metrics;
      if (message.kind != Message::Kind::ended) return;
      if (message.last_words) report = *message.last_words;
      if (message.error.empty() && report.is_dict()) cache->add(config, report);
      running->trials.erase(found);
    };
  }

  void start(StartOrder order) override {
    if (auto known = cache_->find(order.config)) {
      own_.insert(order.id.trial);
      Message end{Message::Kind::ended, order.id};
      end.last_words = std::move(*known);
      inbox_->put(std::move(end));
      return;
    }
    {
      const MutexLock lock(running_->mutex);
      running_->trials[order.id.trial] = {order.config, {}};
    }
    inner_->start(std::move(order));
  }

  void answer(RunId id, Answer answer) override {
    if (!own_.contains(id.trial)) inner_->answer(id, answer);
  }
  void study_is_interrupted() override { inner_->study_is_interrupted(); }
  void stop(RunId id) override {
    if (!own_.contains(id.trial)) inner_->stop(id);
  }
  void kill(RunId id) override {
    if (!own_.contains(id.trial)) inner_->kill(id);
  }
  void resize(RunId id, int ranks) override {
    if (!own_.contains(id.trial)) inner_->resize(id, ranks);
  }
  void forget(RunId id) override {
    if (own_.erase(id.trial) == 0) inner_->forget(id);
  }
  [[nodiscard]] bool can_kill() const noexcept override { return inner_->can_kill(); }
  [[nodiscard]] bool limits_time() const noexcept override { return inner_->limits_time(); }

 private:
  std::shared_ptr<Inbox> inbox_;
  std::unique_ptr<TrialExecutor> inner_;
  std::shared_ptr<ResultCache> cache_;
  std::shared_ptr<Running> running_ = std::make_shared<Running>();
  std::set<std::int64_t> own_;  // trials that were answered here
};

}  // namespace

void ResultCache::add(const Value& config, const Value& report) {
  for (const auto& metric : metrics_) {
    const Value* value = report.find_path(metric);
    if (value == nullptr || !value->is_number()) return;
  }
  const MutexLock lock(mutex_);
  reports_.insert_or_assign(encode(config), report);
}

std::optional<Value> ResultCache::find(const Value& config) {
  const MutexLock lock(mutex_);
  const auto found = reports_.find(encode(config));
  if (found == reports_.end()) return std::nullopt;
  ++used_;
  return found->second;
}

std::int64_t ResultCache::used() const {
  const MutexLock lock(mutex_);
  return used_;
}

std::unique_ptr<TrialExecutor> make_caching_executor(std::shared_ptr<Inbox> inbox,
                                                     std::unique_ptr<TrialExecutor> inner,
                                                     std::shared_ptr<ResultCache> cache) {
  return std::make_unique<CachingExecutor>(std::move(inbox), std::move(inner), std::move(cache));
}

}  // namespace kolo::tune
