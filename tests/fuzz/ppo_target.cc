// The file of a PPO policy. Its checksums are right for every input, which a fuzzer would not find
// by itself: an input is what is different from a file that was saved.
#include <algorithm>
#include <cstring>

#include "fuzz/check.h"
#include "fuzz/file_targets.h"
#include "nas/ppo/ppo.h"
#include "train/checkpoint/format.h"

namespace kolo::fuzz {
namespace {

/// Takes values from the front of an input; what is missing is zero.
template <class T>
T take(std::string_view& input) {
  T value{};
  const auto count = std::min(sizeof(T), input.size());
  std::memcpy(&value, input.data(), count);
  input.remove_prefix(count);
  return value;
}

const nas::Learner& fresh_learner() {
  static const nas::Learner learner = [] {
    nas::PpoOptions options;
    options.network = "ppo_lstm_32";
    options.noptepochs = 1;
    options.episodes = 2;
    return nas::Learner(options, {4, 1, 3}, 1);
  }();
  return learner;
}

/// Changes parts one after the other: the bytes from a place on, or the size.
void change(train::CheckpointContent& content, std::string_view input) {
  content.step = take<std::uint8_t>(input) == 0 ? content.step : take<std::uint64_t>(input);
  while (!input.empty()) {
    auto part = content.parts.begin();
    const auto order = take<std::uint8_t>(input);
    std::advance(part, static_cast<std::ptrdiff_t>(order % content.parts.size()));
    const std::size_t place = take<std::uint16_t>(input) % (part->second.size() + 1);
    if (order >= 128) {
      part->second.resize(place);
    } else {
      const auto bytes = input.substr(0, std::min<std::size_t>(8, part->second.size() - place));
      std::memcpy(part->second.data() + place, bytes.data(), bytes.size());
      input.remove_prefix(std::min<std::size_t>(8, input.size()));
    }
  }
}

}  // namespace

void ppo_files(std::string_view input) {
  static const auto saved = train::decode_checkpoint(fresh_learner().save(7), "a new policy");
  each([&] { static_cast<void>(nas::Learner(fresh_learner()).load(std::string(input), "input")); },
       [&] {
         auto content = saved;
         change(content, input);
         nas::Learner learner = fresh_learner();
         static_cast<void>(learner.load(train::encode_checkpoint(content), "input"));
         Random random(1);
         const auto drawn = learner.draw(random);
         require(drawn.size() == 3 && drawn[0] < 4 && drawn[1] < 1 && drawn[2] < 3);
         const std::vector<nas::Episode> episodes{{drawn, 1}, {{0, 0, 0}, -1}};
         static_cast<void>(learner.update(episodes, 1, Random(2)));
         require(learner.updates() == content.step + 1);
       });
}

}  // namespace kolo::fuzz
