// What is sent waits in parcels, and flush() writes as much as the other end takes. Small frames
// share a parcel; one with descriptors begins a new one, because they travel with its first byte
// and so arrive no later than their frame. What comes is skipped up to the greeting, where one is
// expected: a login shell may print something first.
#include "exec/channel.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

#include "base/errors.h"
#include "base/pipe.h"
#include "base/socket.h"

namespace kolo::exec {
namespace {

/// What a login shell may print before the custodian speaks.
constexpr std::size_t kNoiseLimit = 1U << 20;
/// Frames are gathered into parcels of about this size, so that many small ones cost one call.
constexpr std::size_t kParcelBytes = 256U << 10;
/// Descriptors of one message; tasks pass one or two.
constexpr std::size_t kMostDescriptors = 16;

}  // namespace

Channel::Channel(Fd in, Fd out) : in_(std::move(in)), out_(std::move(out)) {
  set_non_blocking(in_.get());
  set_non_blocking(out_.get());
}

Channel::Channel(Fd socket) : in_(std::move(socket)), is_socket_(true) {
  set_non_blocking(in_.get());
}

Channel::Channel(Fd socket, SecureStream secure) : Channel(std::move(socket)) {
  secure_.emplace(std::move(secure));
  queue(secure_->take_outgoing(), {});
}

void Channel::close() {
  in_.reset();
  out_.reset();
  outbox_.clear();
  pending_bytes_ = sent_ = 0;
}

void Channel::send(std::string_view bytes, const std::vector<int>& descriptors) {
  if (closed()) return;
  if (secure_) {
    KOLO_CHECK(descriptors.empty());
    secure_->send(bytes);
    queue(secure_->take_outgoing(), {});
  } else {
    queue(bytes, descriptors);
  }
}

void Channel::queue(std::string_view bytes, const std::vector<int>& descriptors) {
  if (bytes.empty()) return;
  KOLO_CHECK(descriptors.empty() || (is_socket_ && descriptors.size() <= kMostDescriptors));
  const bool joins = descriptors.empty() && !outbox_.empty() &&
                     outbox_.back().bytes.size() + bytes.size() <= kParcelBytes;
  if (!joins) outbox_.emplace_back();
  Parcel& parcel = outbox_.back();
  for (const int fd : descriptors) {
    parcel.descriptors.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
    if (!parcel.descriptors.back().valid()) throw_errno("cannot pass on a descriptor");
  }
  parcel.bytes.append(bytes);
  pending_bytes_ += bytes.size();
}

void Channel::flush() {
  while (!outbox_.empty()) {
    Parcel& parcel = outbox_.front();
    const long written = write_some(parcel, sent_);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) return;
    if (written < 0) {  // the reading end will tell
      // But not why no connection was made: the system says that once.
      if (reason_.empty() && errno != EPIPE && errno != ECONNRESET) reason_ = std::strerror(errno);
      outbox_.clear();
      pending_bytes_ = sent_ = 0;
      return;
    }
    parcel.descriptors.clear();  // they went with the first byte
    sent_ += static_cast<std::size_t>(written);
    pending_bytes_ -= static_cast<std::size_t>(written);
    if (sent_ < parcel.bytes.size()) continue;
    outbox_.pop_front();
    sent_ = 0;
  }
}

long Channel::write_some(Parcel& parcel, std::size_t offset) {
  char* data = parcel.bytes.data() + offset;
  const std::size_t size = parcel.bytes.size() - offset;
  if (!is_socket_) return write_to_pipe(out_.get(), {data, size});
  iovec part{data, size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMostDescriptors)> control{};
  if (!parcel.descriptors.empty()) {
    const std::size_t bytes = sizeof(int) * parcel.descriptors.size();
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(bytes);
    std::array<int, kMostDescriptors> numbers{};
    for (std::size_t i = 0; i < parcel.descriptors.size(); ++i)
      numbers[i] = parcel.descriptors[i].get();
    std::memcpy(CMSG_DATA(header), numbers.data(), bytes);
  }
  return ::sendmsg(in_.get(), &message, MSG_NOSIGNAL);
}

long Channel::read_some(char* data, std::size_t size) {
  if (!is_socket_) return ::read(in_.get(), data, size);
  iovec part{data, size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMostDescriptors)> control{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(in_.get(), &message, MSG_CMSG_CLOEXEC);
  if (got < 0) return got;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    std::array<int, kMostDescriptors> numbers{};
    const std::size_t bytes = header->cmsg_len - CMSG_LEN(0);
    std::memcpy(numbers.data(), CMSG_DATA(header), bytes);
    for (std::size_t i = 0; i < bytes / sizeof(int); ++i) descriptors_.emplace_back(numbers[i]);
  }
  return got;
}

/// Whether the greeting has come; what follows it is fed to the parser.
bool Channel::skip_to_greeting(std::string_view bytes) {
  before_greeting_.append(bytes);
  const auto at = before_greeting_.find(greeting_);
  if (at == std::string::npos) {
    if (before_greeting_.size() > kNoiseLimit)
      throw_error(ErrorCode::corruption,
                  "the login shell prints more than {} bytes and kolo does not answer; check that "
                  "kolo is installed there (--remote-kolo gives its path)",
                  kNoiseLimit);
    return false;
  }
  parser_.feed(std::string_view(before_greeting_).substr(at + greeting_.size()));
  before_greeting_.clear();
  greeting_ = {};
  return true;
}

std::vector<Frame> Channel::receive() {
  std::vector<Frame> frames;
  std::array<char, 65536> chunk;
  const long got = read_some(chunk.data(), chunk.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return frames;
  if (got <= 0) {
    if (got < 0) reason_ = std::strerror(errno);
    close();
    return frames;
  }
  std::string_view bytes(chunk.data(), static_cast<std::size_t>(got));
  std::string plain;
  if (secure_) {
    plain = secure_->receive(bytes);
    queue(secure_->take_outgoing(), {});
    flush();  // what waited for the keys
    bytes = plain;
  }
  if (greeting_.empty())
    parser_.feed(bytes);
  else if (!skip_to_greeting(bytes))
    return frames;
  while (auto frame = parser_.next()) frames.push_back(std::move(*frame));
  return frames;
}

Fd Channel::take_descriptor() {
  if (descriptors_.empty()) return {};
  Fd first = std::move(descriptors_.front());
  descriptors_.pop_front();
  return first;
}

}  // namespace kolo::exec
