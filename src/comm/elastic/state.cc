#include "comm/elastic/state.h"

#include <algorithm>

#include "base/errors.h"

namespace kolo::elastic {
namespace {

class BytesPart final : public Part {
 public:
  BytesPart(std::function<std::string()> get, std::function<void(const std::string&)> set)
      : get_(std::move(get)), set_(std::move(set)) {}

  void save() override { saved_ = get_(); }
  void restore() override { set_(saved_); }
  void broadcast(Communicator& group, int root) override {
    std::string bytes;
    if (group.rank() == root) bytes = get_();
    std::int64_t size = static_cast<std::int64_t>(bytes.size());
    group.broadcast(&size, 1, DataType::int64, root);
    bytes.resize(static_cast<std::size_t>(size));
    group.broadcast(bytes.data(), bytes.size(), DataType::uint8, root);
    if (group.rank() != root) set_(bytes);
  }

 private:
  std::function<std::string()> get_;
  std::function<void(const std::string&)> set_;
  std::string saved_;
};

}  // namespace

State::State() : contents_(std::make_unique<Contents>()) {}
State::~State() = default;

State& State::add(std::unique_ptr<Part> part) {
  contents_->parts.push_back(std::move(part));
  return *this;
}

State& State::add(std::function<std::string()> get, std::function<void(const std::string&)> set) {
  return add(std::make_unique<BytesPart>(std::move(get), std::move(set)));
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
  if (standing > 0 && std::all_of(all.begin(), all.end(), [&](auto s) { return s == standing; }))
    return;
  const int root = static_cast<int>(furthest - all.begin());
  for (const auto& part : mine.parts) part->broadcast(group, root);
  mine.commits = *furthest > 0 ? static_cast<std::uint64_t>(*furthest - 1) : 0;
  mine.is_synced = true;
  save();
}

void State::on_reset() {
  for (const auto& callback : contents_->callbacks) callback();
}

void State::register_reset_callbacks(std::vector<std::function<void()>> callbacks) {
  for (auto& callback : callbacks) contents_->callbacks.push_back(std::move(callback));
}

std::uint64_t State::commits() const noexcept { return contents_->commits; }

}  // namespace kolo::elastic
