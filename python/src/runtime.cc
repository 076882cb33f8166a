// init, shutdown, who this rank is, process sets, the timeline.
#include "runtime.h"

#include <pybind11/functional.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/errors.h"
#include "blocking.h"
#include "engine/internals.h"
#include "engine/timeline.h"
#include "errors.h"
#include "exec/start.h"
#include "kolo/kolo.h"
#include "memory.h"
#include "module.h"

namespace kolo::python {
namespace {

namespace py = pybind11;

pid_t owner = 0;  // the process that called init()

// Who is inside of an operation is counted; shutdown() ends their waits by the check for
// interrupts.
std::atomic<int> inside_count = 0;
std::atomic<bool> is_stopping = false;
thread_local int inside_of_thread = 0;

constexpr std::chrono::seconds kPatienceAtShutdown{10};

/// Waits until nobody is inside. An operation that neither waits nor ends keeps what it works on.
void wait_for_others() {
  const auto end = std::chrono::steady_clock::now() + kPatienceAtShutdown;
  while (inside_count > 0) {
    if (std::chrono::steady_clock::now() > end)
      throw_error(ErrorCode::timeout,
                  "shutdown: another thread has not left its operation for {} seconds; nothing was "
                  "shut down",
                  kPatienceAtShutdown.count());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void start(const std::string& transport, double timeout_seconds) {
  if (is_initialized()) {
    check_running();  // throws in a fork
    return;
  }
  ContextOptions options;
  options.transport = transport;
  options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(timeout_seconds * 1000));
  blocking([&] {
    init(options);
    try {
      static_cast<void>(engine());  // it meets the other ranks, too
    } catch (...) {
      shutdown();
      throw;
    }
  });
  owner = ::getpid();
}

/// Before anything is given up for it.
void check_stop() {
  if (is_initialized() && owner == ::getpid() && inside_of_thread > 0)
    throw_error(
        ErrorCode::failed_precondition,
        "shutdown() was called by a signal handler, and this thread waits for an operation; "
        "let the handler raise an exception, which ends the wait");
}

void stop() {
  if (!is_initialized() || owner != ::getpid()) return;
  check_stop();
  is_stopping = true;
  try {
    blocking([] {
      wait_for_others();
      shutdown();
    });
  } catch (...) {
    is_stopping = false;
    throw;
  }
  is_stopping = false;
}

/// A collective on the world's own communicator: no names and no threads, so all ranks call these
/// in the same order, from one thread at a time.
void allreduce_now(std::uintptr_t input, std::uintptr_t output, std::size_t count, int type, int op,
                   double prescale, double postscale) {
  const Inside inside;
  as_operation([&] {
    blocking([&] {
      world().allreduce(reinterpret_cast<const void*>(input), reinterpret_cast<void*>(output),
                        count, static_cast<DataType>(type), static_cast<ReduceOp>(op),
                        {prescale, postscale});
    });
  });
}

}  // namespace

void check_running() {
  if (is_initialized() && owner != ::getpid())
    throw_error(ErrorCode::failed_precondition,
                "this process is a fork of the one that called init() (process {}): a fork has no "
                "connection to the other ranks. Use a process that starts anew (multiprocessing's "
                "method 'spawn'), or let the parent do it",
                owner);
  if (!is_initialized())
    throw_error(ErrorCode::failed_precondition, "init() has not been called; call it first");
}

// First counted, then looked: shutdown() does both the other way round.
Inside::Inside() {
  ++inside_count;
  ++inside_of_thread;
  try {
    check_running();
    if (is_stopping)
      throw_error(ErrorCode::failed_precondition, "shutdown() was called by another thread");
  } catch (...) {
    leave();
    throw;
  }
}

Inside::~Inside() { leave(); }

void Inside::leave() noexcept {
  --inside_of_thread;
  --inside_count;
}

bool has_to_leave() noexcept { return is_stopping && inside_of_thread > 0; }

RunningEngine::RunningEngine() : engine_(&engine()) {}

void bind_runtime(py::module_& m) {
  py::class_<Memory>(m, "Memory", py::buffer_protocol(), "Memory of kolo, seen as bytes.")
      .def_buffer([](Memory& memory) {
        return py::buffer_info(memory.data, 1, "B", static_cast<py::ssize_t>(memory.size));
      })
      .def_property_readonly(
          "pointer",
          [](const Memory& memory) { return reinterpret_cast<std::uintptr_t>(memory.data); })
      .def("__len__", [](const Memory& memory) { return memory.size; });

  m.def("init", &start, py::arg("transport") = "", py::arg("timeout_seconds") = 0.0);
  m.def("check_shutdown", &check_stop);
  m.def("shutdown", &stop);
  m.def("is_initialized", [] { return is_initialized(); });
  m.def("rank", [] { return rank(); });
  m.def("size", [] { return size(); });
  m.def("local_rank", [] { return local_rank(); });
  m.def("local_size", [] { return local_size(); });
  m.def("cross_rank", [] { return cross_rank(); });
  m.def("cross_size", [] { return cross_size(); });
  m.def("is_homogeneous", [] { return is_homogeneous(); });
  m.def("transport", [] { return world().transport(); });
  m.def("shared_memory", [](std::size_t bytes) {
    const Inside inside;
    return Memory::shared(world(), bytes);
  });
  m.def("allreduce_now", &allreduce_now);
  m.def("barrier_now", [] {
    const Inside inside;
    as_operation([] { blocking([] { world().barrier(); }); });
  });

  m.def("add_process_set", [](const std::vector<int>& ranks) {
    const RunningEngine engine;
    return static_cast<int>(blocking([&] { return engine->add_process_set(ranks); }));
  });
  m.def("remove_process_set", [](int set) {
    const RunningEngine engine;
    return blocking([&] { return engine->remove_process_set(ProcessSetId{set}); });
  });
  m.def("process_set_ranks", [](int set) { return running_engine()->ranks_of(ProcessSetId{set}); });
  m.def("process_set_rank", [](int set) { return running_engine()->rank(ProcessSetId{set}); });
  m.def("process_set_size", [](int set) { return running_engine()->size(ProcessSetId{set}); });
  m.def("process_set_ids", [] {
    std::vector<int> ids;
    for (const ProcessSetId id : running_engine()->process_sets())
      ids.push_back(static_cast<int>(id));
    return ids;
  });
  m.def("join", [](int set) {
    const RunningEngine engine;
    return as_operation([&] { return blocking([&] { return engine->join(ProcessSetId{set}); }); });
  });

  m.def("start_timeline", [](const std::string& path, bool mark_cycles) {
    const RunningEngine engine;
    runtime::Internals::timeline_of(*engine)->mark_cycles(mark_cycles);
    blocking([&] { engine->start_timeline(path); });
  });
  m.def("stop_timeline", [] {
    const RunningEngine engine;
    blocking([&] { engine->stop_timeline(); });
  });

  m.def("set_custodian_program",
        [](const std::string& program) { exec::set_custodian_program(program); });
}

}  // namespace kolo::python
