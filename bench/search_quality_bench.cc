// How good the samplers are: regret after 50, 100 and 200 evaluations on tables and functions, and
// epochs needed on learning curves. docs/benchmarks.md says how to read it.
//
//   search_quality_bench --data DIR --lc DIR [--seeds N] [--samplers a,b] [--only a,b] [--peers
//   FILE] search_quality_bench --describe …      the problems as JSON, for search_optuna_peer.py
//   search_quality_bench --serve NAME …    reads points, one JSON object per line, prints their
//   regret
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <limits>

#include "base/json.h"
#include "cli/command.h"
#include "kolo/error.h"
#include "quality/curves.h"
#include "quality/problem.h"
#include "quality/runs.h"
#include "support/ratios.h"

namespace bench {
namespace {

const std::vector<std::size_t> kBudgets{50, 100, 200};
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Options {
  std::string data, curves, peers;
  std::size_t seeds = 30;
  std::vector<std::string> samplers;
  std::vector<std::string> only;
  bool no_functions = false;
  bool no_curves = false;
};

void print_ratio(const std::string& name, double value, const char* op, double goal) {
  Ratios().print(name, value, op, goal);
}

std::vector<double> means(const Regrets& regrets) {
  std::vector<double> mean(kBudgets.size(), 0);
  for (const auto& row : regrets)
    for (std::size_t b = 0; b < mean.size(); ++b)
      mean[b] += row[b] / static_cast<double>(regrets.size());
  return mean;
}

/// The share of seeds that had found the optimum.
double found_share(const Regrets& regrets, std::size_t budget) {
  auto found = std::count_if(regrets.begin(), regrets.end(),
                             [&](const auto& row) { return row[budget] <= 0; });
  return static_cast<double>(found) / static_cast<double>(regrets.size());
}

/// contender -> problem -> regrets
using Outcomes = std::map<std::string, std::map<std::string, Regrets>>;

class QualityBench {
 public:
  explicit QualityBench(Options options) : options_(std::move(options)), peers_(options_.peers) {
    auto wanted = [&](const std::string& name) {
      return options_.only.empty() ||
             std::find(options_.only.begin(), options_.only.end(), name) != options_.only.end();
    };
    if (!options_.data.empty())
      for (auto& problem : read_tables(options_.data))
        if (wanted(problem.name)) problems_.push_back(std::move(problem));
    if (!options_.no_functions)
      for (auto& problem : synthetic_problems())
        if (wanted(problem.name)) problems_.push_back(std::move(problem));
    if (!options_.curves.empty() && !options_.no_curves)
      for (auto& pool : read_curve_pools(options_.curves))
        if (wanted(pool.name)) pools_.push_back(std::move(pool));
    for (const auto& info : search::samplers()) known_.emplace_back(info.name);
  }

  void describe() const {
    auto all = nlohmann::json::array();
    for (const auto& problem : problems_)
      all.push_back({{"name", problem.name},
                     {"table", problem.is_table},
                     {"checksum", problem.checksum},
                     {"parameters", problem.parameters}});
    std::cout << all.dump() << "\n";
  }

  int serve(const std::string& name) const {
    for (const auto& problem : problems_) {
      if (problem.name != name) continue;
      for (std::string line; std::getline(std::cin, line);) {
        auto entries = kolo::parse_json(line, "standard input");
        search::Point point(problem.space->size(), kNan);
        for (const auto& [parameter, value] : entries.items())
          point[problem.space->index_of(parameter)] = value.get<double>();
        double sign = problem.direction == search::Direction::minimize ? 1 : -1;
        std::printf("%.17g\n", sign * (problem.evaluate(point) - problem.optimum));
        std::fflush(stdout);
      }
      return 0;
    }
    std::fprintf(stderr, "search_quality_bench: there is no problem '%s'\n", name.c_str());
    return 2;
  }

  void run() {
    for (const auto& problem : problems_) run_problem(problem);
    std::vector<std::pair<std::string, std::vector<double>>> epochs;
    for (const auto& pool : pools_) epochs.emplace_back(pool.name, run_pool(pool));

    std::printf("\n");
    report_against_optuna();
    report_against_random();
    report_optimum_found();
    for (const auto& [name, shares] : epochs) {
      print_ratio("lc_" + name + "_asha_tpe_epochs", shares[0], "<=", 0.2);
      print_ratio("lc_" + name + "_bohb_epochs", shares[1], "<=", 0.2);
    }
  }

 private:
  [[nodiscard]] bool knows(const std::string& sampler) const {
    return std::find(known_.begin(), known_.end(), sampler) != known_.end();
  }

  void run_problem(const Problem& problem) {
    std::printf("\n%s: mean regret of %zu seeds (standard error) after evaluations\n%-16s",
                problem.name.c_str(), options_.seeds, "");
    for (std::size_t budget : kBudgets) std::printf(" %24zu", budget);
    std::printf(" %10s\n", "s/search");
    for (const char* form : {"optuna-tpe", "optuna-tpe-mv"})
      if (auto regrets = peers_.get(problem, form, options_.seeds, kBudgets))
        keep(form, problem, *regrets, kNan);
    for (const auto& sampler : options_.samplers) {
      if (!knows(sampler)) {
        std::printf("MISSING %s\n", sampler.c_str());
        continue;
      }
      try {
        run_sampler(problem, sampler);
      } catch (const kolo::Error& error) {
        std::printf("FAILED %s: %s\n", sampler.c_str(), error.what());
      }
    }
  }

  void run_sampler(const Problem& problem, const std::string& sampler) {
    // Everybody is compared with random search, and it costs nothing: a steadier figure.
    std::size_t seeds = sampler == "random" ? 10 * options_.seeds : options_.seeds;
    Regrets regrets(seeds);
    auto begin = std::chrono::steady_clock::now();
    in_parallel(seeds, [&](std::size_t seed) {
      auto curve = search_once(problem, sampler, seed, kBudgets.back());
      for (std::size_t budget : kBudgets) regrets[seed].push_back(curve[budget - 1]);
    });
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    keep(sampler, problem, regrets, took.count() / static_cast<double>(seeds));
  }

  void keep(const std::string& contender, const Problem& problem, const Regrets& regrets,
            double seconds) {
    outcomes_[contender][problem.name] = regrets;
    auto mean = search::mean_curve(regrets);
    std::printf("%-16s", contender.c_str());
    for (std::size_t b = 0; b < kBudgets.size(); ++b)
      std::printf(" %12.6g (%9.3g)", mean.mean[b], mean.standard_error[b]);
    if (!std::isnan(seconds)) std::printf(" %10.3f", seconds);
    std::printf("\n");
    std::fflush(stdout);
  }

  /// Geometric mean over tables and budgets. A table where both found everything counts 1; no
  /// single ratio counts more than tenfold either way.
  double against(const std::string& contender, const std::string& peer) const {
    double sum = 0;
    int count = 0;
    for (const auto& problem : problems_) {
      if (!problem.is_table) continue;
      auto mine = find(contender, problem.name);
      auto theirs = find(peer, problem.name);
      if (!mine || !theirs) return kNan;
      auto a = means(*mine);
      auto b = means(*theirs);
      for (std::size_t i = 0; i < a.size(); ++i, ++count) {
        if (a[i] == b[i]) continue;
        sum += std::log(std::clamp(a[i] / b[i], 0.1, 10.0));
      }
    }
    return count == 0 ? kNan : std::exp(sum / count);
  }

  [[nodiscard]] const Regrets* find(const std::string& contender,
                                    const std::string& problem) const {
    auto problems = outcomes_.find(contender);
    if (problems == outcomes_.end()) return nullptr;
    auto found = problems->second.find(problem);
    return found == problems->second.end() ? nullptr : &found->second;
  }

  [[nodiscard]] bool asked_for(const std::string& sampler) const {
    return std::find(options_.samplers.begin(), options_.samplers.end(), sampler) !=
           options_.samplers.end();
  }

  void report_against_optuna() const {
    if (std::none_of(problems_.begin(), problems_.end(), [](const auto& p) { return p.is_table; }))
      return;
    for (const auto& [sampler, goal] : std::vector<std::pair<std::string, double>>{
             {"auto", 0.8}, {"tpe", 1.0}, {"gp", 1.0}, {"forest", 1.0}})
      if (asked_for(sampler))
        print_ratio("quality_" + sampler, against(sampler, "optuna-tpe-mv"), "<=", goal);
  }

  /// The worst ratio to random search over all problems and budgets, and where it is.
  void report_against_random() const {
    for (const auto& sampler : options_.samplers) {
      if (sampler == "random") continue;
      double worst = kNan;
      std::string where;
      for (const auto& problem : problems_) {
        auto mine = find(sampler, problem.name);
        auto random = find("random", problem.name);
        if (mine == nullptr || random == nullptr) continue;
        auto a = means(*mine);
        auto b = means(*random);
        for (std::size_t i = 0; i < a.size(); ++i) {
          double ratio = a[i] == b[i] ? 1 : a[i] / b[i];
          if (ratio <= worst) continue;
          worst = ratio;
          where = problem.name + " at " + std::to_string(kBudgets[i]);
        }
      }
      if (std::isnan(worst)) continue;
      std::printf("worst against random search: %s on %s\n", sampler.c_str(), where.c_str());
      print_ratio("worst_vs_random_" + sampler, worst, "<=", 1.0);
    }
  }

  void report_optimum_found() const {
    for (const auto& problem : problems_) {
      if (!problem.is_table || !problem.name.starts_with("nasbench201")) continue;
      double better = kNan;
      for (const char* sampler : {"evolution", "local_search"}) {
        auto regrets = find(sampler, problem.name);
        if (regrets == nullptr) continue;
        double share = found_share(*regrets, 1);
        std::printf("%s: %s finds the optimum within 100 evaluations in %.0f %% of seeds\n",
                    problem.name.c_str(), sampler, 100 * share);
        better = std::fmax(better, share);
      }
      if (asked_for("evolution") || asked_for("local_search"))
        print_ratio(problem.name + "_found_evolution_or_local", better, ">=", 0.8);
      if (asked_for("auto")) {
        auto regrets = find("auto", problem.name);
        print_ratio(problem.name + "_found_auto",
                    regrets == nullptr ? kNan : found_share(*regrets, 1), ">=", 0.7);
      }
    }
  }

  /// Epochs that ASHA + TPE and BOHB need for random search's final regret, as shares of random's.
  std::vector<double> run_pool(const CurvePool& pool) const {
    std::size_t budget = kBudgets.back() * pool.epochs();
    auto epochs = static_cast<double>(pool.epochs());
    auto mean_of = [&](const Pairing& pairing, std::size_t length) {
      std::vector<std::vector<double>> curves(options_.seeds);
      in_parallel(options_.seeds,
                  [&](std::size_t seed) { curves[seed] = simulate(pool, pairing, seed, length); });
      return search::mean_curve(curves).mean;
    };
    double target = mean_of({"random", "fifo", {}}, budget).back();
    std::printf("\n%s: random search, %zu trials of %.0f epochs: mean regret %.4g of %zu seeds\n",
                pool.name.c_str(), kBudgets.back(), epochs, target, options_.seeds);
    std::vector<double> shares;
    std::map<std::string, search::Value> asha{
        {"max_t", epochs}, {"grace_period", 3}, {"reduction_factor", 3}};
    std::map<std::string, search::Value> band{
        {"max_t", epochs}, {"min_t", 3}, {"reduction_factor", 3}};
    for (const Pairing& pairing :
         {Pairing{"tpe", "asha", asha}, Pairing{"bohb", "hb_bohb", band},
          Pairing{"random", "asha", asha}, Pairing{"random", "hb_bohb", band}}) {
      if (!knows(pairing.sampler)) {
        std::printf("MISSING %s\n", pairing.sampler.c_str());
        shares.push_back(kNan);
        continue;
      }
      auto curve = mean_of(pairing, budget / 2);
      auto reached =
          std::find_if(curve.begin(), curve.end(), [&](double r) { return r <= target; });
      double share = reached == curve.end() ? kNan
                                            : static_cast<double>(reached - curve.begin() + 1) /
                                                  static_cast<double>(budget);
      std::printf(
          "%-8s + %-8s reaches it after %.3f of the epochs; regret after 1/5 of them: %.4g\n",
          pairing.sampler.c_str(), pairing.scheduler.c_str(), share, curve[budget / 5 - 1]);
      shares.push_back(share);
    }
    return shares;
  }

  Options options_;
  PeerResults peers_;
  std::vector<std::string> known_;
  std::vector<Problem> problems_;
  std::vector<CurvePool> pools_;
  Outcomes outcomes_;
};

struct Command {
  Options options;
  std::int64_t seeds = 30;
  std::string samplers = "random,tpe,gp,forest,cmaes,evolution,local_search,auto", only, serve;
  bool describe = false;
  void declare(kolo::cli::OptionSet& set);
};
constexpr kolo::cli::Option<Options> kTables[] = {
    {&Options::data, "data", "DIR", "Read tables (kolo-hpo-table-1) from this folder."},
    {&Options::curves, "lc", "DIR", "Read learning curves (kolo-lc-table-1) from this folder."},
    {&Options::peers, "peers", "FILE", "Compare with what Optuna found, as this file has it."},
    {&Options::no_functions, "no-functions", "", "Use tables and curves alone."},
    {&Options::no_curves, "no-curves", "", "Use no learning curves."},
};
constexpr kolo::cli::Option<Command> kChoices[] = {
    {&Command::seeds, "seeds", "N", "Run N searches for each sampler and problem.",
     kolo::cli::least(1), kolo::cli::most(100000)},
    {&Command::samplers, "samplers", "NAME,…", "Measure these samplers."},
    {&Command::only, "only", "NAME,…", "Measure these problems alone."},
    {&Command::describe, "describe", "", "Print the problems."},
    {&Command::serve, "serve", "NAME", "Evaluate points of this problem for another program."},
};
void Command::declare(kolo::cli::OptionSet& set) {
  set.add("Options", kTables, options);
  set.add("Options", kChoices, *this);
}

int run_bench(Command& command) {
  Options& options = command.options;
  options.seeds = static_cast<std::size_t>(command.seeds);
  options.samplers = kolo::cli::split(command.samplers, ',');
  options.only = kolo::cli::split(command.only, ',');
  QualityBench bench(options);
  if (command.describe) {
    bench.describe();
    return 0;
  }
  if (!command.serve.empty()) return bench.serve(command.serve);
  bench.run();
  return 0;
}

constexpr kolo::cli::Command kBench{
    .name = "search_quality_bench",
    .summary = "Measure the quality of the samplers of kolo",
    .options = kolo::cli::declared<Command>,
    .run = kolo::cli::run_declared<Command, run_bench>,
};

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return kolo::cli::run_program(bench::kBench, {argv + 1, argv + argc});
}
