// Tune's names for searches and schedulers.
#include "kolo/tune/options.h"

namespace kolo::tune {

using Settings = std::map<std::string, Value>;

SearchAlg BayesOptSearch(Settings settings) {
  return {.name = "gp", .settings = std::move(settings)};
}
SearchAlg OptunaSearch(Settings settings) {
  return {.name = "tpe", .settings = std::move(settings)};
}
SearchAlg HyperOptSearch(Settings settings) {
  return {.name = "tpe", .settings = std::move(settings)};
}
SearchAlg TuneBOHB(Settings settings) { return {.name = "bohb", .settings = std::move(settings)}; }

SearchAlg ConcurrencyLimiter(SearchAlg search_alg, std::int64_t max_concurrent) {
  search_alg.max_concurrent = max_concurrent;
  return search_alg;
}

SearchAlg Repeater(SearchAlg search_alg, std::int64_t repeat) {
  SearchAlg outer;
  outer.name = "repeater";
  outer.max_concurrent = search_alg.max_concurrent;
  outer.points_to_evaluate = std::move(search_alg.points_to_evaluate);
  Value::Dict inner(search_alg.settings.begin(), search_alg.settings.end());
  outer.settings = {{"sampler", search_alg.name.empty() ? "random" : search_alg.name},
                    {"settings", Value(std::move(inner))},
                    {"repeat", repeat}};
  return outer;
}

Scheduling ASHAScheduler(Settings settings) {
  return {.name = "asha", .settings = std::move(settings)};
}
Scheduling HyperBandScheduler(Settings settings) {
  return {.name = "hyperband", .settings = std::move(settings)};
}
Scheduling HyperBandForBOHB(Settings settings) {
  return {.name = "hb_bohb", .settings = std::move(settings)};
}
Scheduling MedianStoppingRule(Settings settings) {
  return {.name = "median_stopping_rule", .settings = std::move(settings)};
}
Scheduling PopulationBasedTraining(Spec hyperparam_mutations, Settings settings) {
  return {
      .name = "pbt", .settings = std::move(settings), .mutations = std::move(hyperparam_mutations)};
}
Scheduling PopulationBasedTrainingReplay(std::string policy_file) {
  return {.name = "pbt_replay", .settings = {{"policy_file", std::move(policy_file)}}};
}
Scheduling PB2(Spec hyperparam_bounds, Settings settings) {
  return {
      .name = "pb2", .settings = std::move(settings), .mutations = std::move(hyperparam_bounds)};
}

}  // namespace kolo::tune
