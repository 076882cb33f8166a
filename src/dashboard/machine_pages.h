// What the pages about runs and clusters show, as JSON.
#pragma once

#include <functional>
#include <string>

#include "base/json.h"
#include "cluster/host_watch.h"

namespace kolo::dashboard {

/// From any thread. Methods throw kolo::Error: not_found, unavailable, timeout.
class MachinePages {
 public:
  /// `changed` is called when the hosts may have something new to tell.
  explicit MachinePages(std::function<void()> changed);

  /// The runs under way, without their ranks one by one.
  [[nodiscard]] static Json runs();
  [[nodiscard]] static Json run(const std::string& id);

  /// The hosts of all clusters.
  [[nodiscard]] Json clusters();
  /// As `kolo drain` does; how many reservations are left on the host.
  std::size_t drain(const std::string& cluster, const std::string& host, bool is_draining);

 private:
  cluster::HostWatch hosts_;
};

}  // namespace kolo::dashboard
