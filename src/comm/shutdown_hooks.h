// Actions that modules above register, to run before the default Context ends.
#pragma once

#include <functional>

namespace kolo::comm {

/// `action` is called by every later shutdown(), before the default Context is gone; the last one
/// registered first. It must not throw.
void at_shutdown(std::function<void()> action);

}  // namespace kolo::comm
