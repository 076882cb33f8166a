// A trial counts as busy until it has ended; with `batch`, until its whole batch has been handed to
// the inner sampler. Results of a batch are handed on in the order of trials, whatever the order in
// which they came, so that a replay does not depend on timing.
#include "search/sampler/concurrency_limiter.h"

#include <algorithm>
#include <unordered_map>

#include "search/sampler/wrapper.h"
#include "search/settings.h"

namespace kolo::search {
namespace {

class ConcurrencyLimiter final : public Sampler {
 public:
  ConcurrencyLimiter(std::shared_ptr<const Space> space, SamplerOptions options)
      : Sampler("concurrency_limiter", std::move(space), std::move(options), StartingPoints::own),
        inner_(make_inner()) {}

  [[nodiscard]] bool exhausted() const override { return inner_.sampler().exhausted(); }

  [[nodiscard]] std::string explain() const override {
    return "concurrency_limiter: at most " + std::to_string(max_concurrent_) + " trials at once; " +
           inner_.sampler().explain();
  }

 protected:
  std::vector<Point> propose(std::size_t) override {
    const std::size_t busy = batch_ ? in_batch_ : running_count();
    if (busy >= max_concurrent_) return {};
    auto point = inner_.ask(asked());
    if (!point) return {};
    return {*std::move(point)};
  }

  void on_ask(std::size_t place) override {
    const std::uint64_t number = asked() - 1;
    inner_.begin(number, trials()[place].point);
    numbers_[place] = number;
    ++in_batch_;
  }

  void on_report(std::size_t place) override {
    const Trial& trial = trials()[place];
    const Outcome now = outcome_of(trial, options().directions);
    inner_.sampler().report(TrialId{numbers_.at(place)}, trial.budget, now.values);
  }

  void on_tell(std::size_t place) override {
    if (!trials()[place].id) {
      inner_.sampler().add(trials()[place].point,
                           outcome_of(trials()[place], options().directions));
      return;
    }
    held_.push_back(place);
    // A batch that nobody filled ends when nothing runs any more.
    if (batch_ && held_.size() < max_concurrent_ && running_count() > 0) return;
    std::sort(held_.begin(), held_.end());
    for (const std::size_t ended : held_)
      inner_.sampler().tell(TrialId{numbers_.at(ended)},
                            outcome_of(trials()[ended], options().directions));
    in_batch_ -= std::min(in_batch_, held_.size());
    held_.clear();
  }

 private:
  std::unique_ptr<Sampler> make_inner() {
    SettingsReader settings("concurrency_limiter", options());
    max_concurrent_ = static_cast<std::size_t>(settings.integer("max_concurrent", 1, 1, 1'000'000));
    batch_ = settings.truth("batch", false);
    const std::string name = settings.text("sampler", "random");
    const Value* inner = settings.raw("settings");
    settings.done();
    return make_sampler(name, shared_space(), inner_options(options(), inner));
  }

  std::size_t max_concurrent_ = 1;
  bool batch_ = false;
  Follower inner_;
  std::unordered_map<std::size_t, std::uint64_t> numbers_;  // of places
  std::vector<std::size_t> held_;                           // ended, not handed on
  std::size_t in_batch_ = 0;                                // started, not handed on
};

}  // namespace

std::unique_ptr<Sampler> make_concurrency_limiter(std::shared_ptr<const Space> space,
                                                  SamplerOptions options) {
  return std::make_unique<ConcurrencyLimiter>(std::move(space), std::move(options));
}

}  // namespace kolo::search
