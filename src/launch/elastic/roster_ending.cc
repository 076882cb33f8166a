// When a job has too few ranks for good, and what is said of it.
#include "base/errors.h"
#include "base/plural.h"
#include "launch/elastic/roster.h"

namespace kolo::launch::elastic {
namespace {

double in_seconds(Time time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

void Roster::end_if_hopeless(Time now, Actions& actions) {
  if (!is_short()) {
    // Before the first group, workers that are started may fail as those before them did.
    if (generation_ > 0) short_since_.reset();
    return;
  }
  const bool may_return = hosts_.next_return(now).has_value();
  if (!options_.hosts_may_come && !may_return)
    return end_job(last_failure_,
                   fmt::format("{}; no other host can get new workers", describe_shortage(now)),
                   actions);
  // Not a lack of hosts: the program, or how it is started, is wrong.
  if (!has_been_joined_ && !how_last_failed_.empty() && living_ranks() == 0 && !may_return)
    return end_job(last_failure_,
                   fmt::format("every worker has failed before it joined the job (the last: {}); "
                               "--blacklist-cooldown-range tries their hosts again",
                               how_last_failed_),
                   actions);
  if (!short_since_) {
    short_since_ = now;
    actions.emplace_back(
        Say{fmt::format("{}; waiting for hosts, {:g} s at most (--elastic-timeout)",
                        describe_shortage(now), in_seconds(options_.elastic_timeout))});
  }
  if (now >= *short_since_ + options_.elastic_timeout)
    end_job(last_failure_,
            fmt::format("{}; no others came within {:g} s (--elastic-timeout)",
                        describe_shortage(now), in_seconds(options_.elastic_timeout)),
            actions);
}

std::string Roster::describe_shortage(Time now) const {
  const int living = living_ranks();
  std::string text = fmt::format("{} needed ({}), but there {}",
                                 counted(needed(), "rank") + (needed() == 1 ? " is" : " are"),
                                 generation_ == 0 ? "-np" : "--min-np",
                                 living == 1   ? std::string("is 1")
                                 : living == 0 ? std::string("is none")
                                               : fmt::format("are {}", living));
  if (const std::string unusable = hosts_.describe_unusable(now); !unusable.empty())
    text += fmt::format("; without new workers: {}", unusable);
  return text;
}

void Roster::end_job(int status, std::string reason, Actions& actions) {
  is_over_ = true;
  actions.emplace_back(EndJob{status, std::move(reason)});
}

}  // namespace kolo::launch::elastic
