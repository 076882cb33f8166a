#include "tune/executor/program_run.h"

#include "base/files.h"

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
    end.last_words = parse_last_words(tail_of_file(out.path, kTailBytes, out.from), setup.metric);
  }
  return end;
}

}  // namespace kolo::tune
