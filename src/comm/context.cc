// Joining a job, in order: who am I (Bootstrap), who has died (Liveness), memory to share (Arena),
// and the group of all ranks (transport). The default Context behind kolo::init() is an ordinary
// one.
#include "kolo/context.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/deadline.h"
#include "base/env.h"
#include "base/errors.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/process_owned.h"
#include "comm/activity_reporter.h"
#include "comm/bootstrap.h"
#include "comm/internals.h"
#include "comm/liveness.h"
#include "comm/network_interface.h"
#include "comm/shutdown_hooks.h"
#include "comm/transports.h"

namespace kolo {
namespace {

constexpr std::chrono::seconds kDefaultTimeout{300};

constexpr std::size_t kLeastSegment = std::size_t{64} << 20;

/// Room in the address space for all ranks of a host, whatever their number.
constexpr std::size_t kAddressSpace = std::size_t{16} << 40;

std::chrono::milliseconds timeout_of(const ContextOptions& options) {
  if (options.timeout.count() > 0)
    return std::min<std::chrono::milliseconds>(options.timeout, kLongestTime);
  for (const char* name : {"TIMEOUT_SECONDS", "GLOO_TIMEOUT_SECONDS"}) {
    const auto value = setting_seconds(name);
    if (!value) continue;
    if (value->count() == 0)
      throw_error(ErrorCode::invalid_argument, "{}='{}' must be more than 0; unset it for {:g} s",
                  setting_variable(name), setting(name).value_or(""),
                  std::chrono::duration<double>(kDefaultTimeout).count());
    return *value;
  }
  return kDefaultTimeout;
}

/// Meeting the others for the first time has a limit of its own, which `kolo run` passes on.
std::chrono::milliseconds start_patience(std::chrono::milliseconds timeout) {
  const auto given = setting_seconds("START_TIMEOUT");
  return given && given->count() > 0 ? *given : timeout;
}

std::size_t segment_bytes(const ContextOptions& options, const Topology& topology) {
  std::size_t bytes = options.shared_memory_bytes;
  if (bytes == 0) {
    if (auto value = setting_count("SHARED_MEMORY_BYTES"); value && *value > 0)
      bytes = static_cast<std::size_t>(*value);
    else
      bytes = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) *
              static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  }
  bytes = std::min(bytes, kAddressSpace / static_cast<std::size_t>(topology.local_size()));
  rlimit largest_file{};  // which segments are to the kernel
  if (::getrlimit(RLIMIT_FSIZE, &largest_file) == 0)
    bytes = std::min<std::size_t>(bytes, largest_file.rlim_cur);
  constexpr std::size_t kPage = 4096;
  return std::max(bytes / kPage * kPage, kLeastSegment);
}

}  // namespace

/// A fork of this process may end a Context that the program owns, and leaves the job to its
/// parent.
struct Context::State {
  struct Joined {
    std::shared_ptr<comm::Bootstrap> bootstrap;
    std::shared_ptr<comm::Liveness> liveness;
    std::unique_ptr<comm::ActivityReporter> reporter;
    std::shared_ptr<comm::Arena> arena;
    std::unique_ptr<Communicator> world;
  };
  ProcessOwned<Joined> joined;
};

Context::Context(ContextOptions options) : state_(std::make_unique<State>()) {
  const auto timeout = timeout_of(options);
  State::Joined& state = state_->joined.emplace();
  state.bootstrap = options.bootstrap != nullptr
                        ? options.bootstrap
                        : comm::make_bootstrap_from_environment(start_patience(timeout), timeout);
  const Topology& topology = state.bootstrap->topology();
  if (options.bootstrap == nullptr) log::set_rank(topology.size() > 1 ? topology.rank() : -1);
  state.liveness = std::make_shared<comm::Liveness>(state.bootstrap);
  state.reporter = comm::make_activity_reporter(state.bootstrap);
  state.arena =
      std::make_shared<comm::Arena>(comm::Segment::create(segment_bytes(options, topology)));

  comm::TransportOptions transport;
  transport.transport =
      !options.transport.empty() ? options.transport : setting("TRANSPORT").value_or("auto");
  transport.timeout = timeout;
  transport.network_interface = comm::network_interface_setting();
  std::shared_ptr<comm::Group> group =
      comm::make_world_group(state.bootstrap, state.arena, state.liveness, transport);
  log::info("rank {} of {} ({} on this host, {} hosts), started by {}, transport {}",
            topology.rank(), topology.size(), topology.local_size(), topology.host_count(),
            state.bootstrap->describe(), group->describe());
  state.world = comm::Internals::make(std::move(group), topology, state.arena);
}

Context::~Context() = default;

Communicator& Context::world() noexcept { return *state_->joined->world; }
const Topology& Context::topology() const noexcept { return state_->joined->bootstrap->topology(); }

// --- the default Context -------------------------------------------------------------------------

namespace {

/// Threads of a program may all begin with init(): one of them joins the job, the others wait for
/// it. Who asks for the Context does not wait, not even for another thread's shutdown().
struct DefaultContext {
  Mutex mutex;
  // Ends with the process: a rank that returns from main() has left, and says so.
  ProcessOwned<Context> context KOLO_GUARDED_BY(mutex);
  std::atomic<Context*> current = nullptr;
};

DefaultContext& default_context() {
  static DefaultContext context;
  return context;
}

std::vector<std::function<void()>>& shutdown_hooks() {
  static std::vector<std::function<void()>> hooks;
  return hooks;
}

}  // namespace

void comm::at_shutdown(std::function<void()> action) {
  shutdown_hooks().push_back(std::move(action));
}

void init(const ContextOptions& options) {
  DefaultContext& shared = default_context();
  MutexLock lock(shared.mutex);
  if (!shared.context) shared.current = &shared.context.emplace(options);
}
void shutdown() {
  DefaultContext& shared = default_context();
  MutexLock lock(shared.mutex);
  const auto& hooks = shutdown_hooks();
  for (auto hook = hooks.rbegin(); hook != hooks.rend(); ++hook) (*hook)();
  shared.current = nullptr;
  shared.context.reset();
}
bool is_initialized() noexcept { return default_context().current != nullptr; }

Communicator& world() {
  Context* const context = default_context().current;
  if (context == nullptr)
    throw_error(ErrorCode::failed_precondition, "kolo::init() has not been called; call it first");
  return context->world();
}

int rank() { return world().topology().rank(); }
int size() { return world().topology().size(); }
int local_rank() { return world().topology().local_rank(); }
int local_size() { return world().topology().local_size(); }
int cross_rank() { return world().topology().cross_rank(); }
int cross_size() { return world().topology().cross_size(); }
bool is_homogeneous() { return world().topology().is_homogeneous(); }

}  // namespace kolo
