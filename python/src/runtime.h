// The default Context and Engine, as Python uses them.
#pragma once

#include "kolo/engine.h"

namespace kolo::python {

/// Throws failed_precondition before init(), and in a fork of the process that called
/// it: threads and connections of the engine do not exist there.
void check_running();

/// While it lives, its thread uses the default Context or Engine, and shutdown() waits for it.
/// Throws as check_running() does, and while shutdown() is under way.
class Inside {
 public:
  Inside();
  ~Inside();
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  static void leave() noexcept;
};

/// The engine, for as long as this lives.
class RunningEngine {
 public:
  RunningEngine();
  Engine* operator->() const noexcept { return engine_; }
  Engine& operator*() const noexcept { return *engine_; }

 private:
  Inside inside_;
  Engine* engine_;
};
inline RunningEngine running_engine() { return {}; }

/// Whether the calling thread has to leave what it waits for, because of shutdown().
[[nodiscard]] bool has_to_leave() noexcept;

}  // namespace kolo::python
