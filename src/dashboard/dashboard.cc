#include "dashboard/dashboard.h"

#include <fmt/format.h>

#include <charconv>

#include "base/errors.h"
#include "base/socket.h"
#include "dashboard/assets.h"
#include "dashboard/dashboard_body.h"

namespace kolo::dashboard {
namespace {

/// Nothing from elsewhere is loaded, framed or run; no address, with its token, is passed on.
const httplib::Headers kSafety = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
     "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cache-Control", "no-store"},
};

int status_for(ErrorCode code) {
  switch (code) {
    case ErrorCode::not_found: return 404;
    case ErrorCode::invalid_argument: return 400;
    case ErrorCode::failed_precondition: return 409;
    case ErrorCode::unavailable: return 503;
    default: return 500;
  }
}

void answer(Response& response, const Json& json, int status = 200) {
  response.status = status;
  response.set_content(json_text(json), "application/json");
}
void refuse(Response& response, int status, const std::string& why) {
  answer(response, {{"error", why}}, status);
}

Claims claims_of(const Request& request) {
  return {.host = request.get_header_value("Host"),
          .origin = request.get_header_value("Origin"),
          .cookie = request.get_header_value("Cookie"),
          .authorization = request.get_header_value("Authorization"),
          .token = request.get_param_value("token"),
          .changes_something = request.method != "GET" && request.method != "HEAD"};
}

std::size_t number_or(const Request& request, const char* name, std::size_t fallback,
                      std::size_t most) {
  if (!request.has_param(name)) return fallback;
  return std::min(static_cast<std::size_t>(number_in(request.get_param_value(name), name)), most);
}

Fd listen_at(const std::string& host, int port) {
  const auto addresses = resolve_host(host);
  if (addresses.empty())
    throw_error(ErrorCode::not_found, "--host {}: there is no such host", host);
  try {
    return listen_tcp(addresses.front().with_port(static_cast<std::uint16_t>(port)));
  } catch (const Error& error) {
    throw_error(error.code(),
                "cannot listen on {}, port {}: {}; choose another port with --port, or let the "
                "system choose with --port 0",
                host, port, error.message());
  }
}

}  // namespace

std::string needed(const Request& request, const char* name) {
  if (!request.has_param(name))
    throw_error(ErrorCode::invalid_argument, "the parameter '{}' is missing", name);
  return request.get_param_value(name);
}

std::int64_t number_in(const std::string& text, const char* name) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || last != end || number < 0)
    throw_error(ErrorCode::invalid_argument, "{}: '{}' is not a whole number", name, text);
  return number;
}

Dashboard::Body::Body(DashboardOptions given)
    : options(std::move(given)),
      studies(options.storage,
              [this](const std::string& name) {
                feed.publish(json_text({{"study", name}}));
              }),
      jobs(options.jobs),
      machines([this] {
        feed.publish(json_text({{"cluster", true}}));
      }),
      actions(options.actions),
      server(options.limits) {
  Fd listener = listen_at(options.host, options.port);
  port = local_address_of(listener.get()).port();
  access = std::make_unique<Access>(options.token, options.host, port);
  set_rules();
  set_study_routes();
  set_job_routes();
  set_machine_routes();
  set_events();
  set_logs();
  watch = std::make_unique<ChangeWatch>(options.storage, jobs, feed);
  server.serve(std::move(listener));
}

Dashboard::Body::~Body() {
  feed.close();
  server.stop_serving();
}

/// For every request, before anything else.
void Dashboard::Body::set_rules() {
  server.set_default_headers(kSafety);
  server.set_payload_max_length(options.limits.request_bytes);
  server.knows = [this](const Request& request) { return access->knows(claims_of(request)); };
  server.is_stream = is_stream;
  server.set_pre_routing_handler([this](const Request& request, Response& response) {
    const Claims claims = claims_of(request);
    const auto handled = httplib::Server::HandlerResponse::Handled;
    if (const auto objection = access->objection(claims)) {
      refuse(response, 403, *objection);
      return handled;
    }
    if (!access->knows(claims)) {
      refuse(response, 401,
             "open the address with the token that `kolo dashboard` has printed; a program sends "
             "the token as 'Authorization: Bearer TOKEN'");
      return handled;
    }
    // Not by a redirection: a browser that came from another site would follow it without the
    // cookie. The page takes the token out of its address.
    if (!claims.token.empty()) response.set_header("Set-Cookie", access->cookie());
    return httplib::Server::HandlerResponse::Unhandled;
  });
  server.set_exception_handler([](const Request&, Response& response, std::exception_ptr thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      refuse(response, status_for(error.code()), error.message());
    } catch (const std::exception& error) {
      refuse(response, 500, error.what());
    }
  });
  server.set_error_handler([](const Request&, Response& response) {
    if (response.body.empty()) refuse(response, response.status, "there is nothing of this name");
  });
  for (const auto& asset : assets())
    server.Get(std::string(asset.path), [asset](const Request&, Response& response) {
      response.set_content(asset.content.data(), asset.content.size(), std::string(asset.type));
    });
}

void Dashboard::Body::get(const char* path, std::function<Json(const Request&)> make) {
  server.Get(path, [make = std::move(make)](const Request& request, Response& response) {
    answer(response, make(request));
  });
}

/// An action: its JSON goes into the log together with what became of it.
void Dashboard::Body::post(const char* path, std::function<Json(const Json&)> act) {
  server.Post(path, [this, path, act = std::move(act)](const Request& request, Response& response) {
    if (options.read_only) return refuse(response, 403, "this dashboard was started --read-only");
    const auto wish = try_parse_json(request.body);
    if (!wish || !wish->is_object())
      return refuse(response, 400, "the body of an action is an object of JSON");
    try {
      answer(response, act(*wish));
      actions.note(request.remote_addr, path, *wish, "done");
    } catch (const Error& error) {
      actions.note(request.remote_addr, path, *wish, error.what());
      throw;
    }
  });
}

void Dashboard::Body::set_study_routes() {
  get("/api/about", [this](const Request&) {
    return Json{{"read_only", options.read_only},
                {"jobs", jobs.present()},
                {"storage", store::without_password(options.storage)}};
  });
  get("/api/studies", [this](const Request&) { return studies.studies(); });
  get("/api/summary", [this](const Request& r) { return studies.summary(needed(r, "name")); });
  get("/api/study", [this](const Request& r) {
    return studies.study(needed(r, "name"), r.get_param_value("filter"));
  });
  get("/api/importance",
      [this](const Request& r) { return studies.importance(needed(r, "name")); });
  get("/api/curves", [this](const Request& r) {
    return studies.curves(needed(r, "name"), needed(r, "metric"), r.get_param_value("filter"));
  });
  get("/api/trial", [this](const Request& r) {
    return studies.trial(needed(r, "name"), number_in(needed(r, "trial"), "trial"));
  });
  get("/api/trials", [this](const Request& r) {
    return studies.trials({.study = needed(r, "name"),
                           .filter = r.get_param_value("filter"),
                           .sort = r.get_param_value("sort"),
                           .descending = r.get_param_value("desc") == "1",
                           .offset = number_or(r, "offset", 0, 1'000'000'000),
                           .limit = number_or(r, "limit", 100, 1000)});
  });
  post("/api/stop", [this](const Json& wish) {
    const auto name = json_field<std::string>(wish, "study", "the request");
    std::optional<std::int64_t> trial;
    if (wish.contains("trial")) trial = json_field<std::int64_t>(wish, "trial", "the request");
    studies.stop(name, trial);
    return Json{{"stopping", name}};
  });
  post("/api/add", [this](const Json& wish) {
    const auto name = json_field<std::string>(wish, "study", "the request");
    studies.add_trials(name, json_field<std::int64_t>(wish, "count", "the request"));
    return Json{{"added_to", name}};
  });
}

void Dashboard::Body::set_job_routes() {
  get("/api/jobs", [this](const Request& r) {
    return jobs.jobs(r.get_param_value("state"), number_or(r, "limit", 200, 5000));
  });
  get("/api/graph", [this](const Request& r) { return jobs.graph(needed(r, "workflow")); });
  get("/api/job", [this](const Request& r) { return jobs.job(number_in(needed(r, "id"), "id")); });
  post("/api/kill", [this](const Json& wish) {
    return Json{{"killed", jobs.kill(json_field<std::int64_t>(wish, "job", "the request"))}};
  });
}

void Dashboard::Body::set_machine_routes() {
  get("/api/runs", [](const Request&) { return MachinePages::runs(); });
  get("/api/run", [](const Request& r) { return MachinePages::run(needed(r, "id")); });
  get("/api/cluster", [this](const Request&) { return machines.clusters(); });
  post("/api/drain", [this](const Json& wish) {
    const bool undo = wish.value("undo", false);
    return Json{
        {"left", machines.drain(json_field<std::string>(wish, "cluster", "the request"),
                                json_field<std::string>(wish, "host", "the request"), !undo)}};
  });
}

Dashboard::Dashboard(DashboardOptions options)
    : body_(std::make_unique<Body>(std::move(options))) {}
Dashboard::~Dashboard() = default;

int Dashboard::port() const noexcept { return body_->port; }

std::string Dashboard::address() const {
  const auto& host = body_->options.host;
  const bool six = host.find(':') != std::string::npos;
  return fmt::format("http://{}{}{}:{}/?token={}", six ? "[" : "", host, six ? "]" : "",
                     body_->port, body_->access->token());
}

}  // namespace kolo::dashboard
