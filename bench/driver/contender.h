// A system under test: its processes, and the conversation with each of its ranks.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "driver/process.h"

namespace bench {

/// How long to measure one size of one contender.
struct Effort {
  double seconds = 0.1;         ///< aim for the timed part
  double batch_seconds = 2e-4;  ///< operations are timed in batches of about this long
  std::size_t min_batches = 5;
  std::size_t max_batches = 400;
  std::size_t max_buffers = 256;  ///< all are checked before timing, which slow contenders pay for
  std::size_t max_warm_up = 50;   ///< operations, twice
};

/// Where ranks call in. One per driver.
class Reception {
 public:
  explicit Reception(const std::string& directory);
  Reception(const Reception&) = delete;
  Reception& operator=(const Reception&) = delete;
  ~Reception();

  [[nodiscard]] const std::string& directory() const noexcept { return directory_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  struct Call {
    int fd = -1;
    std::string contender;
    int rank = -1;
    double first_allreduce = 0;  ///< monotonic seconds
  };
  /// The next rank that calls; fd -1 if none does within `seconds`.
  Call next(double seconds);

 private:
  std::string directory_, path_;
  int fd_ = -1;
};

struct ContenderSpec {
  std::string name;
  int ranks = 2;
  std::vector<std::vector<std::string>> commands;  ///< one, or one per rank
  std::vector<std::string> environment;            ///< NAME=VALUE
};

class Contender {
 public:
  /// Starts it and waits until every rank has made its first allreduce. Throws std::runtime_error
  /// with the end of its output.
  Contender(Reception& reception, const ContenderSpec& spec);
  Contender(const Contender&) = delete;
  Contender& operator=(const Contender&) = delete;
  ~Contender();

  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  /// From exec to the end of the first allreduce on the last rank.
  [[nodiscard]] double start_seconds() const noexcept { return start_seconds_; }

  /// Seconds per allreduce: the median over batches of the slowest rank's time.
  double measure(const std::string& mode, std::size_t bytes, const Effort& effort);

  /// CPU seconds used so far by the launcher, the ranks and whatever else descends from it.
  [[nodiscard]] double cpu_used() const;

 private:
  struct Rank {
    int fd = -1;
    std::string pending;
  };
  void say(const std::string& line);
  std::string hear(Rank& rank, double seconds);
  [[noreturn]] void fail(const std::string& what) const;

  std::string name_, log_;
  std::vector<Process> processes_;
  std::vector<Rank> ranks_;
  double start_seconds_ = 0;
};

}  // namespace bench
