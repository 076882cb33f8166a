// Operations that a framework's graph has started and does not wait for: when one is done, the
// framework is told. Graphs have few threads and run their parts in any order, so none may wait.
#pragma once

#include <deque>
#include <functional>
#include <optional>

#include "base/mutex.h"
#include "kolo/engine.h"
#include "kolo/error.h"

namespace kolo::python {

/// One thread, which lives as long as the process: frameworks' threads may come until its end.
class Keeper {
 public:
  static Keeper& of_this_process();

  /// Calls `then` when the operation is done; null: it went well. Not with Python's lock.
  void add(Handle handle, std::function<void(const Error*)> then);

  /// Of the operations of graphs so far. The framework raises an error of its own for it.
  [[nodiscard]] std::optional<Error> last_failure() const;
  void note_failure(const Error& error);

 private:
  struct Promise {
    Handle handle;
    std::function<void(const Error*)> then;
  };

  Keeper();
  void work();

  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Promise> promises_ KOLO_GUARDED_BY(mutex_);
  std::optional<Error> last_failure_ KOLO_GUARDED_BY(mutex_);
};

}  // namespace kolo::python
