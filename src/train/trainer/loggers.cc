#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/csv.h"
#include "base/errors.h"
#include "base/files.h"
#include "events/event_file.h"
#include "kolo/torch/callbacks.h"

namespace kolo {
namespace {

/// What cannot be written is lost: training does not end for the sake of a line.
template <typename... Values>
void show(std::FILE* out, fmt::format_string<Values...> text, Values&&... values) {
  std::fputs(fmt::format(text, std::forward<Values>(values)...).c_str(), out);
}

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

void CsvLogger::on_train_begin(Trainer&) {
  columns_.clear();
  rows_.clear();
}

/// Of a run that was ended and goes on: the epochs before.
void CsvLogger::read_epochs_before(std::uint64_t epoch) {
  if (!std::filesystem::exists(path_)) return;
  const std::string text = read_file(path_);
  std::vector<std::string> names;
  for (const std::string_view line : csv_lines(text)) {
    const auto fields = split_csv_line(line);
    if (names.empty()) {
      names = fields;
      continue;
    }
    const std::uint64_t row = std::strtoull(fields.at(0).c_str(), nullptr, 10);
    if (row == 0 || row >= epoch) continue;
    Metrics metrics;
    for (std::size_t i = 1; i < std::min(fields.size(), names.size()); ++i)
      if (!fields[i].empty()) metrics[names[i]] = std::strtod(fields[i].c_str(), nullptr);
    rows_.emplace_back(row, std::move(metrics));
  }
  if (!names.empty()) columns_.assign(names.begin() + 1, names.end());
}

void CsvLogger::on_epoch_end(Trainer& trainer, Metrics& metrics) {
  if (trainer.rank() != 0) return;
  if (rows_.empty() && trainer.epoch() > 0) read_epochs_before(trainer.epoch() + 1);
  // The end of an epoch in which a rank was lost comes again.
  std::erase_if(rows_, [&](const auto& row) { return row.first > trainer.epoch(); });
  for (const auto& [name, value] : metrics)
    if (std::find(columns_.begin(), columns_.end(), name) == columns_.end())
      columns_.push_back(name);
  rows_.emplace_back(trainer.epoch() + 1, metrics);  // as the progress bar counts
  std::vector<std::string> fields{"epoch"};
  fields.insert(fields.end(), columns_.begin(), columns_.end());
  std::string text = csv_line(fields);
  for (const auto& [epoch, values] : rows_) {
    fields.assign(1, std::to_string(epoch));
    for (const std::string& column : columns_) {
      const auto found = values.find(column);
      fields.push_back(found == values.end() ? "" : fmt::format("{}", found->second));
    }
    text += csv_line(fields);
  }
  write_file_atomically(path_, text);
}

TensorBoardLogger::TensorBoardLogger(std::filesystem::path directory)
    : directory_(std::move(directory)) {}
TensorBoardLogger::~TensorBoardLogger() = default;

void TensorBoardLogger::on_train_begin(Trainer& trainer) {
  if (trainer.rank() != 0) return;
  std::filesystem::create_directories(directory_);
  file_ = std::make_unique<events::EventFile>(directory_, wall_time());
}

void TensorBoardLogger::on_reset(Trainer& trainer) {
  if (file_ == nullptr) on_train_begin(trainer);
}

void TensorBoardLogger::on_epoch_end(Trainer& trainer, Metrics& metrics) {
  if (file_ == nullptr) return;
  const std::vector<std::pair<std::string, double>> values(metrics.begin(), metrics.end());
  file_->scalars(values, static_cast<std::int64_t>(trainer.epoch() + 1), wall_time());
  file_->flush();
}

ProgressBar::ProgressBar(std::FILE* out) : out_(out), is_terminal_(isatty(fileno(out)) != 0) {}

void ProgressBar::on_epoch_begin(Trainer&) { begun_ = drawn_ = Clock::now(); }

void ProgressBar::on_step_end(Trainer& trainer, double loss) {
  constexpr auto kRedraw = std::chrono::milliseconds(100);
  const auto now = Clock::now();
  if (trainer.rank() != 0 || !is_terminal_ || now - drawn_ < kRedraw) return;
  drawn_ = now;
  constexpr std::size_t kWidth = 30;
  const std::size_t total = std::max<std::size_t>(1, trainer.steps_per_epoch());
  const std::size_t filled = std::min(kWidth, kWidth * trainer.step_of_epoch() / total);
  show(out_, "\repoch {}/{} [{:=<{}}{: <{}}] {}/{} loss {:.4f}", trainer.epoch() + 1,
       trainer.epochs(), "", filled, "", kWidth - filled, trainer.step_of_epoch(), total, loss);
  std::fflush(out_);
}

void ProgressBar::on_epoch_end(Trainer& trainer, Metrics& metrics) {
  if (trainer.rank() != 0) return;
  const double seconds = std::chrono::duration<double>(Clock::now() - begun_).count();
  show(out_, "{}epoch {}/{}  {:.1f} s", is_terminal_ ? "\r\x1b[K" : "", trainer.epoch() + 1,
       trainer.epochs(), seconds);
  for (const auto& [name, value] : metrics) show(out_, "  {} {:.4g}", name, value);
  show(out_, "\n");
  std::fflush(out_);
}

}  // namespace kolo
