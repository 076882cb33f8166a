// One trial that repeats the schedule of configurations which led to a trial of a population.
#include <algorithm>

#include "base/errors.h"
#include "search/scheduler/schedulers.h"
#include "search/settings.h"

namespace kolo::search {
namespace {

constexpr const char* kForm =
    "must be a list of [target, source, time of target, time of source, old configuration, new "
    "configuration]";

struct Step {
  std::uint64_t target, source;
  double source_time;
  const Value* old_config;
  const Value* new_config;
};

Step read_step(const Value& line) {
  bool good = line.is_list() && line.as_list().size() == 6;
  if (good) {
    const auto& parts = line.as_list();
    good = parts[0].is_integer() && parts[1].is_integer() && parts[3].is_number();
  }
  if (!good)
    throw_error(ErrorCode::invalid_argument, "the policy's line {}: the policy {}",
                line.to_string(), kForm);
  const auto& parts = line.as_list();
  return {static_cast<std::uint64_t>(parts[0].as_integer()),
          static_cast<std::uint64_t>(parts[1].as_integer()), parts[3].as_number(), &parts[4],
          &parts[5]};
}

class PopulationReplay final : public Scheduler {
 public:
  explicit PopulationReplay(SchedulerOptions given) : Scheduler("pbt_replay", std::move(given)) {
    SettingsReader settings("scheduler pbt_replay", options().settings);
    const Value* policy = settings.raw("policy");
    const Value* trial = settings.raw("trial");
    settings.done();
    if (policy == nullptr || !policy->is_list()) settings.refuse("policy", kForm);
    if (policy->as_list().empty()) settings.refuse("policy", "there is nothing to repeat");
    auto last = read_step(policy->as_list().back()).target;
    if (trial != nullptr) last = static_cast<std::uint64_t>(trial->as_integer());
    schedule_ = follow_policy(*policy, TrialId{last});
  }

 private:
  void on_add(Slot) override {
    if (trials() > 1)
      throw_error(ErrorCode::failed_precondition,
                  "scheduler 'pbt_replay' repeats one trial; start another study for another one");
  }

  Decision on_result(Slot slot, const Result& result, std::span<const double>) override {
    std::size_t before = done_;
    while (done_ < schedule_.changes.size() && schedule_.changes[done_].first <= result.time)
      ++done_;
    if (done_ == before) return {Action::proceed, {.rule = "between changes"}};
    const auto& [time, config] = schedule_.changes[done_ - 1];
    return {.action = Action::clone,
            .reason = {.rule = "replay",
                       .rung = static_cast<std::uint32_t>(done_ - 1),
                       .milestone = time},
            .source = entry(slot).id,
            .config = config};
  }

  Schedule schedule_;
  std::size_t done_ = 0;
};

}  // namespace

Schedule follow_policy(const Value& policy, TrialId last) {
  // The history of a trial before it copied another is that of the other.
  Schedule schedule;
  auto current = static_cast<std::uint64_t>(last);
  const auto& lines = policy.as_list();
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    Step step = read_step(*line);
    if (step.target != current) continue;
    schedule.initial = *step.old_config;
    // The checkpoint copied was that of an earlier time: what came after it is not repeated.
    if (schedule.changes.empty() || step.source_time <= schedule.changes.back().first)
      schedule.changes.emplace_back(step.source_time, *step.new_config);
    current = step.source;
  }
  if (schedule.changes.empty())
    throw_error(ErrorCode::not_found, "the policy never changed trial {}",
                static_cast<std::uint64_t>(last));
  std::reverse(schedule.changes.begin(), schedule.changes.end());
  return schedule;
}

std::unique_ptr<Scheduler> make_population_replay(SchedulerOptions options) {
  return std::make_unique<PopulationReplay>(std::move(options));
}

}  // namespace kolo::search
