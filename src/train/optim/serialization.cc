// The archive has, for each parameter group, its options and the state of each parameter by its
// place in the group, as libtorch serialises them. Places instead of addresses make it independent
// of the process. libtorch creates states lazily and without a common factory, so make_state_like()
// chooses the type by that of the options.
#include "train/optim/serialization.h"

#include <set>
#include <sstream>

#include "base/errors.h"
#include "kolo/torch/lamb.h"
#include "kolo/torch/lars.h"

namespace kolo::train {
namespace {

using torch::optim::OptimizerOptions;
using torch::optim::OptimizerParamState;
using torch::serialize::InputArchive;
using torch::serialize::OutputArchive;

template <class Options, class State>
std::unique_ptr<OptimizerParamState> state_if(const OptimizerOptions& options) {
  if (dynamic_cast<const Options*>(&options) == nullptr) return nullptr;
  return std::make_unique<State>();
}

/// An optimizer by the options of a group of it, and an empty state of the type that goes with
/// them.
struct Kind {
  const char* name;
  std::unique_ptr<OptimizerParamState> state;
};

[[noreturn]] void throw_unknown_optimizer() {
  throw_error(ErrorCode::unsupported,
              "optimizer state: this optimizer is not supported; known: SGD, Adam, AdamW, RMSprop, "
              "Adagrad, Lars, Lamb");
}

Kind kind_of(const OptimizerOptions& options) {
  namespace optim = torch::optim;
  using Make = std::unique_ptr<OptimizerParamState> (*)(const OptimizerOptions&);
  constexpr std::pair<const char*, Make> kKinds[] = {
      {"SGD", state_if<optim::SGDOptions, optim::SGDParamState>},
      {"AdamW", state_if<optim::AdamWOptions, optim::AdamWParamState>},
      {"Adam", state_if<optim::AdamOptions, optim::AdamParamState>},
      {"RMSprop", state_if<optim::RMSpropOptions, optim::RMSpropParamState>},
      {"Adagrad", state_if<optim::AdagradOptions, optim::AdagradParamState>},
      {"Lars", state_if<LarsOptions, LarsParamState>},
      {"Lamb", state_if<LambOptions, LambParamState>}};
  for (const auto& [name, make] : kKinds)
    if (auto state = make(options)) return {name, std::move(state)};
  throw_unknown_optimizer();
}

std::unique_ptr<OptimizerParamState> make_state_like(const OptimizerOptions& options) {
  return kind_of(options).state;
}

/// The names of the options, which tell optimizers apart whose names were not saved.
std::set<std::string> option_names(const OptimizerOptions& options) {
  OutputArchive out;
  options.serialize(out);
  InputArchive in;
  load_archive(in, archive_bytes(out));
  const auto names = in.keys();
  return {names.begin(), names.end()};
}

/// Throws invalid_argument if a group was saved by an optimizer of another kind.
void check_kind(const OptimizerOptions& options, InputArchive& group) {
  const char* const own = kind_of(options).name;
  torch::IValue kind;
  std::string saved;
  if (group.try_read("kind", kind)) {
    saved = kind.toStringRef();
  } else {
    InputArchive saved_options;
    group.read("options", saved_options);
    const auto names = saved_options.keys();
    const bool same = std::set<std::string>(names.begin(), names.end()) == option_names(options);
    saved = same ? own : "another kind";
  }
  if (saved != own)
    throw_error(ErrorCode::invalid_argument,
                "optimizer state: it was saved by an optimizer of {}, and this program trains with "
                "{}; use the same optimizer, or resume without its state",
                saved, own);
}

std::string numbered(const char* what, std::size_t number) { return what + std::to_string(number); }

}  // namespace

void check_copyable(const torch::optim::Optimizer& optimizer) {
  for (const auto& group : optimizer.param_groups()) (void)make_state_like(group.options());
}

void save_groups(
    const torch::optim::Optimizer& optimizer,
    const std::vector<std::vector<torch::Tensor>>& parameters,
    const std::function<bool(const torch::Tensor& parameter, OutputArchive& state)>& write_state,
    OutputArchive& archive) {
  const auto& groups = optimizer.param_groups();
  archive.write("kolo_version", torch::IValue(int64_t{1}));
  archive.write("groups", torch::IValue(static_cast<int64_t>(groups.size())));
  for (std::size_t g = 0; g < groups.size(); ++g) {
    OutputArchive group(archive.compilation_unit()), options(archive.compilation_unit());
    groups[g].options().serialize(options);
    group.write("kind", torch::IValue(std::string(kind_of(groups[g].options()).name)));
    group.write("options", options);
    group.write("params", torch::IValue(static_cast<int64_t>(parameters[g].size())));
    for (std::size_t p = 0; p < parameters[g].size(); ++p) {
      OutputArchive state(archive.compilation_unit());
      if (write_state(parameters[g][p], state)) group.write(numbered("state", p), state);
    }
    archive.write(numbered("group", g), group);
  }
}

namespace {

/// `prepare` makes of a parameter's state what is written.
template <class Prepare>
void save_states(const torch::optim::Optimizer& optimizer, Prepare prepare,
                 OutputArchive& archive) {
  std::vector<std::vector<torch::Tensor>> parameters;
  for (const auto& group : optimizer.param_groups()) parameters.push_back(group.params());
  const auto write_state = [&](const torch::Tensor& parameter, OutputArchive& state) {
    const auto found = optimizer.state().find(state_key(parameter));
    if (found == optimizer.state().end()) return false;
    prepare(*found->second)->serialize(state);
    return true;
  };
  save_groups(optimizer, parameters, write_state, archive);
}

}  // namespace

void save_optimizer(const torch::optim::Optimizer& optimizer, OutputArchive& archive) {
  save_states(
      optimizer, [](const OptimizerParamState& state) { return &state; }, archive);
}

void load_optimizer(torch::optim::Optimizer& optimizer, InputArchive& archive) {
  auto& groups = optimizer.param_groups();
  if (auto version = read<int64_t>(archive, "kolo_version"); version != 1)
    throw_error(ErrorCode::unsupported,
                "optimizer state: this kolo cannot read version {}; use a newer kolo", version);
  if (auto count = read<int64_t>(archive, "groups"); count != static_cast<int64_t>(groups.size()))
    throw_error(ErrorCode::invalid_argument,
                "optimizer state: {} parameter groups were saved, but this optimizer has {}", count,
                groups.size());
  // All of it is checked before any of it is changed.
  for (std::size_t g = 0; g < groups.size(); ++g) {
    InputArchive group;
    archive.read(numbered("group", g), group);
    check_kind(groups[g].options(), group);
    const auto& params = groups[g].params();
    if (auto count = read<int64_t>(group, "params"); count != static_cast<int64_t>(params.size()))
      throw_error(
          ErrorCode::invalid_argument,
          "optimizer state: group {} was saved with {} parameters, but has {} in this optimizer", g,
          count, params.size());
  }
  StateMap states;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    InputArchive group, options;
    archive.read(numbered("group", g), group);
    const auto& params = groups[g].params();
    group.read("options", options);
    groups[g].options().serialize(options);
    for (std::size_t p = 0; p < params.size(); ++p) {
      InputArchive saved;
      if (!group.try_read(numbered("state", p), saved)) continue;
      auto state = make_state_like(groups[g].options());
      state->serialize(saved);
      states[state_key(params[p])] = std::move(state);
    }
  }
  optimizer.state() = std::move(states);
}

NamedValues values_of(InputArchive& archive) {
  NamedValues values;
  for (const std::string& key : archive.keys()) archive.read(key, values[key]);
  return values;
}

NamedValues values_of(const OptimizerParamState& state) {
  OutputArchive out;
  state.serialize(out);
  InputArchive in;
  load_archive(in, archive_bytes(out));
  return values_of(in);
}

void write_values(const NamedValues& values, OutputArchive& archive) {
  for (const auto& [key, value] : values) archive.write(key, value);
}

std::unique_ptr<OptimizerParamState> make_state(const OptimizerOptions& options,
                                                const NamedValues& values) {
  auto state = make_state_like(options);
  OutputArchive out;
  write_values(values, out);
  InputArchive in;
  load_archive(in, archive_bytes(out));
  state->serialize(in);
  return state;
}

void each_tensor(OptimizerParamState& state, const std::function<void(torch::Tensor&)>& visit) {
  namespace optim = torch::optim;
  const auto each = [&](auto&... tensors) {
    const auto one = [&](torch::Tensor& tensor) {
      if (tensor.defined()) visit(tensor);
    };
    (one(tensors), ...);
  };
  if (auto* sgd = dynamic_cast<optim::SGDParamState*>(&state))
    each(sgd->momentum_buffer());
  else if (auto* adamw = dynamic_cast<optim::AdamWParamState*>(&state))
    each(adamw->exp_avg(), adamw->exp_avg_sq(), adamw->max_exp_avg_sq());
  else if (auto* adam = dynamic_cast<optim::AdamParamState*>(&state))
    each(adam->exp_avg(), adam->exp_avg_sq(), adam->max_exp_avg_sq());
  else if (auto* rms = dynamic_cast<optim::RMSpropParamState*>(&state))
    each(rms->square_avg(), rms->momentum_buffer(), rms->grad_avg());
  else if (auto* adagrad = dynamic_cast<optim::AdagradParamState*>(&state))
    each(adagrad->sum());
  else if (auto* lars = dynamic_cast<LarsParamState*>(&state))
    each(lars->momentum_buffer());
  else if (auto* lamb = dynamic_cast<LambParamState*>(&state))
    each(lamb->exp_avg(), lamb->exp_avg_sq());
  else
    throw_unknown_optimizer();
}

std::string tensors_bytes(const NamedTensors& tensors) {
  OutputArchive archive;
  std::size_t count = 0;
  for (const auto& [name, tensor] : tensors) {
    archive.write(numbered("name", count), torch::IValue(name));
    // A part of a larger tensor (of a bucket, say) would be written with all of it.
    const bool is_part = tensor.storage().nbytes() != tensor.nbytes();
    archive.write(numbered("tensor", count++),
                  torch::IValue(is_part ? tensor.detach().clone() : tensor.detach()));
  }
  archive.write("count", torch::IValue(static_cast<int64_t>(count)));
  return archive_bytes(archive);
}

NamedTensors load_tensors(const std::string& bytes) {
  InputArchive archive;
  load_archive(archive, bytes);
  NamedTensors tensors;
  const auto count = static_cast<std::size_t>(read<int64_t>(archive, "count"));
  for (std::size_t i = 0; i < count; ++i)
    tensors[read<std::string>(archive, numbered("name", i).c_str())] =
        read<torch::Tensor>(archive, numbered("tensor", i).c_str());
  return tensors;
}

std::string archive_bytes(OutputArchive& archive) {
  std::ostringstream stream;
  archive.save_to(stream);
  return std::move(stream).str();
}

void load_archive(InputArchive& archive, const std::string& bytes) {
  archive.load_from(bytes.data(), bytes.size());
}

std::string optimizer_bytes(const torch::optim::Optimizer& optimizer) {
  OutputArchive archive;
  save_optimizer(optimizer, archive);
  return archive_bytes(archive);
}

std::string optimizer_outline(const torch::optim::Optimizer& optimizer) {
  OutputArchive archive;
  const auto without_bytes = [](const OptimizerParamState& state) {
    auto outline = state.clone();
    // One number that stands for all of them takes the place of one.
    each_tensor(*outline, [](torch::Tensor& tensor) {
      tensor = torch::zeros({1}, tensor.options()).expand(tensor.sizes());
    });
    return outline;
  };
  save_states(optimizer, without_bytes, archive);
  return archive_bytes(archive);
}

void load_optimizer_bytes(torch::optim::Optimizer& optimizer, const std::string& bytes) {
  InputArchive archive;
  load_archive(archive, bytes);
  load_optimizer(optimizer, archive);
}

}  // namespace kolo::train
