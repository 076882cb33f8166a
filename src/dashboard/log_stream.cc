#include "dashboard/log_stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/fd.h"
#include "base/json.h"
#include "base/utf8.h"

namespace kolo::dashboard {
namespace {

constexpr std::size_t kMost = 64 * 1024;

/// A letter that is not complete yet waits for its rest, as long as one may be coming.
std::size_t whole_letters(const std::string& bytes) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, bytes.size()); ++back) {
    const auto byte = static_cast<unsigned char>(bytes[bytes.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;
    const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return length > back ? bytes.size() - back : bytes.size();
  }
  return bytes.size();
}

}  // namespace

LogStream::LogStream(std::vector<File> files) {
  for (auto& file : files) files_.push_back({std::move(file)});
}

std::string LogStream::news() {
  std::string events;
  for (auto& [file, place, is_begun] : files_) {
    const Fd opened(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat about {};
    if (!opened.valid() || ::fstat(opened.get(), &about) != 0 || !S_ISREG(about.st_mode)) continue;
    const auto size = static_cast<std::size_t>(about.st_size);
    const bool again = size < place;
    if (!std::exchange(is_begun, true) || again || size - place > kMost)
      place = size - std::min(size, kMost);
    std::string bytes(size - place, '\0');
    const auto got = ::pread(opened.get(), bytes.data(), bytes.size(), static_cast<off_t>(place));
    bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    bytes.resize(whole_letters(bytes));
    if (bytes.empty() && !again) continue;
    place += bytes.size();
    Json event{{"file", file.name}, {"text", plain_utf8(bytes)}};
    if (again) event["again"] = true;
    events += fmt::format("data: {}\n\n", json_text(event));
  }
  return events;
}

}  // namespace kolo::dashboard
