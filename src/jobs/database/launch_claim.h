// Who decides about a launch whose submission failed.
//
// A command that submits may fail although the batch system has taken the job: it ran out of time,
// or its answer was lost. If the user submits again, two launchers come. So a launch has a claim, a
// file that exists once: its job makes the file before it does anything else, and whoever gives the
// launch up makes it too. The job ends at once if it comes second. A job that the batch system
// starts again finds its own claim, and goes on.
#pragma once

#include <filesystem>
#include <string>

namespace kolo::jobs {

std::filesystem::path claim_of_launch(const std::filesystem::path& folder, const std::string& name);

/// Shell code with which the script of a launch begins.
std::string code_to_claim(const std::filesystem::path& claim);

struct Withdrawal {
  bool is_withdrawn = false;   ///< else the job runs
  std::string scheduler_id{};  ///< what the batch system calls it then; "" if it does not tell
};

/// The launch is given up, unless it has begun. Throws io if neither is certain.
Withdrawal withdraw_launch(const std::filesystem::path& claim);

}  // namespace kolo::jobs
