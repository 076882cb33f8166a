#include <gtest/gtest.h>

#include <fstream>

#include "support/power_failures.h"

namespace kolo::test {
namespace {

namespace fs = std::filesystem;

TEST(PowerFailure, AFileWrittenAtomicallyIsTheOldOneOrTheNewOne) {
  fail_everywhere(
      [](const fs::path& folder, auto done) {
        for (const char* content : {"first", "second", ""}) {
          write_file_atomically(folder / "file", content);
          done();
        }
      },
      [](const fs::path& folder, int count) {
        const std::string contents[] = {"first", "second", ""};
        const fs::path file = folder / "file";
        if (count == 0 && !fs::exists(file)) return;
        const std::string found = read_file(file);
        EXPECT_TRUE((count > 0 && found == contents[count - 1]) ||
                    (count < 3 && found == contents[count]))
            << "after " << count << " writes: '" << found << "'";
      });
}

TEST(PowerFailure, LastingDirectoriesStay) {
  fail_everywhere(
      [](const fs::path& folder, auto done) {
        make_lasting_directories(folder / "a/b/c");
        done();
        make_lasting_directories(folder / "a/b/d");
        done();
      },
      [](const fs::path& folder, int count) {
        EXPECT_TRUE(count < 1 || fs::is_directory(folder / "a/b/c"));
        EXPECT_TRUE(count < 2 || fs::is_directory(folder / "a/b/d"));
      });
}

/// What the simulated disk is worth.
TEST(PowerFailure, WhatIsNotFlushedMayBeLostInPart) {
  bool was_lost = false, was_torn = false, was_kept = false;
  const std::string content(3000, 'x');
  fail_everywhere(
      [&](const fs::path& folder, auto /*done*/) {
        std::ofstream(folder / "file") << content;
        sync_to_disk(folder);
      },
      [&](const fs::path& folder, int /*count*/) {
        std::error_code none;
        const auto size = fs::exists(folder / "file") ? fs::file_size(folder / "file", none) : 0;
        was_lost = was_lost || size == 0;
        was_torn = was_torn || (size > 0 && size < content.size());
        was_kept = was_kept || size == content.size();
      });
  EXPECT_TRUE(was_lost && was_torn && was_kept);
}

}  // namespace
}  // namespace kolo::test
