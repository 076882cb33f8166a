// The commands of kolo-nas, which `kolo nas` runs.
#pragma once

#include "search_options.h"

namespace kolo::app {

int run_nas_search(NasOptions& options, cli::OptionSet& given);
/// Throws what the search would throw before its first evaluation, wherever that will be. Leaves
/// nothing behind.
int check_nas_search(NasOptions& options, cli::OptionSet& given);
int run_nas_evaluate(EvaluateOptions& options);
int run_nas_draw(NasDrawOptions& options);
int run_nas_post_train(NasPostTrainOptions& options);

/// Makes this process one of several agents, if there are to be several, and the sampler one that
/// learns with the others. May replace the process by a `kolo run` of all agents, with these
/// arguments.
void become_agent(hps::SearchPlan& plan, const PpoCommandOptions& options,
                  const cli::Arguments& arguments);

/// Lets PPO choose the architectures.
void learn_by_ppo(hps::SearchPlan& plan, nas::PpoOptions ppo);

}  // namespace kolo::app
