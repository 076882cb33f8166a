// The secret that the ranks of one job share, and how it reaches a process unseen.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace kolo {

/// 32 random bytes; wiped when destroyed. It is never written to a log, a command line, an
/// environment variable or a socket: only proofs of knowing it are.
class Secret {
 public:
  static constexpr std::size_t kBytes = 32;

  static Secret random();
  /// Throws corruption unless there are exactly kBytes.
  static Secret from_bytes(std::string_view bytes);

  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret();

  [[nodiscard]] std::string_view bytes() const noexcept { return {bytes_.data(), kBytes}; }

  /// HMAC-SHA-512-256 over `label` and `text`; the label separates the uses of one secret.
  [[nodiscard]] std::string prove(std::string_view label, std::string_view text) const;
  /// Whether `proof` is what prove() gives, in constant time.
  [[nodiscard]] bool check(std::string_view label, std::string_view text,
                           std::string_view proof) const;

 private:
  Secret() = default;
  std::array<char, kBytes> bytes_{};
};

inline constexpr std::size_t kProofBytes = 32;
inline constexpr std::size_t kNonceBytes = 32;
/// Fresh random bytes.
std::string random_nonce();

/// An anonymous, sealed file that holds the secret, for children to inherit: it passes through
/// `sh -c`, `env` and the like, and can be read any number of times. Its number is high enough to
/// stay out of the way of shells. Not close-on-exec is left to the one who starts the child.
Fd make_secret_file(const Secret& secret);

/// Reads it back from an inherited descriptor. If a wrapper on the way has closed that, from the
/// process `holder` (> 0) that still has it open, which only the same user may do.
/// Throws failed_precondition, saying what may have closed it.
Secret read_secret_file(int fd, int holder);

}  // namespace kolo
