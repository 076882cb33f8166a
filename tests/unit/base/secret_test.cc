#include "base/secret.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/env.h"
#include "base/subprocess.h"
#include "kolo/error.h"

namespace kolo {
namespace {

TEST(SecretTest, ProofsDependOnSecretLabelAndText) {
  const Secret a = Secret::random(), b = Secret::random();
  const std::string proof = a.prove("label", "text");
  EXPECT_EQ(proof.size(), kProofBytes);
  EXPECT_TRUE(a.check("label", "text", proof));
  EXPECT_FALSE(b.check("label", "text", proof));
  EXPECT_FALSE(a.check("labe", "ltext", proof));
  EXPECT_FALSE(a.check("label", "texts", proof));
  EXPECT_FALSE(a.check("label", "text", proof.substr(1)));
  EXPECT_FALSE(a.check("label", "text", ""));
  EXPECT_EQ(proof.find(a.bytes()), std::string::npos);
}

TEST(SecretTest, CanBeReadFromItsFileAgainAndAgain) {
  const Secret secret = Secret::random();
  Fd file = make_secret_file(secret);
  EXPECT_GE(file.get(), 100);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(read_secret_file(file.get(), -1).bytes(), secret.bytes());
  char byte = 'x';
  EXPECT_LT(::pwrite(file.get(), &byte, 1, 20), 0) << "the file must be sealed";
}

TEST(SecretTest, FewDescriptorsAreEnough) {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit few = before;
  few.rlim_cur = 64;
  ::setrlimit(RLIMIT_NOFILE, &few);
  const Secret secret = Secret::random();
  const Fd file = make_secret_file(secret);
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_LT(file.get(), 64);
  EXPECT_EQ(read_secret_file(file.get(), 0).bytes(), secret.bytes());
}

TEST(SecretTest, ComesThroughWrappersThatExecAndThoseThatClose) {
  const Secret secret = Secret::random();
  Fd file = make_secret_file(secret);
  SpawnOptions options;
  options.argv = {"/bin/sh", "-c", "env sh -c 'wc -c </dev/fd/$0 | grep -qx 46' $0",
                  std::to_string(file.get())};
  options.environment = current_environment();
  options.keep = {file.get()};
  const pid_t wrapped = spawn(options);
  int status = 0;
  ::waitpid(wrapped, &status, 0);
  EXPECT_EQ(status, 0);
  // Closed here, but the holder (this process under another number) still has it.
  const int closed = 900;
  ::close(closed);
  EXPECT_THROW(read_secret_file(closed, -1), Error);
  EXPECT_THROW(read_secret_file(closed, ::getpid()), Error);
  const int number = file.get();
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(number);
    bool same = false;
    try {
      same = read_secret_file(number, ::getppid()).bytes() == secret.bytes();
    } catch (const Error&) {
    }
    ::_exit(same ? 0 : 1);
  }
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(SecretTest, AnotherFileIsNotTakenForIt) {
  Fd other(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  try {
    read_secret_file(other.get(), -1);
    FAIL() << "must throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::failed_precondition);
  }
}

}  // namespace
}  // namespace kolo
