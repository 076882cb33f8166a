#include "dashboard/access.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/errors.h"
#include "base/files.h"
#include "base/socket.h"

namespace kolo::dashboard {
namespace {

constexpr std::string_view kLabel = "dashboard token";
constexpr std::size_t kTokenLetters = 48;

std::string new_token() {
  const Secret secret = Secret::random();
  std::string token;
  for (const unsigned char byte : secret.bytes()) token += fmt::format("{:02x}", byte);
  token.resize(kTokenLetters);
  return token;
}

bool is_address(const std::string& host) {
  try {
    static_cast<void>(SocketAddress::from_numeric(host));
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// "localhost:8321" -> "localhost", "[::1]:8321" -> "::1".
std::string name_in(std::string_view host) {
  if (host.starts_with('[')) return std::string(host.substr(1, host.find(']') - 1));
  return std::string(host.substr(0, host.find(':')));
}

/// The value of one cookie among "a=1; b=2".
std::string_view cookie_in(std::string_view all, std::string_view name) {
  while (!all.empty()) {
    const auto end = std::min(all.find(';'), all.size());
    std::string_view one = all.substr(0, end);
    all.remove_prefix(std::min(end + 1, all.size()));
    while (one.starts_with(' ')) one.remove_prefix(1);
    if (one.starts_with(name) && one.substr(name.size()).starts_with('='))
      return one.substr(name.size() + 1);
  }
  return {};
}

}  // namespace

Access::Access(std::string token, std::string host, int port)
    : token_(std::move(token)),
      host_(std::move(host)),
      cookie_name_(fmt::format("kolo_dashboard_{}", port)),
      proof_(key_.prove(kLabel, token_)) {}

bool Access::is_token(std::string_view text) const {
  return !text.empty() && key_.check(kLabel, text, proof_);
}

bool Access::knows(const Claims& claims) const {
  constexpr std::string_view kBearer = "Bearer ";
  const std::string_view authorization = claims.authorization;
  return is_token(claims.token) || is_token(cookie_in(claims.cookie, cookie_name_)) ||
         (authorization.starts_with(kBearer) && is_token(authorization.substr(kBearer.size())));
}

std::optional<std::string> Access::objection(const Claims& claims) const {
  const std::string name = name_in(claims.host);
  if (name != "localhost" && name != host_ && !is_address(name))
    return "the dashboard does not answer under this name; use the address that it printed";
  const bool own = claims.origin == "http://" + claims.host ||
                   claims.origin == "https://" + claims.host;  // behind something that has TLS
  // A browser says for every change where the page came from that makes it; programs have a bearer
  // token, which no browser adds by itself.
  if (claims.origin.empty() && claims.changes_something && claims.authorization.empty())
    return "a change needs an Origin, which is the dashboard's own page";
  if (!claims.origin.empty() && !own) return "pages of other sites get nothing here";
  return std::nullopt;
}

std::string Access::cookie() const {
  return fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age=2592000", cookie_name_,
                     token_);
}

std::string kept_token(const std::filesystem::path& file) {
  const auto usable = [](const std::string& text) {
    return text.size() == kTokenLetters &&
           text.find_first_not_of("0123456789abcdef") == std::string::npos;
  };
  try {
    if (std::string token = read_file(file); usable(token)) return token;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found) throw;
  }
  std::filesystem::create_directories(file.parent_path());
  std::string token = new_token();
  write_file_atomically(file, token, kPrivateFile);
  return token;
}

}  // namespace kolo::dashboard
