#include "tune/protocol/report_file.h"

#include <fstream>

#include "base/errors.h"

namespace kolo::tune {

void ReportFile::read(bool trial_has_ended, const std::function<void(TrialLine)>& take) {
  std::ifstream file(path_, std::ios::binary);
  if (!file.seekg(static_cast<std::streamoff>(offset_))) return;  // it has not said anything yet
  for (std::string line; std::getline(file, line);) {
    const bool is_whole = !file.eof();
    if (!is_whole && !trial_has_ended) return;
    offset_ += line.size() + (is_whole ? 1 : 0);
    if (line.size() > kLongestLine)
      throw_error(ErrorCode::invalid_argument, "a line is longer than {} bytes", kLongestLine);
    if (!line.empty()) take(parse_trial_line(line));
  }
}

}  // namespace kolo::tune
