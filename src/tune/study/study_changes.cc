#include "tune/study/study_changes.h"

#include <fmt/ranges.h>

#include "base/errors.h"
#include "base/json.h"
#include "tune/protocol/value_text.h"

namespace kolo::tune {
namespace {

std::string text_of(const std::vector<Objective>& objectives) {
  std::vector<std::string> texts;
  for (const auto& [metric, direction] : objectives)
    texts.push_back(
        fmt::format("{} ({})", metric, direction == search::Direction::minimize ? "min" : "max"));
  return texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", "));
}

/// The outline that was stored, or the one of the space as text that older studies have.
std::optional<Json> outline_before(const StudySpec& before) {
  if (!before.outline.empty()) return parse_json(before.outline, "the study's space");
  if (before.space.empty()) return std::nullopt;
  return parse_json(search::Space::from_json(before.space, "the study's space")->outline(),
                    "the study's space");
}

/// Notes trials whose points the space now does not have.
void check_points(const search::SpaceChange& change, const std::vector<store::TrialRecord>& trials,
                  std::vector<std::string>& refused) {
  std::int64_t lost = 0;
  const store::TrialRecord* first = nullptr;
  for (const auto& trial : trials) {
    if (change.carried(decode_point(trial.point))) continue;
    if (first == nullptr) first = &trial;
    ++lost;
  }
  if (first == nullptr) return;
  for (const auto& text : change.changes()) refused.push_back(text);
  refused.push_back(
      fmt::format("{} of {} trials lie outside of that space, the first of them "
                  "trial {} with {}",
                  lost, trials.size(), first->number, first->config));
}

}  // namespace

StudyChanges changes_of(store::StudyStore& store, const store::StudyRecord& study,
                        const StudySpec& now, const Steering& steering) {
  StudyChanges changes;
  const std::int64_t trials = store.trial_count(study.id);
  if (trials == 0) return changes;
  const StudySpec before = StudySpec::from_json(study.spec);
  std::vector<std::string> refused;
  if (text_of(before.objectives) != text_of(now.objectives))
    refused.push_back(fmt::format("the objective is now {}; it was {}", text_of(now.objectives),
                                  text_of(before.objectives)));
  if (const auto outline = outline_before(before);
      outline && *outline != parse_json(now.outline, "the space")) {
    auto& space = changes.space.emplace(*outline, steering.space());
    refused.insert(refused.end(), space.conflicts().begin(), space.conflicts().end());
    if (steering.counts_through_grid() && space.changes_grid())
      refused.emplace_back(
          "the values of a grid_search are other ones, and the search 'grid' counts through them");
    if (refused.empty()) check_points(space, store.trials(study.id), refused);
    changes.said = space.changes();
  }
  if (const auto planned = steering.planned(); planned && *planned < trials)
    refused.push_back(
        fmt::format("only {} trials are asked for, but there are {} already", *planned, trials));
  if (!refused.empty())
    throw_error(ErrorCode::failed_precondition,
                "the study '{}' cannot continue like this: {}. Nothing was changed; give the "
                "settings of the study, or choose another name for a new study",
                study.name, fmt::join(refused, "; "));
  const auto say = [&](const char* what, const auto& is, const auto& was) {
    if (is != was)
      changes.said.push_back(fmt::format("{} is now '{}'; it was '{}'", what, is, was));
  };
  say("the program", now.trainable, before.trainable);
  say("the search", now.search, before.search);
  say("the scheduler", now.scheduler, before.scheduler);
  if (before.num_samples != 0 && before.num_samples != now.num_samples)
    changes.said.push_back(
        fmt::format("num_samples is now {}; it was {}", now.num_samples, before.num_samples));
  return changes;
}

}  // namespace kolo::tune
