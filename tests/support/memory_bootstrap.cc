#include "support/memory_bootstrap.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "base/errors.h"
#include "base/fd.h"

namespace kolo::test {
namespace {

// One allgather under way. It is erased when the last member has taken its copy, so that the key
// may be used again.
struct Round {
  std::map<int, std::string> brought;
  std::set<int> took;
};

struct News {
  Fd fd{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::vector<comm::Departure> unread;
};

class MemoryMeeting final : public Meeting {
 public:
  explicit MemoryMeeting(std::vector<int> hosts) : hosts_(std::move(hosts)), news_(hosts_.size()) {}

  std::shared_ptr<comm::Bootstrap> join(int rank) override;

  void depart(int rank, const std::string& reason) override {
    std::lock_guard lock(mutex_);
    if (!gone_.emplace(rank, reason).second) return;
    for (int r = 0; r < static_cast<int>(news_.size()); ++r) {
      if (r == rank) continue;
      news_[r].unread.push_back({rank, reason});
      std::uint64_t one = 1;
      [[maybe_unused]] auto written = ::write(news_[r].fd.get(), &one, sizeof one);
    }
    changed_.notify_all();
  }

  std::vector<std::string> allgather(int me, std::string_view key, const std::vector<int>& members,
                                     std::string_view mine, Deadline deadline) {
    const auto name = std::make_pair(std::string(key), members);
    std::unique_lock lock(mutex_);
    // A member may be back for the next round of this key before the others have left this one.
    wait(lock, key, deadline, [&]() -> std::optional<int> {
      auto round = rounds_.find(name);
      if (round == rounds_.end() || !round->second.brought.contains(me)) return std::nullopt;
      for (int r : members)
        if (!round->second.took.contains(r)) return r;
      return std::nullopt;
    });
    rounds_[name].brought[me] = mine;
    changed_.notify_all();
    wait(lock, key, deadline, [&]() -> std::optional<int> {
      for (int r : members)
        if (!rounds_[name].brought.contains(r)) return r;
      return std::nullopt;
    });
    Round& round = rounds_[name];
    std::vector<std::string> all;
    for (int r : members) all.push_back(round.brought[r]);
    round.took.insert(me);
    if (round.took.size() == members.size()) {
      rounds_.erase(name);
      changed_.notify_all();
    }
    return all;
  }

  int news_fd(int rank) const noexcept { return news_[rank].fd.get(); }

  std::vector<comm::Departure> take_news(int rank) {
    std::lock_guard lock(mutex_);
    std::uint64_t count;
    [[maybe_unused]] auto got = ::read(news_[rank].fd.get(), &count, sizeof count);
    return std::exchange(news_[rank].unread, {});
  }

  const std::vector<int>& hosts() const { return hosts_; }

 private:
  // Waits until `missing` names nobody.
  template <class Missing>
  void wait(std::unique_lock<std::mutex>& lock, std::string_view key, Deadline deadline,
            Missing missing) {
    while (auto rank = missing()) {
      if (auto gone = gone_.find(*rank); gone != gone_.end())
        throw Error(ErrorCode::peer_lost,
                    fmt::format("meeting '{}': rank {} {}", key, *rank, gone->second), *rank);
      if (deadline.passed())
        throw_error(ErrorCode::timeout, "meeting '{}': rank {} did not come", key, *rank);
      changed_.wait_until(lock, deadline.when());
    }
  }

  const std::vector<int> hosts_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<std::string, std::vector<int>>, Round> rounds_;  // guarded by mutex_
  std::map<int, std::string> gone_;                                   // guarded by mutex_
  std::vector<News> news_;  // descriptors are fixed, `unread` is guarded by mutex_
};

class MemoryBootstrap final : public comm::Bootstrap {
 public:
  MemoryBootstrap(std::shared_ptr<MemoryMeeting> meeting, int rank)
      : meeting_(std::move(meeting)), topology_(rank, meeting_->hosts()) {}
  ~MemoryBootstrap() override { meeting_->depart(topology_.rank(), "left the job"); }

  const Topology& topology() const noexcept override { return topology_; }
  std::string describe() const override { return "threads of one process"; }
  std::vector<std::string> allgather(std::string_view key, const std::vector<int>& members,
                                     std::string_view mine, Deadline deadline) override {
    return meeting_->allgather(topology_.rank(), key, members, mine, deadline);
  }
  int news_fd() const noexcept override { return meeting_->news_fd(topology_.rank()); }
  std::vector<comm::Departure> take_news() override {
    return meeting_->take_news(topology_.rank());
  }

 private:
  std::shared_ptr<MemoryMeeting> meeting_;
  Topology topology_;
};

std::shared_ptr<comm::Bootstrap> MemoryMeeting::join(int rank) {
  return std::make_shared<MemoryBootstrap>(
      std::static_pointer_cast<MemoryMeeting>(shared_from_this()), rank);
}

}  // namespace

std::shared_ptr<Meeting> Meeting::create(std::vector<int> host_of_rank) {
  return std::make_shared<MemoryMeeting>(std::move(host_of_rank));
}

}  // namespace kolo::test
