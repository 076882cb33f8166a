#include "mpi_session.h"

#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "base/errors.h"

namespace kolo::comm {
namespace {

/// Open MPI's components look for its symbols among the global ones; the plug-in was loaded with
/// its own scope. Raises the library, and what it needs, to the global scope.
void make_symbols_global() {
#if defined(OPEN_MPI)
  Dl_info library{};
  if (::dladdr(reinterpret_cast<void*>(&MPI_Init_thread), &library) != 0)
    ::dlopen(library.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
#endif
}

}  // namespace

MpiSession& MpiSession::get() {
  static auto* session = new MpiSession;  // the library behind it is never unloaded
  return *session;
}

MpiSession::MpiSession() {
  int is_initialized = 0, is_finalized = 0, level = MPI_THREAD_SINGLE;
  MPI_Finalized(&is_finalized);
  if (is_finalized != 0)
    throw_error(ErrorCode::unsupported, "MPI was ended in this process and cannot start again");
  MPI_Initialized(&is_initialized);
  if (is_initialized != 0) {
    MPI_Query_thread(&level);
  } else {
    make_symbols_global();
    const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
    if (code != MPI_SUCCESS)
      throw_error(ErrorCode::unavailable, "cannot start {}: error {}", kMpiName, code);
    is_ours_ = true;
    std::atexit(&MpiSession::finish);
  }
  is_thread_safe_ = level == MPI_THREAD_MULTIPLE;
  MPI_Comm_dup(MPI_COMM_WORLD, &world_);
  MPI_Comm_set_errhandler(world_, MPI_ERRORS_RETURN);
}

void MpiSession::finish() {
  MpiSession& session = get();
  // A child of this process that ends by exit() is none of MPI's.
  if (session.is_given_up_ || session.owner_ != ::getpid() || !is_running()) return;
  MPI_Finalize();
}

bool MpiSession::is_running() {
  int is_finalized = 0;
  MPI_Finalized(&is_finalized);
  return is_finalized == 0;
}

std::unique_lock<std::recursive_mutex> MpiSession::lock() {
  return is_thread_safe_ ? std::unique_lock<std::recursive_mutex>(mutex_, std::defer_lock)
                         : std::unique_lock<std::recursive_mutex>(mutex_);
}

std::string mpi_error_text(int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return {text, static_cast<std::size_t>(length)};
}

void MpiPatience::pause() {
  constexpr int kEagerPolls = 200;
  constexpr auto kYielding = std::chrono::microseconds(500);
  if (++polls_ < kEagerPolls) return;
  const auto waited = Deadline::Clock::now() - start_;
  if (waited < kYielding) {
    ::sched_yield();
    return;
  }
  std::this_thread::sleep_for(
      std::min<std::chrono::nanoseconds>(waited / 16, std::chrono::milliseconds(1)));
}

}  // namespace kolo::comm
