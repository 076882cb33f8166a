#include "base/secure_stream.h"

#include <sodium.h>

#include <algorithm>

#include "base/errors.h"
#include "base/frames.h"

namespace kolo {
namespace {

constexpr std::string_view kOpening = "kolo secure 1\n";
constexpr std::size_t kKeyBytes = crypto_scalarmult_BYTES;
constexpr std::size_t kHeaderBytes = crypto_secretstream_xchacha20poly1305_HEADERBYTES;
constexpr std::size_t kSealBytes = crypto_secretstream_xchacha20poly1305_ABYTES;
constexpr std::size_t kLengthBytes = 4;
/// Of a chunk, before it is sealed.
constexpr std::size_t kChunkBytes = 64U << 10;

constexpr std::string_view kCallerProof = "kolo secure stream: caller";
constexpr std::string_view kAnswererProof = "kolo secure stream: answerer";
constexpr std::string_view kCallerKey = "kolo secure stream: key of the caller";
constexpr std::string_view kAnswererKey = "kolo secure stream: key of the answerer";

unsigned char* bytes_of(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }
const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

struct SecureStream::Keys {
  Keys() : own_secret(random_nonce()), own(kKeyBytes, '\0') {
    static_assert(kNonceBytes == crypto_scalarmult_SCALARBYTES);
    ::crypto_scalarmult_base(bytes_of(own), bytes_of(own_secret));
  }
  ~Keys() {
    ::sodium_memzero(own_secret.data(), own_secret.size());
    ::sodium_memzero(&sealing, sizeof sealing);
    ::sodium_memzero(&opening, sizeof opening);
  }
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;

  std::string own_secret, own;
  crypto_secretstream_xchacha20poly1305_state sealing{}, opening{};
  std::string opening_key;
};

SecureStream::SecureStream(Side side, const Secret& secret)
    : side_(side), secret_(secret), keys_(std::make_unique<Keys>()) {
  if (side_ == Side::answerer) return;
  outgoing_ = kOpening;
  outgoing_ += keys_->own;
  outgoing_ += secret_.prove(kCallerProof, keys_->own);
}

SecureStream::~SecureStream() = default;
SecureStream::SecureStream(SecureStream&&) noexcept = default;
SecureStream& SecureStream::operator=(SecureStream&&) noexcept = default;

void SecureStream::send(std::string_view plain) {
  waiting_ += plain;
  if (is_keyed_) seal_waiting();
}

std::string SecureStream::take_outgoing() { return std::exchange(outgoing_, {}); }

std::string SecureStream::receive(std::string_view bytes) {
  incoming_ += bytes;
  if (!is_keyed_) side_ == Side::caller ? take_answer() : take_opening();
  return is_keyed_ ? open_chunks() : std::string();
}

void SecureStream::take_opening() {
  const std::string_view said = incoming_;
  const auto known = said.substr(0, kOpening.size());
  if (known != kOpening.substr(0, known.size()))
    throw_error(ErrorCode::failed_precondition, "it does not open a secure stream");
  constexpr std::size_t kSize = kOpening.size() + kKeyBytes + kProofBytes;
  if (said.size() < kSize) return;
  const std::string key(said.substr(kOpening.size(), kKeyBytes));
  if (!secret_.check(kCallerProof, key, said.substr(kOpening.size() + kKeyBytes, kProofBytes)))
    throw_error(ErrorCode::failed_precondition, "the proof is wrong");
  incoming_.erase(0, kSize);
  outgoing_ = keys_->own + secret_.prove(kAnswererProof, key + keys_->own);
  begin_session(key);
}

void SecureStream::take_answer() {
  constexpr std::size_t kSize = kKeyBytes + kProofBytes;
  if (incoming_.size() < kSize) return;
  const std::string key = incoming_.substr(0, kKeyBytes);
  if (!secret_.check(kAnswererProof, keys_->own + key,
                     std::string_view(incoming_).substr(kKeyBytes, kProofBytes)))
    throw_error(ErrorCode::failed_precondition, "the proof is wrong");
  incoming_.erase(0, kSize);
  begin_session(key);
}

void SecureStream::begin_session(std::string_view their_key) {
  std::string shared(kKeyBytes, '\0');
  if (::crypto_scalarmult(bytes_of(shared), bytes_of(keys_->own_secret), bytes_of(their_key)) != 0)
    throw_error(ErrorCode::failed_precondition, "the one-time key is no key");
  const bool is_caller = side_ == Side::caller;
  shared += is_caller ? keys_->own : their_key;
  shared += is_caller ? their_key : keys_->own;
  std::string sealing_key = secret_.prove(is_caller ? kCallerKey : kAnswererKey, shared);
  keys_->opening_key = secret_.prove(is_caller ? kAnswererKey : kCallerKey, shared);
  std::string header(kHeaderBytes, '\0');
  ::crypto_secretstream_xchacha20poly1305_init_push(&keys_->sealing, bytes_of(header),
                                                    bytes_of(sealing_key));
  for (std::string* used : {&shared, &sealing_key, &keys_->own_secret})
    ::sodium_memzero(used->data(), used->size());
  outgoing_ += header;
  is_keyed_ = true;
  seal_waiting();
}

void SecureStream::seal_waiting() {
  for (std::size_t at = 0; at < waiting_.size(); at += kChunkBytes) {
    const std::string_view plain = std::string_view(waiting_).substr(at, kChunkBytes);
    std::string sealed(plain.size() + kSealBytes, '\0');
    ::crypto_secretstream_xchacha20poly1305_push(&keys_->sealing, bytes_of(sealed), nullptr,
                                                 bytes_of(plain), plain.size(), nullptr, 0, 0);
    ByteWriter chunk;
    outgoing_ += chunk.string(sealed).bytes();
  }
  waiting_.clear();
}

std::string SecureStream::open_chunks() {
  std::size_t at = 0;
  if (!is_receiving_) {
    if (incoming_.size() < kHeaderBytes) return {};
    ::crypto_secretstream_xchacha20poly1305_init_pull(&keys_->opening, bytes_of(incoming_),
                                                      bytes_of(keys_->opening_key));
    ::sodium_memzero(keys_->opening_key.data(), keys_->opening_key.size());
    is_receiving_ = true;
    at = kHeaderBytes;
  }
  std::string plain;
  while (incoming_.size() - at >= kLengthBytes) {
    const std::string_view rest = std::string_view(incoming_).substr(at);
    const std::size_t length = ByteReader(rest).u32();
    if (length <= kSealBytes || length > kChunkBytes + kSealBytes)
      throw_error(ErrorCode::corruption, "a sealed chunk has {} bytes", length);
    if (rest.size() < kLengthBytes + length) break;
    const auto start = plain.size();
    plain.resize(start + length - kSealBytes);
    unsigned char tag = 0;
    if (::crypto_secretstream_xchacha20poly1305_pull(
            &keys_->opening, bytes_of(plain) + start, nullptr, &tag,
            bytes_of(rest.substr(kLengthBytes)), length, nullptr, 0) != 0)
      throw_error(ErrorCode::corruption, "a sealed chunk was changed on its way");
    at += kLengthBytes + length;
  }
  incoming_.erase(0, at);
  return plain;
}

}  // namespace kolo
