// Proofs are HMAC-SHA-512-256 over the length of the label, the label and the text, so that no two
// pairs of label and text have the same input. The secret travels to a child in a sealed memfd,
// whose number is in the environment; the header in front of it shows that the descriptor is still
// that file.
#include "base/secret.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "base/errors.h"
#include "base/files.h"

namespace kolo {
namespace {

/// In front of the secret, so that a descriptor that is something else now is not taken for it.
constexpr std::string_view kHeader = "kolo secret 1\n";

/// Above the numbers that shells use for themselves (10…) and below bash's 255.
constexpr int kLowestNumber = 100;

void need_sodium() {
  if (::sodium_init() < 0) throw_error(ErrorCode::internal, "libsodium cannot be initialised");
}

const unsigned char* as_bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

/// Header and secret from an open file, or nothing if it is not a file of ours.
bool read_from(int fd, std::string& content) {
  content.assign(kHeader.size() + Secret::kBytes + 1, '\0');
  ssize_t got = ::pread(fd, content.data(), content.size(), 0);
  if (got != static_cast<ssize_t>(content.size() - 1)) return false;
  content.pop_back();
  return std::string_view(content).starts_with(kHeader);
}

}  // namespace

Secret Secret::random() {
  need_sodium();
  Secret secret;
  ::randombytes_buf(secret.bytes_.data(), kBytes);
  return secret;
}

Secret Secret::from_bytes(std::string_view bytes) {
  if (bytes.size() != kBytes)
    throw_error(ErrorCode::corruption, "the secret of the job has {} bytes instead of {}",
                bytes.size(), kBytes);
  Secret secret;
  std::copy(bytes.begin(), bytes.end(), secret.bytes_.begin());
  return secret;
}

Secret::~Secret() { ::sodium_memzero(bytes_.data(), kBytes); }

std::string Secret::prove(std::string_view label, std::string_view text) const {
  need_sodium();
  static_assert(crypto_auth_hmacsha512256_BYTES == kProofBytes);
  static_assert(crypto_auth_hmacsha512256_KEYBYTES == kBytes);
  crypto_auth_hmacsha512256_state state;
  ::crypto_auth_hmacsha512256_init(&state, as_bytes(bytes()), kBytes);
  const unsigned char length = static_cast<unsigned char>(label.size());
  ::crypto_auth_hmacsha512256_update(&state, &length, 1);
  ::crypto_auth_hmacsha512256_update(&state, as_bytes(label), label.size());
  ::crypto_auth_hmacsha512256_update(&state, as_bytes(text), text.size());
  std::string proof(kProofBytes, '\0');
  ::crypto_auth_hmacsha512256_final(&state, reinterpret_cast<unsigned char*>(proof.data()));
  ::sodium_memzero(&state, sizeof state);
  return proof;
}

bool Secret::check(std::string_view label, std::string_view text, std::string_view proof) const {
  const std::string expected = prove(label, text);
  return proof.size() == expected.size() &&
         ::sodium_memcmp(proof.data(), expected.data(), expected.size()) == 0;
}

std::string random_nonce() {
  need_sodium();
  std::string nonce(kNonceBytes, '\0');
  ::randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

Fd make_secret_file(const Secret& secret) {
  Fd memory(::memfd_create("kolo-secret", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.valid()) throw_errno("cannot create an anonymous file for the job's secret");
  write_all(memory.get(), kHeader, "the secret file");
  write_all(memory.get(), secret.bytes(), "the secret file");
  if (::fcntl(memory.get(), F_ADD_SEALS,
              F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0)
    throw_errno("cannot seal the secret file");
  // Where few descriptors are allowed (ulimit -n), as high as they reach.
  rlimit allowed{};
  ::getrlimit(RLIMIT_NOFILE, &allowed);
  const int lowest = static_cast<int>(std::min<rlim_t>(kLowestNumber, allowed.rlim_cur * 3 / 4));
  Fd high(::fcntl(memory.get(), F_DUPFD_CLOEXEC, lowest));
  if (!high.valid())
    throw_errno("no descriptor is left for the job's secret; raise the limit (ulimit -n)");
  return high;
}

Secret read_secret_file(int fd, int holder) {
  std::string content;
  bool found = read_from(fd, content);
  if (!found && holder > 0) {
    Fd other(::open(fmt::format("/proc/{}/fd/{}", holder, fd).c_str(), O_RDONLY | O_CLOEXEC));
    found = other.valid() && read_from(other.get(), content);
  }
  if (!found)
    throw_error(ErrorCode::failed_precondition,
                "the job's secret is not at descriptor {} (KOLO_SECRET_FD): a program between "
                "kolo run and this one has closed it, or the environment is left over from "
                "another job",
                fd);
  Secret secret = Secret::from_bytes(std::string_view(content).substr(kHeader.size()));
  ::sodium_memzero(content.data(), content.size());
  return secret;
}

}  // namespace kolo
