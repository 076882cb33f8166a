// scripts/bench allreduce: kolo against the MPIs, Gloo and the physical limit, on one host.
//
// All contenders are started once and stay; for each size they are measured in turn, several
// rounds, so that whatever else the machine does hits all alike. Those not being measured sleep.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <thread>

#include "cli/command.h"
#include "driver/contender.h"
#include "driver/report.h"
#include "driver/round.h"
#include "support/median.h"

namespace {

using bench::Contender;
using bench::ContenderSpec;
using bench::Effort;
using bench::Entry;
using bench::RoundClock;
using bench::try_start;
using Words = std::vector<std::string>;
using bench::operator+;

constexpr std::size_t kKB = 1024, kMB = 1024 * 1024;

struct Settings {
  std::string bin;      ///< where the rank programs and kolo are
  std::string scratch;  ///< a directory of our own
  std::string json;
  bool quick = false;
  void declare(kolo::cli::OptionSet& set);
};
constexpr kolo::cli::Option<Settings> kOptions[] = {
    {&Settings::bin, "bin", "DIR", "Find the programs in this directory.", kolo::cli::is_needed},
    {&Settings::scratch, "scratch", "DIR", "Use this empty directory.", kolo::cli::is_needed},
    {&Settings::json, "json", "FILE", "Write all figures to this file as well."},
    {&Settings::quick, "quick", "", "Finish within 50 s."},
};
void Settings::declare(kolo::cli::OptionSet& set) { set.add("Options", kOptions, *this); }

struct Bench {
  Settings settings;
  bench::Reception reception{settings.scratch};
  bench::Report report{};

  [[nodiscard]] Words rank_command(const std::string& program, const std::string& contender,
                                   const std::string& pin) const {
    return {settings.bin + "/" + program, reception.path(), contender, pin};
  }
};

ContenderSpec kolo_spec(const Bench& bench, const std::string& name, int ranks, bool pinned) {
  return {name,
          ranks,
          {Words{bench.settings.bin + "/kolo", "run", "-np", std::to_string(ranks)} +
           bench.rank_command("bench_kolo_rank", name, pinned ? "pin" : "free")},
          {}};
}

ContenderSpec openmpi_spec(const Bench& bench, const std::string& name, int ranks, bool pinned) {
  Words command = {"mpirun.openmpi", "-np", std::to_string(ranks)};
  command = command + (pinned ? Words{"--bind-to", "core"}
                              : Words{"--oversubscribe", "--bind-to", "none", "--mca",
                                      "mpi_yield_when_idle", "1"});
  return {name,
          ranks,
          {command + bench.rank_command("bench_openmpi_rank", name, "free")},
          bench::kOpenMpiEnvironment};
}

ContenderSpec mpich_spec(const Bench& bench, const std::string& name, int ranks, bool pinned,
                         const Words& environment = {}) {
  Words command = {"mpirun.mpich", "-np", std::to_string(ranks)};
  if (pinned) command = command + Words{"-bind-to", "core"};
  return {
      name, ranks, {command + bench.rank_command("bench_mpich_rank", name, "free")}, environment};
}

ContenderSpec gloo_spec(const Bench& bench, const std::string& name, int ranks) {
  ContenderSpec spec{name, ranks, {}, {}};
  const std::string store = bench.settings.scratch + "/gloo-store";
  std::filesystem::create_directories(store);
  for (int r = 0; r < ranks; ++r) {
    spec.commands.push_back(bench.rank_command("bench_gloo_rank", name, "free") +
                            Words{std::to_string(r), std::to_string(ranks), store, "lo"});
  }
  return spec;
}

void bench_sizes(Bench& bench) {
  auto kolo = try_start(bench.reception, kolo_spec(bench, "kolo", 2, true));
  auto openmpi = try_start(bench.reception, openmpi_spec(bench, "openmpi", 2, true));
  auto mpich = try_start(bench.reception, mpich_spec(bench, "mpich", 2, true));
  auto gloo = try_start(bench.reception, gloo_spec(bench, "gloo", 2));
  auto limit = try_start(bench.reception,
                         {"limit", 2, {bench.rank_command("bench_limit", "limit", "pin")}, {}});
  std::vector<Entry> entries = {
      {"kolo-foreign", &kolo, "foreign"},   {"openmpi", &openmpi, "plain"},
      {"mpich", &mpich, "plain"},           {"gloo", &gloo, "plain"},
      {"limit-private", &limit, "private"}, {"kolo-own", &kolo, "own"},
      {"limit-shared", &limit, "shared"},
  };
  const std::vector<std::size_t> all = {8,         64,      1 * kKB, 16 * kKB, 64 * kKB,
                                        256 * kKB, 1 * kMB, 4 * kMB, 16 * kMB, 64 * kMB};
  const std::vector<std::size_t> with_goal = {8, 16 * kKB, 256 * kKB, 1 * kMB, 16 * kMB, 64 * kMB};
  RoundClock clock(bench.settings.quick ? 27.0 : 600.0, bench.settings.quick ? 5 : 9);
  while (clock.another()) {
    for (const std::size_t bytes : bench.settings.quick&& clock.round() > 1 ? with_goal : all) {
      Effort effort;
      effort.seconds = bench.settings.quick ? 0.04 : bytes >= 16 * kMB ? 0.5 : 0.15;
      effort.min_batches = bench.settings.quick && bytes == 64 * kMB ? 3 : 5;
      bench::measure_round(bench.report, entries, bytes, effort);
    }
  }
}

void bench_oversubscribed(Bench& bench) {
  auto kolo = try_start(bench.reception, kolo_spec(bench, "kolo-np4", 4, false));
  auto openmpi = try_start(bench.reception, openmpi_spec(bench, "openmpi-np4-yield", 4, false));
  auto mpich = try_start(bench.reception, mpich_spec(bench, "mpich-np4", 4, false));
  auto mpich_yield = try_start(bench.reception, mpich_spec(bench, "mpich-np4-yield", 4, false,
                                                           {"MPIR_CVAR_POLLS_BEFORE_YIELD=1"}));
  std::vector<Entry> entries = {{"kolo-own", &kolo, "own"},
                                {"openmpi-yield", &openmpi, "plain"},
                                {"mpich", &mpich, "plain"},
                                {"mpich-yield", &mpich_yield, "plain"}};
  bench::Report table;
  Effort effort;
  effort.seconds = bench.settings.quick ? 0.1 : 0.5;
  effort.batch_seconds = 2e-3;
  effort.max_buffers = 16;  // an MPI that does not yield takes 30 ms for each operation
  effort.max_warm_up = 3;
  RoundClock clock(bench.settings.quick ? 6.0 : 120.0, bench.settings.quick ? 3 : 9);
  while (clock.another()) {
    bench::measure_round(table, entries, 64 * kKB, effort);
  }
  table.print_table("4 ranks on the cores of this machine, not bound");
  bench.report.ratio("oversubscribed_np4_64KB_vs_best_mpi",
                     table.get("kolo-own", 64 * kKB) /
                         table.best({"openmpi-yield", "mpich", "mpich-yield"}, 64 * kKB),
                     1.0);
}

void bench_idle(Bench& bench) {
  double share = std::nan("");
  if (auto kolo = try_start(bench.reception, kolo_spec(bench, "kolo-idle", 2, false))) {
    const double before = kolo->cpu_used();
    const auto start = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(std::chrono::milliseconds(bench.settings.quick ? 2000 : 5000));
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    share = (kolo->cpu_used() - before) / wall.count();
  }
  bench.report.ratio("idle_cpu", share, 0.005);
}

double median_start(Bench& bench, const std::function<ContenderSpec()>& spec, int starts) {
  std::vector<double> seconds;
  for (int i = 0; i < starts; ++i) {
    const auto contender = try_start(bench.reception, spec());
    if (contender == nullptr) return std::nan("");
    seconds.push_back(contender->start_seconds());
  }
  return bench::median(seconds);
}

void bench_start(Bench& bench) {
  const int peer_starts = bench.settings.quick ? 3 : 11;
  bench.report.note(
      "start openmpi",
      median_start(
          bench, [&] { return openmpi_spec(bench, "openmpi-start", 2, true); }, peer_starts),
      "s (mpirun to the end of the first allreduce)");
  bench.report.note(
      "start mpich",
      median_start(
          bench, [&] { return mpich_spec(bench, "mpich-start", 2, true); }, peer_starts),
      "s");
  bench.report.ratio("start_to_first_allreduce",
                     median_start(
                         bench, [&] { return kolo_spec(bench, "kolo-start", 2, true); },
                         bench.settings.quick ? 11 : 21),
                     0.05);
}

void print_ratios(bench::Report& report) {
  const Words mpi = {"openmpi", "mpich"};
  const Words limit = {"limit-private", "limit-shared"};
  report.ratio("allreduce_8B_vs_best_mpi", report.get("kolo-foreign", 8) / report.best(mpi, 8),
               0.6);
  for (const std::size_t bytes : {16 * kKB, 256 * kKB, 1 * kMB, 16 * kMB, 64 * kMB}) {
    report.ratio("allreduce_" + bench::size_name(bytes) + "_vs_best_mpi",
                 report.get("kolo-own", bytes) / report.best(mpi, bytes), 0.25);
  }
  for (const std::size_t bytes : {1 * kMB, 16 * kMB, 64 * kMB}) {
    report.ratio("foreign_" + bench::size_name(bytes) + "_vs_best_mpi",
                 report.get("kolo-foreign", bytes) / report.best(mpi, bytes), 0.6);
  }
  // Memory of a virtual machine is twice as fast in some seconds as in others, so here the
  // neighbours in time are compared.
  for (const std::size_t bytes : {1 * kMB, 16 * kMB, 64 * kMB}) {
    report.ratio("allreduce_" + bench::size_name(bytes) + "_vs_limit",
                 report.by_round("kolo-own", limit, bytes), 1.2);
  }
  report.ratio("allreduce_1MB_vs_gloo",
               report.get("kolo-foreign", 1 * kMB) / report.get("gloo", 1 * kMB), 0.1);
}

int run_bench(Settings& settings) {
  bench::warn_if_busy();
  Bench bench{settings};
  bench_sizes(bench);
  bench.report.print_table("2 ranks, float32 sum, in place");
  print_ratios(bench.report);
  bench_oversubscribed(bench);
  bench_idle(bench);
  bench_start(bench);
  bench::warn_if_busy();
  if (!settings.json.empty()) bench.report.write_json(settings.json);
  return 0;
}

constexpr kolo::cli::Command kBench{
    .name = "comm_allreduce_bench",
    .summary = "Compare the allreduce of kolo with its peers and with the limit, on one host",
    .options = kolo::cli::declared<Settings>,
    .run = kolo::cli::run_declared<Settings, run_bench>,
};

}  // namespace

int main(int argc, char** argv) { return kolo::cli::run_program(kBench, {argv + 1, argv + argc}); }
