// The table of `kolo run`'s settings.
#pragma once

#include <span>

#include "settings.h"

namespace kolo::app {

std::span<const Setting> run_settings();

}  // namespace kolo::app
