// A process's membership in a job: who it is, how it meets the others, the world communicator.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "kolo/communicator.h"

namespace kolo {

namespace comm {
class Bootstrap;
}

struct ContextOptions {
  /// How ranks meet. Null: from the environment (kolo run, mpirun, srun, or alone).
  std::shared_ptr<comm::Bootstrap> bootstrap;

  /// "auto", or a name from `kolo list transports`. Empty: KOLO_TRANSPORT, else auto.
  std::string transport;

  /// How long an operation may wait for another rank before that rank is given up.
  /// Zero: KOLO_TIMEOUT_SECONDS, else 300 s.
  std::chrono::milliseconds timeout{0};

  /// Upper bound of memory that Buffers and staging may take, per rank (address space, not use).
  /// Zero: KOLO_SHARED_MEMORY_BYTES, else the size of the machine's memory.
  std::size_t shared_memory_bytes = 0;
};

/// Joins the job on construction (collective), leaves it on destruction.
/// Leaving is not collective: a rank that others still wait for becomes their peer_lost.
class Context {
 public:
  explicit Context(ContextOptions options = {});
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// All ranks.
  [[nodiscard]] Communicator& world() noexcept;
  [[nodiscard]] const Topology& topology() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// --- one default Context, for programs that are one rank of one job ------------------------------

/// Joins the job. Does nothing if already initialised. Several threads may call it, but not while
/// another one calls shutdown().
void init(const ContextOptions& options = {});
/// Leaves the job; init() may be called again. Does nothing if not initialised.
void shutdown();
[[nodiscard]] bool is_initialized() noexcept;

/// The default Context's world. These throw failed_precondition before init().
[[nodiscard]] Communicator& world();
[[nodiscard]] int rank();
[[nodiscard]] int size();
[[nodiscard]] int local_rank();
[[nodiscard]] int local_size();
[[nodiscard]] int cross_rank();
[[nodiscard]] int cross_size();
[[nodiscard]] bool is_homogeneous();

}  // namespace kolo
