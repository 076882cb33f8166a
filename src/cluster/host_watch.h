// The hosts of all clusters of this user, seen by those who look again and again.
//
// While somebody asks, one thread holds a link to each host, so that an answer is what was heard
// last and a lost host keeps nobody waiting. When nobody has asked for a while, the links are
// closed: a host that is watched does not count as idle.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "base/mutex.h"
#include "cluster/members.h"

namespace kolo::cluster {

class HostWatch {
 public:
  /// `owner` is how the hosts see who looks. `changed` is called on the watching thread whenever
  /// there may be something new.
  explicit HostWatch(std::string owner, std::function<void()> changed = {});
  ~HostWatch();
  HostWatch(const HostWatch&) = delete;
  HostWatch& operator=(const HostWatch&) = delete;

  /// The clusters as status_json() has them, in the order of their names. The first call waits
  /// until all hosts have answered, kAnswerTime at most.
  [[nodiscard]] std::vector<Json> clusters();
  /// Whoever asks next sees what has changed by an order that was just given.
  void look_again();

 private:
  struct Watched {
    Cluster cluster;
    std::vector<LinkedMember> members;
  };
  void run();
  [[nodiscard]] bool has_interest() const KOLO_REQUIRES(mutex_);
  void follow_clusters(std::vector<Watched>& all) const;
  static void measure(std::vector<Watched>& all);
  void publish(const std::vector<Watched>& all);

  const std::string owner_;
  const std::function<void()> changed_;
  Mutex mutex_;
  CondVar asked_, known_;
  bool over_ KOLO_GUARDED_BY(mutex_) = false;
  std::optional<std::chrono::steady_clock::time_point> last_question_ KOLO_GUARDED_BY(mutex_);
  std::int64_t looks_ KOLO_GUARDED_BY(mutex_) = 0;  // how often `latest_` was made
  std::int64_t wanted_ KOLO_GUARDED_BY(mutex_) = 0;
  std::vector<Json> latest_ KOLO_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace kolo::cluster
