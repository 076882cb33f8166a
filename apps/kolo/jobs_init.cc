// kolo init, kolo activate, kolo which, kolo app: a database and its applications.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "base/errors.h"
#include "base/log.h"
#include "base/words.h"
#include "commands.h"
#include "jobs_database.h"
#include "store/database.h"

namespace kolo::app {
namespace {

namespace fs = std::filesystem;

struct InitOptions {
  std::string folder, db;
  void declare(OptionSet& set);
};
constexpr Option<InitOptions> kInitRows[] = {
    {&InitOptions::folder, "DIR", "", "The folder to make."},
    {&InitOptions::db, "db", "URL",
     "Keep jobs on a PostgreSQL server, which launchers on several hosts can share: "
     "postgresql://user@host/name. With - the URL comes on standard input.",
     fallback("an SQLite file in DIR")},
};
void InitOptions::declare(OptionSet& set) { set.add("Options", kInitRows, *this); }

/// Where the server is. Passwords are better not among the arguments, which everybody can see.
std::string server_url(std::string url) {
  if (url == "-") {
    if (!std::getline(std::cin, url) || url.empty())
      throw_error(ErrorCode::invalid_argument, "--db -: there is no URL on standard input");
  } else if (store::without_password(url) != url) {
    log::warning(
        "everybody on this machine could see the password in --db; give --db - and the URL on "
        "standard input, or keep the password in ~/.pgpass");
  }
  // Anything else would be the name of a file, and may be a password.
  if (!url.empty() && !url.starts_with("postgresql://") && !url.starts_with("postgres://") &&
      !url.starts_with("sqlite://"))
    throw_error(ErrorCode::invalid_argument,
                "--db: the URL must begin with postgresql://, as in postgresql://user@host/name; "
                "without --db jobs are kept in a file of the folder");
  return url;
}

int run_init(InitOptions& options) {
  const auto jobs = jobs::JobDatabase::init(options.folder, server_url(options.db));
  fmt::print("made {}\nuse it: eval \"$(kolo activate {})\"\n", jobs.folder().string(),
             shell_quoted(options.folder));
  return 0;
}

struct ActivateOptions {
  std::string folder;
  void declare(OptionSet& set);
};
constexpr Option<ActivateOptions> kActivateRows[] = {
    {&ActivateOptions::folder, "DIR", "", "The folder of the database."},
};
void ActivateOptions::declare(OptionSet& set) { set.add("Arguments", kActivateRows, *this); }

int run_activate(ActivateOptions& options) {
  const auto jobs = jobs::JobDatabase::open(options.folder);
  const std::string program = shell_quoted(own_program());
  fmt::print(
      "export KOLO_DB={}\n"
      "kcd() {{ cd \"$({} which --id \"$1\")\"; }}\n"
      "kolo_deactivate() {{ unset KOLO_DB; unset -f kcd kolo_deactivate; }}\n",
      shell_quoted(jobs.folder().string()), program);
  return 0;
}

struct WhichOptions {
  std::string id;
  void declare(OptionSet& set);
};
constexpr Option<WhichOptions> kWhichRows[] = {
    {&WhichOptions::id, "id", "N", "Print the folder of job N instead."},
};
void WhichOptions::declare(OptionSet& set) { set.add("Options", kWhichRows, *this); }

int run_which(WhichOptions& options) {
  auto jobs = open_jobs();
  const fs::path folder =
      options.id.empty() ? jobs.folder() : jobs.folder_of(jobs.job(parse_job_id(options.id)));
  fmt::print("{}\n", folder.string());
  return 0;
}

struct AppOptions {
  jobs::Application application;
  void declare(OptionSet& set);
};
constexpr Option<jobs::Application> kAppRows[] = {
    {&jobs::Application::name, "name", "NAME", "Give the application this name, which jobs use.",
     is_needed},
    {&jobs::Application::executable, "executable", "WORDS",
     "Run this program, with these first arguments. No shell reads it.", is_needed},
    {&jobs::Application::preprocess, "preprocess", "WORDS",
     "Run this command in the folder of a job before the job."},
    {&jobs::Application::postprocess, "postprocess", "WORDS",
     "Run this command after a job, and after errors and timeouts of jobs that ask for it."},
    {&jobs::Application::envscript, "envscript", "FILE",
     "Let bash source this file before the executable starts."},
    {&jobs::Application::description, "description", "TEXT",
     "Describe the application for people."},
};
void AppOptions::declare(OptionSet& set) { set.add("Options", kAppRows, application); }

int run_app(AppOptions& options) {
  jobs::Application& application = options.application;
  if (!application.envscript.empty())
    application.envscript = fs::absolute(application.envscript).string();
  auto database = open_jobs();
  const auto before = database.applications();
  const bool is_new = std::none_of(before.begin(), before.end(), [&](const auto& other) {
    return other.name == application.name;
  });
  database.set_application(application);
  fmt::print("{} application {}\n", is_new ? "added" : "changed", application.name);
  return 0;
}

}  // namespace

constinit const Command kInit{
    .name = "init",
    .summary = "Make a database of jobs in a new folder",
    .examples = "kolo init testdb && eval \"$(kolo activate testdb)\"\n",
    .options = declared<InitOptions>,
    .run = run_declared<InitOptions, run_init>,
    .heading = "Commands for jobs",
};

constinit const Command kActivate{
    .name = "activate",
    .summary = "Print shell code that makes a database of jobs the one of this shell",
    .examples = "eval \"$(kolo activate testdb)\"\n",
    .notes =
        "The code sets KOLO_DB. It defines kcd ID, which changes to the folder of a job, and "
        "kolo_deactivate, which undoes all of it.",
    .options = declared<ActivateOptions>,
    .run = run_declared<ActivateOptions, run_activate>,
};

constinit const Command kWhich{
    .name = "which",
    .summary = "Print the folder of the active database of jobs, or of a job",
    .examples = "kolo which --id 7\n",
    .options = declared<WhichOptions>,
    .run = run_declared<WhichOptions, run_which>,
};

constinit const Command kApp{
    .name = "app",
    .summary = "Add an application that jobs can run, or change one",
    .examples = "kolo app --name hello --executable 'echo hello'\n",
    .options = declared<AppOptions>,
    .run = run_declared<AppOptions, run_app>,
};

}  // namespace kolo::app
