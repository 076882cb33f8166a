#include "elastic_options.h"

#include <signal.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <optional>

#include "base/errors.h"
#include "comm/elastic/commit_files.h"

namespace kolo::app {
namespace {

/// NaN, which no comparison lets pass, for what is no number.
double parsed_number(std::string_view text) {
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc() && stop == text.data() + text.size();
  return is_number ? value : std::numeric_limits<double>::quiet_NaN();
}

launch::elastic::Time seconds(double value) {
  return std::chrono::duration_cast<launch::elastic::Time>(std::chrono::duration<double>(value));
}

std::optional<launch::elastic::Cooldown> cooldown_of(const std::string& text) {
  if (text.empty()) return std::nullopt;
  constexpr double kLongest = 3600;
  const auto comma = text.find(',');
  const double low = parsed_number(std::string_view(text).substr(0, comma));
  const double high =
      parsed_number(comma == std::string::npos ? "" : std::string_view(text).substr(comma + 1));
  if (!(low >= 1 && low <= high && high <= kLongest))
    throw_error(ErrorCode::invalid_argument,
                "--blacklist-cooldown-range {}: two numbers of seconds are needed, as in 10,100, "
                "from 1 to {:g}, the smaller one first",
                text, kLongest);
  return launch::elastic::Cooldown{seconds(low), seconds(high)};
}

int signal_of(std::string name) {
  if (name.starts_with("SIG")) name.erase(0, 3);
  constexpr std::pair<std::string_view, int> kKnown[] = {{"TERM", SIGTERM}, {"USR1", SIGUSR1},
                                                         {"USR2", SIGUSR2}, {"HUP", SIGHUP},
                                                         {"INT", SIGINT},   {"XCPU", SIGXCPU}};
  for (const auto& [known, number] : kKnown)
    if (name == known) return number;
  if (const double number = parsed_number(name); number >= 1 && number <= SIGRTMAX)
    return static_cast<int>(number);
  throw_error(ErrorCode::invalid_argument,
              "--notice-signal {}: this is no signal; give TERM, USR1, USR2, HUP, INT, XCPU or a "
              "number",
              name);
}

/// Where commits go and, if the job is resumed, where it begins.
void add_commits(const RunOptions& options, std::vector<std::string>& variables) {
  if (!options.commit_dir.empty() && !options.resume.empty())
    throw_error(ErrorCode::invalid_argument,
                "--commit-dir and --resume exclude each other: a resumed job writes its commits "
                "where it found them");
  const bool resumes = !options.resume.empty();
  const std::string& named = resumes ? options.resume : options.commit_dir;
  if (named.empty()) {
    if (options.commit_every)
      throw_error(ErrorCode::invalid_argument, "--commit-every needs --commit-dir or --resume");
    return;
  }
  const auto directory = std::filesystem::absolute(named);
  const bool has_commits = !comm::elastic::CommitFiles(directory).list().empty();
  if (resumes && !has_commits)
    throw_error(ErrorCode::not_found, "--resume {}: there is no commit in it", named);
  if (!resumes && has_commits)
    throw_error(ErrorCode::already_exists,
                "--commit-dir {}: it has the commits of another job; go on with them by --resume "
                "{}, or name another directory",
                named, named);
  variables.push_back("KOLO_COMMIT_DIR=" + directory.string());
  if (options.commit_every)
    variables.push_back(fmt::format("KOLO_COMMIT_EVERY={}", *options.commit_every));
}

}  // namespace

bool is_elastic(const RunOptions& options, const cli::OptionSet& given) {
  const bool elastic = options.min_np.has_value() || !options.discovery_script.empty();
  if (elastic) {
    if (!options.discovery_script.empty() && (given.typed("hosts") || given.typed("hostfile")))
      throw_error(ErrorCode::invalid_argument,
                  "--host-discovery-script excludes --hosts and --hostfile");
    return true;
  }
  for (const char* name :
       {"max-np", "slots-per-host", "reset-limit", "blacklist-cooldown-range", "elastic-timeout",
        "notice-signal", "commit-dir", "commit-every", "resume"})
    if (given.typed(name))
      throw_error(ErrorCode::invalid_argument,
                  "--{} is for elastic jobs; add --min-np or --host-discovery-script", name);
  return false;
}

launch::elastic::ElasticJob elastic_job_of(const RunOptions& options, launch::ParallelJob job,
                                           std::vector<launch::Host> hosts) {
  launch::elastic::ElasticJob elastic;
  elastic.hosts = std::move(hosts);
  elastic.discovery_script = options.discovery_script;
  elastic.slots_per_host = options.slots_per_host.value_or(1);
  elastic.least_ranks = options.min_np.value_or(options.num_proc.value_or(1));
  elastic.start_ranks = options.num_proc.value_or(elastic.least_ranks);
  elastic.most_ranks = options.max_np.value_or(options.virtual_ranks.value_or(1'000'000));
  if (elastic.least_ranks > elastic.start_ranks)
    throw_error(
        ErrorCode::invalid_argument,
        "--min-np {} is more than -np {}: a job cannot start with fewer ranks than it needs",
        elastic.least_ranks, elastic.start_ranks);
  if (elastic.start_ranks > elastic.most_ranks)
    throw_error(ErrorCode::invalid_argument, "{} {} is more than {} {}",
                options.num_proc ? "-np" : "--min-np", elastic.start_ranks,
                options.max_np ? "--max-np" : "--virtual-ranks", elastic.most_ranks);
  elastic.reset_limit = options.reset_limit;
  elastic.cooldown = cooldown_of(options.cooldown_range);
  elastic.elastic_timeout =
      std::chrono::milliseconds(static_cast<long long>(options.elastic_timeout * 1000));
  job.environment.push_back(fmt::format("KOLO_ELASTIC_TIMEOUT={}", options.elastic_timeout));
  if (!options.notice_signal.empty())
    job.environment.push_back(
        fmt::format("KOLO_NOTICE_SIGNAL={}", signal_of(options.notice_signal)));
  add_commits(options, job.environment);
  elastic.job = std::move(job);
  return elastic;
}

}  // namespace kolo::app
