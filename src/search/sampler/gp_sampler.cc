// Jones, Schonlau and Welch, "Efficient global optimization of expensive black-box functions"
// (1998), with the model of surrogate/gp.h, the outputs of surrogate/output_warp.h and the search
// of acquisition/gp_search.h.
//
// Vocabulary: the *observations* are the ended trials in the order of their ends. Parameters of the
// model are *learned* at fixed counts of observations (each about an eighth more than the last),
// from the observations up to that count and starting from the parameters of the count before and,
// while observations are few, from the mean of their prior, too (of the two, the likelier result is
// taken): few observations have several explanations, and a bad one, found first, would stay. The
// parameters are a function of the history. In between, observations are appended to the factor.
// Running trials are pending rows, and so are the earlier points of a batch.
//
// Cost of an ask with n observations: n² per new observation, n³/3 after learning, and a search of
// about the same; learning uses at most kLearnMost observations.
#include "search/sampler/gp_sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "kolo/random.h"
#include "search/acquisition/gp_search.h"
#include "search/sampler/observations.h"
#include "search/sampler/prior_turns.h"
#include "search/settings.h"
#include "search/surrogate/output_warp.h"

namespace kolo::search {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr Index kLearnMost = 200;
constexpr std::size_t kLearnAfreshMost = 100;
constexpr int kAfresh = 40, kOnwards = 16;  // evaluations of the likelihood
constexpr std::size_t kMostPendingRows = 256;
constexpr std::size_t kIncumbents = 5;
constexpr std::uint64_t kExploreEvery = 4;

/// Hashes of the points that earlier trials of a batch got.
using Taken = std::unordered_set<std::uint64_t>;

struct GpSettings {
  std::size_t initial;
  std::size_t max_points;
  bool input_warping;
  std::optional<Acquisition::Kind> acquisition;  // none: alternate
  ExplorationSchedule exploration;
  double kappa, xi;
  std::size_t patience;  // 0: without end

  GpSettings(const SamplerOptions& options, const Space& space) {
    SettingsReader reader("gp", options);
    // With fewer, a parameter may seem not to matter, and then keeps the value it happens to have.
    const auto usual =
        static_cast<std::int64_t>(std::clamp<std::size_t>(2 * (space.size() + 1), 5, 12));
    initial = static_cast<std::size_t>(reader.integer("n_initial_points", usual, 1, 1'000'000));
    max_points = static_cast<std::size_t>(reader.integer("max_points", 1000, 10, 10'000));
    input_warping = reader.truth("input_warping", true);
    // Where conditions cut the space into branches, each with few observations, expected
    // improvement alone may stay in the first good one.
    const std::size_t usual_function = space.has_conditions() ? 4 : 0;
    const std::size_t function =
        reader.one_of("acq_func", {"logEI", "EI", "PI", "UCB", "alternate"}, usual_function);
    if (function < 4) acquisition = static_cast<Acquisition::Kind>(function);
    kappa = reader.number("kappa", 1.96, 0.0, 1e6);
    exploration.initial = std::max(kappa, exploration.final);
    exploration.period = 5;
    xi = reader.number("xi", 0.0, 0.0, 1e6);
    patience = static_cast<std::size_t>(reader.integer("patience", 0, 0, 1'000'000));
    reader.done();
  }
};

class GpSampler final : public Sampler {
 public:
  GpSampler(std::shared_ptr<const Space> space, SamplerOptions options)
      : Sampler("gp", std::move(space), std::move(options)),
        settings_(this->options(), this->space()),
        encoding_(shared_space(), settings_.input_warping),
        moves_(shared_space()),
        observations_(this->space()),
        model_(encoding_.shape()) {}

  [[nodiscard]] std::string explain() const override {
    return "gp: a Gaussian process over the unit cube (Matérn 5/2, one length scale per "
           "parameter); each trial maximises the acquisition function, running trials count as "
           "their predicted values";
  }
  [[nodiscard]] bool exhausted() const override { return is_finished_; }

 protected:
  std::vector<Point> propose(std::size_t count) override;
  void on_ask(std::size_t place) override {
    observations_.started(trials()[place]);
    if (settings_.patience > 0) ++suggested_[spot_of(trials()[place].point)];
  }
  void on_tell(std::size_t place) override { observations_.ended(trials()[place], place); }

 private:
  /// Brings the model up to date with the observations.
  void update_model();
  void learn(std::size_t count);
  [[nodiscard]] std::vector<std::size_t> choose_rows(std::size_t count) const;
  [[nodiscard]] Point propose_one(std::uint64_t number, const Taken& batch);
  [[nodiscard]] Point sample_new(Random& random, const Taken& batch) const;
  /// The same for points that agree to five decimals in the unit cube: a search that has settled.
  [[nodiscard]] std::uint64_t spot_of(const Point& point) const;
  /// How many points of the batch are suggested before the search has lost its patience.
  [[nodiscard]] std::size_t patient_part(const std::vector<Point>& batch) const;

  GpSettings settings_;
  GpEncoding encoding_;
  Moves moves_;
  Observations observations_;
  std::unordered_map<std::uint64_t, std::size_t> suggested_;  // how often, by spot_of()
  bool is_finished_ = false;

  // All of this is a function of the observations.
  GaussianProcess model_;
  VectorXd parameters_;
  std::size_t learned_ = 0;        // the count at which the parameters were learned
  std::size_t next_learning_ = 0;  // the next count at which they will be
  std::vector<std::size_t> rows_;  // observations that are rows of the model, in order
  std::size_t appended_ = 0;       // observations that rows_ takes account of
};

std::vector<Point> GpSampler::propose(std::size_t count) {
  std::vector<Point> batch;
  if (is_finished_) return batch;
  Taken taken;
  const bool initial = observations_.size() < settings_.initial;
  if (!initial) {
    update_model();
    std::vector<std::size_t> pending = running();
    if (pending.size() > kMostPendingRows)
      pending.erase(pending.begin(), pending.end() - static_cast<std::ptrdiff_t>(kMostPendingRows));
    for (const std::size_t place : pending)
      model_.append_pending(encoding_.row(trials()[place].point));
  }
  for (std::size_t i = 0; i < count; ++i) {
    Random random = stream(asked() + i);
    const bool from_prior = initial || is_prior_turn(space(), asked() + i);
    batch.push_back(from_prior ? sample_new(random, taken) : propose_one(asked() + i, taken));
    taken.insert(hash_point(batch.back()));
    if (!initial && i + 1 < count && i < kMostPendingRows)
      model_.append_pending(encoding_.row(batch.back()));
  }
  if (!initial) model_.truncate(static_cast<Index>(rows_.size()));
  if (settings_.patience > 0) {
    const std::size_t part = patient_part(batch);
    is_finished_ = part < batch.size();
    batch.resize(part);
  }
  return batch;
}

std::uint64_t GpSampler::spot_of(const Point& point) const {
  constexpr double kDecimals = 1e5;
  Point spot;
  for (const double value : encoding_.row(point)) spot.push_back(std::round(value * kDecimals));
  return hash_point(spot);
}

std::size_t GpSampler::patient_part(const std::vector<Point>& batch) const {
  std::unordered_map<std::uint64_t, std::size_t> here;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto spot = spot_of(batch[i]);
    const auto before = suggested_.find(spot);
    const std::size_t times = ++here[spot] + (before == suggested_.end() ? 0 : before->second);
    if (times > settings_.patience) return i;
  }
  return batch.size();
}

void GpSampler::update_model() {
  if (next_learning_ == 0) next_learning_ = settings_.initial;
  while (next_learning_ <= observations_.size()) {
    learn(next_learning_);
    learned_ = next_learning_;
    next_learning_ += std::max<std::size_t>(1, next_learning_ / 8);
    appended_ = 0;
  }
  if (appended_ == 0) {
    rows_ = choose_rows(learned_);
    std::vector<Point> points;
    for (const std::size_t row : rows_)
      points.push_back(trials()[observations_.places()[row]].point);
    model_.condition(encoding_.rows(points), parameters_);
    appended_ = learned_;
  }
  for (; appended_ < observations_.size(); ++appended_) {
    rows_.push_back(appended_);
    model_.append(encoding_.row(trials()[observations_.places()[appended_]].point));
  }
}

void GpSampler::learn(std::size_t count) {
  std::vector<Point> points;
  for (std::size_t i = 0; i < count; ++i)
    points.push_back(trials()[observations_.places()[i]].point);
  const VectorXd targets =
      warp_outputs(observations_.targets(trials(), count, even_weights(objectives())));
  const MatrixXd rows = encoding_.rows(points);
  const auto improve = [&](int evaluations, VectorXd& parameters) {
    return learn_gp_parameters(encoding_.shape(), rows, targets, kLearnMost, evaluations,
                               parameters);
  };
  const bool first = parameters_.size() == 0;
  VectorXd afresh = make_gp_prior(encoding_.shape()).mean;
  const double found = first ? INFINITY : improve(kOnwards, parameters_);
  if (!first && count > kLearnAfreshMost) return;
  if (improve(kAfresh, afresh) < found || first) parameters_ = std::move(afresh);
}

std::vector<std::size_t> GpSampler::choose_rows(std::size_t count) const {
  std::vector<std::size_t> rows(count);
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  if (count <= settings_.max_points) return rows;
  // The best half of what fits, and the latest of the others.
  const VectorXd targets = observations_.targets(trials(), count, even_weights(objectives()));
  auto rank = [&](std::size_t row) {
    const double target = targets[static_cast<Index>(row)];
    return std::isnan(target) ? INFINITY : target;
  };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  const auto half = static_cast<std::ptrdiff_t>(settings_.max_points / 2);
  const auto others = static_cast<std::ptrdiff_t>(settings_.max_points) - half;
  std::sort(rows.begin() + half, rows.end());
  rows.erase(rows.begin() + half, rows.end() - others);
  std::sort(rows.begin(), rows.end());
  return rows;
}

Point GpSampler::propose_one(std::uint64_t number, const Taken& batch) {
  Random random = stream(number);
  const std::vector<double> weights = draw_weights(objectives(), random);
  const VectorXd all = observations_.targets(trials(), observations_.size(), weights);
  VectorXd own(static_cast<Index>(rows_.size()));
  for (std::size_t i = 0; i < rows_.size(); ++i)
    own[static_cast<Index>(i)] = all[static_cast<Index>(rows_[i])];
  own = warp_outputs(own);
  model_.set_targets(own);

  std::vector<std::size_t> order(rows_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::size_t good = std::min(kIncumbents, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(good), order.end(),
                    [&](std::size_t a, std::size_t b) {
                      return std::pair(own[static_cast<Index>(a)], a) <
                             std::pair(own[static_cast<Index>(b)], b);
                    });
  std::vector<Point> incumbents;
  for (std::size_t i = 0; i < good; ++i)
    incumbents.push_back(trials()[observations_.places()[rows_[order[i]]]].point);

  Acquisition acquisition{.best = own.minCoeff(), .kappa = settings_.kappa, .xi = settings_.xi};
  if (settings_.acquisition) {
    acquisition.kind = *settings_.acquisition;
  } else if (number % kExploreEvery == kExploreEvery - 1) {
    // Expected improvement trusts the model; now and then a look elsewhere corrects it.
    acquisition.kind = Acquisition::Kind::ucb;
    acquisition.kappa = settings_.exploration.at(number / kExploreEvery, space().size());
  }
  const bool repeats = observations_.nothing_new();
  const GpSearch search(model_, encoding_, moves_, acquisition, [&](const Point& point) {
    if (repeats) return false;
    return observations_.seen(point) || batch.contains(hash_point(point));
  });
  Point best = search.best(incumbents, random);
  return best.empty() ? sample_new(random, batch) : best;
}

Point GpSampler::sample_new(Random& random, const Taken& batch) const {
  constexpr int kTries = 100;
  Point point = space().sample(random);
  if (observations_.nothing_new()) return point;
  for (int i = 0; i < kTries; ++i) {
    if (!observations_.seen(point) && !batch.contains(hash_point(point))) break;
    point = space().sample(random);
  }
  return point;
}

}  // namespace

std::unique_ptr<Sampler> make_gp_sampler(std::shared_ptr<const Space> space,
                                         SamplerOptions options) {
  return std::make_unique<GpSampler>(std::move(space), std::move(options));
}

}  // namespace kolo::search
