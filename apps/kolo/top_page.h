// What `kolo top` shows: launchers, studies, the trials that run, jobs.
#pragma once

#include <string>
#include <vector>

namespace kolo::app {

/// A title and a table; the first row names the columns.
struct TopSection {
  std::string title;
  std::vector<std::vector<std::string>> rows{};
};

/// From the database of studies (`storage` as in --storage) and the active one of jobs. What is not
/// there is left out; a database that does not answer is a section that says so.
std::vector<TopSection> top_sections(const std::string& storage);

/// At most `height` lines of at most `width` letters. Every section gets its title and the names of
/// its columns; the lines that are left are shared out, and "… N more" stands for the rest.
std::vector<std::string> top_page(const std::vector<TopSection>& sections, std::size_t width,
                                  std::size_t height);

}  // namespace kolo::app
