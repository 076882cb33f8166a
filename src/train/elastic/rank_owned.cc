#include "train/elastic/rank_owned.h"

#include <map>

#include "base/mutex.h"

namespace kolo::train {
namespace {

/// By the address of the wrapped optimizer. Ranks may be threads of one process.
struct OwnedByOptimizer {
  Mutex mutex;
  std::map<const void*, const RankOwned*> owned KOLO_GUARDED_BY(mutex);
  std::map<const void*, std::vector<std::string>> residuals KOLO_GUARDED_BY(mutex);
};

OwnedByOptimizer& owned_by_optimizer() {
  static auto* all = new OwnedByOptimizer;
  return *all;
}

}  // namespace

const RankOwned* rank_owned_of(const torch::optim::Optimizer& optimizer) {
  OwnedByOptimizer& all = owned_by_optimizer();
  MutexLock lock(all.mutex);
  const auto found = all.owned.find(&optimizer);
  return found == all.owned.end() ? nullptr : found->second;
}

OwnsAlone::OwnsAlone(const torch::optim::Optimizer& optimizer, const RankOwned& owned)
    : optimizer_(optimizer) {
  OwnedByOptimizer& all = owned_by_optimizer();
  MutexLock lock(all.mutex);
  all.owned[&optimizer_] = &owned;
}

OwnsAlone::~OwnsAlone() {
  OwnedByOptimizer& all = owned_by_optimizer();
  MutexLock lock(all.mutex);
  all.owned.erase(&optimizer_);
}

void leave_residuals(const torch::optim::Optimizer& optimizer, std::vector<std::string> of_ranks) {
  OwnedByOptimizer& all = owned_by_optimizer();
  MutexLock lock(all.mutex);
  all.residuals[&optimizer] = std::move(of_ranks);
}

std::vector<std::string> take_residuals(const torch::optim::Optimizer& optimizer) {
  OwnedByOptimizer& all = owned_by_optimizer();
  MutexLock lock(all.mutex);
  const auto found = all.residuals.find(&optimizer);
  if (found == all.residuals.end()) return {};
  std::vector<std::string> residuals = std::move(found->second);
  all.residuals.erase(found);
  return residuals;
}

}  // namespace kolo::train
