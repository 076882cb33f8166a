// A disk whose power may fail: what programs have written since they last asked for it to be
// flushed may be there afterwards, or not, or in part.
//
// The files are real ones, below one folder. Which program wrote what, and what was flushed, is
// seen by functions of the C library that this file's object replaces in the test program (open,
// write, fsync, rename and the like), so that SQLite and the standard library are seen, too. After
// a power failure the folder is written anew as it may be found then:
//
//   - what was flushed of a file is there; of the writes after that any may be missing, and a
//     write may have taken place for some of its sectors;
//   - of a folder's names (new, renamed, removed), those that were flushed by fsync of the folder
//     are there; of the changes after that the first few, as on journaling file systems.
//
// That is as little as POSIX promises, and less than most file systems keep: see Pillai et al.,
// "All File Systems Are Not Created Equal", OSDI 2014.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "kolo/random.h"

namespace kolo::test {

class DiskImage;

class SimulatedDisk {
 public:
  /// What is below the folder now is on disk. One disk at a time in a process.
  explicit SimulatedDisk(const std::filesystem::path& folder);
  ~SimulatedDisk();
  SimulatedDisk(const SimulatedDisk&) = delete;
  SimulatedDisk& operator=(const SimulatedDisk&) = delete;

  /// The power fails when so many more writes, flushes and changes of names have taken place. The
  /// program does not notice: what it does from then on will not have happened.
  void fail_after(std::int64_t changes);
  [[nodiscard]] bool has_failed() const;
  /// So many have taken place since the beginning.
  [[nodiscard]] std::int64_t changes() const;

  /// A defect for tests of simulations: it says that all is flushed, and flushes nothing.
  void lie();

  /// Writes the folder as it may be found after the failure (now, if there was none yet). Nobody
  /// may have a file of it open. The power is back.
  void restart(Random& random);

 private:
  std::unique_ptr<DiskImage> image_;
};

}  // namespace kolo::test
