// The table of samplers. Adding one is a file pair and a row.
#include "base/registry.h"
#include "kolo/search/sampler.h"
#include "search/sampler/cmaes_sampler.h"
#include "search/sampler/forest_sampler.h"
#include "search/sampler/gp_sampler.h"
#include "search/sampler/grid_sampler.h"
#include "search/sampler/random_sampler.h"

namespace kolo::search {
namespace {

using MakeSampler = std::unique_ptr<Sampler> (*)(std::shared_ptr<const Space>, SamplerOptions);

constexpr Entry<MakeSampler> kSamplers[] = {
    {"random", "independent draws from the prior", make_random_sampler},
    {"cmaes", "covariance matrix adaptation with restarts and integer margin", make_cmaes_sampler},
    {"forest", "asynchronous model-based search with trees (AMBS, CBO)", make_forest_sampler},
    {"gp", "Bayesian optimisation with a Gaussian process", make_gp_sampler},
    {"grid", "every combination of grid_search values, times samples", make_grid_sampler},
};

constexpr Registry<MakeSampler> kTable{"sampler", kSamplers};

}  // namespace

std::vector<SamplerInfo> samplers() {
  std::vector<SamplerInfo> infos;
  for (const auto& entry : kTable.entries()) infos.push_back({entry.name, entry.summary});
  return infos;
}

std::unique_ptr<Sampler> make_sampler(std::string_view name, std::shared_ptr<const Space> space,
                                      SamplerOptions options) {
  return kTable.at(name).make(std::move(space), std::move(options));
}

}  // namespace kolo::search
