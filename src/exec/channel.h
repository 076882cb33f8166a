// Frames over a stream of bytes, without blocking: the ground that both ends of a link stand on.
//
// The stream is a pair of pipes or one socket. Over a Unix socket descriptors travel beside the
// bytes: those sent with a frame have arrived when the frame has. Over a network everything is
// sealed.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/frames.h"
#include "base/secure_stream.h"

namespace kolo::exec {

class Channel {
 public:
  Channel() = default;
  /// A pair of pipes; both become non-blocking.
  Channel(Fd in, Fd out);
  /// One socket for both directions.
  explicit Channel(Fd socket);
  /// The same, sealed; the socket may still be connecting.
  Channel(Fd socket, SecureStream secure);

  /// What comes before this text is not looked at: login shells like to talk first.
  void expect(std::string_view greeting) { greeting_ = greeting; }

  // Descriptors to poll; -1 = not now.
  [[nodiscard]] int read_fd() const noexcept { return in_.get(); }
  [[nodiscard]] int write_fd() const noexcept { return outbox_.empty() ? -1 : write_end(); }

  /// Queues bytes (frames) and what they carry; flush() sends them. Descriptors are duplicated.
  void send(std::string_view bytes, const std::vector<int>& descriptors = {});
  /// Sends what can be sent now. A stream that is broken throws nothing: reading will tell.
  void flush();
  [[nodiscard]] std::size_t pending_bytes() const noexcept { return pending_bytes_; }

  /// Frames that have come; reads once. Throws corruption, and failed_precondition if the other
  /// side does not know the secret.
  std::vector<Frame> receive();
  /// The next descriptor that came beside the frames; an invalid one if there is none.
  Fd take_descriptor();

  /// The other side has closed its end, or the stream is broken: nothing more will come.
  [[nodiscard]] bool closed() const noexcept { return !in_.valid(); }
  void close();
  /// Why it is closed, if the system said why: "Connection refused".
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }

 private:
  struct Parcel {
    std::string bytes;
    std::vector<Fd> descriptors;
  };

  [[nodiscard]] int write_end() const noexcept { return is_socket_ ? in_.get() : out_.get(); }
  void queue(std::string_view bytes, const std::vector<int>& descriptors);
  long read_some(char* data, std::size_t size);
  long write_some(Parcel& parcel, std::size_t offset);
  bool skip_to_greeting(std::string_view bytes);

  Fd in_, out_;
  std::optional<SecureStream> secure_;
  std::string reason_;
  bool is_socket_ = false;
  std::deque<Parcel> outbox_;
  std::size_t sent_ = 0;  // of the first parcel
  std::size_t pending_bytes_ = 0;
  std::deque<Fd> descriptors_;
  FrameParser parser_{64U << 20};
  std::string_view greeting_;
  std::string before_greeting_;
};

}  // namespace kolo::exec
