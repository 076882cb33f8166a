// What an architecture search is about: data, a space of networks, how they are trained and what
// makes one better than another. The names and rules are DeepHyper's.
//
//   nas::NaProblem problem;
//   problem.load_data(my_data)
//       .search_space("dense_skip_co", {{"num_layers", 3}})
//       .hyperparameters({{"batch_size", 100},
//                         {"learning_rate", search::loguniform(1e-4, 1e-1)},  // searched, too
//                         {"optimizer", "adam"},
//                         {"num_epochs", 10}})
//       .loss("mse")
//       .metrics({"r2"})
//       .objective("val_r2");
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kolo/nas/history.h"
#include "kolo/nas/search_space.h"
#include "kolo/nas/spaces.h"
#include "kolo/search/domain.h"
#include "kolo/search/space.h"
#include "kolo/search/value.h"

namespace kolo::nas {

/// Some samples: one or several inputs and what to answer to them. The first dimension of each
/// tensor counts the samples. Copies share memory.
struct Samples {
  std::vector<torch::Tensor> inputs, targets;
  [[nodiscard]] std::int64_t size() const {
    return inputs.empty() || !inputs.front().defined() ? 0 : inputs.front().size(0);
  }
};
struct DataSplit {
  Samples train, validation;
};

using LoadData = std::function<DataSplit()>;
/// Changed copies of training samples, drawn anew in each epoch. Draws from `random` alone.
using Augment = std::function<Samples(Samples samples, torch::Generator& random)>;
/// What is learned from the training part only, and applied to both.
using Preprocessing = std::function<DataSplit(DataSplit data)>;
/// Mean over the samples of how bad the answers are.
using LossFunction =
    std::function<torch::Tensor(const torch::Tensor& outputs, const torch::Tensor& targets)>;
/// Mean over the samples of how good they are.
using MetricFunction =
    std::function<torch::Tensor(const torch::Tensor& outputs, const torch::Tensor& targets)>;
/// What is to be maximised.
using ObjectiveFunction = std::function<double(const History& history)>;

/// How the best architectures are trained after the search. What is not set stays as it was.
struct PostTraining {
  std::int64_t num_epochs = 1000;
  std::vector<std::string> metrics{};
  Value callbacks{};
  std::int64_t repeat = 1;
};

/// A value of its own: copies may be changed independently (they share data that are loaded). The
/// functions that describe it are for one thread; const ones may be called from any.
class NaProblem {
 public:
  NaProblem();

  // --- describing it ---

  /// Called once, when the data are needed. Real targets without a second dimension get one;
  /// targets of whole numbers are classes 0 … C-1, answered by C scores.
  NaProblem& load_data(LoadData load);
  NaProblem& augment(Augment augment);
  /// A name (docs/nas.md): "minmaxstdscaler", the default where all targets are real, "none", the
  /// default elsewhere, … Throws not_found, listing the known ones.
  NaProblem& preprocessing(std::string_view name);
  NaProblem& preprocessing(Preprocessing function);

  NaProblem& search_space(SpaceFunction space, Value settings = {});
  /// Throws not_found, listing the known ones.
  NaProblem& search_space(std::string_view name, Value settings = {});

  /// A dictionary of constants and domains; domains are searched together with the architecture.
  /// Adds to what was said before. Throws not_found for an unknown name, listing the known ones,
  /// and invalid_argument for constants that cannot be.
  NaProblem& hyperparameters(search::Spec values);

  /// For every output.
  NaProblem& loss(std::string_view name);
  NaProblem& loss(const char* name) { return loss(std::string_view(name)); }
  NaProblem& loss(LossFunction function);
  /// By output ("output_0", "output_1" …), with weights that are 1 where none is given.
  NaProblem& loss(std::map<std::string, std::string> by_output,
                  std::map<std::string, double> weights = {});
  /// Searched, too: a domain of names.
  NaProblem& loss(search::Domain names);
  /// Samples of class c weigh weights[c] (cross-entropies only).
  NaProblem& class_weights(std::vector<double> weights);

  /// Names, for every output; or by output. Throws not_found, listing the known ones.
  NaProblem& metrics(std::vector<std::string> names);
  NaProblem& output_metrics(std::map<std::string, std::vector<std::string>> by_output);
  /// One more, for every output.
  NaProblem& metric(std::string name, MetricFunction function);

  /// [-][val_]METRIC[__min|__max|__last], or a function. Default: "-val_loss". Throws
  /// invalid_argument.
  NaProblem& objective(std::string_view text);
  NaProblem& objective(const char* text) { return objective(std::string_view(text)); }
  NaProblem& objective(ObjectiveFunction function);

  NaProblem& post_training(PostTraining settings);
  /// Of weights and shuffles; a hyperparameter "seed" goes before it.
  NaProblem& seed(std::uint64_t seed);

  // --- using it ---

  /// Loaded, checked and preprocessed at the first call; later ones return the same. Throws
  /// failed_precondition without load_data, invalid_argument for data that cannot be.
  [[nodiscard]] const DataSplit& data() const;
  [[nodiscard]] std::vector<Shape> input_shapes() const;
  [[nodiscard]] std::vector<Shape> output_shapes() const;
  /// The architectures there are.
  [[nodiscard]] std::shared_ptr<const KSearchSpace> architectures() const;
  /// {"arch_seq": a choice per node, and the hyperparameters that are searched}.
  [[nodiscard]] std::shared_ptr<const search::Space> space() const;
  /// Throws invalid_argument naming the node.
  [[nodiscard]] std::shared_ptr<Model> model(std::span<const std::int64_t> arch_seq) const;

  /// Everything that an evaluation depends on, for save/config: {"arch_seq": …, "hyperparameters":
  /// constants and those given, "loss", "metrics", "objective", …}. Throws not_found for unknown
  /// hyperparameters.
  [[nodiscard]] Value config(std::span<const std::int64_t> arch_seq,
                             const Value& searched = {}) const;
  /// The training hyperparameters of a configuration: the constants, and what the configuration has
  /// besides arch_seq.
  [[nodiscard]] Value hyperparameters_of(const Value& configuration) const;
  /// Throws invalid_argument when there is none or it is no list of whole numbers.
  [[nodiscard]] static std::vector<std::int64_t> arch_seq_of(const Value& configuration);
  /// The problem without its data, as JSON. Functions are named "function".
  [[nodiscard]] std::string to_json() const;

  // --- for run functions ---

  struct OutputLoss {
    std::string name;  ///< "": the function
    LossFunction function;
    double weight = 1;
  };
  struct OutputMetric {
    std::string name;
    MetricFunction function;  ///< null: the built-in one of that name
  };
  /// One per output; `name` replaces the problem's own where the loss is searched.
  [[nodiscard]] std::vector<OutputLoss> losses(std::string_view name = {}) const;
  [[nodiscard]] std::vector<std::vector<OutputMetric>> metrics_by_output() const;
  [[nodiscard]] const std::vector<double>& class_weights() const noexcept { return class_weights_; }
  [[nodiscard]] const Augment& augment() const noexcept { return augment_; }
  /// "" where it is a function.
  [[nodiscard]] const std::string& objective_text() const noexcept { return objective_; }
  [[nodiscard]] const ObjectiveFunction& objective_function() const noexcept {
    return objective_function_;
  }
  [[nodiscard]] const PostTraining& post_training() const noexcept { return post_training_; }
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }

 private:
  struct Loaded;
  void forget_loaded();
  [[nodiscard]] Value describe() const;

  LoadData load_;
  Augment augment_;
  std::string preprocessing_;  // "": by the kind of the targets
  Preprocessing preprocessing_function_;
  SpaceFunction space_;
  std::string space_name_;
  Value space_settings_;
  search::Spec::Dict hyperparameters_;
  std::string loss_ = "mse";
  LossFunction loss_function_;
  std::map<std::string, std::string> losses_;
  std::map<std::string, double> loss_weights_;
  std::vector<double> class_weights_;
  std::vector<std::string> metrics_;
  std::map<std::string, std::vector<std::string>> metrics_by_output_;
  std::vector<OutputMetric> own_metrics_;
  std::string objective_ = "-val_loss";
  ObjectiveFunction objective_function_;
  PostTraining post_training_;
  std::uint64_t seed_ = 2018;
  std::shared_ptr<Loaded> loaded_;  // never null; replaced when what it came from changes
};

// --- problems that have names ---

struct LoadedNaProblem {
  NaProblem problem;
  std::string name;  ///< "benchmark.nas.linear_reg"
};
struct NaProblemInfo {
  std::string_view name;
  std::string_view summary;
};

/// The problems that come with kolo.
std::vector<NaProblemInfo> na_problems();
/// A name ("benchmark.nas.linear_reg"; the reference's, as
/// deephyper.benchmark.nas.linearReg.Problem, are understood), a file of YAML or JSON
/// (docs/nas.md), or a shared library of the user's
/// ("libmine.so:Problem"). Throws not_found, listing the known names; invalid_argument for files
/// and libraries that cannot be used.
LoadedNaProblem load_na_problem(std::string_view what);

}  // namespace kolo::nas
