// A rank that trains a model with kolo when the driver of `scripts/bench training` says so.
//
//   training_rank SOCKET NAME MODEL BATCH [sharded]
//
// Calls in at SOCKET with "NAME RANK", then obeys lines: "plain N" and "run N" (N steps without and
// with kolo's optimizer; answered by the seconds they took), "allreduce COUNT N" (so many sums of
// COUNT floats through the engine; answered likewise), "times" (seconds that reductions took
// and that were exposed, per step), "state" (bytes of the optimizer's state), "quit".
#include <sys/socket.h>
#include <sys/un.h>
#include <torch/torch.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "../examples/models.h"
#include "kolo/torch.h"

namespace {

class Driver {
 public:
  Driver(const std::string& path, const std::string& greeting)
      : fd_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    if (::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error("cannot reach the driver at " + path);
    say(greeting);
  }
  ~Driver() { ::close(fd_); }

  void say(const std::string& line) {
    const std::string text = line + "\n";
    if (::write(fd_, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
      throw std::runtime_error("the driver is gone");
  }
  std::string hear() {
    std::string line;
    for (char c = 0; ::read(fd_, &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }

 private:
  int fd_;
};

using Clock = std::chrono::steady_clock;

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 5)
    throw std::invalid_argument("usage: training_rank SOCKET NAME MODEL BATCH [sharded]");
  kolo::set_compute_threads(1);
  // Gradients at the far end of a hundred layers are denormal, and those take most of the time. So
  // does the peer.
  at::globalContext().setFlushDenormal(true);
  kolo::init();
  torch::manual_seed(1);
  models::Model model = models::make(argv[3]);
  const auto parameters = model.module->parameters();
  const auto batch =
      model.make_batch(std::stoll(argv[4]), 100 + static_cast<std::uint64_t>(kolo::rank()));
  const bool sharded = argc > 5;
  std::unique_ptr<torch::optim::Optimizer> inner;
  if (sharded)
    inner = std::make_unique<torch::optim::Adam>(parameters, torch::optim::AdamOptions(1e-4));
  else
    inner = std::make_unique<torch::optim::SGD>(parameters,
                                                torch::optim::SGDOptions(1e-3).momentum(0.9));
  kolo::DistributedOptimizerOptions options;
  options.shard_optimizer_state = sharded;
  kolo::DistributedOptimizer optimizer(*inner, model.module->named_parameters(), options);

  const auto run = [&](int steps) {
    for (int i = 0; i < steps; ++i) {
      optimizer.zero_grad();
      model.loss(batch).backward();
      optimizer.step();
    }
  };
  const auto run_plain = [&](int steps) {
    for (int i = 0; i < steps; ++i) {
      for (const auto& parameter : parameters)
        const_cast<torch::Tensor&>(parameter).mutable_grad().reset();
      model.loss(batch).backward();
      inner->step();
    }
  };
  const auto reduce = [&](std::size_t count, int repeats) {
    std::vector<float> data(count, 1.0F);
    const auto sum = [&] {
      kolo::engine().allreduce(
          "sum",
          {data.data(), data.data(), {static_cast<std::int64_t>(count)}, kolo::DataType::float32},
          {.op = kolo::ReduceOp::sum});
    };
    sum();
    if (data.front() != static_cast<float>(kolo::size()) || data.back() != data.front())
      throw std::runtime_error("the sum is wrong");
    std::fill(data.begin(), data.end(), 0.0F);
    kolo::world().barrier();
    const auto begin = Clock::now();
    for (int i = 0; i < repeats; ++i) sum();
    return Clock::now() - begin;
  };
  Driver driver(argv[1], std::string(argv[2]) + " " + std::to_string(kolo::rank()));
  while (true) {
    std::istringstream words(driver.hear());
    std::string verb;
    int steps = 0;
    words >> verb >> steps;
    if (verb.empty() || verb == "quit") break;
    if (verb == "run" || verb == "plain") {
      kolo::world().barrier();
      const auto begin = Clock::now();
      verb == "run" ? run(steps) : run_plain(steps);
      driver.say(std::to_string(seconds(Clock::now() - begin)));
    } else if (verb == "allreduce") {
      int repeats = 0;
      words >> repeats;
      driver.say(std::to_string(seconds(reduce(static_cast<std::size_t>(steps), repeats))));
    } else if (verb == "times") {
      const auto times = optimizer.take_times();
      const double n = std::max(times.steps, 1);
      driver.say(std::to_string(seconds(times.total) / n) + " " +
                 std::to_string(seconds(times.exposed) / n));
    } else if (verb == "state") {
      driver.say(std::to_string(kolo::optimizer_state_bytes(*inner)));
    }
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << "training_rank: " << error.what() << '\n';
  return 1;
}
