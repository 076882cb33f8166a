#include "comm/elastic/state.h"

#include <algorithm>

#include "base/errors.h"

namespace kolo::elastic {
namespace {

class BytesPart final : public Part {
 public:
  BytesPart(std::function<std::string()> get, std::function<void(const std::string&)> set)
      : get_(std::move(get)), set_(std::move(set)) {}

  std::string bytes() override { return get_(); }
  void load(const std::string& bytes) override { set_(bytes); }

 private:
  std::function<std::string()> get_;
  std::function<void(const std::string&)> set_;
};

/// Large values: no more copies than it takes.
class MemoryPart final : public Part {
 public:
  MemoryPart(std::function<std::span<std::byte>()> memory, std::function<void(std::size_t)> resize)
      : memory_(std::move(memory)), resize_(std::move(resize)) {}

  std::string bytes() override {
    const auto now = memory_();
    return {reinterpret_cast<const char*>(now.data()), now.size()};
  }
  void load(const std::string& bytes) override {
    resize_(bytes.size());
    std::memcpy(memory_().data(), bytes.data(), bytes.size());
  }
  void save() override {
    const auto now = memory_();
    saved_.assign(now.begin(), now.end());
  }
  void restore() override {
    resize_(saved_.size());
    std::copy(saved_.begin(), saved_.end(), memory_().begin());
  }
  void broadcast(Communicator& group, int root) override {
    auto size = static_cast<std::int64_t>(memory_().size());
    group.broadcast(&size, 1, DataType::int64, root);
    resize_(static_cast<std::size_t>(size));
    const auto bytes = memory_();
    group.broadcast(bytes.data(), bytes.size(), DataType::uint8, root);
  }

 private:
  std::function<std::span<std::byte>()> memory_;
  std::function<void(std::size_t)> resize_;
  std::vector<std::byte> saved_;
};

}  // namespace

void Part::broadcast(Communicator& group, int root) {
  std::string value;
  if (group.rank() == root) value = bytes();
  auto size = static_cast<std::int64_t>(value.size());
  group.broadcast(&size, 1, DataType::int64, root);
  value.resize(static_cast<std::size_t>(size));
  group.broadcast(value.data(), value.size(), DataType::uint8, root);
  if (group.rank() != root) load(value);
}

State::State() : contents_(std::make_unique<Contents>()) {}
State::~State() = default;

State& State::add(std::unique_ptr<Part> part) {
  contents_->parts.push_back(std::move(part));
  return *this;
}

State& State::add(std::function<std::string()> get, std::function<void(const std::string&)> set) {
  return add(std::make_unique<BytesPart>(std::move(get), std::move(set)));
}

State& State::add_memory(std::function<std::span<std::byte>()> memory,
                         std::function<void(std::size_t bytes)> resize) {
  return add(std::make_unique<MemoryPart>(std::move(memory), std::move(resize)));
}

State& State::add(std::string& text) {
  return add([&text] { return text; }, [&text](const std::string& bytes) { text = bytes; });
}

void State::copy_into(void* to, const std::string& bytes, std::size_t expected) {
  if (bytes.size() != expected)
    throw_error(ErrorCode::invalid_argument,
                "a value of {} bytes was sent to one of {}; every rank must add the same values to "
                "its state, in the same order",
                bytes.size(), expected);
  std::memcpy(to, bytes.data(), expected);
}

void State::save() {
  for (const auto& part : contents_->parts) part->save();
}

void State::commit() {
  save();
  end_step();
}

void State::commit_in_place() {
  for (const auto& part : contents_->parts) part->mark();
  end_step();
}

void State::end_step() {
  ++contents_->commits;
  if (contents_->at_end_of_step) contents_->at_end_of_step();
}

void State::restore() {
  for (const auto& part : contents_->parts) part->restore();
}

void State::sync() {
  Contents& mine = *contents_;
  Communicator& group = world();
  // 0: this rank has not been given the state of the job yet.
  const std::int64_t standing = mine.is_synced ? static_cast<std::int64_t>(mine.commits) + 1 : 0;
  const auto all = group.allgather(std::span(&standing, 1));
  const auto furthest = std::max_element(all.begin(), all.end());
  const int root = static_cast<int>(furthest - all.begin());
  // Whoever has the state already takes no part. At the beginning that is nobody but the root.
  std::vector<int> moving = {root};
  for (int rank = 0; rank < group.size(); ++rank) {
    const std::int64_t other = all[static_cast<std::size_t>(rank)];
    if (rank != root && (other == 0 || other < *furthest)) moving.push_back(rank);
  }
  if (*furthest == 0 && group.rank() == root && mine.at_beginning) mine.at_beginning();
  if (moving.size() > 1)
    if (const auto few = group.subset(moving)) {
      auto commits = static_cast<std::int64_t>(mine.commits);
      few->broadcast(&commits, 1, DataType::int64, /*root=*/0);
      for (const auto& part : mine.parts) part->broadcast(*few, /*root=*/0);
      mine.commits = static_cast<std::uint64_t>(commits);
      if (few->rank() != 0) save();
    }
  if (*furthest == 0) save();
  mine.is_synced = true;
  for (const auto& part : mine.parts) part->enter(group);
}

void State::on_reset() {
  for (const auto& callback : contents_->callbacks) callback();
}

void State::register_reset_callbacks(std::vector<std::function<void()>> callbacks) {
  for (auto& callback : callbacks) contents_->callbacks.push_back(std::move(callback));
}

std::uint64_t State::commits() const noexcept { return contents_->commits; }

}  // namespace kolo::elastic
