#include "fuzz/protocol_targets.h"

#include <string>

#include "base/frames.h"
#include "base/secure_stream.h"
#include "comm/activity.h"
#include "comm/elastic/messages.h"
#include "comm/rendezvous/protocol.h"
#include "engine/messages.h"
#include "exec/protocol.h"
#include "fuzz/check.h"

namespace kolo::fuzz {

void frames(std::string_view input) {
  // In pieces, as they arrive.
  FrameParser parser(4096);
  each([&] {
    for (std::size_t at = 0, step = 1; at < input.size(); at += step, step = step % 7 + 1) {
      parser.feed(input.substr(at, step));
      while (parser.next()) {
      }
    }
  });
}

void rendezvous(std::string_view input) {
  namespace protocol = comm::rendezvous;
  each([&] { require(protocol::encode(protocol::decode_hello(input)) == input); },
       [&] { require(protocol::encode(protocol::decode_challenge(input)) == input); },
       [&] { static_cast<void>(protocol::decode_meet(input)); },
       [&] {  // kinds of later versions become `unknown`
         const std::string once = protocol::encode(protocol::decode_departure(input));
         require(protocol::encode(protocol::decode_departure(once)) == once);
       },
       [&] { require(protocol::encode(protocol::decode_failure(input)) == input); },
       [&] { require(protocol::encode_met(protocol::decode_met(input)) == input); },
       [&] { require(comm::encode(comm::decode_activity(input)) == input); });
}

void membership(std::string_view input) {
  namespace elastic = comm::elastic;
  if (input.empty()) return;
  const Frame frame{static_cast<std::uint8_t>(input[0]), std::string(input.substr(1))};
  const std::string bytes = encode_frame(frame.type, frame.payload);
  each([&] { require(elastic::encode(elastic::decode_from_worker(frame)) == bytes); },
       [&] { require(elastic::encode(elastic::decode_from_launcher(frame)) == bytes); });
}

void engine(std::string_view input) {
  each([&] { static_cast<void>(runtime::decode_submit(input)); },
       [&] { static_cast<void>(runtime::decode_decisions(input)); },
       [&] { static_cast<void>(runtime::decode_lost(input)); });
}

void custodian(std::string_view input) {
  each([&] { static_cast<void>(exec::decode_hello(input)); },
       [&] { static_cast<void>(exec::decode_claim(input)); },
       [&] { static_cast<void>(exec::decode_task(input)); },
       [&] { static_cast<void>(exec::decode_output(input)); },
       [&] { static_cast<void>(exec::decode_exited(input)); },
       [&] { static_cast<void>(exec::decode_task_end(input)); },
       [&] { static_cast<void>(exec::decode_environment(input)); },
       [&] { require(exec::encode(exec::decode_reservation(input)).size() <= input.size()); },
       [&] { require(exec::encode(exec::decode_refusal(input)) == input); },
       [&] { static_cast<void>(exec::decode_holdings(input)); },
       [&] { static_cast<void>(exec::decode_host_load(input)); },
       [&] { static_cast<void>(exec::decode_lease(input)); },
       [&] { static_cast<void>(exec::decode_listen_order(input)); },
       [&] { static_cast<void>(exec::decode_listening(input)); },
       [&] { static_cast<void>(exec::decode_task_id(input)); });
}

/// Bytes of a stranger, and bytes that get among those of somebody who has proven itself.
void sealed_streams(std::string_view input) {
  using Side = SecureStream::Side;
  static const Secret secret = Secret::from_bytes(std::string(32, 'k'));
  for (const Side side : {Side::caller, Side::answerer})
    each([&] {
      SecureStream stream(side, secret);
      require(stream.receive(input).empty());
      require(stream.receive(input).empty());
    });
  SecureStream caller(Side::caller, secret), answerer(Side::answerer, secret);
  require(answerer.receive(caller.take_outgoing()).empty());
  require(caller.receive(answerer.take_outgoing()).empty());
  caller.send("hello");
  require(answerer.receive(caller.take_outgoing()) == "hello");
  each([&] { require(answerer.receive(input).empty()); });
}

}  // namespace kolo::fuzz
