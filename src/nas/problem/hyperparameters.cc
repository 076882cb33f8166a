// One table has a reader for each hyperparameter; reading a configuration walks it and names the
// ones that are unknown. Early stopping and the reduction on plateaus can be given as
// hyperparameters or as Keras' callbacks, and both end in the same settings.
#include "nas/problem/hyperparameters.h"

#include <cmath>
#include <limits>

#include "base/errors.h"
#include "base/registry.h"
#include "nas/problem/losses.h"
#include "nas/problem/optimizers.h"

namespace kolo::nas {
namespace {

[[noreturn]] void refuse(std::string_view name, const Value& value, std::string_view rule) {
  throw_error(ErrorCode::invalid_argument, "hyperparameter '{}' is {}; it must be {}", name,
              value.to_string(), rule);
}

std::int64_t whole(std::string_view name, const Value& value, std::int64_t least) {
  // Searches over ranges of numbers may give 32.0.
  const bool fits = value.is_number() && std::floor(value.as_number()) == value.as_number();
  if (!fits || value.as_number() < static_cast<double>(least) || value.as_number() > 1e15)
    refuse(name, value, fmt::format("a whole number from {}", least));
  return value.as_integer();
}

double number_from_zero(std::string_view name, const Value& value) {
  if (!value.is_number() || !(value.as_number() >= 0) || !std::isfinite(value.as_number()))
    refuse(name, value, "a number from 0");
  return value.as_number();
}

bool truth(std::string_view name, const Value& value) {
  if (!value.is_bool()) refuse(name, value, "true or false");
  return value.as_bool();
}

const std::string& text(std::string_view name, const Value& value) {
  if (!value.is_string()) refuse(name, value, "a name");
  return value.as_string();
}

// --- callbacks: {"EarlyStopping": {"patience": 5}, …} ---

/// Reads what both kinds of patience share; true if `name` was one of it.
bool read_patience(PatienceSettings& settings, const std::string& name, const Value& value) {
  if (name == "patience") {
    settings.patience = whole(name, value, 0);
  } else if (name == "monitor") {
    settings.monitor = text(name, value);
  } else if (name == "min_delta") {
    settings.min_delta = number_from_zero(name, value);
  } else if (name == "mode") {
    const std::string& mode = text(name, value);
    if (mode != "min" && mode != "max" && mode != "auto")
      refuse("mode", value, "\"min\", \"max\" or \"auto\"");
    if (mode != "auto") settings.lower_is_better = mode == "min";
  } else {
    return name == "verbose";
  }
  return true;
}

void read_early_stopping(TrainingSettings& settings, const Value& arguments) {
  EarlyStopping read = settings.early_stopping.value_or(EarlyStopping{});
  for (const auto& [name, value] : arguments.as_dict())
    if (!read_patience(read, name, value))
      throw_unknown_name("argument of EarlyStopping", name,
                         {"patience", "monitor", "min_delta", "mode", "verbose"});
  settings.early_stopping = read;
}

constexpr double kPlateauDelta = 1e-4;  // Keras' default

void read_reduce_on_plateau(TrainingSettings& settings, const Value& arguments) {
  ReduceOnPlateau read;
  read.min_delta = kPlateauDelta;
  read.patience = 10;
  if (settings.reduce_on_plateau) read = *settings.reduce_on_plateau;
  for (const auto& [name, value] : arguments.as_dict()) {
    if (read_patience(read, name, value)) continue;
    if (name == "factor") {
      read.factor = number_from_zero(name, value);
      if (read.factor >= 1) refuse("factor", value, "below 1");
    } else if (name == "min_lr") {
      read.min_rate = number_from_zero(name, value);
    } else {
      throw_unknown_name("argument of ReduceLROnPlateau", name,
                         {"patience", "monitor", "min_delta", "mode", "factor", "min_lr"});
    }
  }
  settings.reduce_on_plateau = read;
}

void read_time_stopping(TrainingSettings& settings, const Value& arguments) {
  for (const auto& [name, value] : arguments.as_dict()) {
    if (name != "seconds") throw_unknown_name("argument of TimeStopping", name, {"seconds"});
    settings.time_limit_seconds = number_from_zero(name, value);
  }
}

using ReadCallback = void (*)(TrainingSettings&, const Value& arguments);
constexpr Entry<ReadCallback> kCallbackTable[] = {
    {"EarlyStopping", "ends a training whose metric does not become better", read_early_stopping},
    {"ReduceLROnPlateau", "lowers the rate instead", read_reduce_on_plateau},
    {"TimeStopping", "ends it after so many seconds", read_time_stopping},
};
constexpr Registry<ReadCallback> kCallbacks{"callback", kCallbackTable};

void read_callbacks(TrainingSettings& settings, const Value& value) {
  if (value.is_nothing()) return;
  if (!value.is_dict()) refuse("callbacks", value, "a dictionary");
  for (const auto& [name, arguments] : value.as_dict()) {
    const auto& entry = kCallbacks.at(name);
    if (!arguments.is_nothing() && !arguments.is_dict())
      refuse(name, arguments, "a dictionary of arguments");
    entry.make(settings, arguments.is_nothing() ? Value(Value::Dict{}) : arguments);
  }
}

// --- the table ---

using ReadHyperparameter = void (*)(TrainingSettings&, const Value&);

constexpr Entry<ReadHyperparameter> kHyperparameterTable[] = {
    {"batch_size", "samples a step (32)",
     [](TrainingSettings& s, const Value& v) { s.batch_size = whole("batch_size", v, 1); }},
    {"learning_rate", "(0.001)",
     [](TrainingSettings& s, const Value& v) {
       s.learning_rate = number_from_zero("learning_rate", v);
     }},
    {"optimizer", "(adam)",
     [](TrainingSettings& s, const Value& v) {
       s.optimizer = kOptimizers.at(text("optimizer", v)).name;
     }},
    {"num_epochs", "(1)",
     [](TrainingSettings& s, const Value& v) { s.num_epochs = whole("num_epochs", v, 1); }},
    {"loss", "instead of the problem's",
     [](TrainingSettings& s, const Value& v) { s.loss = loss_name(text("loss", v)); }},
    {"momentum", "of sgd and rmsprop (0)",
     [](TrainingSettings& s, const Value& v) { s.momentum = number_from_zero("momentum", v); }},
    {"weight_decay", "(0)",
     [](TrainingSettings& s, const Value& v) {
       s.weight_decay = number_from_zero("weight_decay", v);
     }},
    {"lsr_batch_size", "n ranks: n times the samples a step",
     [](TrainingSettings& s, const Value& v) { s.lsr_batch_size = truth("lsr_batch_size", v); }},
    {"lsr_learning_rate", "n ranks: n times the rate",
     [](TrainingSettings& s, const Value& v) {
       s.lsr_learning_rate = truth("lsr_learning_rate", v);
     }},
    {"warmup_lr", "the rate grows to the scaled one",
     [](TrainingSettings& s, const Value& v) { s.warmup_lr = truth("warmup_lr", v); }},
    {"warmup_epochs", "how long that takes (5)",
     [](TrainingSettings& s, const Value& v) {
       s.warmup_epochs = number_from_zero("warmup_epochs", v);
     }},
    {"ranks_per_node", "ranks that an evaluation uses (all there are)",
     [](TrainingSettings& s, const Value& v) { s.ranks_per_node = whole("ranks_per_node", v, 1); }},
    {"patience_EarlyStopping", "epochs without a better val_loss that end a training",
     [](TrainingSettings& s, const Value& v) {
       read_early_stopping(s, Value{{"patience", whole("patience_EarlyStopping", v, 0)}});
     }},
    {"patience_ReduceLROnPlateau", "epochs without a better val_loss that lower the rate",
     [](TrainingSettings& s, const Value& v) {
       read_reduce_on_plateau(s, Value{{"patience", whole("patience_ReduceLROnPlateau", v, 0)}});
     }},
    {"callbacks", "EarlyStopping, ReduceLROnPlateau, TimeStopping with arguments", read_callbacks},
    {"time_limit", "seconds after which a training ends with what there is",
     [](TrainingSettings& s, const Value& v) {
       s.time_limit_seconds = number_from_zero("time_limit", v);
     }},
    {"seed", "of weights and shuffles (the problem's)",
     [](TrainingSettings& s, const Value& v) {
       s.seed = static_cast<std::uint64_t>(whole("seed", v, 0));
     }},
    {"repeat", "trainings, the best of which counts (1)",
     [](TrainingSettings& s, const Value& v) { s.repeat = whole("repeat", v, 1); }},
    {"verbose", "understood and not used", [](TrainingSettings&, const Value&) {}},
};
constexpr Registry<ReadHyperparameter> kHyperparameters{"hyperparameter", kHyperparameterTable};

}  // namespace

bool PatienceSettings::is_lower_better() const {
  if (lower_is_better) return *lower_is_better;
  for (const std::string_view upward : {"acc", "r2", "auc"})
    if (monitor.find(upward) != std::string::npos) return false;
  return true;
}

TrainingSettings TrainingSettings::from(const Value& dictionary) {
  TrainingSettings settings;
  if (dictionary.is_nothing()) return settings;
  // Callbacks first: single values, which may be searched, go before what they say.
  if (const Value* callbacks = dictionary.find_path("callbacks"))
    read_callbacks(settings, *callbacks);
  for (const auto& [name, value] : dictionary.as_dict())
    if (name != "callbacks") kHyperparameters.at(name).make(settings, value);
  return settings;
}

void check_hyperparameter_name(std::string_view name) { (void)kHyperparameters.at(name); }

}  // namespace kolo::nas
