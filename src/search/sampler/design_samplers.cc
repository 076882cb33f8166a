#include "search/sampler/design_samplers.h"

#include "kolo/random.h"
#include "search/sampler/low_discrepancy.h"
#include "search/sampler/startup_design.h"
#include "search/settings.h"
#include "search/space/encoder.h"

namespace kolo::search {
namespace {

template <class Sequence>
class SequenceSampler final : public Sampler {
 public:
  SequenceSampler(const char* name, std::shared_ptr<const Space> space, SamplerOptions options)
      : Sampler(name, std::move(space), std::move(options)),
        encoder_(shared_space()),
        sequence_(this->space().size(), this->options().seed) {
    SettingsReader(name, this->options()).done();
  }

  [[nodiscard]] std::string explain() const override {
    return name() + ": a sequence that fills the space evenly, whatever the results are";
  }

 protected:
  std::vector<Point> propose(std::size_t) override {
    Random random = stream(asked());
    Point point(space().size());
    for (std::size_t i = 0; i < point.size(); ++i)
      point[i] = encoder_.from_unit(i, sequence_.at(asked(), i));
    return {space().settle(point, random) ? point : space().sample(random)};
  }

 private:
  Encoder encoder_;
  Sequence sequence_;
};

class LatinSampler final : public Sampler {
 public:
  LatinSampler(std::shared_ptr<const Space> space, SamplerOptions options)
      : Sampler("lhs", std::move(space), std::move(options)), encoder_(shared_space()) {
    SettingsReader settings("lhs", this->options());
    const auto planned = static_cast<std::int64_t>(
        std::clamp<std::uint64_t>(this->options().budget.value_or(64), 1, 100'000));
    n_points_ = static_cast<std::uint64_t>(settings.integer("n_points", planned, 1, 1'000'000));
    settings.done();
  }

  [[nodiscard]] std::string explain() const override {
    return "lhs: Latin hypercubes of " + std::to_string(n_points_) + " points";
  }

 protected:
  std::vector<Point> propose(std::size_t) override {
    Random random = stream(asked());
    const std::uint64_t cube = asked() / n_points_;
    const std::uint64_t seed = Random(options().seed).stream("cube", cube).next();
    return {startup_point(encoder_, seed, n_points_, asked() % n_points_, random)};
  }

 private:
  Encoder encoder_;
  std::uint64_t n_points_ = 64;
};

}  // namespace

std::unique_ptr<Sampler> make_sobol_sampler(std::shared_ptr<const Space> space,
                                            SamplerOptions options) {
  return std::make_unique<SequenceSampler<SobolSequence>>("sobol", std::move(space),
                                                          std::move(options));
}

std::unique_ptr<Sampler> make_halton_sampler(std::shared_ptr<const Space> space,
                                             SamplerOptions options) {
  return std::make_unique<SequenceSampler<HaltonSequence>>("halton", std::move(space),
                                                           std::move(options));
}

std::unique_ptr<Sampler> make_lhs_sampler(std::shared_ptr<const Space> space,
                                          SamplerOptions options) {
  return std::make_unique<LatinSampler>(std::move(space), std::move(options));
}

}  // namespace kolo::search
