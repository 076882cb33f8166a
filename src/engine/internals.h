// What kolo's own modules need of an Engine beyond its public members. Not installed.
//
// The namespace of this module is `runtime` because `kolo::engine` is a function: it gives the
// engine of the default Context.
#pragma once

#include <memory>

#include "kolo/engine.h"

namespace kolo::runtime {

struct Internals {
  static std::shared_ptr<SetEngine> set_of(const Engine& engine, ProcessSetId set) {
    return engine.find(set);
  }
  static const std::shared_ptr<Timeline>& timeline_of(const Engine& engine) noexcept {
    return engine.timeline();
  }
};

}  // namespace kolo::runtime
