// kolo job, kolo dep, kolo modify.
#include <fmt/format.h>

#include <algorithm>

#include "base/errors.h"
#include "base/files.h"
#include "commands.h"
#include "jobs/database/fields.h"
#include "jobs_database.h"
#include "names.h"

namespace kolo::app {
namespace {

using jobs::Job;

struct JobOptions {
  Job job;
  std::vector<std::string> parents;
  std::optional<int> count;
  std::string file;
  bool yes = false;
  void declare(OptionSet& set);
};

constexpr Option<Job> kJobRows[] = {
    {&Job::environ, "env", "NAME=VALUE", "Set a variable for the job. It is never interpreted."},
    {&Job::wait_for_parents, "no-wait-for-parents", "", "Start without waiting for the parents."},
    {&Job::post_error_handler, "post-handle-error", "",
     "Let the postprocess command decide what happens after an error.",
     aliases("--post-error-handler")},
    {&Job::post_timeout_handler, "post-handle-timeout", "",
     "Let the postprocess command decide what happens after a timeout.",
     aliases("--post-timeout-handler")},
    {&Job::auto_timeout_retry, "disable-auto-timeout-retry", "",
     "Do not run the job again when the time of its launcher ended."},
};
constexpr Option<JobOptions> kManyRows[] = {
    {&JobOptions::parents, "parent", "N", "Wait until job N has finished.", aliases("--parents")},
    {&JobOptions::count, "count", "N", "Add N such jobs, called NAME0, NAME1 and so on.",
     fallback("1"), least(1)},
    {&JobOptions::file, "file", "FILE",
     "Add the jobs of a file with one JSON object of fields on each line; - reads standard input. "
     "Options give the fields that a line does not have."},
    {&JobOptions::yes, "yes", "", "Accepted as Balsam has it, without effect: nothing is asked.",
     aliases("-y")},
};

/// The options that are fields of a job, under the names that they have in the database.
std::span<const OptionText> field_options() {
  static const auto names = [] {
    std::vector<std::string> all;
    for (const auto& field : jobs::fields()) all.push_back(cli::dashed(field.name));
    return all;
  }();
  static const auto options = [] {
    std::vector<OptionText> all;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto& field = jobs::fields()[i];
      OptionText& option = all.emplace_back(OptionText{names[i], field.value, field.help});
      if (field.name == "stage_in_url") option.details.aliases = "--url-in";
      if (field.name == "stage_out_url") option.details.aliases = "--url-out";
      if (field.name == "application") option.details.names = application_names;
      if (!std::holds_alternative<std::string Job::*>(field.member))
        option.details.least = field.least;
    }
    return all;
  }();
  return options;
}

void JobOptions::declare(OptionSet& set) {
  for (std::size_t i = 0; i < jobs::fields().size(); ++i) {
    const auto& field = jobs::fields()[i];
    if (std::holds_alternative<bool Job::*>(field.member)) continue;
    set.add(
        "Fields of the job", field_options()[i],
        std::visit([this](auto member) { return cli::ValueRef(&(job.*member)); }, field.member));
  }
  set.add("Fields of the job", kJobRows, job);
  set.add("Other options", kManyRows, *this);
}

/// What the file does not say is as on the command line.
std::vector<Job> jobs_of_file(const std::string& file, const Job& like) {
  const std::string text = read_file(file == "-" ? "/dev/stdin" : file);
  std::vector<Job> all;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string where = fmt::format("{}:{}", file, number);
    const Json object = parse_json(line, where);
    if (!object.is_object())
      throw_error(ErrorCode::invalid_argument,
                  "{}: each line is one JSON object with the fields of a job, as in "
                  R"({{"name": "a", "args": "1"}}; this one is {})",
                  where, object.is_array() ? "a list" : "no object");
    Job job = like;
    for (const auto& [key, value] : object.items()) {
      if (key == "parents" || key == "environ") continue;
      const auto& field = jobs::known_field(key, where + ": field");
      jobs::set_field(job, field, value.is_string() ? value.get<std::string>() : json_text(value));
    }
    if (object.contains("environ"))
      job.environ = json_field<std::vector<std::string>>(object, "environ", where);
    if (object.contains("parents"))
      for (const auto& parent : object["parents"]) {
        const auto id = whole_number<std::int64_t>(parent);
        if (!id)
          throw_error(ErrorCode::invalid_argument, "{}: parents are numbers of jobs, not {}", where,
                      json_text(parent));
        job.parents.push_back(jobs::JobId{*id});
      }
    all.push_back(std::move(job));
  }
  return all;
}

int run_job(JobOptions& options) {
  auto database = open_jobs();
  Job& job = options.job;
  for (const auto& parent : options.parents) job.parents.push_back(parse_job_id(parent));
  if (!job.user_workdir.empty())
    job.user_workdir = std::filesystem::absolute(job.user_workdir).string();
  std::vector<Job> all;
  if (!options.file.empty()) {
    all = jobs_of_file(options.file, job);
  } else {
    all.assign(static_cast<std::size_t>(options.count.value_or(1)), job);
    if (options.count)
      for (std::size_t i = 0; i < all.size(); ++i) all[i].name += std::to_string(i);
  }
  const auto ids = database.create(all);
  if (ids.empty()) throw_error(ErrorCode::invalid_argument, "{} holds no jobs", options.file);
  if (ids.size() == 1)
    fmt::print("{}\n", number_of(ids[0]));
  else
    fmt::print("{}-{}\n", number_of(ids.front()), number_of(ids.back()));
  return 0;
}

struct DepOptions {
  std::string parent, child;
  void declare(OptionSet& set);
};
constexpr Option<DepOptions> kDepRows[] = {
    {&DepOptions::parent, "PARENT", "", "The number of the job that runs first."},
    {&DepOptions::child, "CHILD", "", "The number of the job that waits for it."},
};
void DepOptions::declare(OptionSet& set) { set.add("Arguments", kDepRows, *this); }

int run_dep(DepOptions& options) {
  const auto parent = parse_job_id(options.parent), child = parse_job_id(options.child);
  open_jobs().add_dependency(parent, child);
  fmt::print("job {} waits for job {}\n", number_of(child), number_of(parent));
  return 0;
}

struct ModifyOptions {
  std::string id, field, value, type;
  void declare(OptionSet& set);
};
std::vector<NamedText> field_names(const OptionSet&) {
  std::vector<NamedText> names{{"state", "The state of the job."},
                               {"environ", "The variables of the job."}};
  for (const auto& field : jobs::fields())
    names.push_back({std::string(field.name), std::string(field.help)});
  return names;
}
constexpr Option<ModifyOptions> kModifyRows[] = {
    {&ModifyOptions::id, "ID", "", "The number of the job."},
    {&ModifyOptions::field, "FIELD", "",
     "The field to change: `state`, `environ`, or an option of `kolo job` with _ for -.",
     names(field_names)},
    {&ModifyOptions::value, "VALUE", "", "The new value."},
    {&ModifyOptions::type, "type", "KIND",
     "Accepted as Balsam has it, without effect: fields know their types."},
};
void ModifyOptions::declare(OptionSet& set) { set.add("Options", kModifyRows, *this); }

int run_modify(ModifyOptions& options) {
  open_jobs().modify(parse_job_id(options.id), options.field, options.value);
  return 0;
}

}  // namespace

constinit const Command kJob{
    .name = "job",
    .summary = "Add a job, or many, and print their numbers",
    .examples = "kolo job --name first --application hello --args world\n",
    .notes = "Inside a job, `kolo job --parent $KOLO_JOB_ID …` adds one that starts after it.",
    .options = declared<JobOptions>,
    .run = run_declared<JobOptions, run_job>,
};

constinit const Command kDep{
    .name = "dep",
    .summary = "Let a job wait until another one has finished",
    .examples = "kolo dep 3 4\n",
    .options = declared<DepOptions>,
    .run = run_declared<DepOptions, run_dep>,
};

constinit const Command kModify{
    .name = "modify",
    .summary = "Change a field of a job that has not started, or the state of a job",
    .examples = "kolo modify 7 num_nodes 2\nkolo modify 7 state RESTART_READY\n",
    .options = declared<ModifyOptions>,
    .run = run_declared<ModifyOptions, run_modify>,
};

}  // namespace kolo::app
