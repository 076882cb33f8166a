// A Messenger between threads of this process: queues in memory. No plug-in is needed.
#pragma once

#include <memory>
#include <vector>

#include "comm/wire/messenger.h"
#include "comm/wire/wire.h"

namespace kolo::test {

/// Where the messengers of one job meet.
class MessengerHub : public std::enable_shared_from_this<MessengerHub> {
 public:
  static std::shared_ptr<MessengerHub> create();
  virtual ~MessengerHub() = default;

  /// The ConnectWire of one rank of the world. Members meet by key.
  virtual comm::ConnectWire connect(int world_rank) = 0;
};

}  // namespace kolo::test
