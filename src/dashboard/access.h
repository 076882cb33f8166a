// Who may ask the dashboard for anything: whoever shows the token, from a page of the dashboard.
//
// The token is in the address that is printed once. The first visit turns it into a cookie that no
// script can read and that no other site's page makes the browser send. The Host that is asked for
// must be an address or a name of this machine, so that a name under somebody else's control which
// suddenly means 127.0.0.1 opens nothing.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/secret.h"

namespace kolo::dashboard {

/// What a request says about where it comes from. "" = the header is missing.
struct Claims {
  std::string host{}, origin{}, cookie{}, authorization{};
  std::string token{};  ///< of the address
  bool changes_something = false;
};

class Access {
 public:
  /// `host` is where the server listens: an address or a name.
  Access(std::string token, std::string host, int port);

  [[nodiscard]] const std::string& token() const noexcept { return token_; }
  /// Whether a token, in the address, the cookie or "Authorization: Bearer", is the right one.
  [[nodiscard]] bool knows(const Claims& claims) const;
  /// Why a request is refused whoever sends it; nothing if Host and Origin are right.
  [[nodiscard]] std::optional<std::string> objection(const Claims& claims) const;
  /// The value of Set-Cookie.
  [[nodiscard]] std::string cookie() const;

 private:
  [[nodiscard]] bool is_token(std::string_view text) const;

  std::string token_, host_, cookie_name_;
  Secret key_ = Secret::random();
  std::string proof_;
};

/// The token in this file, which is made, for its owner alone, if it is not there: a dashboard that
/// is started again knows the browsers that were there before. Throws io.
std::string kept_token(const std::filesystem::path& file);

}  // namespace kolo::dashboard
