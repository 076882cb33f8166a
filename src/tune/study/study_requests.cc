#include "tune/study/study_requests.h"

#include <charconv>

#include "base/errors.h"
#include "base/json.h"
#include "tune/study/study_spec.h"

namespace kolo::tune {
namespace {

constexpr std::string_view kAdd = "add ";

/// Every combination is tried; there are no others.
bool has_grid(const StudySpec& spec) {
  if (spec.search != "grid" || spec.outline.empty()) return false;
  const Json outline = parse_json(spec.outline, "the outline of a space");
  for (const Json& parameter : outline.at("parameters"))
    if (parameter.at("domain").get<std::string>().starts_with("grid_search")) return true;
  return false;
}

}  // namespace

void request_stop(store::StudyStore& store, const store::StudyRecord& study,
                  std::optional<std::int64_t> trial) {
  if (!store.holder(study.id, store.lease_date()))
    throw_error(ErrorCode::failed_precondition, "study {} is not running", study.name);
  if (trial && (*trial < 0 || *trial >= store.trial_count(study.id)))
    throw_error(ErrorCode::not_found, "study {} has no trial {}", study.name, *trial);
  store.request(study.id, "stop", trial);
}

void request_trials(store::StudyStore& store, const store::StudyRecord& study, std::int64_t count) {
  if (count < 1 || count > kMostAdded)
    throw_error(ErrorCode::invalid_argument, "1 to {} trials can be added at once, not {}",
                kMostAdded, count);
  const auto spec = StudySpec::from_json(study.spec);
  if (!store.holder(study.id, store.lease_date()))
    throw_error(ErrorCode::failed_precondition,
                "study {} is not running; `kolo resume {} --num-samples N` continues it with more "
                "trials",
                study.name, study.name);
  if (spec.num_samples < 1 || has_grid(spec))
    throw_error(ErrorCode::failed_precondition, "study {} {}, so no trials can be added to it",
                study.name,
                spec.num_samples < 1 ? "has no end" : "tries every combination of a grid");
  store.request(study.id, fmt::format("{}{}", kAdd, count), std::nullopt);
}

std::optional<std::int64_t> added_by_request(std::string_view kind) {
  if (!kind.starts_with(kAdd)) return std::nullopt;
  std::int64_t count = 0;
  const auto [end, error] =
      std::from_chars(kind.data() + kAdd.size(), kind.data() + kind.size(), count);
  const bool is_whole = error == std::errc() && end == kind.data() + kind.size();
  return is_whole && count >= 1 && count <= kMostAdded ? std::optional(count) : std::nullopt;
}

}  // namespace kolo::tune
