// Connections of Gloo between all members, made so that strangers cannot take a place in them.
//
// Debian's Gloo (0.5) gives every pair a listening socket of its own and closes it once somebody
// has connected: there is no port to talk to afterwards, but during the few milliseconds of
// connecting a stranger could be the first to come. So each side shows a random token that the
// other one gave it through WireSetup::allgather; if any pair does not get the right one, all
// members throw the connections away and try again.
//
// The pairs are switched to Gloo's synchronous mode: the thread that waits does the reading and
// writing itself. In the other mode each message passes through Gloo's own thread, which costs two
// wake-ups (about 40 µs each in a virtual machine).
#pragma once

#include <gloo/transport/buffer.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>
#include <signal.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/fd.h"
#include "comm/wire/messenger.h"

namespace kolo::comm {

/// Gloo writes to sockets in a way that raises SIGPIPE when the other end is gone; while this
/// exists, the calling thread gets an error instead.
class PipeSignalBlocked {
 public:
  PipeSignalBlocked();
  ~PipeSignalBlocked();
  PipeSignalBlocked(const PipeSignalBlocked&) = delete;
  PipeSignalBlocked& operator=(const PipeSignalBlocked&) = delete;

 private:
  sigset_t before_;
  int exceptions_;
};

/// In front of every message.
struct FrameHead {
  std::uint64_t bytes = 0;  ///< of the message
  std::uint32_t tag = 0;
  std::uint32_t reserved = 0;
};

/// A head, with the message behind it if that is short. What one put into slot `head` carries.
struct Frame {
  static constexpr std::size_t kBodyBytes = Messenger::kSmallBytes;
  FrameHead head;
  alignas(16) std::byte body[kBodyBytes];
};

/// One connected pair. Gloo's buffers are addressed by slot; a send buffer and a receive buffer of
/// the same pair must not share one (destroying either forgets the slot), so the member with the
/// lower index sends on even slots, the other on odd ones.
struct GlooLine {
  gloo::transport::Pair* pair = nullptr;  ///< owned by the context
  Fd socket;  ///< a duplicate of the pair's: to wait for it, and to end its waits
  int send_slot = 0, recv_slot = 0;  ///< of frames; + 2 for bodies
  std::unique_ptr<Frame> outgoing, incoming;
  std::unique_ptr<gloo::transport::Buffer> send_frame, recv_frame;
};

/// Gloo's device: the address it listens on and its thread. Shared by the meshes of a process.
class GlooDevice;

class GlooMesh {
 public:
  GlooMesh(std::shared_ptr<GlooDevice> device, std::shared_ptr<gloo::transport::Context> context,
           std::vector<GlooLine> lines);
  ~GlooMesh();
  GlooMesh(const GlooMesh&) = delete;
  GlooMesh& operator=(const GlooMesh&) = delete;

  [[nodiscard]] std::vector<GlooLine>& lines() noexcept { return lines_; }

 private:
  std::shared_ptr<GlooDevice> device_;  // outlives the context
  std::shared_ptr<gloo::transport::Context> context_;
  std::vector<GlooLine> lines_;  // by member; the one of this rank is empty
};

/// Collective over the members. Throws unavailable, naming the members that could not be reached.
std::unique_ptr<GlooMesh> connect_mesh(const WireSetup& setup);

}  // namespace kolo::comm
