// The sampler `ppo`: batches, replay, files, and that it learns.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>

#include "base/files.h"
#include "kolo/error.h"
#include "kolo/nas/ppo.h"
#include "kolo/random.h"
#include "nas/ppo/ppo.h"
#include "train/checkpoint/format.h"

namespace kolo::nas {
namespace {

using search::Direction;
using search::Outcome;
using search::Point;
using search::Sampler;
using search::SamplerOptions;
using search::TrialId;
using SpacePointer = std::shared_ptr<const search::Space>;

SpacePointer nodes(const std::vector<int>& choices) {
  search::Space::Builder builder;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    std::vector<search::Value> values;
    for (int k = 0; k < choices[i]; ++k) values.emplace_back(k);
    builder.add("arch/" + std::string(1, static_cast<char>('a' + i)), search::choice(values));
  }
  return builder.build();
}

double sum_of(const Point& point) {
  double sum = 0;
  for (const double entry : point) sum += entry;
  return sum;
}

SamplerOptions maximize(std::uint64_t seed, std::optional<std::uint64_t> budget = {}) {
  SamplerOptions options;
  options.directions = {Direction::maximize};
  options.seed = seed;
  options.budget = budget;
  options.settings = {{"network", "ppo_lnlstm_32"}, {"episodes", 5}};
  return options;
}

ErrorCode code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::internal;
}

TEST(Ppo, WaitsForItsBatch) {
  auto sampler = make_ppo_sampler(nodes({3, 3}), maximize(1));
  std::vector<TrialId> ids;
  for (std::uint64_t i = 0; i < 8; ++i) ids.push_back(TrialId{i});
  const auto answers = sampler->ask(ids);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(answers[i].has_value(), i < 5) << i;
  for (std::uint64_t i = 0; i < 4; ++i) {
    sampler->tell(TrialId{4 - i}, Outcome::complete(1.0 + static_cast<double>(i)));
    EXPECT_FALSE(sampler->ask(TrialId{100})) << "before the batch has ended";
  }
  sampler->tell(TrialId{0}, Outcome::failed());
  EXPECT_TRUE(sampler->ask(TrialId{100}));
  EXPECT_NE(sampler->explain().find("1 updates"), std::string::npos) << sampler->explain();
}

TEST(Ppo, TriesStartingPointsBesideItsBatches) {
  SamplerOptions options = maximize(1);
  options.points_to_evaluate = {search::Value{{"arch", search::Value{{"a", 2}}}}};
  auto sampler = make_ppo_sampler(nodes({3, 3}), options);
  EXPECT_EQ((*sampler->ask(TrialId{0}))[0], 2);
  for (std::uint64_t i = 1; i <= 5; ++i) EXPECT_TRUE(sampler->ask(TrialId{i})) << i;
  EXPECT_FALSE(sampler->ask(TrialId{6}));
}

TEST(Ppo, KeepsToTheChoicesOfEachNode) {
  auto sampler = make_ppo_sampler(nodes({2, 7, 1, 4}), maximize(3));
  std::vector<std::set<double>> seen(4);
  for (std::uint64_t i = 0; i < 100; ++i) {
    const Point point = *sampler->ask(TrialId{i});
    ASSERT_TRUE(sampler->space().allows(point));
    for (std::size_t k = 0; k < 4; ++k) seen[k].insert(point[k]);
    sampler->tell(TrialId{i}, Outcome::complete(1.0));
  }
  EXPECT_EQ(seen[0].size(), 2U);
  EXPECT_EQ(seen[1].size(), 7U);
  EXPECT_EQ(seen[2].size(), 1U);
  EXPECT_EQ(seen[3].size(), 4U);
}

/// Mean objective of the last twenty of `trials`, the sum of the indices.
double last_of(const SamplerOptions& options, std::uint64_t trials) {
  auto sampler = make_ppo_sampler(nodes({5, 5, 5, 5, 5, 5}), options);
  double last = 0;
  for (std::uint64_t i = 0; i < trials; ++i) {
    const Point point = *sampler->ask(TrialId{i});
    if (i + 20 >= trials) last += sum_of(point) / 20;
    sampler->tell(TrialId{i}, Outcome::complete(sum_of(point)));
  }
  return last;
}

TEST(Ppo, FindsTheLargestIndexEverywhere) {
  SamplerOptions options = maximize(7, 600);
  options.settings.clear();  // as it is by default
  EXPECT_GE(last_of(options, 600), 23.5);
}

TEST(Ppo, LearnsFromTheObjectiveItself) {
  SamplerOptions options = maximize(7, 600);
  options.settings["reward"] = "raw";
  options.settings["lr"] = 1e-3;
  EXPECT_GE(last_of(options, 600), 16);  // 12 by chance
}

TEST(Ppo, MinimizesToo) {
  SamplerOptions options = maximize(7, 600);
  options.directions = {Direction::minimize};
  options.settings["lr"] = 1e-3;
  EXPECT_LE(last_of(options, 600), 2);
}

struct Event {
  bool is_ask;
  std::uint64_t id;
  Point point;
  Outcome outcome;
};

/// Asks and tells in any order, with failures and results that are not numbers.
std::vector<Event> run(Sampler& sampler, std::uint64_t seed, std::size_t count) {
  Random random(seed);
  std::vector<Event> events;
  std::vector<std::pair<std::uint64_t, Point>> live;
  std::uint64_t next = 0;
  while (events.size() < count) {
    if (live.empty() || random.uniform() < 0.5) {
      const std::uint64_t id = next++;
      if (auto point = sampler.ask(TrialId{id})) {
        events.push_back({true, id, *point, {}});
        live.emplace_back(id, *point);
      }
      if (random.uniform() < 0.1) sampler.add(live[0].second, Outcome::complete(0.5));
    } else {
      const std::size_t which = random.below(live.size());
      auto [id, point] = live[which];
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(which));
      const double fate = random.uniform();
      Outcome outcome = fate < 0.1   ? Outcome::failed()
                        : fate < 0.2 ? Outcome::complete(std::nan(""))
                                     : Outcome::complete(sum_of(point));
      if (fate > 0.9) outcome.constraints = {1.0};
      sampler.tell(TrialId{id}, outcome);
      events.push_back({false, id, point, outcome});
    }
  }
  return events;
}

void repeat(Sampler& sampler, const Event& event) {
  if (event.is_ask)
    sampler.recall(TrialId{event.id}, event.point);
  else
    sampler.tell(TrialId{event.id}, event.outcome);
}

/// Goes on with `rebuilt` from event `at` on and compares the answers of the next batches.
void expect_continues(Sampler& rebuilt, const std::vector<Event>& events, std::size_t at,
                      std::size_t until) {
  for (std::size_t i = at; i < std::min(until, events.size()); ++i) {
    if (!events[i].is_ask) {
      repeat(rebuilt, events[i]);
      continue;
    }
    const auto point = rebuilt.ask(TrialId{events[i].id});
    ASSERT_TRUE(point) << "event " << i;
    ASSERT_TRUE(search::same_point(*point, events[i].point)) << "event " << i;
  }
}

TEST(Ppo, ContinuesFromAnyCutOfItsHistory) {
  const SpacePointer space = nodes({4, 3, 5});
  for (const char* reward : {"rank", "raw"}) {
    SamplerOptions options = maximize(11, 200);
    options.settings["nminibatches"] = 2;
    options.settings["reward"] = reward;
    auto original = make_ppo_sampler(space, options);
    const auto events = run(*original, 5, 160);
    Random cutting(6);
    for (int cut = 0; cut < 12; ++cut) {
      const std::size_t at = cutting.below(events.size());
      auto rebuilt = make_ppo_sampler(space, options);
      for (std::size_t i = 0; i < at; ++i) repeat(*rebuilt, events[i]);
      expect_continues(*rebuilt, events, at, at + 30);
    }
  }
}

class PpoFiles : public testing::Test {
 protected:
  PpoFiles() : file_((folder_.path() / "policy").string()) { ppo_.checkpoint = file_; }

  /// As many updates as `count` events are good for, with the file written on the way.
  std::vector<Event> first_run() {
    ppo_.checkpoint_every = 3;
    auto sampler = make_ppo_sampler(space_, maximize(2, 300), ppo_);
    auto events = run(*sampler, 8, 200);
    EXPECT_TRUE(std::filesystem::exists(file_));
    return events;
  }
  void expect_resumes(const std::vector<Event>& events) {
    auto rebuilt = make_ppo_sampler(space_, maximize(2, 300), ppo_);
    for (std::size_t i = 0; i < 180; ++i) repeat(*rebuilt, events[i]);
    expect_continues(*rebuilt, events, 180, 200);
  }

  TempDir folder_;
  std::string file_;
  SpacePointer space_ = nodes({4, 3, 5});
  PpoOptions ppo_;
};

TEST_F(PpoFiles, TakeThePlaceOfUpdates) {
  const auto events = first_run();
  expect_resumes(events);
  // The file is used, not only written: with a policy that was changed behind its back the answers
  // are others.
  std::vector<std::uint32_t> choices{4, 3, 5};
  PpoOptions same = ppo_;
  same.network = "ppo_lnlstm_32";
  same.episodes = 5;
  Learner learner(same, choices, 2);
  const std::uint64_t word = learner.load(read_file(file_), file_);
  const std::uint64_t updates = learner.updates();
  Learner other(same, choices, 99);
  std::vector<Episode> episodes(5, Episode{{0, 0, 0}, 1});
  episodes[0] = {{3, 2, 4}, -1};
  while (other.updates() < updates) (void)other.update(episodes, 100, Random(1));
  write_file_atomically(file_, other.save(word));
  auto rebuilt = make_ppo_sampler(space_, maximize(2, 300), ppo_);
  bool differs = false;
  for (std::size_t i = 0; i < 180; ++i) repeat(*rebuilt, events[i]);
  for (std::size_t i = 180; i < 200; ++i) {
    if (!events[i].is_ask) {
      repeat(*rebuilt, events[i]);
      continue;
    }
    const auto point = rebuilt->ask(TrialId{events[i].id});
    differs = differs || !point || !search::same_point(*point, events[i].point);
    if (differs) break;
  }
  EXPECT_TRUE(differs);
}

TEST_F(PpoFiles, DamagedOnesAreLeftAside) {
  const auto events = first_run();
  const std::string whole = read_file(file_);
  std::string turned = whole;
  turned[turned.size() / 2] = static_cast<char>(turned[turned.size() / 2] ^ 4);
  for (const std::string& damaged :
       {turned, whole.substr(0, whole.size() / 3), std::string("garbage"), std::string()}) {
    write_file_atomically(file_, damaged);
    expect_resumes(events);
  }
}

TEST_F(PpoFiles, WithCountsThatCannotBeAreLeftAside) {
  const auto events = first_run();
  auto content = train::decode_checkpoint(read_file(file_), file_);
  const std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();
  std::memcpy(content.parts.at("ppo numbers").data(), &huge, sizeof huge);
  write_file_atomically(file_, train::encode_checkpoint(content));
  expect_resumes(events);
  content.step = huge;  // a history that never comes
  write_file_atomically(file_, train::encode_checkpoint(content));
  expect_resumes(events);
}

TEST_F(PpoFiles, WithWeightsThatAreNoNumbersAreLeftAside) {
  const auto events = first_run();
  auto content = train::decode_checkpoint(read_file(file_), file_);
  const float none = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(content.parts.at("ppo weights").data(), &none, sizeof none);
  write_file_atomically(file_, train::encode_checkpoint(content));
  expect_resumes(events);
}

TEST_F(PpoFiles, OfAnotherSearchAreLeftAside) {
  const auto events = first_run();
  // A new search begins where the file of an old one lies.
  auto fresh = make_ppo_sampler(space_, maximize(2, 300), ppo_);
  expect_continues(*fresh, events, 0, 60);
  // A history of the same length with other results.
  PpoOptions elsewhere = ppo_;
  elsewhere.checkpoint = (folder_.path() / "other").string();
  auto other = make_ppo_sampler(space_, maximize(3, 300), elsewhere);
  const auto others = run(*other, 9, 200);
  std::filesystem::copy_file(file_, elsewhere.checkpoint,
                             std::filesystem::copy_options::overwrite_existing);
  auto rebuilt = make_ppo_sampler(space_, maximize(3, 300), elsewhere);
  for (std::size_t i = 0; i < 180; ++i) repeat(*rebuilt, others[i]);
  expect_continues(*rebuilt, others, 180, 200);
}

TEST(Ppo, RefusesWhatItCannotDo) {
  const auto make = [](const SpacePointer& space, SamplerOptions options) {
    return [=] { (void)make_ppo_sampler(space, options); };
  };
  const SpacePointer numbers = search::Space::Builder().add("x", search::uniform(0, 1)).build();
  EXPECT_EQ(code_of(make(numbers, maximize(1))), ErrorCode::unsupported);
  const SpacePointer conditional = search::Space::Builder()
                                       .add("a", search::choice({1, 2}))
                                       .add("b", search::choice({1, 2}))
                                       .condition("b", search::equals("a", 1))
                                       .build();
  EXPECT_EQ(code_of(make(conditional, maximize(1))), ErrorCode::unsupported);
  SamplerOptions two = maximize(1);
  two.directions.push_back(Direction::minimize);
  EXPECT_EQ(code_of(make(nodes({2}), two)), ErrorCode::unsupported);
  SamplerOptions unknown = maximize(1);
  unknown.settings["clip"] = 0.1;
  EXPECT_EQ(code_of(make(nodes({2}), unknown)), ErrorCode::invalid_argument);
  SamplerOptions network = maximize(1);
  network.settings["network"] = "ppo_gru_128";
  EXPECT_EQ(code_of(make(nodes({2}), network)), ErrorCode::not_found);
  SamplerOptions parts = maximize(1);
  parts.settings["nminibatches"] = 6;
  EXPECT_EQ(code_of(make(nodes({2}), parts)), ErrorCode::invalid_argument);
}

TEST(Ppo, TakesWholeNumbersAsChoices) {
  const SpacePointer space = search::Space::Builder()
                                 .add("depth", search::integer(3, 6))
                                 .add("rate", search::quniform(0, 1, 0.25))
                                 .build();
  auto sampler = make_ppo_sampler(space, maximize(1));
  std::set<double> depths, rates;
  for (std::uint64_t i = 0; i < 60; ++i) {
    const Point point = *sampler->ask(TrialId{i});
    ASSERT_TRUE(space->allows(point));
    depths.insert(point[0]);
    rates.insert(point[1]);
    sampler->tell(TrialId{i}, Outcome::complete(1.0));
  }
  EXPECT_EQ(depths, (std::set<double>{3, 4, 5, 6}));
  EXPECT_EQ(rates, (std::set<double>{0, 0.25, 0.5, 0.75, 1}));
}

TEST(Ppo, ExtremeResultsDoNotStopIt) {
  for (const char* reward : {"rank", "raw"}) {
    SamplerOptions options = maximize(1);
    options.settings["reward"] = reward;
    auto sampler = make_ppo_sampler(nodes({3, 3}), options);
    const double values[] = {1e300, -1e300, 0, 1e-300, 1};
    for (std::uint64_t i = 0; i < 60; ++i) {
      ASSERT_TRUE(sampler->ask(TrialId{i}));
      sampler->tell(TrialId{i}, i < 20 ? Outcome::failed() : Outcome::complete(values[i % 5]));
    }
  }
}

}  // namespace
}  // namespace kolo::nas
