// Two rankings of trials are kept: of all of them, from which the model of effects is fitted, and
// of those since the last jump (the current climb), whose best are the centres. Each ask fits the
// model to the ranks of at most 512 trials and visits the neighbours of the centres. When the best
// trial of the climb has no neighbour left that was not tried, the search jumps: it draws a few
// points from the prior and begins a new climb at the one with the best forecast.
#include "search/sampler/local_search_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "kolo/random.h"
#include "search/sampler/cells.h"
#include "search/sampler/startup_design.h"
#include "search/sampler/trial_ranking.h"
#include "search/settings.h"
#include "search/surrogate/effects.h"

namespace kolo::search {
namespace {

class LocalSearchSampler final : public Sampler {
 public:
  LocalSearchSampler(std::shared_ptr<const Space> space, SamplerOptions options)
      : Sampler("local_search", std::move(space), std::move(options)),
        cells_(shared_space()),
        encoder_(shared_space()),
        ranking_(objectives()),
        climb_(objectives()) {
    SettingsReader settings("local_search", this->options());
    n_startup_ = static_cast<std::uint64_t>(settings.integer("n_startup", 10, 1, 1'000'000));
    n_centers_ = static_cast<std::size_t>(settings.integer("n_centers", 5, 1, 1000));
    curiosity_ = settings.number("curiosity", 0.5, 0, 100);
    n_jumps_ = static_cast<std::size_t>(settings.integer("n_jumps", 8, 1, 10'000));
    settings.done();
  }

  [[nodiscard]] std::string explain() const override {
    return "local_search: the neighbours of the best trials, ordered by a model of independent "
           "effects";
  }

 protected:
  std::vector<Point> propose(std::size_t) override {
    Random random = stream(asked());
    if (asked() < n_startup_)
      return {startup_point(encoder_, options().seed, n_startup_, asked(), random)};
    if (ranking_.size() == 0 || space().size() == 0) return {space().sample(random)};
    return {best_neighbour(random)};
  }

  void on_ask(std::size_t place) override {
    if (place >= n_startup_ && is_exhausted()) {
      climb_begin_ = place;
      climb_ = TrialRanking(objectives());
    }
    remember(place);
  }

  void on_tell(std::size_t place) override {
    if (rows_.size() < trials().size() * cells_.size()) remember(place);
    ranking_.add(trials(), place);
    if (place >= climb_begin_) climb_.add(trials(), place);
  }

 private:
  static constexpr std::size_t kMostFitted = 512;
  static constexpr std::uint32_t kFewValues = 32;
  static constexpr double kWorstScore = 3;

  void remember(std::size_t place) {
    cells_.append(trials()[place].point, rows_);
    tried_.insert(hash_point(trials()[place].point));
  }

  [[nodiscard]] const float* row(std::size_t place) const {
    return rows_.data() + place * cells_.size();
  }

  Point best_neighbour(Random& random) {
    // The ranking's order is the outcome: it knows about failures and several objectives.
    const auto best = ranking_.best(trials(), kMostFitted);
    std::vector<const float*> rows;
    std::vector<double> outcomes;
    for (std::size_t rank = 0; rank < best.size(); ++rank) {
      rows.push_back(row(best[rank]));
      outcomes.push_back(static_cast<double>(rank));
    }
    model_.fit(cells_.axes(), rows, outcomes);

    std::unordered_map<std::size_t, std::size_t> rank_of;
    for (std::size_t rank = 0; rank < best.size(); ++rank) rank_of[best[rank]] = rank;

    if (climb_.size() == 0 || is_exhausted()) return jump(random);
    const auto centers = climb_.best(trials(), kMostFitted);
    // More centres only when the first ones have no neighbours left.
    for (std::size_t from = 0; from < centers.size(); from += n_centers_) {
      Point chosen;
      double forecast = std::numeric_limits<double>::infinity();
      for (std::size_t c = from; c < std::min(centers.size(), from + n_centers_); ++c) {
        const auto rank = rank_of.find(centers[c]);
        const double score = rank == rank_of.end() ? kWorstScore : model_.score(rank->second);
        visit(centers[c], score, random, chosen, forecast);
      }
      if (!chosen.empty()) return chosen;
    }
    return jump(random);
  }

  // The best trial of this climb has no neighbour that was not tried. (Where a parameter has too
  // many values to list them, that does not happen.)
  [[nodiscard]] bool is_exhausted() const {
    if (climb_.size() == 0) return false;
    const std::size_t place = climb_.best(trials(), 1)[0];
    Point neighbour = trials()[place].point;
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      const ParzenAxis& form = (*cells_.axes())[i];
      if (form.form == ParzenAxis::Form::line || form.count > kFewValues) return false;
      const double kept = neighbour[i];
      if (std::isnan(kept)) continue;
      for (std::uint32_t value = 0; value < form.count; ++value) {
        neighbour[i] = cells_.entry(i, static_cast<float>(value));
        if (!tried_.contains(hash_point(neighbour)) && space().allows(neighbour)) return false;
      }
      neighbour[i] = kept;
    }
    return true;
  }

  // Where to start again: the best by forecast of a few points drawn from the prior.
  Point jump(Random& random) const {
    Point chosen;
    double best = std::numeric_limits<double>::infinity();
    std::vector<float> cells;
    for (std::size_t i = 0; i < n_jumps_; ++i) {
      Point point = fresh_sample(random);
      cells.clear();
      cells_.append(point, cells);
      double forecast = 0;
      for (std::size_t j = 0; j < cells.size(); ++j) forecast += model_.effect(j, cells[j]);
      if (forecast < best || chosen.empty()) {
        best = forecast;
        chosen = std::move(point);
      }
    }
    return chosen;
  }

  // Forecasts the untried neighbours of one centre.
  void visit(std::size_t place, double score, Random& random, Point& chosen,
             double& chosen_forecast) {
    const Point& center = trials()[place].point;
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      if (std::isnan(center[i])) continue;
      const float from = row(place)[i];
      for (const float to : values_near(i, from, random)) {
        Point neighbour = center;
        neighbour[i] = cells_.entry(i, to);
        if (neighbour[i] == center[i] || !space().settle(neighbour, random)) continue;
        if (tried_.contains(hash_point(neighbour))) continue;
        const double forecast = score + model_.effect(i, to) - model_.effect(i, from) -
                                curiosity_ / std::sqrt(1.0 + model_.seen(i, to));
        if (forecast < chosen_forecast || chosen.empty()) {
          chosen_forecast = forecast;
          chosen = std::move(neighbour);
        }
      }
    }
  }

  [[nodiscard]] std::vector<float> values_near(std::size_t axis, float from, Random& random) const {
    const ParzenAxis& form = (*cells_.axes())[axis];
    std::vector<float> values;
    if (form.form != ParzenAxis::Form::line && form.count <= kFewValues) {
      for (std::uint32_t value = 0; value < form.count; ++value)
        if (static_cast<float>(value) != from) values.push_back(static_cast<float>(value));
    } else if (form.form != ParzenAxis::Form::line) {
      for (std::uint32_t k = 0; k < kFewValues; ++k)
        values.push_back(static_cast<float>(random.below(form.count)));
    } else {
      // Steps of every length from a third of the range down.
      for (double step = 0.3; step > 1e-4; step /= 3)
        values.push_back(std::clamp(from + static_cast<float>(step * random.normal()), 0.0F, 1.0F));
    }
    return values;
  }

  Point fresh_sample(Random& random) const {
    Point point = space().sample(random);
    for (int attempt = 0; attempt < 100 && tried_.contains(hash_point(point)); ++attempt)
      point = space().sample(random);
    return point;
  }

  CellSpace cells_;
  Encoder encoder_;
  TrialRanking ranking_;  // of all trials
  TrialRanking climb_;    // of those since the last jump
  std::size_t climb_begin_ = 0;
  EffectModel model_;
  std::uint64_t n_startup_ = 10;
  std::size_t n_centers_ = 5;
  std::size_t n_jumps_ = 8;
  double curiosity_ = 0.5;
  std::vector<float> rows_;
  std::unordered_set<std::uint64_t> tried_;
};

}  // namespace

std::unique_ptr<Sampler> make_local_search_sampler(std::shared_ptr<const Space> space,
                                                   SamplerOptions options) {
  return std::make_unique<LocalSearchSampler>(std::move(space), std::move(options));
}

}  // namespace kolo::search
