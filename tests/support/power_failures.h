// Lets the power fail at every write, flush and change of names that some work makes, and looks at
// what is left.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/files.h"
#include "support/memory_folder.h"
#include "support/simulated_disk.h"

namespace kolo::test {

/// `work(folder, done)` calls `done` whenever something must survive from then on;
/// `look(folder, count)` sees what a failure has left after so many calls of it.
template <class Work, class Look>
void fail_everywhere(Work&& work, Look&& look) {
  constexpr std::uint64_t kOutcomes = 20;  // of one failure
  for (std::int64_t moment = 0, last = 0; moment <= last; ++moment)
    for (std::uint64_t outcome = 0; outcome < kOutcomes; ++outcome) {
      const TempDir folder(memory_folder("kolo-power"));
      SimulatedDisk disk(folder.path());
      disk.fail_after(moment);
      int count = 0;
      work(folder.path(), [&] { count += disk.has_failed() ? 0 : 1; });
      last = disk.has_failed() ? moment + 1 : moment;
      Random random = Random(outcome).stream("power");
      disk.restart(random);
      look(folder.path(), count);
    }
}

}  // namespace kolo::test
