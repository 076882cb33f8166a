// Algorithms that propose what to try next.
//
//   auto sampler = make_sampler("tpe", space, {.seed = 7});
//   auto point = sampler->ask(TrialId{0});
//   sampler->tell(TrialId{0}, Outcome::complete(train(space->config(*point, random))));
//
// Replay: what a sampler answers depends on the space, the options and the sequence of calls alone.
// A sampler that is given the same history by recall(), report(), tell() and add() continues with
// the same answers, bit for bit, from any point of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kolo/search/space.h"
#include "kolo/search/trial.h"
#include "kolo/search/trial_places.h"
#include "kolo/search/value.h"

namespace kolo::search {

struct SamplerOptions {
  std::vector<Direction> directions{Direction::minimize};  ///< one per objective
  std::uint64_t seed = 0;
  /// Partial configurations that are tried first, before the space's own starting points.
  std::vector<Value> points_to_evaluate{};
  /// How many trials are planned, where known: for `auto` and for schedules.
  std::optional<std::uint64_t> budget{};
  /// Of the sampler, by name; docs/search.md lists them. An unknown one is an error.
  std::map<std::string, Value> settings{};
};

/// Not thread-safe. Calls are checked here; what a sampler does is behind the protected functions.
class Sampler {
 public:
  virtual ~Sampler() = default;
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  /// Starts a trial for each id. A missing point means "not now" (or never, if exhausted()); such
  /// an id is not used up. Throws already_exists for an id that was used before.
  std::vector<std::optional<Point>> ask(std::span<const TrialId> ids);
  std::optional<Point> ask(TrialId id);

  /// Takes the place of the ask that gave this point, without computing it again.
  void recall(TrialId id, Point point);

  /// An intermediate result. `budget` says how far the trial is (epochs, say) and must not fall.
  /// Throws not_found for an unknown trial, failed_precondition for one that has ended.
  void report(TrialId id, double budget, std::span<const double> values);

  /// Ends a trial. Throws not_found, failed_precondition (told before) or invalid_argument (number
  /// of values); the sampler is then as it was before the call.
  void tell(TrialId id, const Outcome& outcome);

  /// A result from elsewhere (an earlier study, say). Throws invalid_argument.
  void add(Point point, const Outcome& outcome);

  /// True when no ask will ever give a point again.
  [[nodiscard]] virtual bool exhausted() const { return false; }
  /// What the sampler does and why, in a sentence or two.
  [[nodiscard]] virtual std::string explain() const { return name_; }

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const Space& space() const noexcept { return *space_; }
  [[nodiscard]] const SamplerOptions& options() const noexcept { return options_; }
  /// Everything in the order of ask, recall and add.
  [[nodiscard]] std::span<const Trial> trials() const noexcept { return trials_; }
  /// Places in trials() of those that run, in the order of ask.
  [[nodiscard]] std::vector<std::size_t> running() const;
  [[nodiscard]] std::size_t running_count() const noexcept { return running_count_; }

 protected:
  /// Who tries the starting points: this class, as the first trials, or the derived one.
  enum class StartingPoints { first, own };

  /// The name also names the random streams: it is part of what a replay must keep.
  /// Throws invalid_argument when the options contradict the space.
  Sampler(std::string name, std::shared_ptr<const Space> space, SamplerOptions options,
          StartingPoints starting_points = StartingPoints::first);

  /// Up to `count` points for the trials with the numbers asked() …; it is called again for the
  /// rest, with these among the running ones, until it gives none ("not now"). Points must be
  /// settled and allowed. What it changes must not influence later answers other than
  /// through on_ask, which is called for each point given, and for each one recalled.
  virtual std::vector<Point> propose(std::size_t count) = 0;
  /// `place` in trials().
  virtual void on_ask(std::size_t /*place*/) {}
  virtual void on_report(std::size_t /*place*/) {}
  virtual void on_tell(std::size_t /*place*/) {}

  /// How many trials were asked for or recalled: the number of the next one.
  [[nodiscard]] std::uint64_t asked() const noexcept { return asked_; }
  [[nodiscard]] const std::shared_ptr<const Space>& shared_space() const noexcept { return space_; }
  [[nodiscard]] std::size_t objectives() const noexcept { return options_.directions.size(); }
  [[nodiscard]] std::span<const Value> starting_points() const noexcept { return starting_points_; }
  /// The random stream of the trial with this number.
  [[nodiscard]] Random stream(std::uint64_t number) const;

 private:
  Trial& ongoing(TrialId id, const char* what);
  void begin(TrialId id, Point point);
  void settle_outcome(Trial& trial, const Outcome& outcome) const;

  std::string name_;
  std::shared_ptr<const Space> space_;
  SamplerOptions options_;
  StartingPoints who_starts_;
  std::vector<Value> starting_points_;
  std::vector<Trial> trials_;
  TrialPlaces places_;                      // of ids in trials_
  std::vector<std::size_t> maybe_running_;  // ascending; the ended are swept out now and then
  std::size_t running_count_ = 0;
  std::uint64_t asked_ = 0;
};

struct SamplerInfo {
  std::string_view name;
  std::string_view summary;
};

/// For `kolo list samplers`.
std::vector<SamplerInfo> samplers();

/// Throws not_found for an unknown name, invalid_argument when the options do not suit the sampler
/// or the space, unsupported when the sampler cannot work on this space.
std::unique_ptr<Sampler> make_sampler(std::string_view name, std::shared_ptr<const Space> space,
                                      SamplerOptions options = {});

}  // namespace kolo::search
