// share() gathers the number of commits of each rank. The lowest rank with the most commits is the
// root, and only it and the ranks behind it take part in the transfer, so a rank that is up to date
// moves no data. A memory part sends the place of its saved copy; ranks of the root's host read it
// from shared memory, and the value is broadcast only if a rank lacks it. Every rank must have the
// same parts in the same order. A rank that joins delays its own copy while at least two others
// have the state, because the others wait for it; if its group fails before its first commit, it
// asks for the state again.
#include "comm/elastic/state.h"

#include <algorithm>

#include "base/errors.h"
#include "comm/elastic/shared_copy.h"

namespace kolo::elastic {

using comm::elastic::SharedCopy;

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
    const auto now = resized(bytes.size());
    if (!bytes.empty()) std::memcpy(now.data(), bytes.data(), bytes.size());
  }
  void save() override { saved_.save(memory_()); }
  void restore() override {
    const auto saved = saved_.bytes();
    std::copy(saved.begin(), saved.end(), resized(saved.size()).begin());
  }
  void broadcast(Communicator& group, int root) override;

 private:
  /// The memory, for a value of so many bytes. A vector can only have whole elements.
  std::span<std::byte> resized(std::size_t bytes) {
    resize_(bytes);
    const auto now = memory_();
    if (now.size() != bytes)
      throw_error(ErrorCode::invalid_argument,
                  "a value of {} bytes does not fit a vector, whose elements make {} bytes; the "
                  "ranks and the program that wrote the commit must add the same values to the "
                  "state, in the same order",
                  bytes, now.size());
    return now;
  }

  std::function<std::span<std::byte>()> memory_;
  std::function<void(std::size_t)> resize_;
  SharedCopy saved_;
};

/// The root's value is what it has saved (State::share). Ranks of its host read that themselves.
void MemoryPart::broadcast(Communicator& group, int root) {
  SharedCopy::Place place;
  if (group.rank() == root) place = saved_.place();
  group.broadcast(std::span(reinterpret_cast<std::uint8_t*>(&place), sizeof place), root);
  const auto value = group.rank() == root ? memory_() : resized(place.bytes);
  const Topology& topology = group.topology();
  std::int32_t has_value = 1;
  if (topology.host_of(group.rank()) != topology.host_of(root))
    has_value = 0;
  else if (group.rank() != root)
    has_value = SharedCopy::try_read(place, value) ? 1 : 0;
  if (group.allreduce(has_value, ReduceOp::min) == 0)
    group.broadcast(value.data(), value.size(), DataType::uint8, root);
}

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
  contents_->has_copy = true;
  for (const auto& part : contents_->parts) part->save();
}

void State::commit() {
  if (contents_->before_commit) contents_->before_commit();
  save();
  end_step();
}

void State::commit_in_place() {
  if (contents_->before_commit) contents_->before_commit();
  contents_->has_copy = true;
  for (const auto& part : contents_->parts) part->mark();
  end_step();
}

void State::end_step() {
  ++contents_->commits;
  if (contents_->at_end_of_step) contents_->at_end_of_step();
}

void State::restore() {
  if (!contents_->has_copy) contents_->ask_again();
  for (const auto& part : contents_->parts) part->restore();
}

void State::sync() { share(/*is_committed=*/false); }

/// No rank has the state of the job: the root takes it from disk, or from its own program. If it
/// cannot, that is the end of all ranks: another root would fare no better.
void State::begin(Communicator& group, int root) {
  Contents& mine = *contents_;
  std::exception_ptr error;
  try {
    const bool is_from_disk = group.rank() == root && mine.at_beginning && mine.at_beginning();
    if (group.rank() == root && !is_from_disk && !mine.has_copy)
      throw_error(ErrorCode::unavailable,
                  "all ranks that had the state of the job were lost in the first step of this "
                  "one, which has no copy of it yet; with --commit-dir commits go to disk");
  } catch (...) {
    error = std::current_exception();
  }
  if (mine.at_beginning) {
    std::int32_t has_begun = error ? 0 : 1;
    group.broadcast(&has_begun, 1, DataType::int32, root);
    if (has_begun == 0 && !error)
      throw_error(ErrorCode::failed_precondition,
                  "rank {} could not take the state of the job from disk; its own error says why",
                  root);
  }
  if (error) std::rethrow_exception(error);
}

void State::share(bool is_committed) {
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
  if (*furthest == 0) begin(group, root);
  if (group.rank() == root && (*furthest == 0 || (moving.size() > 1 && !is_committed))) save();
  const auto holders = group.size() + 1 - static_cast<int>(moving.size());
  if (moving.size() > 1)
    if (const auto few = group.subset(moving)) {
      auto commits = static_cast<std::int64_t>(mine.commits);
      few->broadcast(&commits, 1, DataType::int64, /*root=*/0);
      for (const auto& part : mine.parts) part->broadcast(*few, /*root=*/0);
      mine.commits = static_cast<std::uint64_t>(commits);
      if (few->rank() != 0) {
        // Others wait for this rank now. As long as two of them have the state, any rank may be
        // lost: then this one takes it again, and makes its copy with its first commit.
        mine.has_copy = holders < 2 || !mine.ask_again;
        if (mine.has_copy) save();
      }
    }
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
