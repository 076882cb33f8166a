// Ranks that are threads of one process meet here, without a launcher.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/bootstrap.h"

namespace kolo::test {

/// One job. Shared by its ranks; each takes its own Bootstrap from join().
class Meeting : public std::enable_shared_from_this<Meeting> {
 public:
  /// `host_of_rank` as in Topology: several "hosts" may be pretended.
  static std::shared_ptr<Meeting> create(std::vector<int> host_of_rank);
  virtual ~Meeting() = default;

  /// The Bootstrap of one rank. When it is destroyed, the others are told that the rank left, as a
  /// launcher would.
  virtual std::shared_ptr<comm::Bootstrap> join(int rank) = 0;

  /// Tells all other ranks that `rank` is gone.
  virtual void depart(int rank, const std::string& reason) = 0;
};

}  // namespace kolo::test
