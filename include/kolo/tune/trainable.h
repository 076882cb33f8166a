// Trainables, which are what the trials of a study run: a function, a class, or one of these as a
// ring of ranks.
#pragma once

#include <chrono>
#include <concepts>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kolo/tune/session.h"

namespace kolo::tune {

/// A trial that is trained step by step. The study decides when it saves checkpoints.
class Trainable {
 public:
  virtual ~Trainable() = default;
  virtual void setup(const Config& config) = 0;
  /// One iteration; what it returns is reported. {"done", true} in it ends the trial.
  virtual Value step() = 0;
  virtual void save(const std::filesystem::path& directory) = 0;
  /// After setup().
  virtual void load(const std::filesystem::path& directory) = 0;
  virtual void cleanup() {}
};

/// Each trial as a ring of num_hosts * num_slots ranks in which kolo::init() just works.
struct Ranks {
  int num_hosts = 1;
  int num_slots = 1;  ///< ranks on each host
  double cpus_per_slot = 1;
  bool use_gpu = false;  ///< each slot gets one GPU
  /// How long the ranks may take to start.
  std::chrono::duration<double> timeout = std::chrono::seconds(30);
  /// Where, if num_hosts > 1; the first must be this machine. Names as for `kolo run -H`. The
  /// others are reached by ssh (KOLO_SSH, KOLO_SSH_PORT, KOLO_SSH_IDENTITY_FILE) and must have this
  /// program and the study's directory at the same paths, and `kolo` on the PATH of their logins
  /// or where KOLO_REMOTE_KOLO says.
  std::vector<std::string> hosts{};
};

/// Any trainable: a function or a factory of classes, with a name and perhaps ranks.
class Runnable {
 public:
  using Function = std::function<void(const Config&, Session&)>;
  using Factory = std::function<std::unique_ptr<Trainable>()>;

  /// A function of (config, session).
  template <class F>
  requires(std::invocable<F&, const Config&, Session&> && !std::same_as<F, Runnable>)
      Runnable(F function)
      : function_(std::move(function)) {}

  /// A function of the configuration alone. What it returns, if it does, is a last report; it may
  /// call tune::report before.
  template <class F>
  requires(std::invocable<F&, const Config&> && !std::invocable<F&, const Config&, Session&> &&
           !std::same_as<F, Runnable>) Runnable(F function)
      : function_([function = std::move(function)](const Config& config, Session& session) mutable {
          if constexpr (std::convertible_to<std::invoke_result_t<F&, const Config&>, Value>)
            session.report_last(function(config));
          else
            function(config);
        }) {}

  Runnable(Factory factory, std::string name)
      : name_(std::move(name)), factory_(std::move(factory)) {}

  Runnable named(std::string name) && {
    name_ = std::move(name);
    return std::move(*this);
  }

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const Function& function() const noexcept { return function_; }
  [[nodiscard]] const Factory& factory() const noexcept { return factory_; }
  [[nodiscard]] const std::optional<Ranks>& ranks() const noexcept { return ranks_; }

 private:
  friend Runnable DistributedTrainable(Runnable, Ranks);
  std::string name_ = "trainable";
  Function function_;
  Factory factory_;
  std::optional<Ranks> ranks_;
};

/// A class derived from Trainable: tune::run(tune::trainable<Net>("net"), …).
template <std::derived_from<Trainable> T>
Runnable trainable(std::string name = "trainable") {
  return {[] { return std::make_unique<T>(); }, std::move(name)};
}

inline Runnable DistributedTrainable(Runnable trainable, Ranks ranks) {
  trainable.ranks_ = std::move(ranks);
  return trainable;
}

}  // namespace kolo::tune
