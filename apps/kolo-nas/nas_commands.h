// The commands of kolo-nas, which `kolo nas` runs.
#pragma once

#include "search_options.h"

namespace kolo::app {

int run_nas_search(NasOptions& options, cli::OptionSet& given);
int run_nas_evaluate(EvaluateOptions& options);
int run_nas_draw(NasDrawOptions& options);
int run_nas_post_train(NasPostTrainOptions& options);

/// Makes this process one of several agents, if there are to be several, and the sampler one that
/// learns with the others. May replace the process by a `kolo run` of all agents, with these
/// arguments.
void become_agent(hps::SearchPlan& plan, const PpoCommandOptions& options,
                  const cli::Arguments& arguments);

}  // namespace kolo::app
