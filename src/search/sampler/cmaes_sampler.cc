// CMA-ES on the unit cube (cma_es.h), with restarts: Auger and Hansen, "A restart CMA evolution
// strategy with increasing population size" (IPOP, 2005); Hansen, "Benchmarking a BI-population
// CMA-ES" (BIPOP, 2009).
//
// Numbers and ordinals are coordinates. Categoricals cannot be: each has a probability per choice
// that moves towards the choices of the better half of a generation and never falls below a margin
// (as in Hamano et al., "CatCMA", 2024, with a fixed rate).
//
// A generation ends when `popsize` results have come, whichever ask they belong to: many workers
// may ask for more at any time, and late results still count. What was sampled for a trial (the
// *latent* vector, before rounding) is a function of the distribution at the time of the ask and of
// the trial's own random stream, so a recalled trial gets it again. Failed trials rank last.
// Conditional parameters are sampled whether they are active or not.
//
// Cost per trial: O(d²), and O(d³) now and then.
#include "search/sampler/cmaes_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>

#include "base/errors.h"
#include "kolo/random.h"
#include "search/sampler/cma_es.h"
#include "search/settings.h"
#include "search/space/encoder.h"

namespace kolo::search {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

enum class Restarts { none, ipop, bipop };

struct Latent {
  VectorXd numbers;             // coordinates in the cube, not rounded
  std::vector<double> choices;  // of categoricals
};

class CmaesSampler final : public Sampler {
 public:
  CmaesSampler(std::shared_ptr<const Space> space, SamplerOptions options);

  [[nodiscard]] std::string explain() const override {
    return "cmaes: a normal distribution over the unit cube follows the better half of each "
           "generation; it starts again when it has converged";
  }

 protected:
  std::vector<Point> propose(std::size_t count) override;
  void on_ask(std::size_t place) override;
  void on_tell(std::size_t place) override;

 private:
  struct Result {
    Latent latent;
    double value;
  };

  [[nodiscard]] Latent sample(Random& random) const;
  /// The point of a latent vector; settled, and allowed if that can be had.
  [[nodiscard]] Point decode(const Latent& latent, Random& random) const;
  [[nodiscard]] Latent encode(const Point& point) const;
  [[nodiscard]] std::pair<Latent, Point> draw(std::uint64_t number) const;
  void end_generation();
  void restart();
  [[nodiscard]] bool finished() const;

  Encoder encoder_;
  std::vector<std::size_t> numbers_, categoricals_;
  std::vector<std::uint64_t> cells_;
  double sigma0_;
  std::size_t popsize0_, population_;
  Restarts restarts_;

  std::optional<CmaDistribution> distribution_;
  std::vector<std::vector<double>> chances_;         // of the choices of each categorical
  std::unordered_map<std::size_t, Latent> latents_;  // of running trials, by place
  std::vector<Result> generation_;
  std::vector<double> bests_;  // of the latest generations
  std::uint64_t runs_ = 0, large_trials_ = 0, small_trials_ = 0, large_runs_ = 0, run_trials_ = 0;
  bool small_run_ = false;
};

CmaesSampler::CmaesSampler(std::shared_ptr<const Space> space, SamplerOptions options)
    : Sampler("cmaes", std::move(space), std::move(options)),
      encoder_(shared_space(), {.categorical = EncoderOptions::Categorical::label}) {
  if (objectives() != 1)
    throw_error(ErrorCode::unsupported,
                "sampler cmaes: it optimises one objective, not {}; use nsga2, gp or forest",
                objectives());
  for (std::size_t i = 0; i < this->space().size(); ++i) {
    const Parameter& p = this->space().parameters()[i];
    if (p.kind == Parameter::Kind::categorical) {
      if (p.cardinality > 10'000)
        throw_error(ErrorCode::unsupported,
                    "sampler cmaes: {} has {} choices without an order, and at most 10000 can be "
                    "learned; use random, tpe or forest",
                    p.path, p.cardinality);
      categoricals_.push_back(i);
    } else {
      numbers_.push_back(i);
      // Logarithmic integers have cells of different widths; fine ones need no margin.
      cells_.push_back(p.log || p.cardinality > 100'000 ? 0 : p.cardinality);
    }
  }
  if (numbers_.empty())
    throw_error(ErrorCode::unsupported,
                "sampler cmaes: the space has no numbers; use tpe, forest or evolution");
  SettingsReader reader("cmaes", this->options());
  const auto usual =
      4 + static_cast<std::int64_t>(3 * std::log(static_cast<double>(numbers_.size())));
  popsize0_ = static_cast<std::size_t>(reader.integer("popsize", usual, 4, 1'000'000));
  sigma0_ = reader.number("sigma0", 0.25, 1e-9, 10.0);
  restarts_ = static_cast<Restarts>(reader.one_of("restarts", {"none", "ipop", "bipop"}, 2));
  reader.done();
  population_ = popsize0_;
  restart();
}

void CmaesSampler::restart() {
  Random random = Random(options().seed).stream("cmaes restart", runs_);
  double sigma = sigma0_;
  if (runs_ > 0) {
    (small_run_ ? small_trials_ : large_trials_) += run_trials_;
    const double largest =
        static_cast<double>(popsize0_) * std::pow(2.0, static_cast<double>(large_runs_));
    small_run_ = restarts_ == Restarts::bipop && small_trials_ < large_trials_;
    if (small_run_) {  // a population and a step between the usual and the present largest
      const double u = random.uniform();
      population_ =
          static_cast<std::size_t>(static_cast<double>(popsize0_) *
                                   std::pow(0.5 * largest / static_cast<double>(popsize0_), u * u));
      population_ = std::max(population_, popsize0_);
      sigma = sigma0_ * std::pow(10.0, -2.0 * random.uniform());
    } else {
      ++large_runs_;
      population_ = static_cast<std::size_t>(std::min(2.0 * largest, 1e5));
    }
  }
  // The first run starts in the middle of the cube, later ones anywhere.
  VectorXd mean = VectorXd::Constant(static_cast<Index>(numbers_.size()), 0.5);
  if (runs_ > 0)
    for (double& value : mean) value = random.uniform();
  distribution_.emplace(cells_, mean, sigma, population_);
  chances_.clear();
  for (const std::size_t parameter : categoricals_) {
    const auto choices = static_cast<std::size_t>(space().parameters()[parameter].cardinality);
    chances_.emplace_back(choices, 1.0 / static_cast<double>(choices));
  }
  bests_.clear();
  run_trials_ = 0;
  ++runs_;
}

Latent CmaesSampler::sample(Random& random) const {
  // Outside of the cube nothing pulls a coordinate back: it would drift away for good.
  Latent latent{distribution_->sample(random).cwiseMax(0.0).cwiseMin(1.0), {}};
  for (const auto& chances : chances_) {
    double rest = random.uniform();
    std::size_t choice = 0;
    while (choice + 1 < chances.size() && rest >= chances[choice]) rest -= chances[choice++];
    latent.choices.push_back(static_cast<double>(choice));
  }
  return latent;
}

Point CmaesSampler::decode(const Latent& latent, Random& random) const {
  Point point(space().size());
  for (std::size_t i = 0; i < numbers_.size(); ++i)
    point[numbers_[i]] = encoder_.from_unit(numbers_[i], latent.numbers[static_cast<Index>(i)]);
  for (std::size_t i = 0; i < categoricals_.size(); ++i)
    point[categoricals_[i]] = latent.choices[i];
  if (!space().settle(point, random)) point.clear();
  return point;
}

Latent CmaesSampler::encode(const Point& point) const {
  Latent latent{distribution_->mean(), {}};
  for (std::size_t i = 0; i < numbers_.size(); ++i)
    if (!std::isnan(point[numbers_[i]]))
      latent.numbers[static_cast<Index>(i)] = encoder_.to_unit(numbers_[i], point[numbers_[i]]);
  for (const std::size_t parameter : categoricals_) latent.choices.push_back(point[parameter]);
  return latent;
}

std::pair<Latent, Point> CmaesSampler::draw(std::uint64_t number) const {
  constexpr int kTries = 100;
  Random random = stream(number);
  for (int attempt = 0; attempt < kTries; ++attempt) {
    Latent latent = sample(random);
    Point point = decode(latent, random);
    if (!point.empty()) return {std::move(latent), std::move(point)};
  }
  Point point = space().sample(random);  // the distribution lies where nothing is allowed
  return {encode(point), std::move(point)};
}

std::vector<Point> CmaesSampler::propose(std::size_t count) {
  std::vector<Point> points;
  for (std::size_t i = 0; i < count; ++i) {
    auto [latent, point] = draw(asked() + i);
    // on_ask follows at once for each of them, with the distribution as it is now.
    latents_[trials().size() + i] = std::move(latent);
    points.push_back(std::move(point));
  }
  return points;
}

void CmaesSampler::on_ask(std::size_t place) {
  if (latents_.contains(place)) return;
  auto [latent, point] = draw(asked() - 1);  // recalled, or a starting point
  latents_[place] =
      same_point(point, trials()[place].point) ? std::move(latent) : encode(trials()[place].point);
}

void CmaesSampler::on_tell(std::size_t place) {
  const Trial& trial = trials()[place];
  const auto found = latents_.find(place);
  Result result{found != latents_.end() ? std::move(found->second) : encode(trial.point), 0.0};
  if (found != latents_.end()) latents_.erase(found);
  constexpr double kWorst = std::numeric_limits<double>::infinity();
  result.value = trial.values.empty() ? kWorst : trial.values[0];
  // What violates constraints is worse than all that does not, the more the worse.
  if (trial.violation > 0.0 && !trial.values.empty())
    result.value = 1e300 * (1.0 + std::min(trial.violation, 1e7));
  generation_.push_back(std::move(result));
  ++run_trials_;
  if (generation_.size() >= distribution_->population()) end_generation();
}

void CmaesSampler::end_generation() {
  std::stable_sort(generation_.begin(), generation_.end(),
                   [](const Result& a, const Result& b) { return a.value < b.value; });
  bests_.push_back(generation_.front().value);
  std::vector<VectorXd> sorted;
  for (Result& result : generation_) sorted.push_back(std::move(result.latent.numbers));
  distribution_->update(sorted);

  const std::size_t parents = generation_.size() / 2;
  for (std::size_t c = 0; c < chances_.size(); ++c) {
    auto& chances = chances_[c];
    const double choices = static_cast<double>(chances.size());
    const double rate =
        std::min(0.5, 1.0 / std::sqrt(choices * static_cast<double>(chances_.size())));
    const double floor = std::min(0.5, 1.0 / (static_cast<double>(chances_.size()) *
                                              static_cast<double>(generation_.size()))) /
                         choices;
    for (double& chance : chances) chance *= 1.0 - rate;
    double known = 0.0;
    for (std::size_t i = 0; i < parents; ++i)
      known += std::isnan(generation_[i].latent.choices[c]) ? 0.0 : 1.0;
    for (std::size_t i = 0; i < parents; ++i) {
      const double choice = generation_[i].latent.choices[c];
      if (!std::isnan(choice)) chances[static_cast<std::size_t>(choice)] += rate / known;
    }
    double sum = 0.0;
    for (double& chance : chances) sum += chance = std::max(chance, floor);
    for (double& chance : chances) chance /= sum;
  }
  generation_.clear();
  if (restarts_ != Restarts::none && finished()) restart();
}

bool CmaesSampler::finished() const {
  if (distribution_->collapsed()) return true;
  // No progress: the bests of the latest generations are all but the same.
  const std::size_t window =
      10 + static_cast<std::size_t>(std::ceil(30.0 * static_cast<double>(numbers_.size()) /
                                              static_cast<double>(population_)));
  if (bests_.size() < window) return false;
  const auto [low, high] =
      std::minmax_element(bests_.end() - static_cast<std::ptrdiff_t>(window), bests_.end());
  return !(*high - *low > 1e-12 * (1.0 + std::abs(*low)));
}

}  // namespace

std::unique_ptr<Sampler> make_cmaes_sampler(std::shared_ptr<const Space> space,
                                            SamplerOptions options) {
  return std::make_unique<CmaesSampler>(std::move(space), std::move(options));
}

}  // namespace kolo::search
