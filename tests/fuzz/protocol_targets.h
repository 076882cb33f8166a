// Targets for what processes of kolo say to each other, and what strangers say in their place.
#pragma once

#include <string_view>

namespace kolo::fuzz {

void frames(std::string_view input);
void rendezvous(std::string_view input);
void membership(std::string_view input);
void engine(std::string_view input);
void custodian(std::string_view input);
void sealed_streams(std::string_view input);

}  // namespace kolo::fuzz
