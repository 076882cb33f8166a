#include "quality/runs.h"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <exception>
#include <fstream>
#include <mutex>
#include <thread>

namespace bench {
namespace {

std::string key_of(const std::string& problem, const std::string& checksum, const std::string& form,
                   std::size_t seed, std::size_t budget) {
  return fmt::format("{}|{}|{}|{}|{}", problem, checksum, form, seed, budget);
}

}  // namespace

std::vector<double> search_once(const Problem& problem, const std::string& sampler,
                                std::uint64_t seed, std::size_t evaluations) {
  auto search = search::make_sampler(
      sampler, problem.space,
      {.directions = {problem.direction}, .seed = seed, .budget = evaluations});
  std::vector<double> values;
  for (std::size_t i = 0; i < evaluations; ++i) {
    search::TrialId id{i};
    auto point = search->ask(id);
    if (!point) break;
    values.push_back(problem.evaluate(*point));
    search->tell(id, search::Outcome::complete(values.back()));
  }
  auto regret = search::regret_curve(values, problem.direction, problem.optimum);
  // A search that ends early (a grid) keeps what it has found.
  regret.resize(evaluations, regret.empty() ? std::nan("") : regret.back());
  return regret;
}

void in_parallel(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  auto worker = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = count;
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back(worker);
  for (auto& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

PeerResults::PeerResults(const std::string& path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    auto entry = nlohmann::json::parse(line, nullptr, false);
    if (entry.is_discarded() || !entry.contains("regret")) continue;  // cut off by an interrupt
    for (const auto& [budget, regret] : entry["regret"].items())
      regrets_[key_of(entry["problem"], entry["checksum"], entry["form"], entry["seed"],
                      std::stoul(budget))] = regret.get<double>();
  }
}

std::optional<Regrets> PeerResults::get(const Problem& problem, const std::string& form,
                                        std::size_t seeds,
                                        const std::vector<std::size_t>& budgets) const {
  Regrets regrets;
  for (std::size_t seed = 0; seed < seeds; ++seed) {
    auto& row = regrets.emplace_back();
    for (std::size_t budget : budgets) {
      auto found = regrets_.find(key_of(problem.name, problem.checksum, form, seed, budget));
      if (found == regrets_.end()) return std::nullopt;
      row.push_back(found->second);
    }
  }
  return regrets;
}

}  // namespace bench
