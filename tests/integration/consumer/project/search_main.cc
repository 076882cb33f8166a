// The examples of docs/search.md, from installed headers alone: maximizes a function of a learning
// rate and says so.
#include <kolo/search.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace kolo::search;

int main() {
  auto space = Space::Builder()
                   .add("optimizer", choice({"sgd", "adam"}))
                   .add("lr", loguniform(1e-4, 1e-1))
                   .add("sgd/momentum", uniform(0, 1))
                   .add("sgd/nesterov", true)
                   .condition("sgd", equals("optimizer", "sgd"))
                   .build();
  auto sampler =
      make_sampler("tpe", space, {.directions = {Direction::maximize}, .seed = 7, .budget = 60});
  auto scheduler =
      make_scheduler("asha", {.directions = {Direction::maximize}, .settings = {{"max_t", 81}}});
  kolo::Random random(7);
  double best = -100;
  int stopped = 0;
  for (std::uint64_t i = 0; i < 60; ++i) {
    const TrialId id{i};
    auto point = sampler->ask(id);
    if (!point) return 1;
    const Value config = space->config(*point, random);
    const double accuracy = -std::abs(std::log10(config.at_path("lr").as_number()) + 2);
    scheduler->add(id, config);
    Decision decision = scheduler->result(id, {.time = 1, .values = {accuracy}});
    if (decision.action == Action::stop) ++stopped;
    sampler->tell(id, Outcome::complete(accuracy));
    best = std::max(best, accuracy);
  }
  std::printf("search: 60 trials, %d stopped, best %s\n", stopped,
              best > -0.1 && stopped > 0 ? "found" : "NOT FOUND");
  return 0;
}
