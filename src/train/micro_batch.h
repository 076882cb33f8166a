// Whether a virtual rank's part of a step is under way.
#pragma once

namespace kolo::train {

/// On this thread.
[[nodiscard]] bool is_in_micro_batch() noexcept;

}  // namespace kolo::train
