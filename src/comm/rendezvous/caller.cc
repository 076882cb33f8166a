#include "comm/rendezvous/caller.h"

#include "base/errors.h"

namespace kolo::comm::rendezvous {

Frame receive_frame(int socket, std::size_t limit, Deadline deadline, std::string_view peer) {
  std::string prefix(4, '\0');
  recv_exactly(socket, prefix.data(), prefix.size(), deadline, peer);
  const std::size_t length = ByteReader(prefix).u32();
  if (length == 0 || length > limit)
    throw_error(ErrorCode::corruption,
                "{} sent a message of {} bytes, which kolo never does; another program probably "
                "listens there",
                peer, length);
  Frame message;
  recv_exactly(socket, &message.type, 1, deadline, peer);
  message.payload.resize(length - 1);
  recv_exactly(socket, message.payload.data(), message.payload.size(), deadline, peer);
  return message;
}

Caller::Caller(const SocketAddress& address, Purpose purpose, int rank, Deadline deadline,
               std::string place)
    : place_(std::move(place)),
      hello_(encode(Hello{purpose, rank, random_nonce()})),
      socket_(connect_tcp(address, deadline)) {
  send_all(socket_.get(), frame(Message::hello, hello_), deadline, place_);
}

Fd Caller::prove(const Secret& secret, Deadline deadline) {
  const auto receive = [&](Message awaited) {
    Frame message = receive_frame(socket_.get(), kHandshakeLimit, deadline, place_);
    if (message.type != static_cast<std::uint8_t>(awaited))
      throw_error(ErrorCode::corruption,
                  "{} uses another protocol; run kolo and the program in the same version", place_);
    return message;
  };
  const Frame challenge = receive(Message::challenge);
  send_all(socket_.get(),
           frame(Message::proof, answer_challenge(secret, hello_, challenge.payload)), deadline,
           place_);
  receive(Message::welcome);
  return std::move(socket_);
}

bool Caller::was_dropped(const Error& error) {
  return error.code() == ErrorCode::unavailable &&
         error.message().ends_with("closed the connection");
}

}  // namespace kolo::comm::rendezvous
