#include "events/event_reader.h"

#include <gmock/gmock.h>

#include "base/errors.h"
#include "base/files.h"
#include "base/frames.h"
#include "events/crc32c.h"

namespace kolo::events {
namespace {

using testing::ElementsAre;
using testing::Pair;

class EventReader : public testing::Test {
 protected:
  EventReader() {
    EventFile file(scratch_.path(), 100);
    const std::vector<HParam> parameters = {{"lr", 0.5}, {"kind", std::string("a")}, {"on", true}};
    const std::vector<std::string> metrics = {"loss"};
    file.hparams(parameters, metrics, 100);
    file.scalar("loss", 4, 1, 101);
    file.scalar("accuracy", 0.25, 1, 101);
    file.scalar("loss", 2, 2, 102);
    path_ = file.path();
  }

  TempDir scratch_{"kolo-events"};
  std::filesystem::path path_;
};

TEST_F(EventReader, ReadsWhatWasWritten) {
  EXPECT_TRUE(is_event_file(path_));
  RunEvents run;
  read_events(path_, run);
  EXPECT_THAT(run.scalars,
              ElementsAre(Pair(1, ElementsAre(Pair("accuracy", 0.25), Pair("loss", 4))),
                          Pair(2, ElementsAre(Pair("loss", 2)))));
  ASSERT_EQ(run.hparams.size(), 3U);
  EXPECT_EQ(run.hparams[0], (HParam{"kind", std::string("a")}));
  EXPECT_EQ(run.hparams[1], (HParam{"lr", 0.5}));
  EXPECT_EQ(run.hparams[2], (HParam{"on", true}));
  EXPECT_EQ(run.began, 100);
  EXPECT_EQ(run.ended, 102);
  EXPECT_FALSE(run.success.has_value());
  EventFile(scratch_.path(), 103).end_of_session(false, 104);
  for (const auto& entry : std::filesystem::directory_iterator(scratch_.path()))
    read_events(entry.path(), run);
  EXPECT_EQ(run.success, false);
}

TEST_F(EventReader, AFileThatIsCutShortGivesWhatIsWhole) {
  const std::string bytes = read_file(path_);
  std::size_t most = 0;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    RunEvents run;
    parse_events(std::string_view(bytes).substr(0, size), "it", run);
    EXPECT_GE(run.scalars.size(), most);  // never less than of a shorter piece
    most = run.scalars.size();
  }
  EXPECT_EQ(most, 1U);
}

TEST_F(EventReader, DamageIsNoticed) {
  std::string bytes = read_file(path_);
  RunEvents run;
  for (std::size_t at : {std::size_t{2}, std::size_t{14}, bytes.size() - 6}) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_THROW(parse_events(damaged, "it", run), Error) << at;
  }
}

std::string record_of(const std::string& message) {
  const std::string length = ByteWriter().u64(message.size()).bytes();
  return ByteWriter()
      .raw(length)
      .u32(masked(crc32c(length)))
      .raw(message)
      .u32(masked(crc32c(message)))
      .bytes();
}

/// As TensorFlow 2 writes it: step 7, tag "t", a tensor of type float with the bytes of 1.5.
TEST_F(EventReader, AScalarMayBeATensor) {
  const std::string tensor = std::string("\x08\x01\x22\x04\x00\x00\xc0\x3f", 8);
  const std::string value = std::string("\x0a\x01t\x42\x08", 5) + tensor;
  const std::string summary = std::string("\x0a", 1) + static_cast<char>(value.size()) + value;
  const std::string event =
      std::string("\x10\x07\x2a", 3) + static_cast<char>(summary.size()) + summary;
  RunEvents run;
  parse_events(record_of(event), "it", run);
  EXPECT_THAT(run.scalars, ElementsAre(Pair(7, ElementsAre(Pair("t", 1.5)))));
}

}  // namespace
}  // namespace kolo::events
