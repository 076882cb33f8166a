// budgets_ has the observations of each budget, sorted by loss. An ask takes the largest budget
// with enough observations, builds three densities from them (good, bad, and the good one with
// wider kernels to draw candidates from), and returns the candidate with the largest ratio of good
// to bad.
#include "search/sampler/bohb_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "kolo/random.h"
#include "search/sampler/cells.h"
#include "search/settings.h"

namespace kolo::search {
namespace {

class BohbSampler final : public Sampler {
 public:
  BohbSampler(std::shared_ptr<const Space> space, SamplerOptions options)
      : Sampler("bohb", std::move(space), std::move(options)), cells_(shared_space()) {
    SettingsReader settings("bohb", this->options());
    min_points_ = static_cast<std::size_t>(settings.integer(
        "min_points_in_model", static_cast<std::int64_t>(cells_.size()) + 1, 1, 1'000'000));
    top_share_ = settings.number("top_n_percent", 15, 1, 99) / 100;
    num_samples_ = static_cast<std::size_t>(settings.integer("num_samples", 64, 1, 100'000));
    random_fraction_ = settings.number("random_fraction", 1.0 / 3, 0, 1);
    bandwidth_factor_ = settings.number("bandwidth_factor", 3, 0.01, 100);
    min_bandwidth_ = settings.number("min_bandwidth", 1e-3, 1e-9, 1);
    settings.done();
  }

  [[nodiscard]] std::string explain() const override {
    return "bohb: two densities of the results at the largest budget that has enough of them";
  }

 protected:
  std::vector<Point> propose(std::size_t) override {
    Random random = stream(asked());
    const Observations* observations = largest_model();
    if (random.uniform() < random_fraction_ || observations == nullptr || cells_.size() == 0)
      return {space().sample(random)};
    build(*observations);
    return {best_candidate(random)};
  }

  void on_ask(std::size_t place) override { cells_.append(trials()[place].point, rows_); }

  void on_report(std::size_t place) override {
    observe(place, trials()[place].budget, trials()[place].values[0]);
  }

  void on_tell(std::size_t place) override {
    const Trial& trial = trials()[place];
    if (rows_.size() < trials().size() * cells_.size()) cells_.append(trial.point, rows_);
    const bool bad = trial.state == TrialState::failed || trial.violation > 0;
    observe(place, trial.budget, bad ? std::numeric_limits<double>::infinity() : trial.values[0]);
  }

 private:
  struct Observations {
    std::set<std::pair<double, std::size_t>> by_loss;
    std::map<std::size_t, double> loss_of;
  };
  static constexpr std::size_t kMostKernels = 256;

  // The last value of a trial at a budget counts.
  void observe(std::size_t place, double budget, double loss) {
    Observations& at = budgets_[budget];
    const auto [known, is_new] = at.loss_of.try_emplace(place, loss);
    if (!is_new) {
      at.by_loss.erase({known->second, place});
      known->second = loss;
    }
    at.by_loss.emplace(loss, place);
  }

  [[nodiscard]] const Observations* largest_model() const {
    for (auto at = budgets_.rbegin(); at != budgets_.rend(); ++at)
      if (at->second.by_loss.size() > min_points_ + 2) return &at->second;
    return nullptr;
  }

  void build(const Observations& observations) {
    const std::size_t count = observations.by_loss.size();
    const auto share = [&](double part) {
      const auto wanted = static_cast<std::size_t>(part * static_cast<double>(count));
      return std::min(count, std::max(min_points_, wanted));
    };
    std::vector<std::size_t> order;
    for (const auto& [loss, place] : observations.by_loss) order.push_back(place);
    const std::size_t good = share(top_share_), bad = share(1 - top_share_);
    build_density(good_, std::span(order).first(good), 1);
    build_density(bad_, std::span(order).last(bad), 1);
    build_density(wide_, std::span(order).first(good), bandwidth_factor_);
  }

  // Normal-reference bandwidths; of very many, every k-th is a kernel.
  void build_density(Parzen& density, std::span<const std::size_t> places, double factor) {
    const std::size_t stride = (places.size() + kMostKernels - 1) / kMostKernels;
    std::vector<const float*> rows;
    for (std::size_t i = 0; i < places.size(); i += stride)
      rows.push_back(rows_.data() + places[i] * cells_.size());
    const auto kernels = static_cast<double>(rows.size());
    const double scott = std::pow(kernels, -1 / (4 + static_cast<double>(cells_.size())));
    std::vector<float> widths;
    for (std::size_t axis = 0; axis < cells_.size(); ++axis) {
      const ParzenAxis& form = (*cells_.axes())[axis];
      const double least =
          form.form == ParzenAxis::Form::levels ? 0.5 / form.count : min_bandwidth_;
      const double width = form.form == ParzenAxis::Form::category
                               ? std::min(0.9, 0.5 * scott * factor)
                               : std::clamp(1.06 * deviation(rows, axis) * scott * factor,
                                            std::max(least, min_bandwidth_), 1.0);
      widths.push_back(static_cast<float>(width));
    }
    const std::vector<float> weights(rows.size(), 1.0F);
    density.build(cells_.axes(), rows, weights, 0, widths);
  }

  [[nodiscard]] double deviation(const std::vector<const float*>& rows, std::size_t axis) const {
    const ParzenAxis& form = (*cells_.axes())[axis];
    const double scale = form.form == ParzenAxis::Form::levels ? 1.0 / form.count : 1;
    double count = 0, sum = 0, squares = 0;
    for (const float* row : rows) {
      if (std::isnan(row[axis])) continue;
      const double value = row[axis] * scale;
      ++count;
      sum += value;
      squares += value * value;
    }
    if (count < 2) return 0.29;  // of the uniform distribution
    return std::sqrt(std::max(0.0, (squares - sum * sum / count) / (count - 1)));
  }

  Point best_candidate(Random& random) const {
    Point best;
    float best_ratio = 0;
    std::vector<float> cells;
    for (std::size_t i = 0; i < num_samples_; ++i) {
      const std::size_t kernel = wide_.pick(random);
      Point point(cells_.size());
      for (std::size_t j = 0; j < point.size(); ++j)
        point[j] = cells_.entry(j, wide_.sample(j, kernel, random));
      if (!space().settle(point, random)) continue;
      cells.clear();
      cells_.append(point, cells);
      const float ratio = good_.log_density(cells.data()) - bad_.log_density(cells.data());
      if (best.empty() || ratio > best_ratio) {
        best_ratio = ratio;
        best = std::move(point);
      }
    }
    return best.empty() ? space().sample(random) : best;
  }

  CellSpace cells_;
  std::size_t min_points_ = 1, num_samples_ = 64;
  double top_share_ = 0.15, random_fraction_ = 1.0 / 3, bandwidth_factor_ = 3;
  double min_bandwidth_ = 1e-3;
  std::vector<float> rows_;
  std::map<double, Observations> budgets_;
  // Filled anew for each ask.
  Parzen good_, bad_, wide_;
};

}  // namespace

std::unique_ptr<Sampler> make_bohb_sampler(std::shared_ptr<const Space> space,
                                           SamplerOptions options) {
  return std::make_unique<BohbSampler>(std::move(space), std::move(options));
}

}  // namespace kolo::search
