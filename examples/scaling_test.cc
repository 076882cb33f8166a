// How training speed grows with the number of ranks: 1, 2, … up to those of the job train in turn.
//
//   kolo run -np 4 build/release/bin/kolo_scaling_test --model resnet18 --svg scaling.svg
//
// Options: those of synthetic_benchmark, and --svg FILE. Ranks that do not take part wait without
// using their core. Rank 0 prints a table:
//   ranks   samples/s   ideal   efficiency
// and draws it. Efficiency is samples/s divided by that many times the speed of one rank.
#include <kolo/torch.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "options.h"
#include "scaling_picture.h"
#include "throughput.h"

namespace {

using scaling::draw;
using scaling::Row;

std::vector<Row> measure_all(const std::string& name, throughput::Plan plan) {
  std::vector<Row> rows;
  std::vector<int> members;
  for (int count = 1; count <= kolo::size(); ++count) {
    members.push_back(count - 1);
    plan.ranks =
        count == kolo::size() ? kolo::kGlobalProcessSet : kolo::engine().add_process_set(members);
    double numbers[] = {0, 0};
    if (kolo::rank() < count) {
      models::Model model = models::make(name);
      const throughput::Rate mine = throughput::measure(model, plan);
      kolo::CollectiveOptions among;
      among.process_set = plan.ranks;
      const auto mean =
          kolo::average_metrics({{"mean", mine.mean}, {"deviation", mine.deviation}}, 1.0, among);
      numbers[0] = mean.at("mean") * count;
      numbers[1] = 1.96 * mean.at("deviation") * count;
    }
    kolo::engine().barrier();
    rows.push_back({count, numbers[0], numbers[1]});
  }
  return rows;
}

}  // namespace

int main(int argc, char** argv) {
  options::check(argc, argv,
                 {{"--model NAME", "mlp, mlp200, resnet18, vgg or transformer (mlp)"},
                  {"--batch N", "samples a step and rank (16)"},
                  {"--warmup N", "steps before the first round (3)"},
                  {"--rounds N", "rounds that are timed (5)"},
                  {"--steps N", "steps in a round (3)"},
                  {"--svg FILE", "draw the result"}});
  try {
    kolo::init();
    throughput::Plan plan;
    const std::string name = options::text(argc, argv, "--model", "mlp");
    plan.batch = options::number(argc, argv, "--batch", 16);
    plan.warmup_steps = options::number(argc, argv, "--warmup", 3);
    plan.rounds = options::number(argc, argv, "--rounds", 5);
    plan.steps_per_round = options::number(argc, argv, "--steps", 3);
    const std::string svg = options::text(argc, argv, "--svg", "");
    const std::vector<Row> rows = measure_all(name, plan);
    if (kolo::rank() == 0) {
      std::printf("model %s, %lld samples a step and rank\n%5s %20s %12s %11s\n", name.c_str(),
                  static_cast<long long>(plan.batch), "ranks", "samples/s", "ideal", "efficiency");
      for (const Row& row : rows)
        std::printf("%5d %11.1f +- %5.1f %12.1f %10.1f%%\n", row.ranks, row.rate, row.spread,
                    rows.front().rate * row.ranks,
                    100 * row.rate / (rows.front().rate * row.ranks));
      if (!svg.empty()) {
        std::ofstream file(svg);
        file << draw("training " + name + " on 1…" + std::to_string(kolo::size()) + " ranks", rows);
        if (!file.flush()) throw std::runtime_error("cannot write " + svg);
        std::printf("drawn in %s\n", svg.c_str());
      }
    }
    kolo::shutdown();
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "scaling_test: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
