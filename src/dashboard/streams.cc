// Answers without an end: what has changed, and what programs print.
#include <fmt/format.h>

#include "base/deadline.h"
#include "dashboard/dashboard_body.h"

namespace kolo::dashboard {
namespace {

using namespace std::chrono_literals;

constexpr const char* kEvents = "/api/events";
constexpr const char* kFollow = "/api/follow";
constexpr auto kHeartbeat = 10s;
constexpr auto kLogsEvery = 200ms;
constexpr const char* kHello = "retry: 1000\nevent: hello\ndata: {}\n\n";
constexpr const char* kStillHere = ": still here\n\n";

}  // namespace

bool is_stream(const Request& request) {
  return request.path == kEvents || request.path == kFollow;
}

/// Server-sent events. A page that comes back after a break reads everything again, so an event
/// needs to tell only that something is new.
void Dashboard::Body::set_events() {
  server.Get(kEvents, [this](const Request&, Response& response) {
    auto last = std::make_shared<std::int64_t>(feed.newest());
    auto begun = std::make_shared<bool>(false);
    response.set_chunked_content_provider(
        "text/event-stream", [this, last, begun](std::size_t, httplib::DataSink& sink) {
          std::string text;
          if (!std::exchange(*begun, true)) text = kHello;
          if (text.empty()) {
            for (const auto& change : feed.after(*last, kHeartbeat)) {
              text += fmt::format("data: {}\n\n", change.text);
              *last = change.number;
            }
            if (text.empty()) text = kStillHere;
          }
          if (server.stopping()) return false;
          return sink.write(text.data(), text.size());
        });
  });
}

/// Where the output of a trial or of a job is.
std::vector<LogStream::File> Dashboard::Body::logs_of(const Request& request) {
  if (request.has_param("job"))
    return {{"output", jobs.output_of(number_in(request.get_param_value("job"), "job"))}};
  const auto folder =
      studies.directory_of(needed(request, "name"), number_in(needed(request, "trial"), "trial"));
  return {{"stdout", folder / "stdout"}, {"stderr", folder / "stderr"}};
}

void Dashboard::Body::set_logs() {
  server.Get(kFollow, [this](const Request& request, Response& response) {
    auto logs = std::make_shared<LogStream>(logs_of(request));
    auto begun = std::make_shared<bool>(false);
    response.set_chunked_content_provider(
        "text/event-stream", [this, logs, begun](std::size_t, httplib::DataSink& sink) {
          std::string text;
          if (!std::exchange(*begun, true)) text = kHello;
          const Deadline heartbeat = Deadline::after(kHeartbeat);
          for (text += logs->news(); text.empty() && !heartbeat.passed(); text = logs->news())
            if (!feed.pause(kLogsEvery)) return false;
          if (text.empty()) text = kStillHere;
          return sink.write(text.data(), text.size());
        });
  });
}

}  // namespace kolo::dashboard
