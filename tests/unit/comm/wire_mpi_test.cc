// The MPI plug-ins under mpirun.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include "comm/wire/messenger.h"
#include "support/scale.h"

namespace kolo::comm {
using test::kThreadSanitized;

namespace {

struct Mpi {
  std::string plugin, launcher;
};

class WireMpi : public testing::TestWithParam<Mpi> {};

TEST_P(WireMpi, CarriesEveryOperation) {
  if (std::system(("command -v " + GetParam().launcher.substr(0, GetParam().launcher.find(' ')) +
                   " > /dev/null")
                      .c_str()) != 0)
    GTEST_SKIP() << GetParam().launcher << " is not installed";
  if (kThreadSanitized && GetParam().plugin == "mpich")
    GTEST_SKIP()
        << "MPICH crashes in programs built with ThreadSanitizer, also in those without kolo";
  std::string why;
  if (!wire_plugin_available(GetParam().plugin, &why)) GTEST_SKIP() << why;

  const auto rank =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "kolo_wire_mpi_rank";
  const std::string command = "KOLO_TRANSPORT=mpi timeout 50 " + GetParam().launcher + " -np 3 '" +
                              rank.string() + "' 2>&1 < /dev/null";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string output;
  for (std::array<char, 4096> part{};
       const std::size_t got = std::fread(part.data(), 1, part.size(), pipe);)
    output.append(part.data(), got);
  const int status = ::pclose(pipe);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << output;
  EXPECT_THAT(output, testing::HasSubstr("3 ranks over mpi"));
}

INSTANTIATE_TEST_SUITE_P(Of, WireMpi,
                         testing::Values(Mpi{"openmpi",
                                             "mpirun.openmpi --allow-run-as-root --oversubscribe"},
                                         Mpi{"mpich", "mpirun.mpich"}),
                         [](const auto& info) { return info.param.plugin; });

}  // namespace
}  // namespace kolo::comm
