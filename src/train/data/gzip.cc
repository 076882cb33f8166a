#include "train/data/gzip.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "base/errors.h"
#include "base/files.h"

namespace kolo::train {
namespace {

struct Inflater {
  z_stream stream{};
  Inflater() {
    constexpr int kGzipOnly = 15 + 16;
    if (inflateInit2(&stream, kGzipOnly) != Z_OK)
      throw_error(ErrorCode::unavailable, "gunzip: no memory");
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
};

}  // namespace

std::size_t most_unpacked() {
  return static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) / 2;
}

std::string gunzip_if_needed(std::string bytes, std::string_view origin, std::size_t most) {
  if (!bytes.starts_with("\x1f\x8b")) return bytes;
  Inflater inflater;
  z_stream& stream = inflater.stream;
  constexpr std::size_t kMost = std::numeric_limits<uInt>::max() / 2;
  std::string output;
  std::size_t taken = 0, filled = 0;
  for (int status = Z_OK; status != Z_STREAM_END;) {
    if (filled == output.size()) output.resize(std::max<std::size_t>(output.size() * 2, 1 << 16));
    const std::size_t in = std::min(bytes.size() - taken, kMost);
    const std::size_t out = std::min(output.size() - filled, kMost);
    stream.next_in = reinterpret_cast<Bytef*>(bytes.data() + taken);
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(output.data() + filled);
    stream.avail_out = static_cast<uInt>(out);
    status = inflate(&stream, Z_NO_FLUSH);
    const std::size_t read = in - stream.avail_in, written = out - stream.avail_out;
    taken += read;
    filled += written;
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
      throw_error(ErrorCode::corruption, "{}: damaged gzip data at byte {}: {}", origin, taken,
                  stream.msg != nullptr ? stream.msg : "bad stream");
    if (status != Z_STREAM_END && read == 0 && written == 0)
      throw_error(ErrorCode::corruption, "{}: the gzip data ends too early, after {} bytes", origin,
                  bytes.size());
    if (filled > most)
      throw_error(ErrorCode::corruption, "{}: the gzip data unpacks to more than {} bytes", origin,
                  most);
    // Members may follow each other; together they are the file.
    if (status == Z_STREAM_END && taken < bytes.size()) {
      inflateReset(&stream);
      status = Z_OK;
    }
  }
  output.resize(filled);
  return output;
}

std::string read_maybe_gzipped(const std::filesystem::path& path) {
  return gunzip_if_needed(read_file(path), path.string());
}

}  // namespace kolo::train
