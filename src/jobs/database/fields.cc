// Each entry of kFields has a pointer to a member of Job, and std::visit reads or writes it by its
// type, so a new field needs one entry here. The database stores a job's fields as one JSON object
// without those that equal the default. This keeps rows short, but the names must stay as they are,
// and a default that changes also changes jobs that are stored already. decode_spec() ignores keys
// it does not know. check_job() applies the limits of the kernel before a job is stored, because
// execve() would otherwise refuse the command line much later, on a node.
#include "jobs/database/fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/errors.h"
#include "base/registry.h"
#include "base/utf8.h"
#include "base/words.h"

namespace kolo::jobs {
namespace {

constexpr std::int64_t kMostRanks = 1'000'000;

constexpr Field kFields[] = {
    {"name", "NAME", "Call the job, its folder and its output NAME.", &Job::name},
    {"workflow", "NAME", "Put the job among those of this workflow, which belong together.",
     &Job::workflow},
    {"application", "NAME", "Run this application; `kolo app` adds one.", &Job::application},
    {"args", "WORDS", "Pass these arguments to the executable. No shell reads them.", &Job::args},
    {"description", "TEXT", "Describe the job for people.", &Job::description},
    {"wall_time_minutes", "N", "Expect the job to take N minutes; the longest jobs start first.",
     &Job::wall_time_minutes, 0},
    {"num_nodes", "N", "Run the job on N nodes.", &Job::num_nodes, 1},
    {"coschedule_num_nodes", "N", "Kept as Balsam has it, without effect.",
     &Job::coschedule_num_nodes, 0},
    {"node_packing_count", "N", "Let N such jobs share a node.", &Job::node_packing_count, 1},
    {"ranks_per_node", "N", "Start N processes on each node.", &Job::ranks_per_node, 1},
    {"threads_per_rank", "N", "Give each process N threads (OMP_NUM_THREADS).",
     &Job::threads_per_rank, 1},
    {"threads_per_core", "N", "Use N hardware threads of each core.", &Job::threads_per_core, 1},
    {"gpus_per_rank", "N", "Give each process N GPUs; jobs with a part of one share it.",
     &Job::gpus_per_rank, 0},
    {"cpu_affinity", "KIND",
     "Leave processes unbound (none), or bind them to the cores that they get (depth).",
     &Job::cpu_affinity},
    {"mpi_flags", "WORDS", "Pass these options to mpirun, srun and the like.", &Job::mpi_flags},
    {"input_files", "GLOBS", "Link files of the parents that match into the folder of the job.",
     &Job::input_files},
    {"stage_in_url", "URL", "Copy what is at this URL into the folder before the job.",
     &Job::stage_in_url},
    {"stage_out_url", "URL", "Copy files to this URL after the job.", &Job::stage_out_url},
    {"stage_out_files", "GLOBS", "Copy the files that match to --stage-out-url.",
     &Job::stage_out_files},
    {"user_workdir", "DIR", "Run in this folder instead of data/WORKFLOW/NAME_ID.",
     &Job::user_workdir},
    {"wait_for_parents", "BOOL", "Start only after the parents have finished.",
     &Job::wait_for_parents},
    {"auto_timeout_retry", "BOOL", "Run the job again if the time of its launcher ended.",
     &Job::auto_timeout_retry},
    {"post_error_handler", "BOOL",
     "Let the postprocess command decide what happens after an error.", &Job::post_error_handler},
    {"post_timeout_handler", "BOOL",
     "Let the postprocess command decide what happens after a timeout.",
     &Job::post_timeout_handler},
    {"time_limit_seconds", "SECONDS",
     "End a run of the job after this many seconds; 0 means no limit.", &Job::time_limit_seconds,
     0},
    {"max_retries", "N", "Run the job again up to N times after an error.", &Job::max_retries, 0},
    {"data", "JSON", "Keep this JSON value with the job, for programs of yours.", &Job::data},
};

/// Linux takes 32 pages for one argument. All of them and the environment may have a quarter of the
/// stack, which is 2 MB where nothing else was set.
constexpr std::size_t kLongestArgument = 32 * 4096 - 1;
constexpr std::size_t kAllArguments = 2U << 20;

const Job& defaults() {
  static const Job job;
  return job;
}

bool is_column(const Field& field) {
  return field.name == "name" || field.name == "workflow" || field.name == "application";
}

[[noreturn]] void refuse(const Field& field, std::string_view text, std::string_view wanted) {
  throw_error(ErrorCode::invalid_argument, "{} = '{}': {}", field.name, text, wanted);
}

template <class Number>
Number parsed(const Field& field, std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) refuse(field, text, "not a number");
  return value;
}

bool parsed_flag(const Field& field, std::string_view text) {
  for (const auto yes : {"1", "true", "True", "yes", "on"})
    if (text == yes) return true;
  for (const auto no : {"0", "false", "False", "no", "off"})
    if (text == no) return false;
  refuse(field, text, "write true or false");
}

/// Names become folders.
void check_name(std::string_view what, const std::string& name) {
  if (name.empty()) throw_error(ErrorCode::invalid_argument, "the job has no {}", what);
  if (name.size() > 200)
    throw_error(ErrorCode::invalid_argument, "{} has {} characters, and the most is 200", what,
                name.size());
  const bool odd = std::any_of(name.begin(), name.end(), [](char c) {
    return c == '/' || c == '\0' || static_cast<unsigned char>(c) < ' ';
  });
  if (odd || name == "." || name == "..")
    throw_error(ErrorCode::invalid_argument, "{} '{}' cannot be the name of a folder", what, name);
}

void check_size(std::string_view what, std::size_t bytes, std::size_t most) {
  if (bytes > most)
    throw_error(ErrorCode::invalid_argument,
                "{} has {} bytes, and the kernel accepts {}: write it to a file and pass the name "
                "of the file",
                what, bytes, most);
}

}  // namespace

std::span<const Field> fields() { return kFields; }

const Field* find_field(std::string_view name) {
  std::string plain(name);
  std::replace(plain.begin(), plain.end(), '-', '_');
  for (const auto& field : kFields)
    if (field.name == plain) return &field;
  return nullptr;
}

const Field& known_field(std::string_view name, std::string_view what) {
  if (const Field* field = find_field(name)) return *field;
  std::vector<std::string_view> names;
  for (const auto& field : kFields) names.push_back(field.name);
  throw_unknown_name(what, name, names, ErrorCode::invalid_argument);
}

void set_field(Job& job, const Field& field, const std::string& text) {
  if (const auto* member = std::get_if<std::string Job::*>(&field.member)) {
    job.*(*member) = text;
  } else if (const auto* flag = std::get_if<bool Job::*>(&field.member)) {
    job.*(*flag) = parsed_flag(field, text);
  } else if (const auto* integer = std::get_if<int Job::*>(&field.member)) {
    job.*(*integer) = parsed<int>(field, text);
  } else {
    job.*std::get<double Job::*>(field.member) = parsed<double>(field, text);
  }
}

std::string field_text(const Job& job, const Field& field) {
  return std::visit(
      [&job](auto member) -> std::string {
        using Value = std::decay_t<decltype(job.*member)>;
        if constexpr (std::is_same_v<Value, std::string>)
          return job.*member;
        else
          return fmt::format("{}", job.*member);
      },
      field.member);
}

std::string encode_spec(const Job& job) {
  Json spec = Json::object();
  for (const auto& field : kFields) {
    if (is_column(field)) continue;
    std::visit(
        [&](auto member) {
          if (job.*member != defaults().*member) spec[std::string(field.name)] = job.*member;
        },
        field.member);
  }
  if (!job.environ.empty()) spec["environ"] = job.environ;
  return json_text(spec);
}

void decode_spec(Job& job, std::string_view text) {
  if (text == "{}") return;
  constexpr std::string_view kOrigin = "a job's fields";
  const Json spec = parse_json(text, kOrigin);
  for (const auto& field : kFields) {
    const std::string name(field.name);
    if (spec.find(name) == spec.end()) continue;
    std::visit(
        [&](auto member) {
          using Type = std::decay_t<decltype(job.*member)>;
          job.*member = json_field<Type>(spec, name.c_str(), kOrigin);
        },
        field.member);
  }
  if (spec.find("environ") != spec.end())
    job.environ = json_field<std::vector<std::string>>(spec, "environ", kOrigin);
}

Json job_json(const Job& job) {
  Json all = Json::object();
  all["job_id"] = static_cast<std::int64_t>(job.id);
  for (const auto& field : kFields)
    std::visit([&](auto member) { all[std::string(field.name)] = job.*member; }, field.member);
  all["environ"] = job.environ;
  all["parents"] = Json::array();
  for (const JobId parent : job.parents) all["parents"].push_back(static_cast<long long>(parent));
  all["state"] = to_string(job.state);
  all["created"] = job.created;
  all["retries"] = job.retries;
  all["return_code"] = job.return_code ? Json(*job.return_code) : Json();
  all["launcher"] = job.launcher;
  return all;
}

void check_variable(std::string_view entry) {
  const auto equals = entry.find('=');
  if (equals == std::string_view::npos || equals == 0 || entry.find('\0') != std::string_view::npos)
    throw_error(ErrorCode::invalid_argument,
                "environment entry '{}' does not have the form NAME=VALUE", entry);
  check_size("an environment value", entry.size(), kLongestArgument);
}

void check_job(const Job& job) {
  check_name("name", job.name);
  check_name("workflow", job.workflow);
  if (job.application.empty())
    throw_error(ErrorCode::invalid_argument, "the job has no application; kolo ls apps lists them");
  for (const auto& field : kFields) {
    double number = 0;
    if (const auto* integer = std::get_if<int Job::*>(&field.member))
      number = job.*(*integer);
    else if (const auto* real = std::get_if<double Job::*>(&field.member))
      number = job.*(*real);
    else
      continue;
    if (!std::isfinite(number) || number < field.least || number > 1e9)
      refuse(field, field_text(job, field), fmt::format("the least value is {}", field.least));
  }
  const auto check_product = [](std::int64_t one, std::int64_t other, const char* what) {
    if (one * other > kMostRanks)
      throw_error(ErrorCode::invalid_argument, "the job asks for {} {}; at most {} are possible",
                  one * other, what, kMostRanks);
  };
  check_product(job.num_nodes, job.ranks_per_node, "ranks");
  check_product(job.ranks_per_node, job.threads_per_rank, "threads on a node");
  if (job.cpu_affinity != "none" && job.cpu_affinity != "depth" && job.cpu_affinity != "core")
    throw_error(ErrorCode::invalid_argument, "cpu_affinity '{}' is unknown; known: none, depth",
                job.cpu_affinity);
  require_plain_utf8(job.args, "args");
  check_size("args", job.args.size(), kAllArguments);
  for (const auto& word : split_words(job.args, "args"))
    check_size("an argument", word.size(), kLongestArgument);
  split_words(job.mpi_flags, "mpi_flags");
  std::size_t bytes = 0;
  for (const auto& entry : job.environ) {
    require_plain_utf8(entry, "a variable of the environment");
    check_variable(entry);
    bytes += entry.size();
  }
  check_size("the environment", bytes, kAllArguments);
  check_size("data", job.data.size(), 64U << 20);
  try {
    if (job.data != "{}") parse_json(job.data, "data");
  } catch (const Error& error) {
    throw Error(ErrorCode::invalid_argument, error.message());
  }
}

}  // namespace kolo::jobs
