// `kolo run` over ssh: a real sshd on a high port of this machine, under several names.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <set>

#include "base/errors.h"
#include "base/files.h"
#include "base/socket.h"
#include "kolo_process.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

/// One sshd for all tests of this file.
class Sshd {
 public:
  Sshd() {
    if (::access("/usr/sbin/sshd", X_OK) != 0 || ::access("/usr/bin/ssh-keygen", X_OK) != 0) {
      why_not_ = "sshd (openssh-server) is not installed";
      return;
    }
    std::error_code ignored;
    if (::geteuid() == 0) fs::create_directories("/run/sshd", ignored);
    for (const char* key : {"id", "hostkey", "wrong"})
      run_command({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path(key)},
                  Deadline::after(20s));
    write_file_atomically(path("authorized_keys"), read_file(path("id.pub")), kPrivateFile);
    // A port that was free a moment ago; if somebody else was faster, the next one.
    for (int attempt = 0; attempt < 5 && pid_ < 0; ++attempt) start();
    if (pid_ < 0) why_not_ = "sshd does not start: " + read_file(path("sshd.log"));
  }
  ~Sshd() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }

  [[nodiscard]] const std::string& why_not() const { return why_not_; }
  [[nodiscard]] std::string path(const std::string& name) const { return dir_.path() / name; }
  [[nodiscard]] int port() const { return port_; }

 private:
  void start() {
    {
      Fd listener = listen_tcp(SocketAddress::loopback());
      port_ = local_address_of(listener.get()).port();
    }
    write_file_atomically(
        path("sshd_config"),
        fmt::format("Port {}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\n"
                    "PermitRootLogin prohibit-password\nPasswordAuthentication no\n"
                    "KbdInteractiveAuthentication no\nStrictModes no\nUsePAM no\nPidFile none\n"
                    "MaxStartups 100\n",
                    port_, path("hostkey"), path("authorized_keys")));
    write_file_atomically(
        path("ssh_config"),
        fmt::format("Host node*\n  HostName 127.0.0.1\n  Port {}\n  IdentityFile {}\n"
                    "  IdentitiesOnly yes\n  UserKnownHostsFile {}\n",
                    port_, path("id"), path("known_hosts")));
    SpawnOptions options;
    options.argv = {"/usr/sbin/sshd", "-D", "-f", path("sshd_config"), "-E", path("sshd.log")};
    options.environment = current_environment();
    options.die_with_parent = true;
    const pid_t child = spawn(options);
    const bool up = eventually([&] {
      if (::waitpid(child, nullptr, WNOHANG) == child) {
        pid_ = -2;
        return true;
      }
      try {
        connect_tcp(SocketAddress::from_numeric("127.0.0.1", static_cast<std::uint16_t>(port_)),
                    Deadline::after(1s));
        return true;
      } catch (const Error&) {
        return false;
      }
    });
    pid_ = up && pid_ != -2 ? child : -1;
  }

  TempDir dir_{"kolo-sshd"};
  std::string why_not_;
  int port_ = 0;
  pid_t pid_ = -1;
};

class RunSshTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { sshd_ = new Sshd; }
  static void TearDownTestSuite() {
    delete sshd_;
    sshd_ = nullptr;
  }
  void SetUp() override {
    if (!sshd_->why_not().empty()) GTEST_SKIP() << sshd_->why_not();
  }

  static KoloProcess::Options options() {
    KoloProcess::Options result;
    result.environment = {"KOLO_SSH=ssh -F " + sshd_->path("ssh_config")};
    return result;
  }

  static Sshd* sshd_;
};
Sshd* RunSshTest::sshd_ = nullptr;

TEST_F(RunSshTest, RanksOfSeveralHostsKnowTheirPlaces) {
  auto with_variable = options();
  with_variable.environment.emplace_back("CARRIED=over there; $x");
  Finished run = run_kolo({"run", "-np", "4", "-H", "nodea:2,nodeb:3", "sh", "-c",
                           "echo $KOLO_RANK $KOLO_LOCAL_RANK $KOLO_LOCAL_SIZE $KOLO_CROSS_RANK "
                           "$KOLO_CROSS_SIZE $KOLO_HOSTNAME \"$CARRIED\""},
                          with_variable);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(sorted_lines(run.out), ElementsAre("[0]<stdout>:0 0 2 0 2 nodea over there; $x",
                                                 "[1]<stdout>:1 1 2 0 2 nodea over there; $x",
                                                 "[2]<stdout>:2 0 2 1 2 nodeb over there; $x",
                                                 "[3]<stdout>:3 1 2 1 2 nodeb over there; $x"));
}

TEST_F(RunSshTest, TheLaunchDirectoryIsKeptAndNeeded) {
  TempDir dir;
  auto in_directory = options();
  in_directory.directory = dir.path();
  Finished run = run_kolo({"run", "-np", "1", "-H", "nodea", "pwd"}, in_directory);
  EXPECT_EQ(run.out, "[0]<stdout>:" + dir.path().string() + "\n");
  // Not there on the other side: here, because it is gone by the time ssh has connected.
  fs::create_directory(dir.path() / "sub");
  in_directory.directory = dir.path() / "sub";
  in_directory.environment[0] = "KOLO_SSH=" + (dir.path() / "slow-ssh").string();
  write_file_atomically(dir.path() / "slow-ssh",
                        "#!/bin/sh\nrmdir " + (dir.path() / "sub").string() +
                            "\ncd /\nexec ssh -F " + sshd_->path("ssh_config") + " \"$@\"\n",
                        0755);
  run = run_kolo({"run", "-np", "1", "-H", "nodea", "pwd"}, in_directory);
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("nodea: cannot change to the launch directory"));
}

TEST_F(RunSshTest, PerHostVariablesStayAtHome) {
  auto with_variables = options();
  for (const char* entry : {"TMPDIR=/tmp", "DISPLAY=:7", "XDG_RUNTIME_DIR=/x", "SSH_AUTH_SOCK=/x",
                            "CUDA_VISIBLE_DEVICES=3", "SLURM_NODEID=9", "HOSTNAME=me"})
    with_variables.environment.emplace_back(entry);
  Finished run = run_kolo({"run", "-np", "1", "-H", "nodea", "sh", "-c",
                           "echo ${DISPLAY-none} ${XDG_RUNTIME_DIR-none} ${SSH_AUTH_SOCK-none} "
                           "${CUDA_VISIBLE_DEVICES-none} ${SLURM_NODEID-none} ${HOSTNAME-none}"},
                          with_variables);
  EXPECT_THAT(run.out, Not(HasSubstr(":7")));
  EXPECT_THAT(run.out, Not(HasSubstr("/x")));
  EXPECT_THAT(run.out, Not(HasSubstr("3")));
  EXPECT_THAT(run.out, Not(HasSubstr("me")));
  // Said explicitly, they go.
  run = run_kolo({"run", "-np", "1", "-H", "nodea", "-x", "CUDA_VISIBLE_DEVICES", "sh", "-c",
                  "echo $CUDA_VISIBLE_DEVICES"},
                 with_variables);
  EXPECT_EQ(run.out, "[0]<stdout>:3\n");
}

TEST_F(RunSshTest, StatusesComeBack) {
  Finished run = run_kolo({"run", "-np", "2", "-H", "nodea,nodeb", "sh", "-c",
                           "[ $KOLO_RANK = 1 ] && exit 41; exec sleep 1000"},
                          options());
  EXPECT_EQ(run.status, 41);
  EXPECT_THAT(run.err, HasSubstr("rank 1 on nodeb exited with status 41; stopping the other"));
  run = run_kolo({"run", "-np", "2", "-H", "nodea,localhost", "sh", "-c",
                  "[ $KOLO_RANK = 0 ] && kill -KILL $$; exec sleep 1000"},
                 options());
  EXPECT_EQ(run.status, 137);
}

TEST_F(RunSshTest, FailuresAreOneLineNamingTheHost) {
  auto expect = [&](std::vector<std::string> arguments, const std::string& text) {
    Finished run = run_kolo(arguments, options());
    EXPECT_EQ(run.status, 1) << text;
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, HasSubstr(text));
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  };
  expect({"run", "-H", "nodea,no-such-host.invalid", "true"},
         "cannot start on no-such-host.invalid: ssh: Could not resolve hostname");
  expect({"run", "-H", "nodea,nodeb", "--ssh-port", "1", "true"}, "Connection refused");
  expect({"run", "-H", "nodea", "--ssh", "no-such-ssh", "true"}, "no-such-ssh: no such program");
  expect({"run", "-H", "nodea", "--remote-kolo", "/no/kolo", "true"}, "/no/kolo");
  expect({"run", "-H", "nodea:2,nodeb", "./no-such-program"}, "no-such-program: no such program");
  expect({"run", "-H", "nodea,nodeb", "--network-interface", "nope0", "true"},
         "no network interface 'nope0'");
}

TEST_F(RunSshTest, AHostThatDoesNotAnswerIsGivenUp) {
  // Something that listens and never speaks.
  Fd mute = listen_tcp(SocketAddress::loopback());
  const int port = local_address_of(mute.get()).port();
  Finished run = run_kolo(
      {"run", "-H", "nodea", "--ssh-port", std::to_string(port), "--start-timeout", "1", "true"},
      options());
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("nodea"));
}

TEST_F(RunSshTest, WhatALoginShellPrintsDoesNotMatter) {
  TempDir dir;
  write_file_atomically(dir.path() / "noisy-ssh",
                        "#!/bin/sh\necho 'Welcome to the machine'\necho 'and mind the step' >&2\n"
                        "exec ssh -F " +
                            sshd_->path("ssh_config") + " \"$@\"\n",
                        0755);
  auto noisy = options();
  noisy.environment[0] = "KOLO_SSH=" + (dir.path() / "noisy-ssh").string();
  Finished run = run_kolo({"run", "-np", "1", "-H", "nodea", "echo", "hi"}, noisy);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, "[0]<stdout>:hi\n");
}

TEST_F(RunSshTest, LongOutputArrivesWhole) {
  Finished run = run_kolo({"run", "-np", "2", "-H", "nodea,nodeb", "sh", "-c",
                           "head -c 1000000 /dev/zero | tr '\\0' $KOLO_RANK; echo; echo end"},
                          options());
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.out.size(), 2U * (12 + 1'000'000 + 1 + 12 + 4));
}

TEST_F(RunSshTest, InterruptEndsRanksOnAllHosts) {
  KoloProcess run({"run", "-np", "3", "-H", "nodea,nodeb,localhost", "sh", "-c",
                   "setsid sleep 1000 & echo ready; wait"},
                  options());
  for (const char* rank : {"[0]", "[1]", "[2]"})
    ASSERT_TRUE(run.wait_for_out(std::string(rank) + "<stdout>:ready")) << run.err();
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(), 130);
  EXPECT_TRUE(run.nothing_left());
}

TEST_F(RunSshTest, AKilledLauncherLeavesNothingOnAnyHost) {
  KoloProcess run({"run", "-np", "3", "-H", "nodea,nodeb,localhost", "sh", "-c",
                   "trap '' HUP TERM; setsid sleep 1000 & echo ready; wait"},
                  options());
  for (const char* rank : {"[0]", "[1]", "[2]"})
    ASSERT_TRUE(run.wait_for_out(std::string(rank) + "<stdout>:ready")) << run.err();
  run.signal(SIGKILL);
  run.wait();
  EXPECT_TRUE(run.nothing_left());
}

TEST_F(RunSshTest, ALostConnectionIsALostHost) {
  KoloProcess run({"run", "-np", "2", "-H", "nodea,nodeb", "sh", "-c", "echo ready; sleep 1000"},
                  options());
  ASSERT_TRUE(run.wait_for_out("[0]<stdout>:ready")) << run.err();
  ASSERT_TRUE(run.wait_for_out("[1]<stdout>:ready"));
  // The ssh to nodeb: a child of the launcher with that name on its command line.
  pid_t ssh = -1;
  for (pid_t pid : run.descendants()) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline", std::ios::binary);
    const std::string line{std::istreambuf_iterator<char>(file), {}};
    if (line.starts_with("ssh") && line.find(std::string("nodeb") + '\0') != std::string::npos)
      ssh = pid;
  }
  ASSERT_GT(ssh, 0);
  ::kill(ssh, SIGKILL);
  EXPECT_EQ(run.wait(), 1);
  EXPECT_THAT(run.err(), HasSubstr("host nodeb was lost"));
  EXPECT_TRUE(run.nothing_left());
}

TEST_F(RunSshTest, TheSecretIsOnNoCommandLine) {
  KoloProcess run({"run", "-np", "2", "-H", "nodea,nodeb", "--verbose", "sh", "-c",
                   "od -An -tx1 -v /proc/$KOLO_CUSTODIAN_PID/fd/$KOLO_SECRET_FD | tr -d ' \\n' > "
                   "$SECRET_OUT.$KOLO_RANK; echo ready; sleep 1000"},
                  [&] {
                    auto o = options();
                    o.environment.push_back("SECRET_OUT=" + sshd_->path("seen"));
                    return o;
                  }());
  ASSERT_TRUE(run.wait_for_out("[0]<stdout>:ready")) << run.err();
  ASSERT_TRUE(run.wait_for_out("[1]<stdout>:ready"));
  const std::string hex = read_file(sshd_->path("seen.0"));
  ASSERT_EQ(hex.size(), 92U);
  EXPECT_EQ(hex, read_file(sshd_->path("seen.1")));
  std::string secret;
  for (std::size_t i = 28; i < hex.size(); i += 2)
    secret.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  for (const auto& entry : fs::directory_iterator("/proc")) {
    if (!std::isdigit(static_cast<unsigned char>(entry.path().filename().string()[0]))) continue;
    for (const char* name : {"cmdline", "environ"}) {
      std::ifstream file(entry.path() / name, std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      EXPECT_EQ(text.find(secret), std::string::npos) << entry.path() << name;
      EXPECT_EQ(text.find(hex.substr(28)), std::string::npos) << entry.path() << name;
    }
  }
  run.signal(SIGTERM);
  EXPECT_EQ(run.wait(), 143);
}

}  // namespace
}  // namespace kolo::test
