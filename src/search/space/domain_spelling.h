// Domains that somebody meant to write.
//
// In a document, a dictionary that is no domain is a part of the configuration, so a misspelt
// domain would become a constant and the parameter would never vary. What looks like the call of a
// domain is therefore an error, unless it is said to be a constant.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace kolo::search {

/// Whether a dictionary with this single key is read as something else than a dictionary.
bool is_domain_word(std::string_view key);

/// Whether `json` is a domain, or a constant that is said to be one.
bool is_domain(const Json& json);
/// Whether one stands anywhere in it.
bool holds_domain(const Json& json);

/// Throws invalid_argument if `json`, which is no domain, looks like one.
void refuse_misspelt_domain(const Json& json, const std::string& path);

}  // namespace kolo::search
