// best() has three stages. It scores some hundred candidates in one batch; it lets the most
// promising ones climb over discrete neighbours (climb); and it follows the gradient of the
// acquisition in the continuous columns with L-BFGS (ascend), with all other columns fixed. The
// numbers of candidates and of gradient evaluations fall with the square of the number of
// observations, as one prediction costs that much.
#include "search/acquisition/gp_search.h"

#include <algorithm>
#include <cmath>

#include "search/surrogate/lbfgs.h"

namespace kolo::search {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

namespace {

constexpr std::uint64_t kSmoothFrom = 12;  // values an integer needs to be moved by gradients
constexpr std::uint64_t kWarpFrom = 6;     // values an ordered parameter needs to be warped

}  // namespace

GpEncoding::GpEncoding(std::shared_ptr<const Space> space, bool warp_inputs)
    : encoder_(std::move(space)) {
  shape_.group.resize(encoder_.width());
  scale_.assign(encoder_.width(), 1.0);
  for (std::size_t i = 0; i < encoder_.columns().size(); ++i) {
    const EncodedColumns& columns = encoder_.columns()[i];
    const Parameter& p = encoder_.space().parameters()[i];
    for (std::size_t c = columns.begin; c < columns.begin + columns.count; ++c) {
      shape_.group[c] = shape_.groups;
      if (columns.count > 1) scale_[c] = std::sqrt(0.5);
    }
    ++shape_.groups;
    const bool many_values = p.cardinality == 0 || p.cardinality >= kWarpFrom;
    if (warp_inputs && columns.ordered && many_values)
      shape_.warped.push_back(static_cast<Index>(columns.begin));
    if (p.is_number() && (p.cardinality == 0 || p.cardinality >= kSmoothFrom)) smooth_.push_back(i);
  }
}

Eigen::RowVectorXd GpEncoding::row(const Point& point) const {
  Eigen::RowVectorXd row(static_cast<Index>(encoder_.width()));
  encoder_.encode(point, std::span(row.data(), encoder_.width()));
  for (Index c = 0; c < row.size(); ++c) row[c] *= scale_[c];
  return row;
}

MatrixXd GpEncoding::rows(std::span<const Point> points) const {
  MatrixXd rows(static_cast<Index>(points.size()), static_cast<Index>(encoder_.width()));
  for (std::size_t i = 0; i < points.size(); ++i) rows.row(static_cast<Index>(i)) = row(points[i]);
  return rows;
}

bool GpEncoding::decode(const VectorXd& row, Point& point, Random& random) const {
  std::vector<double> unit(row.data(), row.data() + row.size());
  return encoder_.decode(unit, point, random);  // the largest of a choice's columns decides
}

GpSearch::GpSearch(const GaussianProcess& model, const GpEncoding& encoding, const Moves& moves,
                   const Acquisition& acquisition, std::function<bool(const Point&)> refused)
    : model_(model),
      encoding_(encoding),
      moves_(moves),
      acquisition_(acquisition),
      refused_(std::move(refused)) {}

std::vector<GpSearch::Scored> GpSearch::score(std::vector<Point> points) const {
  std::vector<Scored> scored;
  if (points.empty()) return scored;
  const auto prediction = model_.predict(encoding_.rows(points));
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto at = static_cast<Index>(i);
    scored.push_back({std::move(points[i]),
                      acquisition_.score(prediction.mean[at], std::sqrt(prediction.variance[at]))});
  }
  std::stable_sort(scored.begin(), scored.end(),
                   [](const Scored& a, const Scored& b) { return a.score > b.score; });
  return scored;
}

Point GpSearch::best(std::span<const Point> incumbents, Random& random) const {
  const double n = static_cast<double>(model_.size());
  const auto candidates = static_cast<std::size_t>(std::clamp(2.5e8 / (n * n), 256.0, 1000.0));
  const auto gradients = static_cast<int>(std::clamp(1.2e7 / (n * n), 20.0, 160.0));
  const std::size_t starts = std::clamp(gradients / 25, 1, 4);

  std::vector<Point> points;
  const std::size_t around = incumbents.empty() ? 0 : candidates / 2;
  for (std::size_t i = 0; i < around; ++i) {
    // The first incumbent is visited most, steps are as often short as long.
    const auto pick = static_cast<std::size_t>(static_cast<double>(incumbents.size()) *
                                               random.uniform() * random.uniform());
    const double scale = 0.3 * std::exp(-6.0 * random.uniform());
    points.push_back(moves_.vary(incumbents[pick], scale, random));
  }
  while (points.size() < candidates) points.push_back(moves_.encoder().space().sample(random));
  std::vector<Scored> pool = score(std::move(points));

  std::vector<Scored> chosen;
  for (const Scored& candidate : pool) {
    if (chosen.size() == starts) break;
    if (!refused_(candidate.point)) chosen.push_back(candidate);
  }
  const Scored* winner = nullptr;
  for (Scored& candidate : chosen) {
    climb(candidate, random);
    ascend(candidate, gradients / static_cast<int>(starts), random);
    if (winner == nullptr || candidate.score > winner->score) winner = &candidate;
  }
  return winner == nullptr ? Point{} : winner->point;
}

void GpSearch::climb(Scored& from, Random& random) const {
  constexpr int kRounds = 12;
  constexpr std::size_t kMostChoices = 16;
  for (int round = 0; round < kRounds; ++round) {
    auto around = score(moves_.neighbours(from.point, kMostChoices, random));
    const auto better = std::find_if(around.begin(), around.end(),
                                     [&](const Scored& s) { return !refused_(s.point); });
    if (better == around.end() || !(better->score > from.score)) return;
    from = std::move(*better);
  }
}

void GpSearch::ascend(Scored& from, int evaluations, Random& random) const {
  VectorXd x = encoding_.row(from.point).transpose();
  VectorXd low = x, high = x;  // what must not move has no room
  bool any = false;
  for (const std::size_t parameter : encoding_.smooth()) {
    if (std::isnan(from.point[parameter])) continue;
    const auto column = static_cast<Index>(encoding_.encoder().columns()[parameter].begin);
    low[column] = 0.0;
    high[column] = 1.0;
    any = true;
  }
  if (!any) return;
  minimise_lbfgs(
      [&](const VectorXd& at, VectorXd& gradient) {
        const auto here = model_.predict_slope(at.transpose());
        const double deviation = std::sqrt(here.variance);
        const auto slope = acquisition_.slope(here.mean, deviation);
        gradient = -(slope.by_mean * here.mean_gradient +
                     slope.by_deviation / (2.0 * deviation) * here.variance_gradient);
        return -slope.score;
      },
      x, low, high, {.evaluations = evaluations, .gradient = 1e-6, .decrease = 1e-9});
  Point point;
  if (!encoding_.decode(x, point, random) || refused_(point)) return;
  auto scored = score({point});
  if (scored[0].score > from.score) from = std::move(scored[0]);
}

}  // namespace kolo::search
