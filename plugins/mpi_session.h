// MPI in this process: started once, ended when the process ends, and kept from burning a core.
#pragma once

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <unistd.h>

#include <mutex>
#include <string>
#include <vector>

#include "base/deadline.h"

namespace kolo::comm {

#if defined(OPEN_MPI)
inline constexpr const char* kMpiPlugin = "openmpi";
inline constexpr const char* kMpiName = "Open MPI";
#else
inline constexpr const char* kMpiPlugin = "mpich";
inline constexpr const char* kMpiName = "MPICH";
#endif

class MpiSession {
 public:
  /// Starts MPI unless the program has done so. Throws unsupported if MPI was ended already.
  static MpiSession& get();

  /// Held around every call of MPI unless it allows calls from several threads at once.
  [[nodiscard]] std::unique_lock<std::recursive_mutex> lock();

  /// MPI can still be called: false once the process is ending.
  [[nodiscard]] static bool is_running();

  /// A rank was lost: MPI_Finalize would wait for it.
  void give_up() noexcept { is_given_up_ = true; }

  /// MPI_COMM_WORLD with messages of kolo alone.
  [[nodiscard]] MPI_Comm world() const noexcept { return world_; }

 private:
  MpiSession();
  static void finish();

  std::recursive_mutex mutex_;
  bool is_thread_safe_ = false;
  bool is_ours_ = false;
  bool is_given_up_ = false;
  const pid_t owner_ = ::getpid();
  MPI_Comm world_ = MPI_COMM_NULL;
};

/// What MPI says about an error code.
std::string mpi_error_text(int code);

/// MPI has no call that sleeps until something happens. Between polls: at first nothing, then the
/// core is given away, then short sleeps that grow with the time waited, up to a millisecond.
class MpiPatience {
 public:
  void pause();

 private:
  Deadline::Clock::time_point start_ = Deadline::Clock::now();
  int polls_ = 0;
};

}  // namespace kolo::comm
