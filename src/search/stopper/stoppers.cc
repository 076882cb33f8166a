// Rules that count, compare with limits, and combine others. Plateaus are in plateau.cc.
#include <algorithm>
#include <unordered_map>

#include "base/errors.h"
#include "kolo/search/stopper.h"
#include "search/stopper/number_in.h"

namespace kolo::search {
namespace {

class NoopStopper final : public Stopper {
 public:
  bool stop(TrialId, const Value&) override { return false; }
};

class MetricStopper final : public Stopper {
 public:
  explicit MetricStopper(std::map<std::string, double> limits) : limits_(std::move(limits)) {}

  bool stop(TrialId, const Value& result) override {
    // All are read, so that a metric that is missing is noticed at once.
    bool reached = false;
    for (const auto& [metric, limit] : limits_)
      if (number_in(result, metric, "stop") >= limit) reached = true;
    return reached;
  }

 private:
  std::map<std::string, double> limits_;
};

class MaximumIterationStopper final : public Stopper {
 public:
  explicit MaximumIterationStopper(std::uint64_t max_iter) : max_iter_(max_iter) {}

  bool stop(TrialId trial, const Value&) override {
    return ++results_[static_cast<std::uint64_t>(trial)] >= max_iter_;
  }

 private:
  std::uint64_t max_iter_;
  std::unordered_map<std::uint64_t, std::uint64_t> results_;
};

class TimeoutStopper final : public Stopper {
 public:
  explicit TimeoutStopper(std::chrono::duration<double> timeout) : timeout_(timeout) {
    if (!(timeout.count() >= 0))
      throw_error(ErrorCode::invalid_argument,
                  "timeout stopper: the timeout is {} s, but must be positive", timeout.count());
  }

  bool stop(TrialId, const Value&) override { return false; }
  [[nodiscard]] bool stop_all(std::chrono::duration<double> elapsed) const override {
    return elapsed >= timeout_;
  }

 private:
  std::chrono::duration<double> timeout_;
};

class FunctionStopper final : public Stopper {
 public:
  explicit FunctionStopper(std::function<bool(TrialId, const Value&)> function)
      : function_(std::move(function)) {
    if (!function_)
      throw_error(ErrorCode::invalid_argument, "function stopper: the function is empty");
  }

  bool stop(TrialId trial, const Value& result) override { return function_(trial, result); }

 private:
  std::function<bool(TrialId, const Value&)> function_;
};

class CombinedStopper final : public Stopper {
 public:
  explicit CombinedStopper(std::vector<std::unique_ptr<Stopper>> stoppers)
      : stoppers_(std::move(stoppers)) {}

  bool stop(TrialId trial, const Value& result) override {
    bool any = false;
    for (auto& stopper : stoppers_) any = stopper->stop(trial, result) || any;
    return any;
  }
  [[nodiscard]] bool stop_all(std::chrono::duration<double> elapsed) const override {
    return std::any_of(stoppers_.begin(), stoppers_.end(),
                       [&](const auto& stopper) { return stopper->stop_all(elapsed); });
  }

 private:
  std::vector<std::unique_ptr<Stopper>> stoppers_;
};

}  // namespace

std::unique_ptr<Stopper> noop_stopper() { return std::make_unique<NoopStopper>(); }

std::unique_ptr<Stopper> metric_stopper(std::map<std::string, double> limits) {
  return std::make_unique<MetricStopper>(std::move(limits));
}

std::unique_ptr<Stopper> maximum_iteration_stopper(std::uint64_t max_iter) {
  return std::make_unique<MaximumIterationStopper>(max_iter);
}

std::unique_ptr<Stopper> timeout_stopper(std::chrono::duration<double> timeout) {
  return std::make_unique<TimeoutStopper>(timeout);
}

std::unique_ptr<Stopper> function_stopper(std::function<bool(TrialId, const Value&)> function) {
  return std::make_unique<FunctionStopper>(std::move(function));
}

std::unique_ptr<Stopper> combined_stopper(std::vector<std::unique_ptr<Stopper>> stoppers) {
  return std::make_unique<CombinedStopper>(std::move(stoppers));
}

}  // namespace kolo::search
