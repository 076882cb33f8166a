#include "search/sampler/random_sampler.h"

#include "kolo/random.h"
#include "search/settings.h"

namespace kolo::search {
namespace {

class RandomSampler final : public Sampler {
 public:
  RandomSampler(std::shared_ptr<const Space> space, SamplerOptions options)
      : Sampler("random", std::move(space), std::move(options)) {
    SettingsReader("random", this->options()).done();
  }

  [[nodiscard]] std::string explain() const override {
    return "random: each trial is drawn from the prior, independently of all others";
  }

 protected:
  std::vector<Point> propose(std::size_t count) override {
    std::vector<Point> points;
    for (std::size_t i = 0; i < count; ++i) {
      Random random = stream(asked() + i);
      points.push_back(space().sample(random));
    }
    return points;
  }
};

}  // namespace

std::unique_ptr<Sampler> make_random_sampler(std::shared_ptr<const Space> space,
                                             SamplerOptions options) {
  return std::make_unique<RandomSampler>(std::move(space), std::move(options));
}

}  // namespace kolo::search
