// A private directory for a study's socket that does not pile up when controllers are killed.
//
// Sockets have short paths, so the directory cannot be in the study's own, which may be deep. It
// lies below $TMPDIR. Its owner holds a lock on it, which the kernel drops with the process however
// that ends; whoever makes the next one removes those that nobody holds.
#pragma once

#include <filesystem>
#include <optional>

#include "base/fd.h"
#include "base/files.h"

namespace kolo::tune {

class SocketDirectory {
 public:
  SocketDirectory();

  [[nodiscard]] std::filesystem::path socket() const { return directory_->path() / "trial.sock"; }

 private:
  std::optional<TempDir> directory_;
  Fd lock_;
};

/// Removes directories of this user that killed controllers have left below $TMPDIR.
void remove_abandoned_socket_directories();

}  // namespace kolo::tune
