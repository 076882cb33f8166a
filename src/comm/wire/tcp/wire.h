// The wire that is built in: TCP between the members, who prove themselves before the first byte of
// data.
#pragma once

#include "comm/wire/messenger.h"

namespace kolo::comm::tcp {

const WirePlugin& wire() noexcept;

}  // namespace kolo::comm::tcp
