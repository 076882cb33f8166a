// kolo init, kolo activate, kolo which, kolo app: a database and its applications.
#include <iostream>

#include "base/errors.h"
#include "base/log.h"
#include "base/words.h"
#include "commands.h"
#include "jobs_common.h"
#include "store/database.h"
#include "study_settings.h"

namespace kolo::app {
namespace {

namespace fs = std::filesystem;

/// Where the server is. Passwords are better not among the arguments, which everybody can see.
std::string server_url(const Options& options) {
  std::string url = options.text("db").value_or("");
  if (url == "-") {
    if (!std::getline(std::cin, url) || url.empty())
      throw_error(ErrorCode::invalid_argument, "--db -: no URL came on standard input");
  } else if (store::without_password(url) != url) {
    log::warning(
        "the password in --db could be seen by everybody on this machine; better: --db - and the "
        "URL on standard input, or the password in ~/.pgpass");
  }
  return url;
}

}  // namespace

int run_command_init(const Arguments& arguments) {
  constexpr Setting kTable[] = {
      {"db", "", "", "URL", "SQLite in DIR",
       "PostgreSQL server for launchers on several hosts: postgresql://user@host/name; - reads it "
       "from standard input"},
      kHelpSetting};
  const Options options(kTable, arguments);
  if (options.has("help")) {
    print_options_help("kolo init DIR [OPTIONS]", "Makes a database of jobs in a new folder.",
                       kTable);
    return 0;
  }
  options.expect_words(1, 1, "kolo init DIR [--db URL]");
  const auto jobs = jobs::JobDatabase::init(options.words()[0], server_url(options));
  fmt::print("made {}\nuse it: eval \"$(kolo activate {})\"\n", jobs.folder().string(),
             shell_quoted(options.words()[0]));
  return 0;
}

int run_command_activate(const Arguments& arguments) {
  constexpr Setting kTable[] = {kHelpSetting};
  const Options options(kTable, arguments);
  if (options.has("help")) {
    print_options_help("eval \"$(kolo activate DIR)\"",
                       "Prints shell code that makes DIR the database of this shell: it sets "
                       "KOLO_DB,\nand defines kolo_deactivate, and kcd ID to go to a job's folder.",
                       {});
    return 0;
  }
  options.expect_words(1, 1, "eval \"$(kolo activate DIR)\"");
  const auto jobs = jobs::JobDatabase::open(options.words()[0]);
  const std::string program = shell_quoted(own_program());
  fmt::print(
      "export KOLO_DB={}\n"
      "kcd() {{ cd \"$({} which --id \"$1\")\"; }}\n"
      "kolo_deactivate() {{ unset KOLO_DB; unset -f kcd kolo_deactivate; }}\n",
      shell_quoted(jobs.folder().string()), program);
  return 0;
}

int run_command_which(const Arguments& arguments) {
  constexpr Setting kTable[] = {{"id", "", "", "N", "", "the folder of this job instead"},
                                kHelpSetting};
  const Options options(kTable, arguments);
  if (options.has("help")) {
    print_options_help("kolo which [--id N]", "Says which database is active.", kTable);
    return 0;
  }
  options.expect_words(0, 0, "kolo which [--id N]");
  auto jobs = open_jobs();
  if (const auto id = options.text("id"))
    fmt::print("{}\n", jobs.folder_of(jobs.job(parse_job_id(*id))).string());
  else
    fmt::print("{}\n", jobs.folder().string());
  return 0;
}

int run_command_app(const Arguments& arguments) {
  constexpr Setting kTable[] = {
      {"name", "", "", "NAME", "", "what jobs call it"},
      {"executable", "", "", "WORDS", "", "program and first arguments; no shell reads it"},
      {"preprocess", "", "", "WORDS", "", "run before it, in the job's folder"},
      {"postprocess", "", "", "WORDS", "", "run after it; and to handle errors and timeouts"},
      {"envscript", "", "", "FILE", "", "for bash to source before the executable"},
      {"description", "", "", "TEXT", "", "for people"},
      kHelpSetting};
  const Options options(kTable, arguments);
  if (options.has("help")) {
    print_options_help("kolo app --name NAME --executable WORDS [OPTIONS]",
                       "Adds an application that jobs can run, or changes it.", kTable);
    return 0;
  }
  options.expect_words(0, 0, "kolo app --name NAME --executable WORDS");
  for (const char* needed : {"name", "executable"})
    if (!options.has(needed)) throw_error(ErrorCode::invalid_argument, "--{} is needed", needed);
  jobs::Application application{options.text("name").value(),
                                options.text("executable").value(),
                                options.text("preprocess").value_or(""),
                                options.text("postprocess").value_or(""),
                                options.text("envscript").value_or(""),
                                options.text("description").value_or("")};
  if (!application.envscript.empty())
    application.envscript = fs::absolute(application.envscript).string();
  open_jobs().set_application(application);
  fmt::print("added application {}\n", application.name);
  return 0;
}

}  // namespace kolo::app
