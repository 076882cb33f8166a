// Population based training of a real net on real digits: the worst copy checkpoints of the best.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <sstream>

#include "base/files.h"
#include "base/subprocess.h"
#include "kolo/random.h"
#include "kolo/tune.h"
#include "store/study_store.h"

namespace kolo::test {
namespace {

constexpr const char* kDigits = KOLO_DIGITS;
constexpr std::size_t kPixels = 64, kHidden = 32, kClasses = 10, kTrain = 1400;

struct Digits {
  std::vector<std::array<float, kPixels>> images;
  std::vector<int> labels;
};

const Digits& digits() {
  static const Digits all = [] {
    Digits digits;
    const auto text = run_command({"zcat", kDigits}, Deadline::after(std::chrono::seconds(20)));
    std::istringstream lines(text.output);
    for (std::string line; std::getline(lines, line);) {
      std::replace(line.begin(), line.end(), ',', ' ');
      std::istringstream fields(line);
      auto& image = digits.images.emplace_back();
      for (float& pixel : image) {
        fields >> pixel;
        pixel /= 16;
      }
      float label = 0;
      fields >> label;
      digits.labels.push_back(static_cast<int>(label));
    }
    return digits;
  }();
  return all;
}

/// 64 pixels, 32 rectified units, 10 classes; stochastic gradient descent with momentum.
class Net final : public tune::Trainable {
 public:
  void setup(const tune::Config& config) override {
    rate_ = static_cast<float>(config.at_path("lr").as_number());
    momentum_ = static_cast<float>(config.at_path("momentum").as_number());
    Random random(7);
    for (auto& weight : first_) weight = static_cast<float>(random.normal()) * 0.15F;
    for (auto& weight : second_) weight = static_cast<float>(random.normal()) * 0.15F;
  }

  tune::Value step() override {
    Random random(static_cast<std::uint64_t>(1000 + steps_++));
    for (int i = 0; i < 700; ++i) learn(random.below(kTrain));
    int right = 0;
    const std::size_t test = digits().images.size() - kTrain;
    for (std::size_t i = kTrain; i < digits().images.size(); ++i)
      right += guess(digits().images[i]) == digits().labels[i] ? 1 : 0;
    return tune::Value{{"accuracy", static_cast<double>(right) / static_cast<double>(test)},
                       {"first_weight", static_cast<double>(first_[0])}};
  }

  void save(const std::filesystem::path& directory) override {
    std::string bytes(sizeof first_ + sizeof second_ + sizeof steps_, '\0');
    std::memcpy(bytes.data(), first_.data(), sizeof first_);
    std::memcpy(bytes.data() + sizeof first_, second_.data(), sizeof second_);
    std::memcpy(bytes.data() + sizeof first_ + sizeof second_, &steps_, sizeof steps_);
    write_file_atomically(directory / "net", bytes);
  }
  void load(const std::filesystem::path& directory) override {
    const std::string bytes = read_file(directory / "net");
    std::memcpy(first_.data(), bytes.data(), sizeof first_);
    std::memcpy(second_.data(), bytes.data() + sizeof first_, sizeof second_);
    std::memcpy(&steps_, bytes.data() + sizeof first_ + sizeof second_, sizeof steps_);
  }

 private:
  using Image = std::array<float, kPixels>;

  void forward(const Image& image) {
    for (std::size_t h = 0; h < kHidden; ++h) {
      float sum = 0;
      for (std::size_t p = 0; p < kPixels; ++p) sum += first_[h * kPixels + p] * image[p];
      hidden_[h] = std::max(0.0F, sum);
    }
    float total = 0, most = -1e9F;
    for (std::size_t c = 0; c < kClasses; ++c) {
      float sum = 0;
      for (std::size_t h = 0; h < kHidden; ++h) sum += second_[c * kHidden + h] * hidden_[h];
      out_[c] = sum;
      most = std::max(most, sum);
    }
    for (float& value : out_) total += value = std::exp(value - most);
    for (float& value : out_) value /= total;
  }
  int guess(const Image& image) {
    forward(image);
    return static_cast<int>(std::max_element(out_.begin(), out_.end()) - out_.begin());
  }
  void learn(std::size_t which) {
    const Image& image = digits().images[which];
    forward(image);
    out_[static_cast<std::size_t>(digits().labels[which])] -= 1;
    std::array<float, kHidden> back{};
    for (std::size_t c = 0; c < kClasses; ++c)
      for (std::size_t h = 0; h < kHidden; ++h) {
        back[h] += second_[c * kHidden + h] * out_[c];
        move(second_[c * kHidden + h], second_speed_[c * kHidden + h], out_[c] * hidden_[h]);
      }
    for (std::size_t h = 0; h < kHidden; ++h) {
      if (hidden_[h] <= 0) continue;
      for (std::size_t p = 0; p < kPixels; ++p)
        move(first_[h * kPixels + p], first_speed_[h * kPixels + p], back[h] * image[p]);
    }
  }
  void move(float& weight, float& speed, float gradient) {
    speed = momentum_ * speed - rate_ * gradient;
    weight += speed;
  }

  float rate_ = 0, momentum_ = 0;
  std::array<float, kHidden * kPixels> first_{}, first_speed_{};
  std::array<float, kClasses * kHidden> second_{}, second_speed_{};
  std::array<float, kHidden> hidden_{};
  std::array<float, kClasses> out_{};
  std::int64_t steps_ = 0;
};

TEST(TuneDigits, APopulationTrainsARealNet) {
  ASSERT_EQ(digits().images.size(), 1797U);
  TempDir scratch("kolo-digits");
  tune::Options how;
  how.name = "digits";
  how.local_dir = scratch.path().string();
  how.metric = "accuracy";
  how.mode = "max";
  how.num_samples = 8;
  how.config = {{"lr", tune::loguniform(1e-5, 1e-1)}, {"momentum", tune::uniform(0.1, 0.9)}};
  how.scheduler = tune::PopulationBasedTraining(
      {{"lr", tune::loguniform(1e-5, 1e-1)}, {"momentum", tune::uniform(0.1, 0.9)}},
      {{"time_attr", "training_iteration"}, {"perturbation_interval", 3}});
  how.stop = {{"training_iteration", 15}};
  how.total_resources = tune::Resources{.cpu = 2};
  how.verbose = 0;
  const auto analysis = tune::run(tune::trainable<Net>("net"), how);

  EXPECT_GT(analysis.best_result().at_path("accuracy").as_number(), 0.9);
  auto database = store::open_database((scratch.path() / "kolo.db").string());
  store::StudyStore store(*database);
  int copies = 0;
  for (const auto& event : store.events(store.at("digits").id))
    copies += event.kind == "clone" && event.detail.find("from /") != std::string::npos ? 1 : 0;
  EXPECT_GE(copies, 3);
  // All end well although the first rates were spread over four decades.
  int good = 0;
  for (const auto& trial : analysis.trials()) {
    EXPECT_EQ(trial.status, tune::TrialStatus::terminated) << trial.error;
    EXPECT_EQ(trial.iteration, 15);
    good += trial.last_result.at_path("accuracy").as_number() > 0.8 ? 1 : 0;
  }
  EXPECT_GE(good, 6);
}

}  // namespace
}  // namespace kolo::test
