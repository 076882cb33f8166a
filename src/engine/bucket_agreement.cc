// What ranks agree on before gradients are put into buckets: that they train the same parameters,
// and the order in which gradients come.
#include <algorithm>

#include "base/errors.h"
#include "engine/bucket_plan.h"

namespace kolo::runtime {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

/// Where the parameters of two ranks part, in words.
std::string difference(const std::string& a, const std::string& b, int rank_a, int rank_b) {
  const auto mine = lines_of(a), theirs = lines_of(b);
  for (std::size_t i = 0; i < std::max(mine.size(), theirs.size()); ++i) {
    const std::string left = i < mine.size() ? mine[i] : "nothing";
    const std::string right = i < theirs.size() ? theirs[i] : "nothing";
    if (left != right)
      return fmt::format("parameter {} is {} on rank {} and {} on rank {}", i, left, rank_a, right,
                         rank_b);
  }
  return "nothing";
}

}  // namespace

void check_same_parameters(Communicator& communicator, std::span<const ParameterInfo> parameters) {
  const std::string text = describe(parameters);
  const std::uint64_t mine = hash_of(text);
  std::vector<std::int64_t> hashes = communicator.allgather(
      std::span<const std::int64_t>(reinterpret_cast<const std::int64_t*>(&mine), 1));
  if (std::all_of(hashes.begin(), hashes.end(), [&](auto hash) { return hash == hashes[0]; }))
    return;
  std::vector<char> all;
  const auto counts = communicator.allgather(text.data(), text.size(), 1, DataType::uint8,
                                             [&](std::span<const std::size_t> sizes) {
                                               std::size_t total = 0;
                                               for (const std::size_t size : sizes) total += size;
                                               all.resize(total);
                                               return static_cast<void*>(all.data());
                                             });
  std::vector<std::string> texts;
  std::size_t place = 0;
  for (const std::size_t count : counts) {
    texts.emplace_back(all.data() + place, count);
    place += count;
  }
  for (std::size_t r = 1; r < texts.size(); ++r)
    if (texts[r] != texts[0])
      throw_error(ErrorCode::invalid_argument,
                  "DistributedOptimizer: ranks do not train the same parameters: {}",
                  difference(texts[0], texts[r], 0, static_cast<int>(r)));
}

std::vector<std::uint32_t> agree_on_order(Communicator& communicator, std::size_t parameters,
                                          std::vector<std::uint32_t> came) {
  std::vector<bool> is_there(parameters);
  for (const std::uint32_t index : came) is_there[index] = true;
  for (std::size_t i = parameters; i-- > 0;)
    if (!is_there[i]) came.push_back(static_cast<std::uint32_t>(i));
  communicator.broadcast(came.data(), came.size(), DataType::int32, 0);
  return came;
}

}  // namespace kolo::runtime
