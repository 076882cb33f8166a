#include "quality/curves.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "base/errors.h"
#include "base/files.h"
#include "base/json.h"
#include "quality/csv.h"

namespace bench {
namespace {

using kolo::Json;
using kolo::json_field;

struct Axis {
  double low, high;
  bool log;

  [[nodiscard]] double unit(double value) const {
    if (log) return std::log(value / low) / std::log(high / low);
    return (value - low) / (high - low);
  }
};

std::vector<Axis> axes_of(const search::Space& space) {
  std::vector<Axis> axes;
  for (const auto& parameter : space.parameters())
    axes.push_back({parameter.low, parameter.high, parameter.log});
  return axes;
}

CurvePool read_pool(const std::string& path, const Json& header) {
  CurvePool pool;
  pool.name = std::filesystem::path(path).stem();
  pool.best_final = json_field<double>(header, "best_final", path);
  if (json_field<std::string>(header, "direction", path) == "minimize")
    pool.direction = search::Direction::minimize;

  search::Space::Builder builder;
  std::vector<std::string> names;
  for (const Json& parameter : header.at("parameters")) {
    names.push_back(json_field<std::string>(parameter, "name", path));
    auto low = json_field<double>(parameter, "low", path);
    auto high = json_field<double>(parameter, "high", path);
    auto prior = json_field<std::string>(parameter, "scale", path) == "log"
                     ? search::Prior::log_uniform
                     : search::Prior::uniform;
    bool whole = json_field<std::string>(parameter, "type", path) == "int";
    builder.add(names.back(),
                whole ? search::integer(low, high, prior) : search::real(low, high, prior));
  }
  pool.space = builder.build();

  auto columns = json_field<std::vector<std::string>>(header, "columns", path);
  auto folder = std::filesystem::path(path).parent_path();
  auto rows = read_csv_columns((folder / json_field<std::string>(header, "csv", path)).string(), 0);
  std::vector<std::size_t> place_of;  // of each parameter's column in the space
  for (const auto& name : names) place_of.push_back(pool.space->index_of(name));
  auto first = static_cast<std::ptrdiff_t>(std::find(columns.begin(), columns.end(), "acc_1") -
                                           columns.begin());
  auto axes = axes_of(*pool.space);
  for (const auto& row : rows) {
    auto& unit = pool.units.emplace_back(names.size());
    for (std::size_t i = 0; i < names.size(); ++i)
      unit[place_of[i]] = axes[place_of[i]].unit(row[i]);
    pool.curves.emplace_back(row.begin() + first, row.end());
  }
  return pool;
}

/// One worker and the trials it has begun.
class Simulation {
 public:
  Simulation(const CurvePool& pool, const Pairing& pairing, std::uint64_t seed, std::size_t budget)
      : pool_(pool),
        budget_(budget),
        used_(pool.curves.size(), false),
        sampler_(search::make_sampler(pairing.sampler, pool.space,
                                      {.directions = {pool.direction}, .seed = seed})),
        scheduler_(search::make_scheduler(
            pairing.scheduler,
            {.directions = {pool.direction}, .seed = seed, .settings = pairing.settings})) {}

  std::vector<double> run() {
    while (regret_.size() < budget_) {
      auto next = scheduler_->next(waiting_);
      if (!next) next = begin();
      if (!next) {
        scheduler_->stalled();
        if (!follow_decisions()) break;
        continue;
      }
      std::erase(waiting_, *next);
      train(*next);
      follow_decisions();
    }
    return regret_;
  }

 private:
  struct Training {
    const std::vector<double>* curve;
    std::size_t epoch = 0;
  };

  std::optional<search::TrialId> begin() {
    if (trials_.size() == pool_.curves.size()) return std::nullopt;
    search::TrialId id{trials_.size()};
    auto point = sampler_->ask(id);
    if (!point) return std::nullopt;
    std::size_t row = pool_.nearest(*point, used_);
    used_[row] = true;
    trials_.push_back({&pool_.curves[row]});
    scheduler_->add(id);
    return id;
  }

  /// Until the scheduler has another wish, or the budget is spent.
  void train(search::TrialId id) {
    Training& training = trials_[static_cast<std::size_t>(id)];
    while (regret_.size() < budget_) {
      double value = (*training.curve)[training.epoch++];
      auto epoch = static_cast<double>(training.epoch);
      bool last = training.epoch == pool_.epochs();
      if (last) least_ = std::min(least_, std::abs(pool_.best_final - value));
      regret_.push_back(least_);
      sampler_->report(id, epoch, std::span(&value, 1));
      auto decision = scheduler_->result(id, {.time = epoch, .values = {value}});
      if (last || decision.action == search::Action::stop) return end(id, last, value);
      if (decision.action == search::Action::pause) return;
    }
  }

  void end(search::TrialId id, bool complete, double value) {
    sampler_->tell(id,
                   complete ? search::Outcome::complete(value) : search::Outcome::pruned({value}));
    scheduler_->complete(id);
  }

  bool follow_decisions() {
    auto decisions = scheduler_->take_decisions();
    for (const auto& [id, decision] : decisions) {
      const Training& training = trials_[static_cast<std::size_t>(id)];
      if (decision.action == search::Action::stop)
        end(id, false, (*training.curve)[training.epoch - 1]);
      else
        waiting_.push_back(id);
    }
    return !decisions.empty();
  }

  const CurvePool& pool_;
  std::size_t budget_;
  std::vector<bool> used_;
  std::unique_ptr<search::Sampler> sampler_;
  std::unique_ptr<search::Scheduler> scheduler_;
  std::vector<Training> trials_;
  std::vector<search::TrialId> waiting_;
  double least_ = std::numeric_limits<double>::infinity();
  std::vector<double> regret_;  // after each epoch
};

}  // namespace

std::size_t CurvePool::nearest(const search::Point& point, const std::vector<bool>& used) const {
  auto axes = axes_of(*space);
  std::size_t nearest = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t row = 0; row < units.size(); ++row) {
    if (used[row]) continue;
    double apart = 0;
    for (std::size_t i = 0; i < point.size(); ++i) {
      double d = axes[i].unit(point[i]) - units[row][i];
      apart += d * d;
    }
    if (apart >= least) continue;
    least = apart;
    nearest = row;
  }
  return nearest;
}

std::vector<CurvePool> read_curve_pools(const std::string& folder) {
  std::vector<std::string> headers;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(folder, error))
    if (file.path().extension() == ".json") headers.push_back(file.path());
  if (error) kolo::throw_error(kolo::ErrorCode::not_found, "cannot read the folder {}", folder);
  std::sort(headers.begin(), headers.end());
  std::vector<CurvePool> pools;
  for (const auto& path : headers) {
    Json header = kolo::parse_json(kolo::read_file(path), path);
    if (header.value("format", "") == "kolo-lc-table-1") pools.push_back(read_pool(path, header));
  }
  return pools;
}

std::vector<double> simulate(const CurvePool& pool, const Pairing& pairing, std::uint64_t seed,
                             std::size_t budget) {
  return Simulation(pool, pairing, seed, budget).run();
}

}  // namespace bench
