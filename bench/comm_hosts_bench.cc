// scripts/bench hosts: kolo over ssh and TCP against flat Gloo and Open MPI on the same links.
//
// bench/hosts_bench.sh makes the hosts (network namespaces) and calls this. A layout HxR has H
// hosts with R ranks each; the links run at full speed or limited to 1 Gbit/s.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "cli/command.h"
#include "driver/contender.h"
#include "driver/report.h"
#include "driver/round.h"

namespace {

using bench::ContenderSpec;
using bench::operator+;
using Words = std::vector<std::string>;

constexpr std::size_t kKB = 1024, kMB = 1024 * 1024;

struct Settings {
  std::string bin, scratch, on_host, set_rate, ssh, json;
  std::string host_list, only_list;
  Words hosts, only;
  bool quick = false;
  void declare(kolo::cli::OptionSet& set);
};
constexpr kolo::cli::Option<Settings> kOptions[] = {
    {&Settings::bin, "bin", "DIR", "Find the programs in this directory.", kolo::cli::is_needed},
    {&Settings::scratch, "scratch", "DIR", "Use this empty directory.", kolo::cli::is_needed},
    {&Settings::on_host, "on-host", "PROGRAM", "Run commands on a host by PROGRAM HOST COMMAND.",
     kolo::cli::is_needed},
    {&Settings::set_rate, "set-rate", "PROGRAM", "Limit the network by PROGRAM RATE|off.",
     kolo::cli::is_needed},
    {&Settings::ssh, "ssh", "COMMAND", "Log in to a host by this command.", kolo::cli::is_needed},
    {&Settings::host_list, "hosts", "NAME,…", "Use these hosts, three at least.",
     kolo::cli::is_needed},
    {&Settings::json, "json", "FILE", "Write all figures to this file as well."},
    {&Settings::only_list, "only", "NAME,…", "Measure these alone: 3x2-full, 2x1-1g and so on."},
    {&Settings::quick, "quick", "", "Measure less of everything."},
};
void Settings::declare(kolo::cli::OptionSet& set) { set.add("Options", kOptions, *this); }

struct Layout {
  int hosts, ranks_per_host;
  [[nodiscard]] int ranks() const { return hosts * ranks_per_host; }
  [[nodiscard]] std::string name() const {
    return std::to_string(hosts) + "x" + std::to_string(ranks_per_host);
  }
};

class HostsBench {
 public:
  explicit HostsBench(Settings settings)
      : settings_(std::move(settings)), reception_(settings_.scratch) {}

  void run() {
    std::vector<Layout> layouts = {{2, 1}, {2, 2}, {3, 1}};
    if (!settings_.quick) layouts.push_back({3, 2});
    for (const auto& name : settings_.only) check_known(name, layouts);
    for (const std::string link : {"full", "1g"}) {
      set_rate(link == "1g" ? "1gbit" : "off");
      for (const auto& layout : layouts)
        if (is_wanted(layout.name() + "-" + link)) measure(layout, link);
    }
    if (!settings_.json.empty()) all_.write_json(settings_.json);
  }

 private:
  static void check_known(const std::string& name, const std::vector<Layout>& layouts) {
    const bool known = std::ranges::any_of(layouts, [&](const Layout& layout) {
      return name == layout.name() + "-full" || name == layout.name() + "-1g";
    });
    if (!known) throw std::runtime_error("--only: " + name + " is not measured here");
  }

  [[nodiscard]] bool is_wanted(const std::string& name) const {
    return settings_.only.empty() ||
           std::ranges::find(settings_.only, name) != settings_.only.end();
  }

  void set_rate(const std::string& rate) {
    bench::Process tool({settings_.set_rate, rate}, {}, settings_.scratch + "/set-rate.log");
    if (!tool.wait(10.0)) throw std::runtime_error("setting the rate of the links hangs");
  }

  void measure(const Layout& layout, const std::string& link) {
    const std::string suffix = layout.name() + "-" + link;
    auto kolo = bench::try_start(reception_, kolo_spec("kolo-" + suffix, layout));
    auto gloo = bench::try_start(reception_, gloo_spec("gloo-" + suffix, layout));
    auto openmpi = bench::try_start(reception_, openmpi_spec("openmpi-" + suffix, layout));
    std::vector<bench::Entry> entries = {{"kolo", &kolo, "foreign"},
                                         {"flat-gloo", &gloo, "plain"},
                                         {"openmpi-tcp", &openmpi, "plain"}};
    if (!settings_.quick) entries.insert(entries.begin() + 1, {"kolo-own", &kolo, "own"});
    bench::Report table;
    for (int round = 0; round < (settings_.quick ? 2 : 5); ++round) {
      for (const std::size_t bytes : {std::size_t{8}, 64 * kKB, 1 * kMB, 16 * kMB}) {
        const bool slow = bytes == 16 * kMB && link == "1g";
        if (slow && settings_.quick && round > 0) continue;
        bench::Effort effort;
        effort.seconds = settings_.quick ? 0.1 : 0.4;
        // A limited link lets 2 ms of data through at once after each rest: long against that.
        effort.batch_seconds = link == "1g" && bytes > 8 ? 2e-2 : 2e-3;
        effort.min_batches = slow ? 2 : 4;
        effort.max_buffers = 8;
        effort.max_warm_up = bytes == 16 * kMB ? 1 : bytes == 8 ? 200 : 10;
        bench::measure_round(table, entries, bytes, effort);
      }
    }
    table.print_table(layout.name() + " ranks (hosts x ranks on each), links " +
                      (link == "1g" ? "limited to 1 Gbit/s" : "at full speed"));
    for (const std::size_t bytes : {std::size_t{8}, 64 * kKB, 1 * kMB, 16 * kMB}) {
      compare(table, layout, link, bytes);
      for (const auto& entry : entries) {
        all_.add(entry.column + "-" + suffix, bytes, table.get(entry.column, bytes));
      }
    }
  }

  void compare(const bench::Report& table, const Layout& layout, const std::string& link,
               std::size_t bytes) {
    const std::string name =
        "hosts_" + layout.name() + "_" + link + "_" + bench::size_name(bytes) + "_vs_";
    // The machine is the link, and faster in some seconds than in others.
    all_.ratio(name + "best", table.by_round("kolo", {"flat-gloo", "openmpi-tcp"}, bytes), 1.0);
    if (layout.hosts == 2 && layout.ranks_per_host == 2) {
      all_.ratio(name + "flat_gloo", table.by_round("kolo", {"flat-gloo"}, bytes), 0.7);
    }
  }

  [[nodiscard]] Words rank_command(const std::string& program, const std::string& name) const {
    return {settings_.bin + "/" + program, reception_.path(), name, "free"};
  }

  [[nodiscard]] ContenderSpec kolo_spec(const std::string& name, const Layout& layout) const {
    std::string hosts;
    for (int h = 0; h < layout.hosts; ++h) {
      hosts += (h == 0 ? "" : ",") + settings_.hosts[static_cast<std::size_t>(h)] + ":" +
               std::to_string(layout.ranks_per_host);
    }
    return {name,
            layout.ranks(),
            {Words{settings_.on_host, settings_.hosts[0], settings_.bin + "/kolo", "run", "-np",
                   std::to_string(layout.ranks()), "-H", hosts} +
             rank_command("bench_kolo_rank", name)},
            {"KOLO_SSH=" + settings_.ssh}};
  }

  [[nodiscard]] ContenderSpec gloo_spec(const std::string& name, const Layout& layout) const {
    ContenderSpec spec{name, layout.ranks(), {}, {}};
    const std::string store = settings_.scratch + "/store-" + name;
    std::filesystem::create_directories(store);
    for (int r = 0; r < layout.ranks(); ++r) {
      const auto host = static_cast<std::size_t>(r / layout.ranks_per_host);
      spec.commands.push_back(
          Words{settings_.on_host, settings_.hosts[host]} + rank_command("bench_gloo_rank", name) +
          Words{std::to_string(r), std::to_string(layout.ranks()), store, "eth0"});
    }
    return spec;
  }

  [[nodiscard]] ContenderSpec openmpi_spec(const std::string& name, const Layout& layout) const {
    const std::string hostfile = settings_.scratch + "/hostfile-" + name;
    std::ofstream file(hostfile);
    for (int h = 0; h < layout.hosts; ++h) {
      file << settings_.hosts[static_cast<std::size_t>(h)] << " slots=" << layout.ranks_per_host
           << '\n';
    }
    // Inside a host Open MPI may use its shared memory, as a user would have it.
    Words command = {settings_.on_host,
                     settings_.hosts[0],
                     "mpirun.openmpi",
                     "-np",
                     std::to_string(layout.ranks()),
                     "--hostfile",
                     hostfile,
                     "--bind-to",
                     "none",
                     "--mca",
                     "plm_rsh_agent",
                     settings_.ssh,
                     "--mca",
                     "btl",
                     "vader,tcp,self",
                     "--mca",
                     "pml",
                     "ob1",
                     "--mca",
                     "btl_tcp_if_include",
                     "eth0",
                     "--mca",
                     "oob_tcp_if_include",
                     "eth0"};
    if (layout.ranks() > static_cast<int>(std::thread::hardware_concurrency())) {
      command = command + Words{"--mca", "mpi_yield_when_idle", "1"};
    }
    return {name,
            layout.ranks(),
            {command + rank_command("bench_openmpi_rank", name)},
            bench::kOpenMpiEnvironment};
  }

  Settings settings_;
  bench::Reception reception_;
  bench::Report all_;
};

int run_bench(Settings& settings) {
  settings.hosts = kolo::cli::split(settings.host_list, ',');
  settings.only = kolo::cli::split(settings.only_list, ',');
  if (settings.hosts.size() < 3) throw std::runtime_error("three hosts are needed");
  bench::warn_if_busy();
  HostsBench(settings).run();
  bench::warn_if_busy();
  return 0;
}

constexpr kolo::cli::Command kBench{
    .name = "comm_hosts_bench",
    .summary = "Compare the allreduce of kolo between hosts with flat Gloo and Open MPI",
    .options = kolo::cli::declared<Settings>,
    .run = kolo::cli::run_declared<Settings, run_bench>,
};

}  // namespace

int main(int argc, char** argv) { return kolo::cli::run_program(kBench, {argv + 1, argv + argc}); }
