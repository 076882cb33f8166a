#include "search/scheduler/ordered_values.h"

#include <algorithm>
#include <cmath>

namespace kolo::search {
namespace {

constexpr std::size_t kMaxBlock = 512;

}  // namespace

std::size_t OrderedValues::block_for(double value) const noexcept {
  auto found = std::lower_bound(greatest_.begin(), greatest_.end(), value);
  return static_cast<std::size_t>(found - greatest_.begin());
}

void OrderedValues::insert(double value) {
  if (blocks_.empty()) {
    blocks_.emplace_back().reserve(kMaxBlock);
    greatest_.push_back(value);
  }
  std::size_t index = std::min(block_for(value), blocks_.size() - 1);
  auto& block = blocks_[index];
  block.insert(std::lower_bound(block.begin(), block.end(), value), value);
  greatest_[index] = block.back();
  ++size_;
  if (block.size() < kMaxBlock) return;

  std::vector<double> upper;
  upper.reserve(kMaxBlock);
  auto middle = block.begin() + kMaxBlock / 2;
  upper.assign(middle, block.end());
  block.erase(middle, block.end());
  greatest_[index] = block.back();
  auto after = static_cast<std::ptrdiff_t>(index) + 1;
  greatest_.insert(greatest_.begin() + after, upper.back());
  blocks_.insert(blocks_.begin() + after, std::move(upper));
}

std::size_t OrderedValues::count_below(double value) const noexcept {
  std::size_t index = block_for(value);
  std::size_t count = 0;
  for (std::size_t i = 0; i < index; ++i) count += blocks_[i].size();
  if (index == blocks_.size()) return count;
  const auto& block = blocks_[index];
  return count + static_cast<std::size_t>(std::lower_bound(block.begin(), block.end(), value) -
                                          block.begin());
}

double OrderedValues::at(std::size_t rank) const noexcept {
  std::size_t index = 0;
  while (rank >= blocks_[index].size()) rank -= blocks_[index++].size();
  return blocks_[index][rank];
}

double OrderedValues::quantile(double q) const noexcept {
  double position = q * static_cast<double>(size_ - 1);
  auto lower = static_cast<std::size_t>(position);
  double below = at(lower);
  if (lower + 1 >= size_) return below;
  return below + (position - static_cast<double>(lower)) * (at(lower + 1) - below);
}

}  // namespace kolo::search
