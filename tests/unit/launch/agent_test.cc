// The agent alone, driven by hand over its pipes.
#include "launch/agent.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>

#include "base/errors.h"
#include "base/files.h"
#include "comm/rendezvous/secret.h"

namespace kolo::launch {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(AgentProtocolTest, MessagesComeOutAsTheyWentIn) {
  StartJob job;
  job.directory = "/d";
  job.argv = {"prog", "", "a b\n"};
  job.environment = {"A=1"};
  job.secret = std::string(32, '\0');
  job.bind_to = BindTo::core;
  job.grace_ms = 77;
  job.ranks = {{3, {"KOLO_RANK=3"}}, {4, {}}};
  const StartJob back = decode_start_job(encode(job));
  EXPECT_EQ(back.directory, job.directory);
  EXPECT_EQ(back.argv, job.argv);
  EXPECT_EQ(back.environment, job.environment);
  EXPECT_EQ(back.secret, job.secret);
  EXPECT_EQ(back.bind_to, BindTo::core);
  EXPECT_EQ(back.grace_ms, 77U);
  ASSERT_EQ(back.ranks.size(), 2U);
  EXPECT_EQ(back.ranks[0].rank, 3);
  EXPECT_EQ(back.ranks[0].environment, job.ranks[0].environment);

  const std::string whole = encode(job);
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_THROW(decode_start_job(std::string_view(whole).substr(0, size)), Error) << size;
  EXPECT_THROW(decode_start_job(whole + "x"), Error);
  EXPECT_THROW(decode_start_job(encode(StartJob{})), Error);

  const AgentHello hello = decode_agent_hello(encode(AgentHello{"h", "10.0.0.1", 8}));
  EXPECT_EQ(hello.host, "h");
  EXPECT_EQ(hello.from, "10.0.0.1");
  EXPECT_EQ(hello.processors, 8);
  const RankOutput output = decode_rank_output(encode(RankOutput{5, Stream::err, "bytes"}));
  EXPECT_EQ(output.rank, 5);
  EXPECT_EQ(output.stream, Stream::err);
  EXPECT_EQ(output.bytes, "bytes");
  EXPECT_THROW(decode_rank_output("abc"), Error);
  EXPECT_EQ(decode_rank_exit(encode(RankExit{5, -9})).status, -9);
}

class AgentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int down[2], up[2];
    ASSERT_EQ(::pipe2(down, O_CLOEXEC), 0);
    ASSERT_EQ(::pipe2(up, O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(down[1]);
      ::close(up[0]);
      int status = 1;
      try {
        status = Agent(Fd(down[0]), Fd(up[1])).run();
      } catch (const std::exception&) {
      }
      ::_exit(status);
    }
    ::close(down[0]);
    ::close(up[1]);
    to_ = Fd(down[1]);
    from_ = Fd(up[0]);
  }
  void TearDown() override {
    to_.reset();
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  static StartJob job(const std::string& script, int ranks = 1) {
    StartJob job;
    job.argv = {"sh", "-c", script};
    job.secret = comm::rendezvous::Secret::random().bytes();
    for (int rank = 0; rank < ranks; ++rank)
      job.ranks.push_back({rank, {"R=" + std::to_string(rank)}});
    return job;
  }
  void send(std::string_view bytes) { write_all(to_.get(), bytes, "the agent"); }

  /// The next frame; type 0 at the end.
  Frame next() {
    while (true) {
      if (auto frame = parser_.next()) return *frame;
      char chunk[65536];
      pollfd poll{from_.get(), POLLIN, 0};
      if (::poll(&poll, 1, 20'000) != 1) return {};
      ssize_t got = ::read(from_.get(), chunk, sizeof chunk);
      if (got <= 0) return {};
      std::string_view bytes(chunk, static_cast<std::size_t>(got));
      if (!greeted_) {
        EXPECT_EQ(bytes.substr(0, kAgentGreeting.size()), kAgentGreeting);
        bytes.remove_prefix(kAgentGreeting.size());
        greeted_ = true;
      }
      parser_.feed(bytes);
    }
  }
  /// Everything until `done`: outputs by rank and stream, exits by rank.
  void run_to_the_end() {
    while (true) {
      const Frame frame = next();
      const auto type = static_cast<AgentMessage>(frame.type);
      types_.push_back(type);
      if (frame.type == 0 || type == AgentMessage::done) return;
      if (type == AgentMessage::output) {
        const RankOutput output = decode_rank_output(frame.payload);
        outputs_[{output.rank, output.stream}] += output.bytes;
      } else if (type == AgentMessage::exited) {
        const RankExit exit = decode_rank_exit(frame.payload);
        exits_[exit.rank] = exit.status;
      } else if (type == AgentMessage::start_failed) {
        failure_ = frame.payload;
      }
    }
  }

  pid_t pid_ = -1;
  Fd to_, from_;
  FrameParser parser_{kAgentFrameLimit};
  bool greeted_ = false;
  std::vector<AgentMessage> types_;
  std::map<std::pair<int, Stream>, std::string> outputs_;
  std::map<int, int> exits_;
  std::string failure_;
};

TEST_F(AgentTest, RunsRanksAndTellsTheirEnd) {
  send(frame(AgentMessage::start, encode(job("echo out $R; echo err $R >&2; exit $R", 3))));
  run_to_the_end();
  EXPECT_EQ(types_.back(), AgentMessage::done);
  EXPECT_EQ((outputs_[{2, Stream::out}]), "out 2\n");
  EXPECT_EQ((outputs_[{1, Stream::err}]), "err 1\n");
  EXPECT_EQ(exits_.size(), 3U);
  EXPECT_EQ(WEXITSTATUS(exits_[2]), 2);
}

TEST_F(AgentTest, RanksReadNothingFromStandardInput) {
  send(frame(AgentMessage::start, encode(job("cat; echo end"))));
  run_to_the_end();
  EXPECT_EQ((outputs_[{0, Stream::out}]), "end\n");
}

TEST_F(AgentTest, SaysWhyItCannotStart) {
  StartJob wrong = job("true", 2);
  wrong.argv = {"no-such-program"};
  send(frame(AgentMessage::start, encode(wrong)));
  run_to_the_end();
  EXPECT_THAT(failure_, HasSubstr("no such program"));
  EXPECT_TRUE(exits_.empty());
  EXPECT_EQ(types_.back(), AgentMessage::done);
}

TEST_F(AgentTest, StopIsARequestThenForce) {
  StartJob stubborn = job("trap '' TERM; echo ready; while :; do sleep 0.05; done");
  stubborn.grace_ms = 200;
  send(frame(AgentMessage::start, encode(stubborn)));
  Frame frame_seen = next();
  while (static_cast<AgentMessage>(frame_seen.type) != AgentMessage::output) frame_seen = next();
  send(frame(AgentMessage::stop));
  run_to_the_end();
  EXPECT_EQ(WTERMSIG(exits_[0]), SIGKILL);
  EXPECT_EQ(types_.back(), AgentMessage::done);
}

TEST_F(AgentTest, EndsRanksWhenTheLauncherIsGone) {
  send(frame(AgentMessage::start, encode(job("echo ready; exec sleep 1000"))));
  Frame frame_seen = next();
  while (static_cast<AgentMessage>(frame_seen.type) != AgentMessage::output) frame_seen = next();
  to_.reset();
  run_to_the_end();
  EXPECT_EQ(WTERMSIG(exits_[0]), SIGTERM);
  EXPECT_EQ(types_.back(), AgentMessage::done);
}

TEST_F(AgentTest, EndsAtOnceWhenTheLauncherGoesBeforeTheStart) {
  to_.reset();
  run_to_the_end();
  EXPECT_EQ(types_.back(), AgentMessage::done);
}

TEST_F(AgentTest, NonsenseEndsIt) {
  send(std::string(64, '\xff'));
  run_to_the_end();
  EXPECT_EQ(types_.back(), AgentMessage{});  // closed without more words
}

}  // namespace
}  // namespace kolo::launch
