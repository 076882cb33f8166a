// Agents of PPO: one per rank, each with its share of the evaluators.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "base/env.h"
#include "base/errors.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "exec/environment.h"
#include "hps/search/search_run.h"
#include "hps/workers.h"
#include "kolo/kolo.h"
#include "kolo/nas/ppo.h"
#include "nas_commands.h"
#include "search_command.h"

namespace kolo::app {
namespace {

/// This process becomes the launcher of all agents.
[[noreturn]] void run_agents(const hps::SearchPlan& plan, int agents,
                             const cli::Arguments& arguments) {
  std::vector<std::string> words{
      plan.kolo, "run", "-np", std::to_string(agents), "--", std::string("/proc/self/exe")};
  std::array<char, 4096> own{};
  const auto length = ::readlink("/proc/self/exe", own.data(), own.size() - 1);
  if (length <= 0) throw_errno("cannot find this program");
  words.back().assign(own.data(), static_cast<std::size_t>(length));
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(plan.kolo.c_str(), argv.data());
  throw_errno("cannot run {}", plan.kolo);
}

/// Agents do not end at the same moment: when their time is over, the first one to leave must not
/// take the others' last evaluations with it.
nas::AverageFunction while_others_are_there(nas::AverageFunction average) {
  return [average = std::move(average), alone = false](std::span<float> values,
                                                       double weight) mutable {
    if (alone) return;
    try {
      average(values, weight);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::peer_lost) throw;
      alone = true;
      log::warning("another agent has left: {}; this one goes on alone", error.message());
    }
  };
}

}  // namespace

void learn_by_ppo(hps::SearchPlan& plan, nas::PpoOptions ppo) {
  plan.algorithm.make = [ppo = std::move(ppo)](std::shared_ptr<const search::Space> space,
                                               search::SamplerOptions sampler) {
    return nas::make_ppo_sampler(std::move(space), std::move(sampler), ppo);
  };
}

void become_agent(hps::SearchPlan& plan, const PpoCommandOptions& options,
                  const cli::Arguments& arguments) {
  const int wanted = options.num_agents.value_or(1);
  if (wanted > 1 && !environment("KOLO_RANK")) run_agents(plan, wanted, arguments);
  // Agents wait for each other's evaluations.
  ContextOptions patient;
  constexpr std::chrono::duration<double> kWithoutLimit = std::chrono::hours(24 * 365);
  patient.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(
      plan.evaluator.timeout.value_or(kWithoutLimit) * 1.1 + std::chrono::minutes(10));
  init(patient);
  // Evaluations are no ranks of ours: they must not find this job in their environment.
  const auto all = current_environment();
  const auto others = exec::without_launcher_variables(all);
  for (const auto& entry : all)
    if (std::find(others.begin(), others.end(), entry) == others.end())
      ::unsetenv(entry.substr(0, entry.find('=')).c_str());
  plan.agent = rank();
  plan.agents = size();

  const int workers = std::max(hps::workers_of(plan), plan.agents);
  plan.evaluator.num_workers = hps::share_of_agent(workers, plan.agent, plan.agents);
  // All agents make as many updates: whole rounds, in which every worker has one evaluation.
  if (plan.agents > 1 && plan.max_evals > 0)
    plan.max_evals = (plan.max_evals + workers - 1) / workers * plan.evaluator.num_workers;

  nas::PpoOptions ppo = nas::with_agents_as_ranks(options.ppo);
  if (plan.agents > 1) ppo.average_gradients = while_others_are_there(ppo.average_gradients);
  ppo.episodes = plan.evaluator.num_workers;
  std::filesystem::create_directories(plan.log_dir / "save");
  ppo.checkpoint = (plan.log_dir / "save" / fmt::format("ppo-{}.state", plan.agent)).string();
  learn_by_ppo(plan, std::move(ppo));
  if (plan.agents == 1) return;
  // The first one makes the folder ready; a failure there must not leave the others waiting.
  std::string failure;
  if (plan.agent == 0) {
    try {
      hps::prepare_folder(plan);
    } catch (const Error& error) {
      failure = error.message();
    }
  }
  std::int32_t failed = failure.empty() ? 0 : 1;
  world().broadcast(std::span(&failed, 1), 0);
  if (!failure.empty()) throw Error(ErrorCode::failed_precondition, failure);
  if (failed != 0)
    throw_error(ErrorCode::cancelled,
                "agent 0 could not prepare the folder; its own message says why");
}

}  // namespace kolo::app
