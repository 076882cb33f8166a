#include "tune/executor/program_run.h"

#include "base/errors.h"
#include "base/files.h"
#include "tune/protocol/value_text.h"

namespace kolo::tune {
namespace {

constexpr std::size_t kTailBytes = 64U << 10;  // enough for a last line

std::string last_lines(const RunOutput& output) {
  constexpr std::size_t kMost = 2000;
  std::string text = tail_of_file(output.path, kTailBytes, output.from);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (text.size() > kMost) text.erase(0, text.size() - kMost);
  return text;
}

/// Whether the last line began before what was read.
bool is_cut_off(std::string_view tail) {
  if (tail.size() < kTailBytes) return false;
  tail.remove_suffix(tail.ends_with('\n') ? 1 : 0);
  return tail.find('\n') == std::string_view::npos;
}

/// The result that a program has printed. Throws invalid_argument, saying why it cannot be read.
std::optional<Value> result_in(const RunOutput& out, const std::string& metric) {
  const std::string tail = tail_of_file(out.path, kTailBytes, out.from);
  if (is_cut_off(tail)) {
    if (metric.empty()) return std::nullopt;  // it may be for people
    throw_error(ErrorCode::invalid_argument,
                "its last line of output has more than {} KiB, so '{}' is not looked for in it; "
                "print less, or report with `kolo report`",
                kTailBytes >> 10, metric);
  }
  auto result = parse_last_words(tail, metric);
  if (result) require_shallow(*result, "its last line of output");
  return result;
}

}  // namespace

RunOutput::RunOutput(std::filesystem::path file) : path(std::move(file)) {
  std::error_code none;
  const auto size = std::filesystem::file_size(path, none);
  if (!none) from = size;
}

std::optional<Message> ProgramRun::take(TrialLine line) {
  switch (line.kind) {
    case TrialLine::Kind::hello: saves_on_request = line.saves_on_request; return std::nullopt;
    case TrialLine::Kind::failure: failure = std::move(line.error); return std::nullopt;
    case TrialLine::Kind::result: result = std::move(line); return std::nullopt;
    case TrialLine::Kind::report:
    case TrialLine::Kind::checkpoint: break;
  }
  Message message{
      line.kind == TrialLine::Kind::report ? Message::Kind::report : Message::Kind::checkpoint, id};
  message.metrics = std::move(line.metrics);
  message.checkpoint = std::move(line.checkpoint);
  message.iteration = line.iteration;
  message.saves_on_request = saves_on_request;
  reported = true;
  return message;
}

ReportFile::Rest ProgramRun::hear(ReportFile& file, bool has_ended, Inbox& inbox) {
  if (inbox.has_taken(last_put)) file.let_go_on();
  const auto rest = file.read(has_ended, [&](TrialLine line) {
    const bool is_report = line.kind == TrialLine::Kind::report;
    auto message = take(std::move(line));
    if (is_report && known > 0)
      --known;
    else if (message)
      last_put = inbox.put(std::move(*message));
  });
  if (rest == ReportFile::Rest::too_much)
    failure = fmt::format("more than {} MiB of {} wait to be read; report less, or less often",
                          ReportFile::kMostUnread >> 20, file.path().string());
  return rest;
}

void ProgramRun::refuse(const std::string& why) {
  failure = "what it sent cannot be understood: " + why;
}

Message ProgramRun::end(std::string error, const RunOutput& err, const ExecutorSetup& setup) const {
  Message end{Message::Kind::ended, id};
  end.error = std::move(error);
  if (!failure.empty()) {
    end.error = failure;
  } else if (!end.error.empty()) {
    if (const auto said = last_lines(err); !said.empty()) end.error += "; it said:\n" + said;
  } else if (result) {
    end.last_words = result->metrics;
    end.checkpoint = result->checkpoint;
  } else if (setup.last_line_reports && !reported) {
    try {
      end.last_words = result_in(out, setup.metric);
    } catch (const Error& refusal) {
      end.error = refusal.message();
    }
  }
  return end;
}

}  // namespace kolo::tune
