// Rules that end what does not get better any more.
#include <algorithm>
#include <cmath>
#include <deque>
#include <unordered_map>

#include "base/errors.h"
#include "kolo/search/stopper.h"
#include "search/stopper/number_in.h"

namespace kolo::search {
namespace {

/// Of the values themselves, not an estimate for more of them; NaN if one is.
template <class Values>
double deviation(const Values& values) {
  double mean = 0;
  for (double value : values) mean += value;
  mean /= static_cast<double>(values.size());
  double squares = 0;
  for (double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size()));
}

void require_metric(const std::string& metric, const char* stopper) {
  if (metric.empty())
    throw_error(ErrorCode::invalid_argument, "{}: no metric is given; set `metric`", stopper);
}

class TrialPlateauStopper final : public Stopper {
 public:
  explicit TrialPlateauStopper(TrialPlateau rule) : rule_(std::move(rule)) {
    require_metric(rule_.metric, "trial plateau stopper");
    if (rule_.num_results == 0)
      throw_error(ErrorCode::invalid_argument,
                  "trial plateau stopper: num_results must be at least 1");
  }

  bool stop(TrialId trial, const Value& result) override {
    double value = number_in(result, rule_.metric, "trial plateau stopper");
    Window& window = windows_[static_cast<std::uint64_t>(trial)];
    window.last.push_back(value);
    if (window.last.size() > rule_.num_results) window.last.pop_front();
    if (++window.results < std::max(rule_.grace_period, rule_.num_results)) return false;
    if (rule_.metric_threshold) {
      bool good = rule_.mode == Direction::minimize ? value <= *rule_.metric_threshold
                                                    : value >= *rule_.metric_threshold;
      if (!good) return false;
    }
    return deviation(window.last) <= rule_.std;
  }

 private:
  struct Window {
    std::deque<double> last;
    std::size_t results = 0;
  };

  TrialPlateau rule_;
  std::unordered_map<std::uint64_t, Window> windows_;
};

class ExperimentPlateauStopper final : public Stopper {
 public:
  explicit ExperimentPlateauStopper(ExperimentPlateau rule) : rule_(std::move(rule)) {
    require_metric(rule_.metric, "experiment plateau stopper");
    if (rule_.top == 0)
      throw_error(ErrorCode::invalid_argument,
                  "experiment plateau stopper: top must be at least 1");
  }

  bool stop(TrialId, const Value& result) override {
    double value = number_in(result, rule_.metric, "experiment plateau stopper");
    if (!std::isnan(value)) {
      if (rule_.mode == Direction::maximize) value = -value;
      best_.insert(std::upper_bound(best_.begin(), best_.end(), value), value);
      if (best_.size() > rule_.top) best_.pop_back();
    }
    bool plateau = best_.size() == rule_.top && deviation(best_) <= rule_.std;
    on_plateau_ = plateau ? on_plateau_ + 1 : 0;
    return stop_all({});
  }

  [[nodiscard]] bool stop_all(std::chrono::duration<double>) const override {
    return on_plateau_ > rule_.patience;
  }

 private:
  ExperimentPlateau rule_;
  std::vector<double> best_;    // ascending, all to be minimised
  std::size_t on_plateau_ = 0;  // results in a row
};

}  // namespace

std::unique_ptr<Stopper> trial_plateau_stopper(TrialPlateau rule) {
  return std::make_unique<TrialPlateauStopper>(std::move(rule));
}

std::unique_ptr<Stopper> experiment_plateau_stopper(ExperimentPlateau rule) {
  return std::make_unique<ExperimentPlateauStopper>(std::move(rule));
}

}  // namespace kolo::search
