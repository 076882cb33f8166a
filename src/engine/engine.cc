// The public face of the engine: checks arguments, finds the process set, hands over.
#include "kolo/engine.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/env.h"
#include "base/errors.h"
#include "base/process_owned.h"
#include "comm/group.h"
#include "comm/internals.h"
#include "comm/shutdown_hooks.h"
#include "engine/set_engine.h"

namespace kolo {

using runtime::Operation;
using runtime::OpKind;
using runtime::SetEngine;

namespace {

/// An operation of the engine waits as long as those of the communicator do.
runtime::Coordinator::Options resolved(const EngineOptions& options, Communicator& parent) {
  constexpr std::chrono::milliseconds kWarning = std::chrono::seconds(60);
  constexpr std::int64_t kFusion = std::int64_t{16} << 20;
  runtime::Coordinator::Options out;
  out.fusion_bytes = static_cast<std::size_t>(
      options.fusion_bytes >= 0 ? options.fusion_bytes
                                : setting_count("FUSION_THRESHOLD").value_or(kFusion));
  out.stall_warning = options.stall_warning;
  if (out.stall_warning.count() < 0)
    out.stall_warning = setting_flag("STALL_CHECK_DISABLE").value_or(false)
                            ? std::chrono::milliseconds(0)
                            : setting_seconds("STALL_CHECK_TIME_SECONDS").value_or(kWarning);
  out.stall_shutdown = options.stall_shutdown;
  if (out.stall_shutdown.count() < 0)
    out.stall_shutdown = setting_seconds("STALL_SHUTDOWN_TIME_SECONDS")
                             .value_or(comm::Internals::group_of(parent).timeout());
  return out;
}

void check_memory(const char* what, const std::string& name, const void* memory,
                  const Shape& shape) {
  if (memory == nullptr && element_count(shape) != 0)
    throw_error(ErrorCode::invalid_argument, "{} '{}': the pointer to the data is null", what,
                name);
}

void check_type(const char* what, const std::string& name, DataType type) {
  if (static_cast<int>(type) >= kDataTypeCount)
    throw_error(ErrorCode::invalid_argument, "{} '{}': {} is not a data type", what, name,
                static_cast<int>(type));
}

void check_reduction(const char* what, const std::string& name, DataType type,
                     const ReduceOptions& options) {
  check_type(what, name, type);
  if (static_cast<int>(options.op) >= kReduceOpCount)
    throw_error(ErrorCode::invalid_argument, "{} '{}': {} is not a reduction", what, name,
                static_cast<int>(options.op));
  const bool has_factors = options.scaling.prescale != 1.0 || options.scaling.postscale != 1.0;
  if (type == DataType::boolean && (options.op == ReduceOp::average || has_factors))
    throw_error(ErrorCode::invalid_argument,
                "{} '{}': bool tensors can be neither averaged nor scaled; use sum, min, max or "
                "product without factors",
                what, name);
  if (options.op == ReduceOp::adasum && type < DataType::float16)
    throw_error(ErrorCode::invalid_argument, "{} '{}': adasum needs a floating-point type, not {}",
                what, name, to_string(type));
}

void check_rows(const char* what, const std::string& name, const Shape& shape) {
  if (shape.empty())
    throw_error(ErrorCode::invalid_argument,
                "{} '{}': the tensor is a scalar, but it needs at least one dimension", what, name);
}

std::shared_ptr<Operation> make_operation(OpKind kind, const std::string& name) {
  auto operation = std::make_shared<Operation>();
  operation->request.kind = kind;
  operation->request.name = name;
  return operation;
}

void add_tensor(Operation& operation, TensorArg tensor) {
  operation.request.tensors.push_back({tensor.type, std::move(tensor.shape)});
  tensor.shape = {};
  operation.tensors.push_back(std::move(tensor));
}

}  // namespace

std::size_t element_count(const Shape& shape) {
  std::size_t count = 1;
  for (const auto size : shape) {
    if (size < 0)
      throw_error(ErrorCode::invalid_argument,
                  "a tensor has the dimension {}; dimensions cannot be negative", size);
    if (__builtin_mul_overflow(count, static_cast<std::size_t>(size), &count))
      throw_error(ErrorCode::invalid_argument,
                  "a tensor has more elements than any machine holds; its dimensions are wrong");
  }
  return count;
}

Operation& Handle::operation() const {
  if (operation_ == nullptr)
    throw_error(ErrorCode::invalid_argument,
                "the handle is empty: it was not returned by an operation");
  return *operation_;
}

const std::string& Handle::name() const { return operation().request.name; }

bool Handle::poll() const { return operation().is_done(); }

std::vector<std::size_t> Handle::wait() const {
  Operation& waited_for = operation();
  waited_for.wait();
  if (waited_for.error) throw *waited_for.error;
  return waited_for.counts;
}

struct Engine::State {
  const pid_t owner = ::getpid();
  Communicator* parent = nullptr;
  runtime::Coordinator::Options options;
  std::shared_ptr<runtime::Timeline> timeline = std::make_shared<runtime::Timeline>();
  std::unique_ptr<Communicator> control;  // of all ranks; used by callers under control_mutex
  Mutex control_mutex;
  int next_set KOLO_GUARDED_BY(control_mutex) = 1;
  mutable Mutex mutex;
  std::map<int, std::shared_ptr<SetEngine>> sets KOLO_GUARDED_BY(mutex);
};

Engine::Engine(Communicator& parent, EngineOptions options) : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.parent = &parent;
  state.options = resolved(options, parent);
  std::vector<int> all(static_cast<std::size_t>(parent.size()));
  std::iota(all.begin(), all.end(), 0);
  state.control = parent.subset(all);
  auto global = std::make_shared<SetEngine>(*state.control, all, 0, state.options, state.timeline);
  {
    MutexLock lock(state.mutex);
    state.sets[0] = std::move(global);
  }
  const std::string path =
      !options.timeline.empty() ? options.timeline : setting("TIMELINE").value_or("");
  state.timeline->mark_cycles(setting_integer("TIMELINE_MARK_CYCLES").value_or(0) != 0);
  if (!path.empty() && path != "DYNAMIC") start_timeline(path);
}

Engine::~Engine() {
  // A fork has neither the threads of the sets nor a say in their connections: it forgets them.
  if (state_->owner != ::getpid()) {
    forget(std::move(state_));
    return;
  }
  // Sets first: their threads note events until they end.
  MutexLock lock(state_->mutex);
  while (!state_->sets.empty()) state_->sets.erase(std::prev(state_->sets.end()));
}

int Engine::rank() const noexcept { return state_->control->rank(); }
int Engine::size() const noexcept { return state_->control->size(); }

std::shared_ptr<SetEngine> Engine::find(ProcessSetId set) const {
  MutexLock lock(state_->mutex);
  const auto found = state_->sets.find(static_cast<int>(set));
  if (found == state_->sets.end())
    throw_error(ErrorCode::invalid_argument, "process set {} does not exist",
                static_cast<int>(set));
  return found->second;
}

// --- operations ----------------------------------------------------------------------------------

Handle Engine::submit(ProcessSetId set, std::shared_ptr<Operation> operation) {
  const auto members = find(set);
  if (!members->is_member())
    throw_error(ErrorCode::invalid_argument, "{} '{}': rank {} is not in process set {}",
                comm::to_string(operation->request.kind), operation->request.name, rank(),
                static_cast<int>(set));
  members->submit(operation);
  return Handle(std::move(operation));
}

Handle Engine::allreduce_async(const std::string& name, TensorArg tensor,
                               const ReduceOptions& options) {
  check_reduction("allreduce", name, tensor.type, options);
  check_memory("allreduce", name, tensor.input, tensor.shape);
  check_memory("allreduce", name, tensor.output, tensor.shape);
  auto operation = make_operation(OpKind::allreduce, name);
  operation->request.op = options.op;
  operation->request.scaling = options.scaling;
  add_tensor(*operation, std::move(tensor));
  return submit(options.process_set, std::move(operation));
}

Handle Engine::grouped_allreduce_async(const std::string& name, std::vector<TensorArg> tensors,
                                       const ReduceOptions& options) {
  auto operation = make_operation(OpKind::grouped_allreduce, name);
  operation->request.op = options.op;
  operation->request.scaling = options.scaling;
  for (TensorArg& tensor : tensors) {
    check_reduction("grouped_allreduce", name, tensor.type, options);
    check_memory("grouped_allreduce", name, tensor.input, tensor.shape);
    check_memory("grouped_allreduce", name, tensor.output, tensor.shape);
    add_tensor(*operation, std::move(tensor));
  }
  return submit(options.process_set, std::move(operation));
}

Handle Engine::reducescatter_async(const std::string& name, TensorArg tensor,
                                   const ReduceOptions& options) {
  check_reduction("reducescatter", name, tensor.type, options);
  check_rows("reducescatter", name, tensor.shape);
  check_memory("reducescatter", name, tensor.input, tensor.shape);
  if (options.op != ReduceOp::sum && options.op != ReduceOp::average)
    throw_error(ErrorCode::invalid_argument,
                "reducescatter '{}': {} is not supported; use sum or average", name,
                to_string(options.op));
  auto operation = make_operation(OpKind::reducescatter, name);
  operation->request.op = options.op;
  operation->request.scaling = options.scaling;
  add_tensor(*operation, std::move(tensor));
  return submit(options.process_set, std::move(operation));
}

Handle Engine::allgather_async(const std::string& name, const void* input, Shape shape,
                               DataType type, OutputAllocator output, ProcessSetId set) {
  check_type("allgather", name, type);
  check_rows("allgather", name, shape);
  check_memory("allgather", name, input, shape);
  auto operation = make_operation(OpKind::allgather, name);
  operation->allocate = std::move(output);
  add_tensor(*operation, {input, nullptr, std::move(shape), type});
  return submit(set, std::move(operation));
}

Handle Engine::broadcast_async(const std::string& name, void* data, Shape shape, DataType type,
                               int root, ProcessSetId set) {
  check_type("broadcast", name, type);
  check_memory("broadcast", name, data, shape);
  const auto members = find(set);
  const auto& ranks = members->ranks();
  const auto place = std::find(ranks.begin(), ranks.end(), root);
  if (place == ranks.end())
    throw_error(ErrorCode::invalid_argument, "broadcast '{}': root {} is not in process set {}",
                name, root, static_cast<int>(set));
  auto operation = make_operation(OpKind::broadcast, name);
  operation->request.root = static_cast<int>(place - ranks.begin());
  add_tensor(*operation, {data, data, std::move(shape), type});
  return submit(set, std::move(operation));
}

Handle Engine::alltoall_async(const std::string& name, const void* input, Shape shape,
                              DataType type, std::vector<std::size_t> splits,
                              OutputAllocator output, ProcessSetId set) {
  check_type("alltoall", name, type);
  check_rows("alltoall", name, shape);
  check_memory("alltoall", name, input, shape);
  const auto members = static_cast<std::size_t>(find(set)->size());
  const auto rows = static_cast<std::size_t>(shape[0]);
  if (splits.empty() && rows % members != 0)
    throw_error(ErrorCode::invalid_argument,
                "alltoall '{}': {} rows cannot be divided equally among {} ranks; pass splits",
                name, rows, members);
  if (!splits.empty()) {
    if (splits.size() != members)
      throw_error(ErrorCode::invalid_argument,
                  "alltoall '{}': there are {} splits for {} ranks; pass one for each rank", name,
                  splits.size(), members);
    std::size_t left = rows;
    for (const std::size_t split : splits) {
      if (split > left)
        throw_error(ErrorCode::invalid_argument,
                    "alltoall '{}': splits add up to more than the {} rows that there are", name,
                    rows);
      left -= split;
    }
  }
  auto operation = make_operation(OpKind::alltoall, name);
  operation->splits = std::move(splits);
  operation->allocate = std::move(output);
  add_tensor(*operation, {input, nullptr, std::move(shape), type});
  return submit(set, std::move(operation));
}

Handle Engine::barrier_async(ProcessSetId set) {
  return submit(set, make_operation(OpKind::barrier, ""));
}

int Engine::join(ProcessSetId set) { return member(set)->join(); }

std::shared_ptr<SetEngine> Engine::member(ProcessSetId set) const {
  auto members = find(set);
  if (!members->is_member())
    throw_error(ErrorCode::invalid_argument, "rank {} is not in process set {}", rank(),
                static_cast<int>(set));
  return members;
}

std::unique_ptr<Communicator> Engine::make_communicator(ProcessSetId set) {
  return member(set)->make_communicator();
}

// --- process sets --------------------------------------------------------------------------------

ProcessSetId Engine::add_process_set(const std::vector<int>& ranks) {
  State& state = *state_;
  MutexLock control(state.control_mutex);
  {
    MutexLock lock(state.mutex);
    for (const auto& [id, known] : state.sets)
      if (known->ranks() == ranks)
        throw_error(ErrorCode::already_exists, "process set {} already has these ranks", id);
  }
  auto set = std::make_shared<SetEngine>(*state.control, ranks, state.next_set, state.options,
                                         state.timeline);
  MutexLock lock(state.mutex);
  state.sets[state.next_set] = std::move(set);
  return ProcessSetId{state.next_set++};
}

bool Engine::remove_process_set(ProcessSetId set) {
  State& state = *state_;
  MutexLock control(state.control_mutex);
  std::shared_ptr<SetEngine> removed;
  {
    MutexLock lock(state.mutex);
    const auto found = state.sets.find(static_cast<int>(set));
    if (set == kGlobalProcessSet || found == state.sets.end()) return false;
    removed = std::move(found->second);
    state.sets.erase(found);
  }
  // Nobody goes before all have come: a member that leaves early would end the set for the others.
  state.control->barrier();
  return true;
}

std::vector<int> Engine::ranks_of(ProcessSetId set) const { return find(set)->ranks(); }
bool Engine::is_member(ProcessSetId set) const { return find(set)->is_member(); }
int Engine::size(ProcessSetId set) const { return find(set)->size(); }
int Engine::rank(ProcessSetId set) const { return find(set)->rank(); }

std::vector<ProcessSetId> Engine::process_sets() const {
  MutexLock lock(state_->mutex);
  std::vector<ProcessSetId> ids;
  for (const auto& [id, set] : state_->sets) ids.push_back(ProcessSetId{id});
  return ids;
}

// --- timeline ------------------------------------------------------------------------------------

const std::shared_ptr<runtime::Timeline>& Engine::timeline() const noexcept {
  return state_->timeline;
}

void Engine::start_timeline(const std::string& path) {
  State& state = *state_;
  MutexLock control(state.control_mutex);
  if (state.timeline->is_on())
    throw_error(ErrorCode::failed_precondition,
                "a timeline is already being written; call stop_timeline() first");
  const auto global = find(kGlobalProcessSet);
  std::optional<Error> problem;
  if (rank() == 0) {
    try {
      global->set_trace(std::make_unique<runtime::TraceFile>(path, size()));
    } catch (const Error& error) {
      problem = error;
    }
  }
  const int failures = state.control->allreduce(problem ? 1 : 0, ReduceOp::sum);
  if (problem) throw *problem;
  if (failures != 0) throw_error(ErrorCode::io, "timeline: rank 0 cannot write {}", path);
  state.timeline->start(rank(), [set = global.get()] { set->nudge(); });
}

void Engine::stop_timeline() {
  State& state = *state_;
  MutexLock control(state.control_mutex);
  if (!state.timeline->is_on()) return;
  state.timeline->stop();
  // Events travel ahead of what is submitted after them: at the end of this all are in the file.
  auto last = make_operation(OpKind::barrier, "kolo.stop_timeline");
  synchronize(submit(kGlobalProcessSet, std::move(last)));
  if (rank() == 0) find(kGlobalProcessSet)->set_trace(nullptr);
}

// --- the default engine --------------------------------------------------------------------------

namespace {

ProcessOwned<Engine>& default_engine() {
  static ProcessOwned<Engine> engine;
  return engine;
}

}  // namespace

Engine& engine() {
  static Mutex mutex;
  MutexLock lock(mutex);
  if (!default_engine()) {
    default_engine().emplace(world());
    static const bool registered [[maybe_unused]] =
        (comm::at_shutdown([] { default_engine().reset(); }), true);
  }
  return *default_engine();
}

}  // namespace kolo
