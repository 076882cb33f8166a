// take() first checks that everything fits and only then counts it as used, so that a refusal takes
// nothing. A share of a GPU goes to the device that has the least left and still suffices (best
// fit), which keeps whole devices free for trials that need them; whole GPUs are taken by number.
// All comparisons allow a rounding error, because three thirds do not add up to exactly one. The
// totals only grow: if they could shrink, trials that run could hold more than there is. Ranks of
// elastic trials are counted in CPUs and custom resources alone.
#include "tune/study/resource_pool.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "base/env.h"
#include "base/errors.h"
#include "exec/binding.h"

namespace kolo::tune {
namespace {

/// Shares like a third add up to a little more than one.
constexpr double kRounding = 1e-9;

/// More than any machine has, and few enough to be counted in an int.
constexpr double kMostProcessors = 1e6;

bool fits(double wanted, double free) { return wanted <= free + kRounding; }

}  // namespace

void check_amounts(const Resources& resources, std::string_view whose) {
  const auto check = [whose](double amount, std::string_view name, double most) {
    if (!(amount >= 0 && amount <= most))  // also what is no number
      throw_error(ErrorCode::invalid_argument,
                  "{} cannot have {} of the resource '{}'; give a number from 0 to {:g}", whose,
                  amount, name, most);
  };
  check(resources.cpu, "cpu", kMostProcessors);
  check(resources.gpu, "gpu", kMostProcessors);
  for (const auto& [name, amount] : resources.custom)
    check(amount, name, std::numeric_limits<float>::max());
}

ResourcePool::ResourcePool(Resources total) : total_(std::move(total)) {
  used_.cpu = 0;
  devices_.assign(static_cast<std::size_t>(std::floor(total_.gpu + kRounding)), 1.0);
}

void ResourcePool::require_possible(const Resources& wanted) const {
  check_amounts(wanted, "a trial");
  if (!fits(wanted.cpu, total_.cpu))
    throw_error(ErrorCode::invalid_argument,
                "a trial needs {} CPUs, but the study has {}; it could never start", wanted.cpu,
                total_.cpu);
  if (!fits(wanted.gpu, static_cast<double>(devices_.size())))
    throw_error(ErrorCode::invalid_argument,
                "a trial needs {} GPUs, but the study has {}; it could never start", wanted.gpu,
                devices_.size());
  if (wanted.gpu > 1 && std::floor(wanted.gpu) != wanted.gpu)
    throw_error(ErrorCode::invalid_argument,
                "a trial can use a part of one GPU, or whole GPUs, but not {} of them", wanted.gpu);
  for (const auto& [name, amount] : wanted.custom) {
    const auto found = total_.custom.find(name);
    const double there = found == total_.custom.end() ? 0 : found->second;
    if (!fits(amount, there))
      throw_error(ErrorCode::invalid_argument,
                  "a trial needs {} of '{}', but the study has {}; it could never start", amount,
                  name, there);
  }
}

std::optional<Grant> ResourcePool::take(const Resources& wanted) {
  if (!fits(used_.cpu + wanted.cpu, total_.cpu)) return std::nullopt;
  for (const auto& [name, amount] : wanted.custom)
    if (!fits(used_.custom[name] + amount, total_.custom[name])) return std::nullopt;
  Grant grant;
  grant.held = wanted;
  grant.ranks = wanted.ranks.least;
  // Shares go where something is taken already, so that whole devices stay free.
  const double each = std::min(wanted.gpu, 1.0);
  std::vector<std::size_t> order(devices_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (each < 1)
    std::stable_sort(order.begin(), order.end(),
                     [this](std::size_t a, std::size_t b) { return devices_[a] < devices_[b]; });
  const auto count = static_cast<std::size_t>(std::ceil(wanted.gpu - kRounding));
  for (const std::size_t device : order)
    if (grant.devices.size() < count && fits(each, devices_[device]))
      grant.devices.push_back(static_cast<int>(device));
  if (grant.devices.size() < count) return std::nullopt;
  for (const int device : grant.devices) devices_[static_cast<std::size_t>(device)] -= each;
  std::sort(grant.devices.begin(), grant.devices.end());
  used_.cpu += wanted.cpu;
  used_.gpu += wanted.gpu;
  for (const auto& [name, amount] : wanted.custom) used_.custom[name] += amount;
  const auto free = std::find(slots_.begin(), slots_.end(), false);
  grant.slot = static_cast<int>(free - slots_.begin());
  if (free == slots_.end())
    slots_.push_back(true);
  else
    *free = true;
  return grant;
}

void ResourcePool::give_back(const Grant& grant) {
  used_.cpu -= grant.held.cpu;
  used_.gpu -= grant.held.gpu;
  for (const auto& [name, amount] : grant.held.custom) used_.custom[name] -= amount;
  const double each = std::min(grant.held.gpu, 1.0);
  for (const int device : grant.devices) devices_[static_cast<std::size_t>(device)] += each;
  slots_[static_cast<std::size_t>(grant.slot)] = false;
}

// Elastic trials have no devices, which a rank that joins could not be told.
bool ResourcePool::grow(Grant& grant, const Resources& rank) {
  if (free_for(rank) < 1) return false;
  ++grant.ranks;
  const auto add = [](double amount, double& used, double& held) {
    used += amount, held += amount;
  };
  add(rank.cpu, used_.cpu, grant.held.cpu);
  for (const auto& [name, amount] : rank.custom)
    add(amount, used_.custom[name], grant.held.custom[name]);
  return true;
}

void ResourcePool::shrink(Grant& grant, const Resources& rank, int ranks) {
  const int fewer = grant.ranks - ranks;
  grant.ranks = ranks;
  const auto take = [fewer](double amount, double& used, double& held) {
    used -= fewer * amount, held -= fewer * amount;
  };
  take(rank.cpu, used_.cpu, grant.held.cpu);
  for (const auto& [name, amount] : rank.custom)
    take(amount, used_.custom[name], grant.held.custom[name]);
}

int ResourcePool::free_for(const Resources& rank) const {
  double most = kMostProcessors;
  if (rank.cpu > 0) most = std::min(most, (total_.cpu - used_.cpu) / rank.cpu);
  for (const auto& [name, amount] : rank.custom) {
    const auto used = used_.custom.find(name);
    const double free = total_.custom.at(name) - (used == used_.custom.end() ? 0 : used->second);
    if (amount > 0) most = std::min(most, free / amount);
  }
  return std::max(0, static_cast<int>(most + kRounding));
}

void ResourcePool::extend(const Resources& total) {
  total_.cpu = std::max(total_.cpu, total.cpu);
  total_.gpu = std::max(total_.gpu, total.gpu);
  for (const auto& [name, amount] : total.custom)
    total_.custom[name] = std::max(total_.custom[name], amount);
  const auto devices = static_cast<std::size_t>(std::floor(total_.gpu + kRounding));
  if (devices > devices_.size()) devices_.resize(devices, 1.0);
}

int ResourcePool::capacity(const Resources& wanted) const {
  double most = kMostProcessors;
  if (wanted.cpu > 0) most = std::min(most, total_.cpu / wanted.cpu);
  if (wanted.gpu > 0) {
    const auto devices = static_cast<double>(devices_.size());
    most = std::min(most, wanted.gpu >= 1 ? devices / wanted.gpu
                                          : devices * std::floor(1 / wanted.gpu + kRounding));
  }
  for (const auto& [name, amount] : wanted.custom)
    if (amount > 0) most = std::min(most, total_.custom.at(name) / amount);
  return static_cast<int>(most + kRounding);
}

std::string ResourcePool::describe() const {
  std::string text = fmt::format("{:g}/{:g} CPUs", used_.cpu, total_.cpu);
  if (total_.gpu > 0) text += fmt::format(", {:g}/{:g} GPUs", used_.gpu, total_.gpu);
  for (const auto& [name, amount] : total_.custom) {
    const auto used = used_.custom.find(name);
    text +=
        fmt::format(", {:g}/{:g} {}", used == used_.custom.end() ? 0 : used->second, amount, name);
  }
  return text;
}

Resources resources_for(int count, const Resources& each) {
  Resources all = each;
  all.cpu *= count;
  all.gpu *= count;
  for (auto& [name, amount] : all.custom) amount *= count;
  return all;
}

Resources machine_resources() {
  Resources total;
  total.cpu = exec::usable_processors();
  if (auto visible = environment("CUDA_VISIBLE_DEVICES")) {
    total.gpu = static_cast<double>(std::count(visible->begin(), visible->end(), ',') + 1);
  } else {
    std::error_code none;
    for ([[maybe_unused]] const auto& device :
         std::filesystem::directory_iterator("/proc/driver/nvidia/gpus", none))
      total.gpu += 1;
  }
  return total;
}

}  // namespace kolo::tune
