// The dashboard: studies and jobs in a browser, live.
//
// One HTTP server with three kinds of answers: the files of the page, which are inside the program;
// JSON below /api; and /api/events, a stream that says what has changed, so that no page asks in
// vain. Actions are requests with POST, and go through the same functions as the commands.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "dashboard/http_limits.h"

namespace kolo::dashboard {

inline constexpr int kUsualPort = 8321;

struct DashboardOptions {
  std::string host = "127.0.0.1";
  int port = kUsualPort;            ///< 0 = any free one
  std::string storage{};            ///< URL of the database of studies
  std::filesystem::path jobs{};     ///< folder of the database of jobs; "" = none
  bool read_only = false;           ///< refuses every action
  std::string token{};              ///< what visitors must know
  std::filesystem::path actions{};  ///< file for what was done here, by whom and when; "" = none
  HttpLimits limits{};
};

class Dashboard {
 public:
  /// Serves from now on. Throws io, naming the port, if it is taken; not_found for a host that is
  /// none of this machine.
  explicit Dashboard(DashboardOptions options);
  ~Dashboard();

  [[nodiscard]] int port() const noexcept;
  /// For the browser, with the token in it: "http://127.0.0.1:8321/?token=…".
  [[nodiscard]] std::string address() const;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace kolo::dashboard
