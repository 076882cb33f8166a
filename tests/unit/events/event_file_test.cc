// Event files are read back by a decoder that shares nothing with the writer: the framing by hand,
// the messages by `protoc --decode_raw`.
#include "events/event_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cstring>

#include "base/errors.h"
#include "base/files.h"
#include "base/subprocess.h"
#include "events/crc32c.h"

namespace kolo::events {
namespace {

using testing::HasSubstr;

std::uint32_t u32_at(const std::string& bytes, std::size_t place) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + place, sizeof value);
  return value;
}

/// The messages of a file; checks lengths and checksums.
std::vector<std::string> messages_of(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  std::vector<std::string> messages;
  std::size_t place = 0;
  while (place < bytes.size()) {
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data() + place, sizeof length);
    EXPECT_EQ(u32_at(bytes, place + 8), masked(crc32c(bytes.substr(place, 8))));
    messages.push_back(bytes.substr(place + 12, length));
    EXPECT_EQ(messages.back().size(), length);
    EXPECT_EQ(u32_at(bytes, place + 12 + length), masked(crc32c(messages.back())));
    place += 12 + length + 4;
  }
  return messages;
}

std::string decode_raw(const TempDir& scratch, const std::string& message) {
  const auto file = scratch.path() / "message";
  write_file_atomically(file, message);
  auto result = run_command({"sh", "-c", "protoc --decode_raw < " + file.string()},
                            Deadline::after(std::chrono::seconds(20)));
  EXPECT_TRUE(result.ok()) << result.errors;
  return result.output;
}

TEST(EventFile, HoldsScalarsThatAnIndependentDecoderReads) {
  TempDir scratch;
  std::filesystem::path path;
  {
    EventFile file(scratch.path(), 1000.0);
    path = file.path();
    file.scalar("ray/tune/loss", 0.5, 3, 1001.0);
  }
  EXPECT_THAT(path.filename().string(), testing::StartsWith("events.out.tfevents.0000001000."));
  auto messages = messages_of(path);
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_THAT(decode_raw(scratch, messages[0]), HasSubstr("3: \"brain.Event:2\""));
  const std::string scalar = decode_raw(scratch, messages[1]);
  EXPECT_THAT(scalar, HasSubstr("2: 3\n"));
  EXPECT_THAT(scalar, HasSubstr("1: \"ray/tune/loss\""));
  EXPECT_THAT(scalar, HasSubstr("2: 0x3f000000"));  // 0.5f
}

TEST(EventFile, HoldsHyperparametersAndTheEndOfTheSession) {
  TempDir scratch;
  std::filesystem::path path;
  {
    EventFile file(scratch.path(), 1000.0);
    path = file.path();
    const HParam values[] = {{"lr", 0.25}, {"nesterov", true}, {"optimizer", std::string("sgd")}};
    const std::string metrics[] = {"loss"};
    file.hparams(values, metrics, 1000.0);
    file.end_of_session(true, 1002.0);
  }
  auto messages = messages_of(path);
  ASSERT_EQ(messages.size(), 3U);
  const std::string start = decode_raw(scratch, messages[1]);
  for (const char* part : {"_hparams_/experiment", "_hparams_/session_start_info", "hparams", "lr",
                           "nesterov", "optimizer", "sgd", "loss"})
    EXPECT_THAT(start, HasSubstr(part));
  EXPECT_THAT(decode_raw(scratch, messages[2]), HasSubstr("_hparams_/session_end_info"));
}

TEST(EventFile, ReachesTheFileAtFlush) {
  TempDir scratch;
  EventFile file(scratch.path(), 1000.0);
  file.scalar("a", 1, 1, 1000.0);
  EXPECT_EQ(messages_of(file.path()).size(), 0U);
  file.flush();
  EXPECT_EQ(messages_of(file.path()).size(), 2U);
  for (int step = 0; step < 5000; ++step) file.scalar("a", step, step, 1000.0 + step);
  EXPECT_GT(read_file(file.path()).size(), 64U << 10);  // by itself, when much has gathered
  file.flush();
  EXPECT_EQ(messages_of(file.path()).size(), 5002U);
}

TEST(EventFile, IsWholeAfterADiskWasFull) {
  TempDir scratch;
  EventFile file(scratch.path(), 1000.0);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit full{100, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &full);
  int refused = 0;
  for (int step = 0; step < 50'000; ++step) try {
      file.scalar("a", step, step, 1000.0 + step);
    } catch (const Error&) {
      ++refused;
    }
  EXPECT_GT(refused, 0);
  EXPECT_THROW(file.flush(), Error);
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  file.flush();
  const auto kept = messages_of(file.path()).size();
  EXPECT_GT(kept, 1000U);
  EXPECT_LT(read_file(file.path()).size(), 2U << 20);
  file.scalar("a", 1, 1, 1000.0);
  file.flush();
  EXPECT_EQ(messages_of(file.path()).size(), kept + 1);
}

TEST(EventFile, TwoFilesOfOneSecondHaveDifferentNames) {
  TempDir scratch;
  EventFile one(scratch.path(), 5.0), other(scratch.path(), 5.0);
  EXPECT_NE(one.path(), other.path());
}

}  // namespace
}  // namespace kolo::events
