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
#include <sstream>
#include <vector>

#include "options.h"
#include "throughput.h"

namespace {

struct Row {
  int ranks;
  double rate, spread;  // samples a second of all, and 1.96 deviations
};

/// Measured and ideal speed over the number of ranks.
std::string draw(const std::string& title, const std::vector<Row>& rows) {
  constexpr double kLeft = 70, kTop = 40, kWidth = 460, kHeight = 300;
  const double most_ranks = rows.back().ranks;
  const double most = std::max(rows.front().rate * most_ranks, rows.back().rate) * 1.05;
  auto x = [&](double ranks) { return kLeft + kWidth * ranks / most_ranks; };
  auto y = [&](double rate) { return kTop + kHeight * (1 - rate / most); };
  std::ostringstream svg;
  svg << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 560 400\" "
         "font-family=\"sans-serif\" font-size=\"12\">\n"
      << "<rect width=\"560\" height=\"400\" fill=\"white\"/>\n"
      << "<text x=\"280\" y=\"22\" text-anchor=\"middle\" font-size=\"15\">" << title << "</text>\n"
      << "<line x1=\"" << kLeft << "\" y1=\"" << y(0) << "\" x2=\"" << x(most_ranks) << "\" y2=\""
      << y(0) << "\" stroke=\"black\"/>\n<line x1=\"" << kLeft << "\" y1=\"" << kTop << "\" x2=\""
      << kLeft << "\" y2=\"" << y(0) << "\" stroke=\"black\"/>\n";
  for (int tick = 0; tick <= 4; ++tick)
    svg << "<text x=\"" << kLeft - 6 << "\" y=\"" << y(most * tick / 4) + 4
        << "\" text-anchor=\"end\">" << static_cast<long long>(most * tick / 4) << "</text>\n";
  svg << "<text x=\"" << kLeft + kWidth / 2 << "\" y=\"385\" text-anchor=\"middle\">ranks</text>\n"
      << "<line x1=\"" << x(1) << "\" y1=\"" << y(rows.front().rate) << "\" x2=\"" << x(most_ranks)
      << "\" y2=\"" << y(rows.front().rate * most_ranks)
      << "\" stroke=\"gray\" stroke-dasharray=\"5,4\"/>\n<polyline fill=\"none\" "
         "stroke=\"#1f6fb2\" "
         "stroke-width=\"2\" points=\"";
  for (const Row& row : rows) svg << x(row.ranks) << ',' << y(row.rate) << ' ';
  svg << "\"/>\n";
  for (const Row& row : rows)
    svg << "<circle cx=\"" << x(row.ranks) << "\" cy=\"" << y(row.rate)
        << "\" r=\"4\" fill=\"#1f6fb2\"/>\n<text x=\"" << x(row.ranks) << "\" y=\"" << y(0) + 18
        << "\" text-anchor=\"middle\">" << row.ranks << "</text>\n";
  svg << "<text x=\"" << kLeft + 14 << "\" y=\"" << kTop + 14
      << "\">samples/s; dashed: ideal</text>\n</svg>\n";
  return svg.str();
}

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
