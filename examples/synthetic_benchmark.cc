// Speed of training on made-up data, as Horovod's synthetic benchmark measures it.
//
//   kolo run -np 2 build/release/bin/kolo_synthetic_benchmark --model resnet18 --batch 16
//
// Options: --model mlp|mlp200|resnet18|vgg|transformer (mlp), --batch N (16), --warmup N (3 steps),
// --rounds N (10), --steps N (3 in a round). For the transformer a sample is a text of 64 symbols.
// Rank 0 prints samples a second of one rank and of all, with 1.96 deviations: for the mean of the
// rounds of a steady machine, 95 in 100 rounds lie within.
#include <kolo/torch.h>

#include <cstdio>
#include <cstdlib>

#include "options.h"
#include "throughput.h"

int main(int argc, char** argv) {
  options::check(argc, argv,
                 {{"--model NAME", "mlp, mlp200, resnet18, vgg or transformer (mlp)"},
                  {"--batch N", "samples a step and rank (16)"},
                  {"--warmup N", "steps before the first round (3)"},
                  {"--rounds N", "rounds that are timed (10)"},
                  {"--steps N", "steps in a round (3)"}});
  try {
    kolo::init();
    throughput::Plan plan;
    const std::string name = options::text(argc, argv, "--model", "mlp");
    plan.batch = options::number(argc, argv, "--batch", 16);
    plan.warmup_steps = options::number(argc, argv, "--warmup", 3);
    plan.rounds = options::number(argc, argv, "--rounds", 10);
    plan.steps_per_round = options::number(argc, argv, "--steps", 3);
    models::Model model = models::make(name);
    const bool prints = kolo::rank() == 0;
    if (prints)
      std::printf("model %s, %lld samples a step and rank, %d rank(s) of %d thread(s)\n",
                  name.c_str(), static_cast<long long>(plan.batch), kolo::size(),
                  at::get_num_threads());
    const throughput::Rate mine = throughput::measure(model, plan);
    const auto all = kolo::average_metrics({{"mean", mine.mean}, {"deviation", mine.deviation}});
    const double mean = all.at("mean"), spread = 1.96 * all.at("deviation");
    if (prints)
      std::printf("samples/s of a rank: %.1f +- %.1f\nsamples/s of %d rank(s): %.1f +- %.1f\n",
                  mean, spread, kolo::size(), mean * kolo::size(), spread * kolo::size());
    kolo::shutdown();
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "synthetic_benchmark: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
