// Keep-alives and a user timeout of 15 s make the end of a server noticeable on an idle connection.
// Names that are shown to users never contain the password of the URL. States of PostgreSQL become
// codes of kolo by what the caller can do: what may pass (connection, resources, shutdown, locks)
// is `unavailable`.
#include "store/postgresql_connection.h"

#include <poll.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/errors.h"
#include "base/interrupt.h"
#include "store/database.h"
#include "store/statement_words.h"

namespace kolo::store {
namespace {

using namespace std::chrono_literals;

/// Between looks whether the program was told to end.
constexpr auto kSlice = 50ms;
/// A statement may work for so many times the patience with a connection or a lock.
constexpr int kAnswers = 15;

ErrorCode code_of_state(std::string_view state) {
  if (state == "23505") return ErrorCode::already_exists;  // unique_violation
  // No state: the connection broke. 08: connection, 53: no resources (disk full), 57: the server
  // goes down, 55P03 and 40: locks.
  for (std::string_view passing : {"08", "53", "57", "55P03", "40"})
    if (state.empty() || state.starts_with(passing)) return ErrorCode::unavailable;
  if (state.starts_with("22") || state.starts_with("42") || state.starts_with("23"))
    return ErrorCode::invalid_argument;
  if (state.starts_with("XX")) return ErrorCode::corruption;
  return ErrorCode::io;
}

/// libpq's messages end with a newline and may have several lines.
std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (char& c : text)
    if (c == '\n' || c == '\t') c = ' ';
  return text;
}

/// Where postgresql://user:PASSWORD@host/… has its password, with the colon: place and length. One
/// with characters that should have been written otherwise goes on to the last @.
std::pair<std::size_t, std::size_t> password_in(std::string_view url) {
  const auto scheme = url.find("://");
  if (scheme == std::string_view::npos) return {0, 0};
  const auto at = url.find('@', scheme + 3), colon = url.find(':', scheme + 3);
  if (at == std::string_view::npos || colon >= at) return {0, 0};
  return {colon, url.rfind('@') - colon};
}

/// Without the %XX of URLs.
std::string plain(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    const char* digits = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(digits, digits + 2, code, 16).ptr == digits + 2) {
      result += static_cast<char>(code);
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

/// Whether libpq takes the same part of the URL for the password.
bool agrees_on_password(const std::string& url) {
  const auto [begin, length] = password_in(url);
  if (length == 0) return true;
  const std::string password = plain(std::string_view(url).substr(begin + 1, length - 1));
  char* why = nullptr;
  PQconninfoOption* const options = libpq().conninfo_parse(url.c_str(), &why);
  libpq().freemem(why);
  bool agrees = false;
  for (const auto* option = options; option != nullptr && option->keyword != nullptr; ++option)
    if (std::string_view(option->keyword) == "password")
      agrees = (option->val == nullptr ? "" : option->val) == password;
  libpq().conninfo_free(options);
  return agrees;
}

/// What libpq says, unless it repeats a part of the password: of a URL that it reads otherwise, it
/// does.
std::string told_by_libpq(std::string text, const std::string& url) {
  if (agrees_on_password(url)) return one_line(std::move(text));
  constexpr std::size_t kShortestPart = 3;
  const auto [begin, length] = password_in(url);
  const auto end = begin + length;
  std::string part;
  for (std::size_t i = begin; length > 0 && i <= end; ++i) {
    if (i < end && std::string_view("@/?%:&=#").find(url[i]) == std::string_view::npos) {
      part += url[i];
      continue;
    }
    if (part.size() >= kShortestPart && text.find(part) != std::string::npos)
      return "the URL cannot be used; write special characters of a password as %XX, "
             "as in %2F for / and %40 for @";
    part.clear();
  }
  return one_line(std::move(text));
}

}  // namespace

std::string without_password(const std::string& url) {
  std::string shown = url;
  const auto password = password_in(shown);
  shown.erase(password.first, password.second);
  // …?user=me&password=PASSWORD
  for (std::size_t place = shown.find('?', password.first); place < shown.size();) {
    const auto end = std::min(shown.find_first_of("&?", place + 1), shown.size());
    const auto equals = shown.find('=', place);
    if (equals < end &&
        plain(std::string_view(shown).substr(place + 1, equals - place - 1)).ends_with("password"))
      shown.replace(equals + 1, end - equals - 1, "…");
    place = shown.find_first_of("&?", place + 1);
  }
  return shown;
}

PgConnection::PgConnection(std::string url, std::chrono::milliseconds patience)
    : url_(std::move(url)), name_(without_password(url_)), patience_(patience) {
  try {
    connect();
  } catch (...) {
    abandon();
    throw;
  }
}

void PgConnection::connect() {
  abandon();
  // The URL is expanded as the name of the database; a server that vanishes is noticed.
  const char* keys[] = {"dbname",
                        "application_name",
                        "keepalives",
                        "keepalives_idle",
                        "keepalives_interval",
                        "tcp_user_timeout",
                        "client_encoding",
                        nullptr};
  const char* values[] = {url_.c_str(), "kolo", "1", "5", "2", "15000", "UTF8", nullptr};
  handle_ = libpq().connect_start_params(keys, values, 1);
  const auto patience = std::max<std::chrono::milliseconds>(2s, patience_);
  std::string host;  // a URL may name several, one after the other
  Deadline deadline = Deadline::after(patience);
  auto state =
      libpq().status(handle_) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING;
  while (state == PGRES_POLLING_READING || state == PGRES_POLLING_WRITING) {
    if (const char* next = libpq().host(handle_); next != nullptr && host != next) {
      host = next;
      deadline = Deadline::after(patience);
    }
    if (!wait(state == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline))
      give_up("cannot connect: ");
    state = libpq().connect_poll(handle_);
  }
  if (!alive())
    throw_error(ErrorCode::unavailable, "{}: cannot connect: {}", name_,
                told_by_libpq(libpq().error_message(handle_), url_));
  const std::string encoding = libpq().parameter_status(handle_, "server_encoding");
  if (encoding != "UTF8")
    throw_error(ErrorCode::failed_precondition,
                "{}: the database keeps text as {} and cannot hold all of Unicode; create it with "
                "ENCODING 'UTF8'",
                name_, encoding);
  ++generation_;
  libpq().set_nonblocking(handle_, 1);
  libpq().set_notice_processor(
      handle_, [](void*, const char*) {}, nullptr);
  execute(
      fmt::format("SET lock_timeout = {}; SET client_min_messages = warning", patience_.count()));
}

void PgConnection::ensure() {
  if (!alive()) connect();
}

PgResult PgConnection::execute(const std::string& sql) {
  return checked(answer(libpq().send_query(handle_, sql.c_str())), sql);
}

PGresult* PgConnection::answer(int sent) {
  if (sent != 1) return nullptr;
  flush();
  PgResult last;
  for (;;) {
    Deadline deadline = answer_deadline();
    while (libpq().is_busy(handle_) != 0) {
      if (!wait(POLLIN, deadline)) give_up("");
      if (libpq().consume_input(handle_) == 0) break;  // lost, which the result says
    }
    PgResult next(libpq().get_result(handle_));
    if (!next) return last.release();
    // Of several statements the first error counts. After COPY … FROM the rows are awaited.
    const auto status = libpq().result_status(next.get());
    const bool failed = last && libpq().result_status(last.get()) == PGRES_FATAL_ERROR;
    if (!failed) last = std::move(next);
    if (status == PGRES_COPY_IN) return last.release();
  }
}

void PgConnection::flush() {
  Deadline deadline = answer_deadline();
  for (int left = libpq().flush(handle_); left > 0; left = libpq().flush(handle_)) {
    if (!wait(POLLIN | POLLOUT, deadline)) give_up("");
    // A server that wants to say something may take nothing before.
    libpq().consume_input(handle_);
  }
}

bool PgConnection::wait(short events, Deadline& deadline) const {
  bool was_interrupted = false;
  for (;;) {
    const auto slice = std::min<std::chrono::nanoseconds>(deadline.left(), kSlice);
    pollfd poll{libpq().socket(handle_), events, 0};
    if (::poll(&poll, 1, Deadline::after(slice).poll_timeout_ms()) > 0) return true;
    if (deadline.passed()) return false;
    if (was_interrupted || !is_interrupted()) continue;
    was_interrupted = true;
    deadline =
        Deadline::at(std::min(deadline.when(), Deadline::after(kPatienceWhenInterrupted).when()));
  }
}

Deadline PgConnection::answer_deadline() const { return Deadline::after(kAnswers * patience_); }

void PgConnection::abandon() noexcept { libpq().finish(std::exchange(handle_, nullptr)); }

void PgConnection::give_up(std::string_view doing) {
  abandon();
  throw_error(ErrorCode::unavailable, "{}: {}the server does not answer", name_, doing);
}

PgResult PgConnection::checked(PGresult* raw, std::string_view sql) {
  PgResult result(raw);
  const auto status = libpq().result_status(raw);
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_EMPTY_QUERY)
    return result;
  const auto field = [raw](int code) {
    const char* text = raw != nullptr ? libpq().result_error_field(raw, code) : nullptr;
    return std::string(text != nullptr ? text : "");
  };
  // The whole message may quote the statement.
  std::string why = field(PG_DIAG_MESSAGE_PRIMARY);
  if (why.empty() && handle_ != nullptr) why = one_line(libpq().error_message(handle_));
  throw_error(code_of_state(field(PG_DIAG_SQLSTATE)), "{}: {}: {}", name_,
              words_of_failed(sql, name_), why.empty() ? "the connection was lost" : why);
}

}  // namespace kolo::store
