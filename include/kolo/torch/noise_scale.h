// The gradient noise scale: how many samples a step are useful.
//
// McCandlish, Kaplan, Amodei et al., "An empirical model of large-batch training", 2018, appendix
// A. Vocabulary: g is the true gradient, S the trace of the covariance of one sample's gradient.
// The expected squared norm of a gradient over B samples is |g|² + S/B. Each rank has one over b
// samples (small), all ranks together one over B = n·b (big), so that
//   |g|² ~ (B·|big|² - b·|small|²) / (B - b)        S ~ (|small|² - |big|²) / (1/b - 1/B)
// are unbiased; both are averaged over steps before their ratio S/|g|², the noise scale, is taken.
//
// Cost: the norms, which DistributedOptimizer measures on its way, and one number exchanged a step.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kolo {

/// The estimate, from the numbers alone. update_noise_scale() feeds it in training.
class NoiseScaleEstimate {
 public:
  /// `memory`: how many steps the averages look back, about. Throws invalid_argument below 1.
  explicit NoiseScaleEstimate(double memory = 100);

  /// `small_squared`: mean over the ranks of their gradients' squared norms.
  void add(double small_batch, double big_batch, double small_squared, double big_squared);

  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
  /// S and |g|², averaged. Zero before the first step.
  [[nodiscard]] double variance() const noexcept;
  [[nodiscard]] double squared_gradient() const noexcept;
  /// S/|g|². Not a number while |g|² comes out at zero or below: too little signal, or too few
  /// steps.
  [[nodiscard]] double value() const noexcept;

 private:
  double keep_;
  double variance_ = 0, squared_gradient_ = 0, weight_ = 0;
  std::uint64_t steps_ = 0;
};

class DistributedOptimizer;
struct CollectiveOptions;

/// Adds the norms of the optimizer's last step, for which optimizer.measure_norms(true) must have
/// been called before: its own gradients' and the averaged ones'. Collective over the default
/// engine; with one rank there is nothing to compare and nothing happens.
///
///   optimizer.measure_norms(true);
///   …
///   optimizer.step();
///   kolo::update_noise_scale(noise, optimizer, batch_per_rank);
///   batch = kolo::next_batch(rule, batch, noise.value());
void update_noise_scale(NoiseScaleEstimate& estimate, const DistributedOptimizer& optimizer,
                        std::size_t batch_per_rank);
/// With an engine and process set of one's own.
void update_noise_scale(NoiseScaleEstimate& estimate, const DistributedOptimizer& optimizer,
                        std::size_t batch_per_rank, const CollectiveOptions& how);

}  // namespace kolo
