// libtorch's generator of random numbers as bytes.
#pragma once

#include <string>

namespace kolo::train {

[[nodiscard]] std::string generator_bytes();
void load_generator(const std::string& bytes);

}  // namespace kolo::train
