// What a Dashboard is made of, for the files that set up its routes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "dashboard/access.h"
#include "dashboard/action_log.h"
#include "dashboard/change_feed.h"
#include "dashboard/change_watch.h"
#include "dashboard/dashboard.h"
#include "dashboard/http_server.h"
#include "dashboard/job_pages.h"
#include "dashboard/log_stream.h"
#include "dashboard/machine_pages.h"
#include "dashboard/study_pages.h"

namespace kolo::dashboard {

using httplib::Request;
using httplib::Response;

/// Answers that go on as long as both sides live.
[[nodiscard]] bool is_stream(const Request& request);

/// A parameter of the address. Throws invalid_argument if it is missing.
std::string needed(const Request& request, const char* name);
/// Throws invalid_argument unless the text is a whole number, not below 0.
std::int64_t number_in(const std::string& text, const char* name);

struct Dashboard::Body {
  explicit Body(DashboardOptions given);
  ~Body();

  void set_rules();
  void set_study_routes();
  void set_job_routes();
  void set_machine_routes();
  void set_events();
  void set_logs();
  std::vector<LogStream::File> logs_of(const Request& request);
  void get(const char* path, std::function<Json(const Request&)> make);
  void post(const char* path, std::function<Json(const Json&)> act);

  DashboardOptions options;
  int port = 0;
  std::unique_ptr<Access> access;
  ChangeFeed feed;
  StudyPages studies;
  JobPages jobs;
  MachinePages machines;
  ActionLog actions;
  HttpServer server;
  std::unique_ptr<ChangeWatch> watch;
};

}  // namespace kolo::dashboard
