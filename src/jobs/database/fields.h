// The fields of a job that a user sets: one table feeds the database, `kolo job` and `kolo modify`.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/json.h"
#include "kolo/jobs.h"

namespace kolo::jobs {

struct Field {
  using Member = std::variant<std::string Job::*, int Job::*, double Job::*, bool Job::*>;
  std::string_view name;   ///< with _, as in the database; options have - instead
  std::string_view value;  ///< what follows the option, for people
  std::string_view help;
  Member member;
  double least = 0;  ///< of a number
};

/// All but `environ` and `parents`, which are lists.
std::span<const Field> fields();
/// - and _ are the same. Null if unknown.
const Field* find_field(std::string_view name);
/// Throws invalid_argument for an unknown one, which the error calls `what`: "column".
const Field& known_field(std::string_view name, std::string_view what);

/// Throws invalid_argument.
void set_field(Job& job, const Field& field, const std::string& text);
std::string field_text(const Job& job, const Field& field);

/// The fields that are not as a new job has them, without name, workflow and application.
std::string encode_spec(const Job& job);
void decode_spec(Job& job, std::string_view text);
/// Everything about a job, for `--json`.
Json job_json(const Job& job);

/// What cannot run anywhere is refused: names that are no names of folders, numbers out of range,
/// command lines that have no end or that no kernel takes. Throws invalid_argument.
void check_job(const Job& job);
void check_variable(std::string_view entry);

}  // namespace kolo::jobs
