// kolo job, kolo dep, kolo modify.
#include <unistd.h>

#include "base/errors.h"
#include "base/files.h"
#include "commands.h"
#include "jobs/database/fields.h"
#include "jobs_common.h"

namespace kolo::app {
namespace {

using jobs::Job;

/// Options made of the fields of a job, Balsam's spellings among them.
const std::vector<Setting>& job_settings() {
  static const std::vector<Setting> table = [] {
    static std::vector<std::string> names;  // a Setting looks at texts
    names.reserve(64);
    std::vector<Setting> rows;
    for (const auto& field : jobs::fields()) {
      if (field.value == "BOOL") continue;
      std::string name(field.name);
      std::replace(name.begin(), name.end(), '_', '-');
      names.push_back(std::move(name));
      std::string_view alias;
      if (field.name == "stage_in_url") alias = "--url-in";
      if (field.name == "stage_out_url") alias = "--url-out";
      rows.push_back({names.back(), alias, "", field.value, "", field.help});
    }
    rows.push_back({"env", "", "", "NAME=VALUE", "", "a variable for it; never interpreted", true});
    rows.push_back({"parent", "--parents", "", "N", "", "a job that must have finished", true});
    rows.push_back({"no-wait-for-parents", "", "", "", "", "start without waiting for them"});
    rows.push_back({"post-handle-error", "--post-error-handler", "", "", "",
                    "postprocess decides after an error"});
    rows.push_back({"post-handle-timeout", "--post-timeout-handler", "", "", "",
                    "postprocess decides after a timeout"});
    rows.push_back({"disable-auto-timeout-retry", "", "", "", "",
                    "do not run again when a launcher's time was over"});
    rows.push_back({"count", "", "", "N", "1", "add so many of them, NAME0 NAME1 …"});
    rows.push_back({"file", "", "", "FILE", "",
                    "jobs from a file: one JSON object with these fields on each line; - = input"});
    rows.push_back({"yes", "-y", "", "", "", "as Balsam has it; nothing is asked anyway"});
    rows.push_back({"help", "-h", "", "", "", "this text"});
    return rows;
  }();
  return table;
}

Job job_of(const Options& options) {
  Job job;
  for (const auto& field : jobs::fields()) {
    std::string name(field.name);
    std::replace(name.begin(), name.end(), '_', '-');
    if (field.value == "BOOL") continue;
    if (const auto text = options.text(name)) jobs::set_field(job, field, *text);
  }
  for (const auto& variable : options.texts("env")) job.environ.push_back(variable);
  for (const auto& parent : options.texts("parent")) job.parents.push_back(parse_job_id(parent));
  job.wait_for_parents = !options.has("no-wait-for-parents");
  job.post_error_handler = options.has("post-handle-error");
  job.post_timeout_handler = options.has("post-handle-timeout");
  job.auto_timeout_retry = !options.has("disable-auto-timeout-retry");
  if (!job.user_workdir.empty())
    job.user_workdir = std::filesystem::absolute(job.user_workdir).string();
  return job;
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
    Job job = like;
    for (const auto& [key, value] : object.items()) {
      if (key == "parents" || key == "environ") continue;
      const auto* field = jobs::find_field(key);
      if (field == nullptr)
        throw_error(ErrorCode::invalid_argument, "{}: a job has no field '{}'", where, key);
      jobs::set_field(job, *field, value.is_string() ? value.get<std::string>() : value.dump());
    }
    if (object.contains("environ")) job.environ = object["environ"].get<std::vector<std::string>>();
    if (object.contains("parents"))
      for (const auto& parent : object["parents"])
        job.parents.push_back(jobs::JobId{parent.get<std::int64_t>()});
    all.push_back(std::move(job));
  }
  return all;
}

}  // namespace

int run_command_job(const Arguments& arguments) {
  const Options options(job_settings(), arguments);
  if (options.has("help")) {
    print_options_help("kolo job --name NAME --application APP [OPTIONS]",
                       "Adds a job. Inside a job, `kolo job --parent $KOLO_JOB_ID …` adds one that "
                       "starts after it.\nPrints the new job's number.",
                       job_settings());
    return 0;
  }
  options.expect_words(0, 0, "kolo job --name NAME --application APP [OPTIONS]");
  auto database = open_jobs();
  const Job job = job_of(options);
  std::vector<Job> all;
  if (const auto file = options.text("file")) {
    all = jobs_of_file(*file, job);
  } else {
    const long long count = options.integer("count", 1).value_or(1);
    all.assign(static_cast<std::size_t>(count), job);
    if (options.has("count"))
      for (std::size_t i = 0; i < all.size(); ++i) all[i].name += std::to_string(i);
  }
  const auto ids = database.create(all);
  if (ids.empty()) throw_error(ErrorCode::invalid_argument, "the file holds no jobs");
  if (ids.size() == 1)
    fmt::print("{}\n", number_of(ids[0]));
  else
    fmt::print("{}-{}\n", number_of(ids.front()), number_of(ids.back()));
  return 0;
}

int run_command_dep(const Arguments& arguments) {
  constexpr Setting kTable[] = {{"help", "-h", "", "", "", "this text"}};
  const Options options(kTable, arguments);
  constexpr std::string_view kUsage = "kolo dep PARENT CHILD";
  if (options.has("help")) {
    print_options_help(kUsage, "Lets the job CHILD wait until the job PARENT has finished.", {});
    return 0;
  }
  options.expect_words(2, 2, kUsage);
  const auto parent = parse_job_id(options.words()[0]), child = parse_job_id(options.words()[1]);
  open_jobs().add_dependency(parent, child);
  fmt::print("job {} waits for job {}\n", number_of(child), number_of(parent));
  return 0;
}

int run_command_modify(const Arguments& arguments) {
  constexpr Setting kTable[] = {
      {"type", "", "", "KIND", "", "as Balsam has it; fields know their types"},
      {"help", "-h", "", "", "", "this text"}};
  const Options options(kTable, arguments);
  constexpr std::string_view kUsage = "kolo modify ID FIELD VALUE";
  if (options.has("help")) {
    print_options_help(kUsage, "Changes a field of a job that has not begun; `state` moves it on.",
                       {});
    fmt::print("\nFields: state environ");
    for (const auto& field : jobs::fields()) fmt::print(" {}", field.name);
    fmt::print("\n");
    return 0;
  }
  options.expect_words(3, 3, kUsage);
  const auto& words = options.words();
  open_jobs().modify(parse_job_id(words[0]), words[1], words[2]);
  return 0;
}

}  // namespace kolo::app
