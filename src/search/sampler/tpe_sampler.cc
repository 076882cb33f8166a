// Each ask builds the two densities anew from the groups of TpeSplit (good, bad) and the stored
// rows of cells, draws candidates from the good density and keeps the one with the largest
// difference of log densities. on_ask and on_tell only store rows and update the split, so that
// telling is cheap.
#include "search/sampler/tpe_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "kolo/random.h"
#include "search/sampler/cells.h"
#include "search/sampler/startup_design.h"
#include "search/sampler/tpe_split.h"
#include "search/settings.h"

namespace kolo::search {
namespace {

class TpeSampler final : public Sampler {
 public:
  TpeSampler(std::shared_ptr<const Space> space, SamplerOptions options)
      : Sampler("tpe", std::move(space), std::move(options)),
        cells_(shared_space()),
        encoder_(shared_space()),
        split_(objectives()),
        discrete_(this->space().cardinality().has_value()) {
    SettingsReader settings("tpe", this->options());
    n_startup_ = static_cast<std::uint64_t>(settings.integer("n_startup", 10, 1, 1'000'000));
    n_candidates_ = static_cast<std::size_t>(settings.integer("n_candidates", 24, 1, 100'000));
    multivariate_ = settings.truth("multivariate", true);
    split_.gamma = settings.number("gamma", multivariate_ ? 0.15 : 0.1, 0, 1);
    split_.by_rank = multivariate_;
    split_.max_good = static_cast<std::size_t>(settings.integer("max_good", 25, 1, 10'000));
    split_.max_bad = static_cast<std::size_t>(settings.integer("max_bad", 160, 2, 100'000));
    constant_liar_ = settings.truth("constant_liar", true);
    prior_weight_ = static_cast<float>(settings.number("prior_weight", 1, 0, 1e6));
    repeat_ = settings.truth("repeat", false);
    settings.done();
  }

  [[nodiscard]] std::string explain() const override {
    return multivariate_
               ? "tpe: the ratio of two joint densities, of good and of other trials"
               : "tpe: per parameter, the ratio of the densities of good and other trials";
  }

 protected:
  std::vector<Point> propose(std::size_t) override {
    Random random = stream(asked());
    if (asked() < n_startup_)
      return {fresh(startup_point(encoder_, options().seed, n_startup_, asked(), random), random)};
    if (split_.ended() < std::min<std::uint64_t>(n_startup_, kFewest) || space().size() == 0)
      return {fresh(space().sample(random), random)};
    build();
    return {multivariate_ ? propose_joint(random) : propose_by_axis(random)};
  }

  void on_ask(std::size_t place) override { remember(place); }

  void on_tell(std::size_t place) override {
    if (rows_.size() < trials().size() * cells_.size()) remember(place);
    split_.add(trials(), place);
  }

 private:
  static constexpr std::uint64_t kFewest = 3;

  void remember(std::size_t place) {
    cells_.append(trials()[place].point, rows_);
    if (discrete_) tried_.insert(hash_point(trials()[place].point));
  }

  [[nodiscard]] bool is_tried(const Point& point) const {
    return discrete_ && !repeat_ && tried_.contains(hash_point(point));
  }

  // The point, or one from the prior if it was tried before; after some attempts the point anyway.
  Point fresh(Point point, Random& random) const {
    Point candidate = point;
    for (int attempt = 0; attempt < 100; ++attempt) {
      if (!is_tried(candidate)) return candidate;
      candidate = space().sample(random);
    }
    return point;
  }

  void build() {
    const TpeSplit::Groups groups = split_.groups(trials(), constant_liar_ ? running() : kNobody);
    build_density(good_, groups.good, groups.good_weights);
    build_density(bad_, groups.bad, groups.bad_weights);
  }

  void build_density(Parzen& density, const std::vector<std::size_t>& places,
                     const std::vector<float>& weights) {
    pointers_.clear();
    for (const std::size_t place : places)
      pointers_.push_back(rows_.data() + place * cells_.size());
    bandwidth_.clear();
    for (std::size_t axis = 0; axis < cells_.size(); ++axis)
      bandwidth_.push_back(static_cast<float>(bandwidth_of(axis, &density == &good_)));
    density.build(cells_.axes(), pointers_, weights, prior_weight_, bandwidth_);
  }

  // Scott's rule. In the joint form the good trials draw together as the search goes on, and on a
  // line their kernels become narrower with them; levels keep a width that reaches their
  // neighbours, and the bad trials cover everything.
  [[nodiscard]] double bandwidth_of(std::size_t axis, bool good) const {
    const auto kernels = static_cast<double>(pointers_.size() + 1);
    const double dimensions = multivariate_ ? static_cast<double>(cells_.size()) : 1;
    const double scott = std::pow(kernels, -1 / (dimensions + 4));
    const ParzenAxis& form = (*cells_.axes())[axis];
    if (form.form == ParzenAxis::Form::category)
      return std::min(0.5, form.count / (kernels + form.count));
    const double evenly = 1 / std::min(100.0, 1 + kernels);
    if (!good || !multivariate_ || form.form == ParzenAxis::Form::levels)
      return std::max(0.2 * scott, evenly);
    return std::max(0.9 * spread_of(axis) * scott, 0.1 * evenly);
  }

  // The deviation of the kernels' cells, with the variance of the prior as one observation more.
  [[nodiscard]] double spread_of(std::size_t axis) const {
    constexpr double kPriorVariance = 1.0 / 12;
    double count = 0, sum = 0, squares = 0;
    for (const float* row : pointers_) {
      if (std::isnan(row[axis])) continue;
      ++count;
      sum += row[axis];
      squares += static_cast<double>(row[axis]) * row[axis];
    }
    if (count == 0) return std::sqrt(kPriorVariance);
    const double variance = (squares - sum * sum / count + kPriorVariance) / count;
    return std::sqrt(std::clamp(variance, 0.0, kPriorVariance));
  }

  // One candidate row; conditions decide, parents first, what is drawn.
  void draw(Random& random, float* row, Point& point) const {
    const std::size_t kernel = good_.pick(random);
    const bool conditional = space().has_conditions();
    for (const std::size_t i : space().dependency_order()) {
      if (conditional && !space().is_active(i, point)) {
        row[i] = std::numeric_limits<float>::quiet_NaN();
        point[i] = std::numeric_limits<double>::quiet_NaN();
        continue;
      }
      row[i] = good_.sample(i, kernel, random);
      if (conditional) point[i] = cells_.entry(i, row[i]);
    }
  }

  [[nodiscard]] Point point_of(const float* row) const {
    Point point(cells_.size());
    for (std::size_t i = 0; i < point.size(); ++i) point[i] = cells_.entry(i, row[i]);
    return point;
  }

  Point propose_joint(Random& random) const {
    // Candidates that were tried or are refused are replaced by further ones, within reason.
    constexpr std::size_t kRounds = 8;
    const bool may_refuse = discrete_ || space().has_refusals();
    std::vector<float> row(cells_.size());
    Point scratch(cells_.size()), best, candidate;
    float best_score = -std::numeric_limits<float>::infinity();
    std::vector<float> best_row;
    std::size_t usable = 0;
    for (std::size_t i = 0; i < n_candidates_ * (may_refuse ? kRounds : 1); ++i) {
      draw(random, row.data(), scratch);
      if (may_refuse) {
        candidate = point_of(row.data());
        if (is_tried(candidate) || !space().settle(candidate, random)) continue;
      }
      const float score = good_.log_density(row.data()) - bad_.log_density(row.data());
      if (score > best_score || best_row.empty()) {
        best_score = score;
        best_row = row;
      }
      if (++usable == n_candidates_) break;
    }
    if (best_row.empty()) return fresh(space().sample(random), random);
    best = point_of(best_row.data());
    return space().settle(best, random) ? best : space().sample(random);
  }

  Point propose_by_axis(Random& random) const {
    // Each round after a point that was tried looks at fewer candidates, which is more random.
    constexpr int kRounds = 8;
    Point point(cells_.size());
    for (int round = 0; round < kRounds; ++round) {
      for (const std::size_t i : space().dependency_order()) {
        if (!space().is_active(i, point)) {
          point[i] = std::numeric_limits<double>::quiet_NaN();
          continue;
        }
        float best = 0, best_score = -std::numeric_limits<float>::infinity();
        for (std::size_t c = 0; c < std::max<std::size_t>(n_candidates_ >> round, 1); ++c) {
          const float cell = good_.sample(i, good_.pick(random), random);
          const float score = good_.log_density(i, cell) - bad_.log_density(i, cell);
          if (score > best_score || c == 0) {
            best_score = score;
            best = cell;
          }
        }
        point[i] = cells_.entry(i, best);
      }
      if (space().settle(point, random) && !is_tried(point)) return point;
    }
    return fresh(space().sample(random), random);
  }

  const std::vector<std::size_t> kNobody;
  CellSpace cells_;
  Encoder encoder_;
  TpeSplit split_;
  bool discrete_, multivariate_ = true, constant_liar_ = true, repeat_ = false;
  std::uint64_t n_startup_ = 10;
  std::size_t n_candidates_ = 24;
  float prior_weight_ = 1;
  std::vector<float> rows_;  // of cells, one row per trial
  std::unordered_set<std::uint64_t> tried_;
  // Filled anew for each ask.
  Parzen good_, bad_;
  std::vector<const float*> pointers_;
  std::vector<float> bandwidth_;
};

}  // namespace

std::unique_ptr<Sampler> make_tpe_sampler(std::shared_ptr<const Space> space,
                                          SamplerOptions options) {
  return std::make_unique<TpeSampler>(std::move(space), std::move(options));
}

}  // namespace kolo::search
