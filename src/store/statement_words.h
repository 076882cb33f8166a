// What a statement of SQL does, in words for people.
#pragma once

#include <string>
#include <string_view>

namespace kolo::store {

/// "reading from trials", "writing to studies" …; the statement itself goes to the log, at level
/// debug, together with `database`.
std::string words_of_failed(std::string_view sql, std::string_view database);

}  // namespace kolo::store
