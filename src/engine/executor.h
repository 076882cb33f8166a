// Carries out a decision: one collective on the communicator of the set, fused where the decision
// has several requests.
#pragma once

#include <memory>
#include <vector>

#include "engine/messages.h"
#include "engine/operation.h"
#include "kolo/communicator.h"

namespace kolo::runtime {

class Executor {
 public:
  explicit Executor(Communicator& communicator) : communicator_(communicator) {}

  /// `operations[i]` belongs to `requests[i]`, or is null when this rank has joined and brings
  /// zeros. Leaves counts in the operations; they are not marked as done. Throws what the
  /// communicator throws. `note` is told of copies, if there is one.
  void execute(const std::vector<Request>& requests,
               const std::vector<std::shared_ptr<Operation>>& operations, const CopyNote& note);

 private:
  void reduce(const std::vector<Request>& requests,
              const std::vector<std::shared_ptr<Operation>>& operations, const CopyNote& note);

  Communicator& communicator_;
};

}  // namespace kolo::runtime
