#include "base/base64.h"

#include <sodium.h>

namespace kolo {

std::string base64(std::span<const std::byte> bytes) {
  constexpr int kVariant = sodium_base64_VARIANT_ORIGINAL;
  std::string text(sodium_base64_encoded_len(bytes.size(), kVariant), '\0');  // with a final zero
  ::sodium_bin2base64(text.data(), text.size(),
                      reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), kVariant);
  text.pop_back();
  return text;
}

}  // namespace kolo
