#include "gloo_mesh.h"

#include <fcntl.h>
#include <gloo/transport/tcp/address.h>
#include <gloo/transport/tcp/device.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <thread>

#include "base/errors.h"
#include "base/mutex.h"
#include "gloo_address.h"

namespace kolo::comm {

using gloo::transport::tcp::Address;

namespace {

sigset_t pipe_signal() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGPIPE);
  return set;
}

}  // namespace

PipeSignalBlocked::PipeSignalBlocked() : exceptions_(std::uncaught_exceptions()) {
  const sigset_t set = pipe_signal();
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
}

PipeSignalBlocked::~PipeSignalBlocked() {
  if (::sigismember(&before_, SIGPIPE) == 1) return;  // the caller's own affair
  if (std::uncaught_exceptions() > exceptions_) {
    const sigset_t set = pipe_signal();
    const timespec now{};
    ::sigtimedwait(&set, nullptr, &now);
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

/// Gloo's thread looks at its connections every 10 ms, and making a connection waits for it a few
/// times. While a mesh is being connected the ticker keeps it awake, so that connecting takes the
/// time of the network only.
class GlooDevice {
 public:
  explicit GlooDevice(const std::string& address) : ticker_(*this) {
    gloo::transport::tcp::attr attributes(address.c_str());
    device_ = gloo::transport::tcp::CreateDevice(attributes);
    event_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (auto* tcp = dynamic_cast<gloo::transport::tcp::Device*>(device_.get());
        tcp != nullptr && event_.valid())
      tcp->registerDescriptor(event_.get(), EPOLLIN, &ticker_);
  }
  ~GlooDevice() { device_.reset(); }  // ends the thread before what it uses goes
  GlooDevice(const GlooDevice&) = delete;
  GlooDevice& operator=(const GlooDevice&) = delete;

  gloo::transport::Device& get() noexcept { return *device_; }

  /// One device per address.
  static std::shared_ptr<GlooDevice> for_address(const std::string& address) {
    static auto* mutex = new Mutex;
    static auto* devices = new std::map<std::string, std::weak_ptr<GlooDevice>>;
    MutexLock lock(*mutex);
    std::weak_ptr<GlooDevice>& known = (*devices)[address];
    std::shared_ptr<GlooDevice> device = known.lock();
    if (device == nullptr) known = device = std::make_shared<GlooDevice>(address);
    return device;
  }

  class Awake {
   public:
    explicit Awake(GlooDevice& device) : device_(device) {
      device_.users_.fetch_add(1);
      const std::uint64_t one = 1;
      [[maybe_unused]] auto written = ::write(device_.event_.get(), &one, sizeof one);
    }
    ~Awake() { device_.users_.fetch_sub(1); }
    Awake(const Awake&) = delete;
    Awake& operator=(const Awake&) = delete;

   private:
    GlooDevice& device_;
  };

 private:
  static constexpr std::chrono::microseconds kTick{100};

  class Ticker : public gloo::transport::tcp::Handler {
   public:
    explicit Ticker(GlooDevice& device) : device_(device) {}
    void handleEvents(int /*events*/) override {
      if (device_.users_.load() != 0) {
        // Still readable: the loop comes back at once. It must not burn a core in the meantime.
        std::this_thread::sleep_for(kTick);
        return;
      }
      std::uint64_t count;
      [[maybe_unused]] auto got = ::read(device_.event_.get(), &count, sizeof count);
    }

   private:
    GlooDevice& device_;
  };

  Ticker ticker_;
  Fd event_;
  std::atomic<int> users_{0};
  std::shared_ptr<gloo::transport::Device> device_;
};

GlooMesh::GlooMesh(std::shared_ptr<GlooDevice> device,
                   std::shared_ptr<gloo::transport::Context> context, std::vector<GlooLine> lines)
    : device_(std::move(device)), context_(std::move(context)), lines_(std::move(lines)) {}

GlooMesh::~GlooMesh() {
  lines_.clear();  // buffers before pairs
  context_.reset();
}

namespace {

constexpr int kAttempts = 4;
/// Between connecting and the first message. A member needs a moment, a silent stranger for ever.
constexpr std::chrono::milliseconds kHelloPatience{3000};
constexpr std::uint32_t kHelloTag = 0xffffffff;
constexpr std::size_t kTokenBytes = 32;
using Token = std::array<char, kTokenBytes>;

/// What a member tells another one before they connect.
struct Invitation {
  std::string address;  ///< Gloo's form
  Token token;          ///< to be shown by the one who was invited
};

std::string pack(const std::vector<Invitation>& invitations) {
  std::string text;
  for (const auto& invitation : invitations) {
    const auto length = static_cast<std::uint32_t>(invitation.address.size());
    text.append(reinterpret_cast<const char*>(&length), sizeof length);
    text += invitation.address;
    text.append(invitation.token.data(), invitation.token.size());
  }
  return text;
}

/// The `index`-th invitation of a packed list.
Invitation unpack(const std::string& text, int index) {
  std::size_t at = 0;
  for (int i = 0;; ++i) {
    std::uint32_t length = 0;
    if (at + sizeof length > text.size()) break;
    std::memcpy(&length, text.data() + at, sizeof length);
    at += sizeof length;
    if (length > text.size() || at + length + kTokenBytes > text.size()) break;
    if (i == index) {
      Invitation invitation{text.substr(at, length), {}};
      std::memcpy(invitation.token.data(), text.data() + at + length, kTokenBytes);
      return invitation;
    }
    at += length + kTokenBytes;
  }
  throw_error(ErrorCode::corruption, "gloo: a member's list of addresses is damaged");
}

bool same_endpoint(const sockaddr_storage& a, const sockaddr_storage& b) {
  if (a.ss_family != b.ss_family) return false;
  const auto* a4 = reinterpret_cast<const sockaddr_in*>(&a);
  const auto* b4 = reinterpret_cast<const sockaddr_in*>(&b);
  if (a.ss_family == AF_INET)
    return a4->sin_port == b4->sin_port && a4->sin_addr.s_addr == b4->sin_addr.s_addr;
  const auto* a6 = reinterpret_cast<const sockaddr_in6*>(&a);
  const auto* b6 = reinterpret_cast<const sockaddr_in6*>(&b);
  return a6->sin6_port == b6->sin6_port &&
         std::memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof a6->sin6_addr) == 0;
}

/// The descriptor of a connected pair, duplicated. Gloo does not tell it, but of all sockets of
/// this process only this one has the address that the pair listened on, or the peer's listening
/// address at its far end.
Fd socket_of_pair(const Address& mine, const Address& theirs) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::atoi(entry.path().filename().c_str());
    sockaddr_storage local{}, remote{};
    socklen_t length = sizeof remote;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&remote), &length) != 0) continue;
    length = sizeof local;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&local), &length) != 0) continue;
    if (same_endpoint(local, mine.getSockaddr()) || same_endpoint(remote, theirs.getSockaddr()))
      return Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
  }
  throw_error(ErrorCode::io, "gloo: the connection to {} has no socket", theirs.str());
}

void set_socket_timeouts(int socket, std::chrono::milliseconds timeout) {
  timeval value{.tv_sec = timeout.count() / 1000, .tv_usec = timeout.count() % 1000 * 1000};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &value, sizeof value);
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &value, sizeof value);
}

/// One attempt of one member.
class Attempt {
 public:
  Attempt(const WireSetup& setup, std::chrono::milliseconds timeout)
      : setup_(setup), timeout_(timeout), lines_(setup.world_ranks.size()) {}

  /// What the others need to know; then connect() with everybody's.
  std::string invite(const std::string& address) {
    device_ = GlooDevice::for_address(address);
    const int size = static_cast<int>(lines_.size());
    context_ = device_->get().createContext(setup_.me, size);
    context_->setTimeout(timeout_ / 5);  // Gloo waits five times this for a connection
    for (int member = 0; member < size; ++member) {
      Invitation invitation;
      if (::getrandom(invitation.token.data(), kTokenBytes, 0) != kTokenBytes)
        throw_errno("gloo: no random numbers");
      if (member != setup_.me) {
        GlooLine& line = lines_[member];
        line.pair = context_->createPair(member).get();
        const std::vector<char> bytes = line.pair->address().bytes();
        invitation.address.assign(bytes.begin(), bytes.end());
        line.send_slot = setup_.me < member ? 0 : 1;
        line.recv_slot = 1 - line.send_slot;
        line.outgoing = std::make_unique<Frame>();
        line.incoming = std::make_unique<Frame>();
        line.send_frame =
            line.pair->createSendBuffer(line.send_slot, line.outgoing.get(), sizeof(Frame));
        line.recv_frame =
            line.pair->createRecvBuffer(line.recv_slot, line.incoming.get(), sizeof(Frame));
      }
      invitations_.push_back(std::move(invitation));
    }
    return pack(invitations_);
  }

  void connect(const std::vector<std::string>& invitations) {
    const std::shared_ptr<void> guard = setup_.when_lost([this] { cancel(); });
    GlooDevice::Awake awake(*device_);
    std::vector<Token> shown(lines_.size());
    for (std::size_t member = 0; member < lines_.size(); ++member) {
      GlooLine& line = lines_[member];
      if (line.pair == nullptr) continue;
      peer_ = static_cast<int>(member);
      const Invitation theirs = unpack(invitations[member], setup_.me);
      shown[member] = theirs.token;
      const std::vector<char> bytes(theirs.address.begin(), theirs.address.end());
      const Address my_address(line.pair->address().bytes());
      enter(line.pair);
      line.pair->connect(bytes);
      leave(line, my_address, Address(bytes));
      line.pair->setSync(true, false);
      set_socket_timeouts(line.socket.get(), timeout_);
    }
    for (std::size_t member = 0; member < lines_.size(); ++member) {
      GlooLine& line = lines_[member];
      if (line.pair == nullptr) continue;
      peer_ = static_cast<int>(member);
      line.outgoing->head = {kTokenBytes, kHelloTag, 0};
      std::memcpy(line.outgoing->body, shown[member].data(), kTokenBytes);
      const PipeSignalBlocked blocked;
      line.send_frame->send(0, offsetof(Frame, body) + kTokenBytes);
      line.send_frame->waitSend();
    }
    const Deadline deadline = Deadline::after(std::min(timeout_, kHelloPatience));
    for (std::size_t member = 0; member < lines_.size(); ++member) {
      GlooLine& line = lines_[member];
      if (line.pair == nullptr) continue;
      peer_ = static_cast<int>(member);
      set_socket_timeouts(line.socket.get(), std::chrono::ceil<std::chrono::milliseconds>(
                                                 deadline.left() + std::chrono::milliseconds(1)));
      line.recv_frame->waitRecv();
      if (line.incoming->head.tag != kHelloTag ||
          std::memcmp(line.incoming->body, invitations_[member].token.data(), kTokenBytes) != 0)
        throw_error(ErrorCode::unavailable, "somebody else answered");
    }
  }

  /// Whom this member was dealing with when it failed.
  [[nodiscard]] int peer() const noexcept { return peer_; }

  std::unique_ptr<GlooMesh> take() {
    return std::make_unique<GlooMesh>(std::move(device_), std::move(context_), std::move(lines_));
  }

  ~Attempt() {
    lines_.clear();
    context_.reset();
  }

 private:
  // A member's death must not leave this one waiting for it: cancel() comes from another thread and
  // ends what is under way. Gloo waits for a connection under a lock that close() may take; while
  // it reads a socket it keeps that lock, but then shutdown(2) does it.

  void cancel() noexcept {
    MutexLock lock(cancel_mutex_);
    is_cancelled_ = true;
    for (const GlooLine& line : lines_)
      if (line.socket.valid()) ::shutdown(line.socket.get(), SHUT_RDWR);
    try {
      if (connecting_ != nullptr) connecting_->close();
    } catch (const std::exception&) {
      // It was failing already.
    }
  }

  void enter(gloo::transport::Pair* pair) {
    MutexLock lock(cancel_mutex_);
    throw_if_cancelled();
    connecting_ = pair;
  }

  void leave(GlooLine& line, const Address& mine, const Address& theirs) {
    MutexLock lock(cancel_mutex_);
    connecting_ = nullptr;
    throw_if_cancelled();
    line.socket = socket_of_pair(mine, theirs);
  }

  void throw_if_cancelled() const KOLO_REQUIRES(cancel_mutex_) {
    if (is_cancelled_) throw_error(ErrorCode::unavailable, "a rank died meanwhile");
  }

  const WireSetup& setup_;
  const std::chrono::milliseconds timeout_;
  Mutex cancel_mutex_;
  bool is_cancelled_ KOLO_GUARDED_BY(cancel_mutex_) = false;
  gloo::transport::Pair* connecting_ KOLO_GUARDED_BY(cancel_mutex_) = nullptr;
  std::shared_ptr<GlooDevice> device_;
  std::shared_ptr<gloo::transport::Context> context_;
  std::vector<GlooLine> lines_;
  std::vector<Invitation> invitations_;
  int peer_ = -1;
};

/// Members report failures in the meetings, so that all of them fail together.
constexpr char kFailed = '!';
constexpr char kFine = '+';

void throw_if_any_failed(const WireSetup& setup, const std::vector<std::string>& reports) {
  for (std::size_t member = 0; member < reports.size(); ++member)
    if (!reports[member].empty() && reports[member][0] == kFailed)
      throw_error(ErrorCode::unavailable, "cannot connect with gloo: rank {}: {}",
                  setup.world_ranks[member], reports[member].substr(1));
}

}  // namespace

std::unique_ptr<GlooMesh> connect_mesh(const WireSetup& setup) {
  std::string address, failure;
  try {
    address = choose_address(setup);
  } catch (const Error& error) {
    failure = error.message();
  }
  const auto patience = std::clamp(setup.timeout / kAttempts, std::chrono::milliseconds(500),
                                   std::chrono::milliseconds(10'000));
  for (int attempt = 1;; ++attempt) {
    Attempt mine(setup, patience);
    std::string invitation;
    try {
      if (failure.empty()) invitation = kFine + mine.invite(address);
    } catch (const std::exception& error) {
      failure = fmt::format("cannot listen on {}: {}", address, error.what());
    }
    std::vector<std::string> invitations =
        setup.allgather(failure.empty() ? invitation : kFailed + failure);
    throw_if_any_failed(setup, invitations);
    for (std::string& text : invitations) text.erase(0, 1);

    std::string report(1, kFine);
    try {
      mine.connect(invitations);
    } catch (const std::exception& error) {
      report = fmt::format("{}no connection between {} and rank {}: {}", kFailed, address,
                           mine.peer() < 0 ? -1 : setup.world_ranks[mine.peer()], error.what());
    }
    const std::vector<std::string> reports = setup.allgather(report);
    if (attempt == kAttempts) throw_if_any_failed(setup, reports);
    if (std::all_of(reports.begin(), reports.end(),
                    [](const std::string& text) { return text[0] == kFine; }))
      return mine.take();
  }
}

}  // namespace kolo::comm
