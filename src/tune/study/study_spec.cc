#include "tune/study/study_spec.h"

#include "base/errors.h"
#include "base/json.h"

namespace kolo::tune {
namespace {

constexpr int kVersion = 1;
constexpr const char* kOrigin = "the study's description";

}  // namespace

std::string StudySpec::to_json() const {
  Json json{{"kolo_study", kVersion}, {"trainable", trainable},
            {"search", search},       {"scheduler", scheduler},
            {"space", space},         {"command", command},
            {"outline", outline},     {"num_samples", num_samples}};
  json["objectives"] = Json::array();
  for (const auto& objective : objectives)
    json["objectives"].push_back(
        {{"metric", objective.metric},
         {"mode", objective.direction == search::Direction::minimize ? "min" : "max"}});
  return json_text(json);
}

StudySpec StudySpec::from_json(std::string_view text) {
  const Json json = parse_json(text, kOrigin);
  if (const int version = json_field<int>(json, "kolo_study", kOrigin); version > kVersion)
    throw_error(ErrorCode::unsupported, "{} has version {}; this kolo knows {}", kOrigin, version,
                kVersion);
  StudySpec spec;
  spec.trainable = json_field<std::string>(json, "trainable", kOrigin);
  spec.search = json_field<std::string>(json, "search", kOrigin);
  spec.scheduler = json_field<std::string>(json, "scheduler", kOrigin);
  spec.space = json_field<std::string>(json, "space", kOrigin);
  spec.command = json_field<std::string>(json, "command", kOrigin);
  // Studies of earlier versions have neither.
  if (json.contains("outline")) spec.outline = json_field<std::string>(json, "outline", kOrigin);
  if (json.contains("num_samples"))
    spec.num_samples = json_field<std::int64_t>(json, "num_samples", kOrigin);
  for (const Json& objective : json_field<Json>(json, "objectives", kOrigin))
    spec.objectives.push_back({json_field<std::string>(objective, "metric", kOrigin),
                               json_field<std::string>(objective, "mode", kOrigin) == "min"
                                   ? search::Direction::minimize
                                   : search::Direction::maximize});
  return spec;
}

}  // namespace kolo::tune
