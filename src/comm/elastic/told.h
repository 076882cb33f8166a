// What this process has told others who must not hear it twice, such as the reports of a trial.
#pragma once

#include <cstdint>

namespace kolo::comm::elastic {

/// How often. It is kept with every State: a step that is taken again counts from where it was,
/// and a rank that joins counts as the others do.
std::int64_t& told_count() noexcept;

}  // namespace kolo::comm::elastic
