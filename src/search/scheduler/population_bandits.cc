// Population based bandits (PB2): a population whose variations a Gaussian process chooses.
//
// Parker-Holder et al., "Provably efficient online hyperparameter optimization with
// population-based bandits", NeurIPS 2020, with Ray Tune's settings.
//
// Vocabulary: an *observation* is what a trial gained per unit of time between two reports, under
// its parameters, given the time and the reward at the beginning. Gains are standardised and
// clipped at ±2; inputs are scaled to [0, 1], parameters by their bounds. A trial that exploits
// gets the parameters that maximise mean + kappa · variance, kappa = sqrt(0.2 + max(0, log(0.4
// n))), where the variance also counts the trials under way, so that two trials do not make the
// same move.
//
// Cost per exploit: n³ with n <= 1000 observations, about 0.2 s at most.
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <deque>

#include "base/errors.h"
#include "search/scheduler/population.h"
#include "search/scheduler/time_varying_gp.h"

namespace kolo::search {
namespace {

constexpr std::size_t kMaxObservations = 1000;
constexpr int kRestarts = 10;
constexpr int kIterations = 200;

double clamp_unit(double x) { return std::clamp(x, 0.0, 1.0); }

class PopulationBandits final : public Population {
 public:
  PopulationBandits(SchedulerOptions given, SettingsReader settings)
      : Population("pb2", std::move(given), settings) {
    settings.done();
    require_one_objective("pb2", options());
    if (mutations().has_functions())
      throw_error(ErrorCode::unsupported,
                  "scheduler 'pb2': it varies numbers with finite bounds, not what sample_from "
                  "computes; use pbt");
    for (const Parameter& parameter : mutations().parameters())
      if (!parameter.is_number() || !std::isfinite(parameter.low) || !std::isfinite(parameter.high))
        throw_error(
            ErrorCode::unsupported,
            "scheduler 'pb2', parameter {}: it varies numbers with finite bounds only; use pbt",
            parameter.path);
  }

 private:
  struct Report {
    double time = 0;
    double reward = std::nan("");
  };
  struct Observation {
    double time, reward, gain;
    Eigen::VectorXd parameters;  // in the unit cube
  };

  void on_add(Slot slot) override {
    Population::on_add(slot);
    reports_.emplace_back();
  }

  void on_report_in(Slot slot, const Result& result, double score) override {
    Report& last = reports_[slot];
    double reward = -score;
    // Of rewards near the largest numbers the difference may be none.
    const double gain = (reward - last.reward) / (result.time - last.time);
    if (std::isfinite(gain) && result.time > last.time) {
      observations_.push_back({last.time, last.reward, gain, to_unit(config_of(slot))});
      if (observations_.size() > kMaxObservations) observations_.pop_front();
    }
    last = {result.time, reward};
  }

  Eigen::VectorXd to_unit(const Value& config) const {
    Eigen::VectorXd unit(static_cast<Eigen::Index>(mutations().size()));
    for (std::size_t i = 0; i < mutations().size(); ++i) {
      const Parameter& p = mutations().parameters()[i];
      double value = entry_in(config, mutations(), i);
      double low = p.log ? std::log(p.low) : p.low;
      double high = p.log ? std::log(p.high) : p.high;
      if (p.log) value = std::log(std::max(value, p.low));
      double x = high > low ? (value - low) / (high - low) : 0.5;
      unit[static_cast<Eigen::Index>(i)] = std::isnan(x) ? 0.5 : clamp_unit(x);
    }
    return unit;
  }

  Value from_unit(const Value& config, const Eigen::VectorXd& unit, Random& random) const {
    Point point(mutations().size());
    for (std::size_t i = 0; i < point.size(); ++i) {
      const Parameter& p = mutations().parameters()[i];
      double x = unit[static_cast<Eigen::Index>(i)];
      double value = p.log ? std::exp(std::log(p.low) + x * (std::log(p.high) - std::log(p.low)))
                           : p.low + x * (p.high - p.low);
      point[i] = mutations().nearest(i, value);
    }
    return mutations().settle(point, random) ? with_point(config, mutations(), point) : config;
  }

  Value vary(Slot target, Slot source, Random& random) override {
    reports_[target] = reports_[source];
    auto d = static_cast<Eigen::Index>(mutations().size());
    Eigen::VectorXd best = to_unit(config_of(source));  // where no other can be told to be better
    if (observations_.size() < 2) {
      for (double& x : best) x = random.uniform();
      return from_unit(config_of(source), best, random);
    }
    Scaled scaled = scale(reports_[source]);
    Eigen::MatrixXd with_pending = add_pending(scaled, target);
    TimeVaryingGp told(scaled.inputs, scaled.gains, {});
    TimeVaryingGp all(with_pending, Eigen::VectorXd::Zero(with_pending.rows()), {});
    double kappa =
        std::sqrt(0.2 + std::max(0.0, std::log(0.4 * static_cast<double>(observations_.size()))));

    double best_value = -INFINITY;
    for (int restart = 0; restart < kRestarts; ++restart) {
      Eigen::VectorXd start(d);
      for (double& x : start) x = random.uniform();
      if (restart == 0) start = best;
      auto [value, place] = climb(start, scaled.now, told, all, kappa);
      if (value > best_value) {
        best_value = value;
        best = place;
      }
    }
    return from_unit(config_of(source), best, random);
  }

  struct Scaled {
    Eigen::MatrixXd inputs;  // time in intervals, reward, parameters
    Eigen::VectorXd gains;
    Eigen::VectorXd now;  // the time and reward to predict at
    double lowest = 0, highest = 0;

    /// Finite, whatever the rewards are: their difference may be larger than any number.
    [[nodiscard]] double share(double reward) const {
      const double range = highest / 2 - lowest / 2;
      return range > 0 && std::isfinite(reward) ? (reward / 2 - lowest / 2) / range : 0;
    }
  };

  Scaled scale(const Report& now) const {
    auto n = static_cast<Eigen::Index>(observations_.size());
    Scaled scaled;
    scaled.inputs.resize(n, static_cast<Eigen::Index>(mutations().size()) + 2);
    scaled.gains.resize(n);
    const double any = observations_.front().reward;
    scaled.lowest = scaled.highest = std::isfinite(now.reward) ? now.reward : any;
    for (const auto& seen : observations_) {
      scaled.lowest = std::min(scaled.lowest, seen.reward);
      scaled.highest = std::max(scaled.highest, seen.reward);
    }
    for (Eigen::Index i = 0; i < n; ++i) {
      const auto& seen = observations_[static_cast<std::size_t>(i)];
      scaled.inputs.row(i) << seen.time / interval(), scaled.share(seen.reward),
          seen.parameters.transpose();
      scaled.gains[i] = seen.gain;
    }
    // Neither a sum nor a square of them becomes larger than any number.
    const double largest = scaled.gains.cwiseAbs().maxCoeff();
    if (largest > 0) scaled.gains /= largest;
    scaled.gains.array() -= scaled.gains.mean();
    double deviation = std::sqrt(scaled.gains.squaredNorm() / static_cast<double>(n));
    if (deviation > 0) scaled.gains /= deviation;
    scaled.gains = scaled.gains.cwiseMax(-2.0).cwiseMin(2.0);
    scaled.now = Eigen::Vector2d(now.time / interval(), scaled.share(now.reward));
    return scaled;
  }

  /// The observations, and below them where the other trials are now.
  Eigen::MatrixXd add_pending(const Scaled& scaled, Slot target) const {
    Eigen::MatrixXd inputs = scaled.inputs;
    for (Slot slot : live()) {
      const Report& report = reports_[slot];
      if (slot == target || !std::isfinite(report.reward) || !std::isfinite(report.time)) continue;
      inputs.conservativeResize(inputs.rows() + 1, Eigen::NoChange);
      inputs.row(inputs.rows() - 1) << report.time / interval(), scaled.share(report.reward),
          to_unit(config_of(slot)).transpose();
    }
    return inputs;
  }

  /// Projected gradient ascent with a step that adapts.
  static std::pair<double, Eigen::VectorXd> climb(Eigen::VectorXd place, const Eigen::VectorXd& now,
                                                  const TimeVaryingGp& told,
                                                  const TimeVaryingGp& all, double kappa) {
    auto look = [&](const Eigen::VectorXd& at) {
      Eigen::VectorXd x(at.size() + 2);
      x << now, at;
      auto mean = told.mean(x);
      auto variance = all.variance(x);
      // Derivatives by the reward come first and are not of interest.
      return TimeVaryingGp::Slope{mean.value + kappa * variance.value,
                                  (mean.gradient + kappa * variance.gradient).tail(at.size())};
    };
    auto here = look(place);
    double step = 0.25;
    for (int i = 0; i < kIterations && step > 1e-5; ++i) {
      double length = here.gradient.norm();
      if (!(length > 0)) break;
      Eigen::VectorXd next = (place + step / length * here.gradient).unaryExpr(&clamp_unit);
      auto there = look(next);
      if (there.value > here.value) {
        place = next;
        here = there;
        step *= 1.5;
      } else {
        step /= 3;
      }
    }
    return {here.value, place};
  }

  std::vector<Report> reports_;  // by slot
  std::deque<Observation> observations_;
};

}  // namespace

std::unique_ptr<Scheduler> make_population_bandits(SchedulerOptions options) {
  auto values = options.settings;
  return std::make_unique<PopulationBandits>(std::move(options),
                                             SettingsReader("scheduler pb2", values));
}

}  // namespace kolo::search
