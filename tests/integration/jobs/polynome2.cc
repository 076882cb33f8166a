// A search whose evaluations are jobs: what the seed's session runs.
//
//   polynome2 search MAX_EVALS WORKERS   asks a forest sampler, adds a job `task` for each point,
//   reads results polynome2 run X0,X1,…                one evaluation: −Σ x² over ten variables in
//   [−10, 10], as a line "objective …"
//
// The search works through the database alone, so that evaluations run wherever its launcher has
// room.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>

#include "kolo/error.h"
#include "kolo/jobs.h"
#include "kolo/search.h"

namespace {

using namespace kolo;

constexpr std::size_t kVariables = 10;

int run(const std::string& point) {
  double sum = 0;
  std::istringstream numbers(point);
  std::size_t count = 0;
  for (std::string number; std::getline(numbers, number, ','); ++count)
    sum += std::stod(number) * std::stod(number);
  if (count != kVariables) return 1;
  std::printf("objective %.17g\n", -sum);
  return 0;
}

std::string text_of(const search::Space& space, const search::Point& point) {
  std::string text;
  for (std::size_t i = 0; i < kVariables; ++i) {
    char number[40];
    std::snprintf(number, sizeof number, "%s%.17g", i > 0 ? "," : "",
                  space.value_of(i, point[i]).as_number());
    text += number;
  }
  return text;
}

double objective_of(const std::filesystem::path& output) {
  std::ifstream file(output);
  std::string word;
  double value = 0;
  if (!(file >> word >> value) || word != "objective")
    throw Error(ErrorCode::corruption, output.string() + ": no objective");
  return value;
}

int search_with(int max_evals, std::size_t workers) {
  const char* folder = std::getenv("KOLO_DB");
  const char* own = std::getenv("KOLO_JOB_ID");
  if (folder == nullptr || own == nullptr) return 2;
  auto jobs = jobs::JobDatabase::open(folder);
  const std::string workflow = jobs.job(jobs::JobId{std::atoll(own)}).workflow;

  search::Space::Builder builder;
  for (std::size_t i = 0; i < kVariables; ++i)
    builder.add("x" + std::to_string(i), search::uniform(-10.0, 10.0));
  const auto space = builder.build();
  auto sampler = search::make_sampler("forest", space,
                                      {.directions = {search::Direction::maximize}, .seed = 1});

  std::map<jobs::JobId, search::TrialId> running;
  double best = -1e9;
  int asked = 0, told = 0;
  while (told < max_evals) {
    while (asked < max_evals && running.size() < workers) {
      const search::TrialId trial{static_cast<std::uint64_t>(asked)};
      jobs::Job task;
      task.name = "task";
      task.workflow = workflow;
      task.application = "RUN";
      task.args = text_of(*space, sampler->ask(trial).value());
      task.node_packing_count = static_cast<int>(workers);
      running[jobs.create(task)] = trial;
      ++asked;
    }
    bool any = false;
    for (auto it = running.begin(); it != running.end();) {
      const auto job = jobs.job(it->first);
      if (!jobs::is_end(job.state)) {
        ++it;
        continue;
      }
      if (job.state != jobs::JobState::job_finished) return 3;
      const double value = objective_of(jobs.folder_of(job) / "task.out");
      best = std::max(best, value);
      sampler->tell(it->second, search::Outcome::complete(value));
      it = running.erase(it);
      any = true;
      ++told;
    }
    if (!any) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  std::printf("%d evaluations, best %.6g\n", told, best);
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "run" && argc == 3) return run(argv[2]);
  if (mode == "search" && argc == 4)
    return search_with(std::atoi(argv[2]), static_cast<std::size_t>(std::atoi(argv[3])));
  std::fprintf(stderr, "usage: polynome2 search MAX_EVALS WORKERS | run X0,X1,…\n");
  return 2;
} catch (const std::exception& error) {
  std::fprintf(stderr, "polynome2: %s\n", error.what());
  return 1;
}
