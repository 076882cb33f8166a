#include "tune/protocol/trial_channels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <deque>

#include "support/few_descriptors.h"

namespace kolo::tune {
namespace {

class TrialChannelsTest : public testing::Test {
 protected:
  Fd helper() {
    Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, channels_.socket_path().c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return socket;
  }
  static void say(const Fd& socket, const std::string& text) {
    ASSERT_EQ(::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  bool is_ready(int milliseconds) {
    pollfd poll{channels_.poll_fd(), POLLIN, 0};
    return ::poll(&poll, 1, milliseconds) == 1;
  }
  void read_ready() { channels_.read_ready(take_, refuse_); }

  TrialChannels channels_;
  int lines_ = 0;
  std::vector<std::string> refused_;
  const TrialChannels::Take take_ = [this](ChannelId, RunId, TrialLine line) {
    if (line.kind == TrialLine::Kind::report) ++lines_;
  };
  const TrialChannels::Refuse refuse_ = [this](RunId, const std::string& why) {
    refused_.push_back(why);
  };
};

TEST_F(TrialChannelsTest, RestsWhenDescriptorsRunOut) {
  const auto trial = channels_.open({1, 1});
  const Fd socket = helper();
  say(socket, hello_line(trial.token, false) + report_line(Value{{"loss", 1}}, ""));
  {
    const test::FewDescriptors none;
    ASSERT_TRUE(is_ready(10'000));
    read_ready();
    EXPECT_FALSE(is_ready(0));  // the study would do nothing else
  }
  while (lines_ == 0 && is_ready(10'000)) read_ready();
  EXPECT_EQ(lines_, 1);
}

TEST_F(TrialChannelsTest, ATrialThatNeverStopsSendingDoesNotKeepTheStudy) {
  const auto trial = channels_.open({1, 1});
  const std::string report = report_line(Value{{"loss", 1}}, "");
  std::string many;
  while (many.size() < 100'000) many += report;
  ::send(trial.trial_end.get(), many.data(), many.size(), MSG_DONTWAIT);
  // Each round sends as much as it has read.
  int rounds = 0;
  const TrialChannels::Take feed = [&](ChannelId channel, RunId, TrialLine) {
    channels_.answer(channel, answer_line({}));
    if (++rounds < 1'000'000)
      ::send(trial.trial_end.get(), report.data(), report.size(), MSG_DONTWAIT);
  };
  ASSERT_TRUE(is_ready(10'000));
  channels_.read_ready(feed, refuse_);
  EXPECT_LT(rounds, 1'000'000);
  EXPECT_TRUE(is_ready(0));  // there is more
}

TEST_F(TrialChannelsTest, ATrialThatReportsFasterThanItIsAnsweredWaits) {
  const auto trial = channels_.open({1, 1});
  const std::string report = report_line(Value{{"loss", 1}}, "");
  const auto sent = [&] {
    return ::send(trial.trial_end.get(), report.data(), report.size(), MSG_DONTWAIT) > 0;
  };
  int said = 0;
  for (int round = 0; round < 1000; ++round) {
    while (sent()) ++said;
    if (!is_ready(0)) break;
    read_ready();
  }
  EXPECT_FALSE(is_ready(0));
  EXPECT_LT(lines_, said);
  // With answers it is heard again.
  for (int answered = 0; answered < said; ++answered) {
    while (lines_ == answered && is_ready(10'000)) read_ready();
    channels_.answer(trial.channel, answer_line({}));
  }
  EXPECT_EQ(lines_, said);
}

TEST_F(TrialChannelsTest, ARunThatEndsIsHeardToItsEnd) {
  const auto trial = channels_.open({1, 1});
  const std::string report = report_line(Value{{"loss", 1}}, "");
  int said = 0;
  for (int round = 0; round < 1000; ++round) {
    while (::send(trial.trial_end.get(), report.data(), report.size(), MSG_DONTWAIT) > 0) ++said;
    if (!is_ready(0)) break;
    read_ready();
  }
  EXPECT_LT(lines_, said);
  channels_.close({1, 1}, take_, refuse_);
  EXPECT_EQ(lines_, said);
}

TEST_F(TrialChannelsTest, StrangersAreFewAndSayLittle) {
  const auto trial = channels_.open({1, 1});
  std::vector<Fd> silent;
  for (int i = 0; i < 200; ++i) {
    silent.push_back(helper());
    read_ready();
  }
  char byte = 0;
  EXPECT_EQ(::recv(silent.front().get(), &byte, 1, MSG_DONTWAIT), 0);
  EXPECT_LT(::recv(silent.back().get(), &byte, 1, MSG_DONTWAIT), 0);
  say(silent.back(), std::string(10'000, 'x'));
  while (is_ready(0)) read_ready();
  EXPECT_EQ(::recv(silent.back().get(), &byte, 1, MSG_DONTWAIT), 0);
  const Fd known = helper();
  say(known, hello_line(trial.token, false) + report_line(Value{{"loss", 1}}, ""));
  while (lines_ == 0 && is_ready(10'000)) read_ready();
  EXPECT_EQ(lines_, 1);
}

TEST_F(TrialChannelsTest, WhatIsWrongWithALineIsItsTrialsAlone) {
  const auto trial = channels_.open({1, 1}), other = channels_.open({2, 1});
  say(trial.trial_end,
      "{\"loss\": 1e999}\n{\"kolo\": 1, \"checkpoint\": 7}\n" + std::string(200'000, '[') + "\n");
  say(other.trial_end, report_line(Value{{"loss", 1}}, ""));
  while (is_ready(0)) read_ready();
  EXPECT_EQ(refused_.size(), 3U);
  EXPECT_EQ(lines_, 1);
}

/// Sends all that the socket takes, from a place on.
void send_more(const Fd& socket, const std::string& text, std::size_t& sent) {
  for (ssize_t now = 1; now > 0 && sent < text.size();) {
    now = ::send(socket.get(), text.data() + sent, text.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (now > 0) sent += static_cast<std::size_t>(now);
  }
}

TEST_F(TrialChannelsTest, LongLinesOfManyConnectionsWaitForEachOther) {
  constexpr std::size_t kHelpers = 12, kLine = 8U << 20;
  const auto trial = channels_.open({1, 1});
  const std::string hello = hello_line(trial.token, false);
  const std::string line = report_line(Value{{"note", std::string(kLine, 'x')}}, "");
  std::vector<Fd> helpers;
  std::vector<std::size_t> sent(kHelpers, 0);
  std::deque<ChannelId> asking;
  const TrialChannels::Take take = [&](ChannelId channel, RunId, const TrialLine&) {
    asking.push_back(channel);
    ++lines_;
  };
  for (std::size_t i = 0; i < kHelpers; ++i) say(helpers.emplace_back(helper()), hello);
  // Without answers no more is read than the study has memory for.
  const auto read_all = [&] {
    for (int idle = 0; idle < 3; ++idle)
      while (true) {
        for (std::size_t i = 0; i < kHelpers; ++i) send_more(helpers[i], line, sent[i]);
        if (!is_ready(0)) break;
        channels_.read_ready(take, refuse_);
        idle = 0;
      }
  };
  read_all();
  EXPECT_GT(lines_, 0);
  EXPECT_LE(lines_ * kLine, 56U << 20);
  // Those that have left count until they are answered.
  std::size_t left = 0;
  for (const auto& socket : helpers) left += socket.valid() ? 1 : 0;
  EXPECT_EQ(left, kHelpers);
  while (!asking.empty()) {
    channels_.answer(asking.front(), answer_line({}));
    asking.pop_front();
    read_all();
  }
  EXPECT_EQ(lines_, static_cast<int>(kHelpers));
  EXPECT_TRUE(refused_.empty());
}

TEST_F(TrialChannelsTest, ALineCostsWhatItsValuesTake) {
  const auto trial = channels_.open({1, 1});
  std::string line = R"({"loss": 1, "many": [)";
  for (int i = 0; i < 600'000; ++i) line += "0,";
  line += "0]}\n";
  const std::string both = line + line;
  std::size_t sent = 0;
  const auto read_all = [&] {
    for (bool more = true; more; more = is_ready(0)) {
      read_ready();
      send_more(trial.trial_end, both, sent);
    }
  };
  read_all();
  EXPECT_EQ(lines_, 1);
  channels_.answer(trial.channel, answer_line({}));
  read_all();
  EXPECT_EQ(lines_, 2);
}

TEST_F(TrialChannelsTest, ReportsOfConnectionsThatHaveClosedCountToo) {
  const auto trial = channels_.open({1, 1});
  const std::string line =
      hello_line(trial.token, false) + report_line(Value{{"note", std::string(100'000, 'x')}}, "");
  std::deque<ChannelId> asking;
  const TrialChannels::Take take = [&](ChannelId channel, RunId, const TrialLine&) {
    asking.push_back(channel);
  };
  std::vector<Fd> open;
  for (int i = 0; i < 1000; ++i) {
    std::size_t sent = 0;
    Fd socket = helper();
    send_more(socket, line, sent);
    if (sent < line.size()) open.push_back(std::move(socket));
    while (is_ready(0)) channels_.read_ready(take, refuse_);
    if (asking.size() + 10 < static_cast<std::size_t>(i)) break;  // it is not read any more
  }
  EXPECT_LT(asking.size(), 400U);
  const std::size_t before = asking.size();
  while (!asking.empty()) {
    channels_.answer(asking.front(), answer_line({}));
    asking.pop_front();
  }
  while (is_ready(0)) channels_.read_ready(take, refuse_);
  EXPECT_GT(before + asking.size(), before);  // it is heard again
}

TEST_F(TrialChannelsTest, ARunMayHaveSoManyConnectionsAndTheOthersWait) {
  const auto trial = channels_.open({1, 1}), other = channels_.open({2, 1});
  const auto greet = [&](const std::string& token) {
    Fd socket = helper();
    say(socket, hello_line(token, false));
    while (is_ready(0)) read_ready();
    return socket;
  };
  std::vector<Fd> known;
  for (int i = 0; i < 100; ++i) {
    known.push_back(greet(trial.token));
    say(known.back(), report_line(Value{{"loss", 1}}, ""));
  }
  while (is_ready(0)) read_ready();
  EXPECT_EQ(lines_, 63);  // and the one that the trial has inherited
  const Fd stranger = greet(other.token);
  say(stranger, report_line(Value{{"loss", 1}}, ""));
  while (is_ready(0)) read_ready();
  EXPECT_EQ(lines_, 64);
  // Those that wait are heard when others have left.
  known.erase(known.begin(), known.begin() + 20);
  while (is_ready(0)) read_ready();
  EXPECT_EQ(lines_, 84);
  channels_.close({1, 1}, take_, refuse_);
  EXPECT_EQ(lines_, 101);
}

}  // namespace
}  // namespace kolo::tune
