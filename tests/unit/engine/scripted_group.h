// A group whose other members do what a test says, in this process and without waiting.
//
// They bring to every meeting what this rank brings, unless `others` changes it, and come when
// come() says so.
#pragma once

#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/errors.h"
#include "comm/group.h"

namespace kolo::test {

class ScriptedGroup final : public comm::Group {
 public:
  ScriptedGroup(int size, bool can_post)
      : Group(0, size), can_post_(can_post), rows_(static_cast<std::size_t>(size)) {
    for (const Row& row : rows_) addresses_.push_back(reinterpret_cast<const std::byte*>(&row));
  }

  // --- for the test -----------------------------------------------------------------------------
  /// The others come to so many more meetings.
  void come(int meetings = 1) {
    const std::lock_guard lock(mutex_);
    arrived_ += meetings;
  }
  void come_always() { come(1'000'000); }
  /// Called when this rank waits for the others: it calls come(), or throws.
  std::function<void()> on_wait = [] { throw_error(ErrorCode::internal, "nobody will come"); };
  /// Called when this rank does its part of a reduction of so many elements.
  std::function<void(std::size_t count)> on_reduce = [](std::size_t) {};
  /// Changes what the others bring to a meeting.
  std::function<void(comm::Card& card, std::byte* payload)> others = [](auto&, auto*) {};

  /// What this rank did: "meet", "show 10", "reduce 10", "exchange".
  [[nodiscard]] std::vector<std::string> take_log() {
    const std::lock_guard lock(mutex_);
    return std::exchange(log_, {});
  }
  void await_logged(const std::string& entry) {
    std::unique_lock lock(mutex_);
    logged_.wait(lock, [&] { return std::find(log_.begin(), log_.end(), entry) != log_.end(); });
  }

  // --- Group ------------------------------------------------------------------------------------
  [[nodiscard]] std::string describe() const override { return "scripted"; }
  [[nodiscard]] std::size_t eager_bytes() const noexcept override { return kPayload; }
  [[nodiscard]] bool can_post() const noexcept override { return can_post_; }

  comm::Exchanged exchange(const comm::Card& card, const void* payload,
                           std::size_t bytes) override {
    begin_meeting(card, payload, bytes, "exchange");
    return take_up();
  }
  void post(const comm::Card& card, const void* payload, std::size_t bytes) override {
    begin_meeting(
        card, payload, bytes,
        card.kind == comm::OpKind::allreduce ? "show " + std::to_string(card.count) : "meet");
  }
  [[nodiscard]] bool all_posted() const noexcept override {
    const std::lock_guard lock(mutex_);
    return arrived_ >= meetings_;
  }
  void await_posted() override {
    while (!all_posted()) on_wait();
  }
  comm::Exchanged take_up() override {
    await_posted();
    bool agreed = true;
    for (std::size_t r = 1; r < rows_.size(); ++r) {
      rows_[r] = rows_[0];
      others(rows_[r].card, rows_[r].payload);
      agreed = agreed && rows_[r].card.signature == rows_[0].card.signature;
    }
    constexpr std::size_t kPlace = offsetof(Row, payload);
    return {addresses_.data(),
            {.card = 0, .small = kPlace, .small_limit = kPayload, .large = kPlace},
            agreed};
  }
  void reduce_own_part(std::size_t count, const comm::Reduction&) override {
    on_reduce(count);
    note("reduce " + std::to_string(count));
  }

  void allreduce(const void*, void*, std::size_t, const comm::Reduction&) override { none(); }
  void reducescatter(const void*, void*, std::span<const std::size_t>,
                     const comm::Reduction&) override {
    none();
  }
  void allgather(const void*, void*, std::span<const std::size_t>) override { none(); }
  void broadcast(void*, std::size_t, int) override { none(); }
  void alltoall(const void*, std::span<const std::size_t>, void*,
                std::span<const std::size_t>) override {
    none();
  }
  void send(int, std::span<const std::byte>, const void*, std::size_t) override { none(); }
  std::size_t recv_header(int, std::span<std::byte>) override { none(); }
  void recv_body(int, void*, std::size_t) override { none(); }
  std::unique_ptr<Group> subset(const std::vector<int>&) override { none(); }

 private:
  static constexpr std::size_t kPayload = 64;
  struct Row {
    comm::Card card;
    alignas(16) std::byte payload[kPayload];
  };

  [[noreturn]] static void none() {
    throw_error(ErrorCode::internal, "the scripted group has no such operation");
  }
  void note(std::string entry) {
    {
      const std::lock_guard lock(mutex_);
      log_.push_back(std::move(entry));
    }
    logged_.notify_all();
  }
  void begin_meeting(const comm::Card& card, const void* payload, std::size_t bytes,
                     std::string entry) {
    rows_[0].card = card;
    if (bytes != 0) std::memcpy(rows_[0].payload, payload, bytes);
    {
      const std::lock_guard lock(mutex_);
      ++meetings_;
    }
    note(std::move(entry));
  }

  const bool can_post_;
  std::vector<Row> rows_;
  std::vector<const std::byte*> addresses_;
  mutable std::mutex mutex_;
  std::condition_variable logged_;
  int meetings_ = 0;              // guarded by mutex_; that this rank came to
  int arrived_ = 0;               // guarded by mutex_; that all others came to
  std::vector<std::string> log_;  // guarded by mutex_
};

}  // namespace kolo::test
