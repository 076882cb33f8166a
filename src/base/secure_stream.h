// An encrypted stream between two processes that share a secret, each of which proves itself to the
// other. It holds no socket: bytes go in, bytes come out.
//
//   caller    kOpening, its one-time key, proof of the secret over both
//   answerer  its one-time key, proof over both one-time keys
//   then each side sends the header of its sealed stream, and chunks: u32 length, sealed bytes
//
// Whoever does not know the secret is not answered with a single byte. The keys of a connection
// come from the exchange of the one-time keys (X25519) and the secret together: traffic that was
// recorded stays closed even to those who learn the secret later, and who repeats a recorded
// opening gets no further. Chunks that are changed, left out, repeated or exchanged are corruption.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/secret.h"

namespace kolo {

class SecureStream {
 public:
  enum class Side { caller, answerer };

  SecureStream(Side side, const Secret& secret);
  ~SecureStream();
  SecureStream(SecureStream&&) noexcept;
  SecureStream& operator=(SecureStream&&) noexcept;

  /// Seals the bytes; before the keys are known they wait.
  void send(std::string_view plain);
  /// What has to be written to the other side now, in order.
  [[nodiscard]] std::string take_outgoing();

  /// Takes bytes of the other side as they arrive. Returns what they say; it was said by somebody
  /// who knows the secret. Throws failed_precondition for a proof that is wrong, corruption for
  /// sealed bytes that are.
  [[nodiscard]] std::string receive(std::string_view bytes);

 private:
  struct Keys;

  void take_opening();
  void take_answer();
  void begin_session(std::string_view their_key);
  std::string open_chunks();
  void seal_waiting();

  Side side_;
  Secret secret_;
  std::unique_ptr<Keys> keys_;
  bool is_keyed_ = false;      // we can seal
  bool is_receiving_ = false;  // the other side's header is here
  std::string incoming_, outgoing_, waiting_;
};

}  // namespace kolo
