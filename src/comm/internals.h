// How kolo's own modules make communicators and reach the group below one. Not installed.
#pragma once

#include <memory>

#include "kolo/communicator.h"

namespace kolo::comm {

struct Internals {
  static std::unique_ptr<Communicator> make(std::shared_ptr<Group> group, Topology topology,
                                            std::shared_ptr<SharedMemory> memory) {
    return std::unique_ptr<Communicator>(
        new Communicator(std::move(group), std::move(topology), std::move(memory)));
  }
  static Group& group_of(Communicator& communicator) noexcept { return *communicator.group_; }
};

}  // namespace kolo::comm
