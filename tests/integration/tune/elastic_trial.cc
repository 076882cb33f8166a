// A trial whose number of ranks may change: each step has eight parts, which the ranks share out.
// What it reports depends on its hyperparameter alone.
//
//   elastic_trial X [--reports N] [--steps N] [--pause-us N] [--notes DIRECTORY] [--plain]
//
// --steps are those of each report, --pause-us is how long a part takes. With --notes every rank
// notes each step as a line "nanoseconds trial rank size step" of a file of its own. --plain does
// not know that ranks may change.
#include <kolo/elastic.h>
#include <kolo/kolo.h>
#include <kolo/tune/session.h>
#include <kolo/virtual_ranks.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace {

constexpr int kParts = 8;

const char* option(int argc, char** argv, const char* name, const char* fallback) {
  for (int i = 2; i + 1 < argc; ++i)
    if (std::strcmp(argv[i], name) == 0) return argv[i + 1];
  return fallback;
}

std::int64_t number(int argc, char** argv, const char* name, const char* fallback) {
  return std::strtoll(option(argc, argv, name, fallback), nullptr, 10);
}

/// What a part of a step comes to.
std::int64_t part_of(double x, std::int64_t step, int part) {
  auto bits = static_cast<std::uint64_t>(x * 1e6) * 2654435761U + static_cast<std::uint64_t>(step);
  bits = (bits + static_cast<std::uint64_t>(part)) * 6364136223846793005U;
  return static_cast<std::int64_t>(bits >> 44);
}

class Notes {
 public:
  explicit Notes(const std::string& directory) {
    if (!directory.empty())
      file_ = std::fopen((directory + "/steps." + std::to_string(::getpid())).c_str(), "w");
  }
  void add(const std::string& trial, std::int64_t step) {
    if (file_ == nullptr) return;
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    std::fprintf(file_, "%lld %s %d %d %lld\n",
                 static_cast<long long>(now.tv_sec) * 1'000'000'000 + now.tv_nsec, trial.c_str(),
                 kolo::rank(), kolo::size(), static_cast<long long>(step));
    std::fflush(file_);
  }

 private:
  std::FILE* file_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  if (std::strcmp(argv[argc - 1], "--plain") == 0) {
    kolo::init();
    return 0;
  }
  const double x = std::strtod(argv[1], nullptr);
  const std::int64_t steps = number(argc, argv, "--steps", "4");
  const std::int64_t last = steps * number(argc, argv, "--reports", "9");
  const std::chrono::microseconds pause(number(argc, argv, "--pause-us", "500"));
  Notes notes(option(argc, argv, "--notes", ""));

  std::int64_t step = 0, sum = 0;
  kolo::elastic::State state;
  state.add(step).add(sum);
  kolo::tune::Session& session = kolo::tune::session();

  kolo::elastic::run(state, [&](kolo::elastic::State&) {
    const auto parts = kolo::VirtualRanks(kParts, kolo::size()).of(kolo::rank());
    while (step < last) {
      std::int64_t total = 0;
      for (const int part : parts) {
        std::this_thread::sleep_for(pause);
        total += part_of(x, step, part);
      }
      total = kolo::world().allreduce(total, kolo::ReduceOp::sum);
      sum += total;
      ++step;
      notes.add(session.trial_id(), step);
      const double loss = x + static_cast<double>(sum % 1000) * 1e-4 / static_cast<double>(step);
      if (step % steps == 0 && !session.try_report({{"loss", loss}, {"sum", sum}})) return;
      state.commit();
    }
  });
  return 0;
}
