// Functions with known minima. Where the usual form has its minimum in the middle of the box, it is
// moved away from there: a search must not profit from a liking for the middle.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>

#include "kolo/random.h"
#include "quality/problem.h"

namespace bench {
namespace {

using Function = std::function<double(const std::vector<double>&)>;
constexpr double kPi = std::numbers::pi;

double branin(const std::vector<double>& x) {
  double a = x[1] - 5.1 / (4 * kPi * kPi) * x[0] * x[0] + 5 / kPi * x[0] - 6;
  return a * a + 10 * (1 - 1 / (8 * kPi)) * std::cos(x[0]) + 10;
}

double hartmann6(const std::vector<double>& x) {
  constexpr double kAlpha[4] = {1, 1.2, 3, 3.2};
  constexpr double kA[4][6] = {{10, 3, 17, 3.5, 1.7, 8},
                               {0.05, 10, 17, 0.1, 8, 14},
                               {3, 3.5, 1.7, 10, 17, 8},
                               {17, 8, 0.05, 10, 0.1, 14}};
  constexpr double kP[4][6] = {{0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886},
                               {0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991},
                               {0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650},
                               {0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381}};
  double sum = 0;
  for (int i = 0; i < 4; ++i) {
    double apart = 0;
    for (int j = 0; j < 6; ++j) {
      double d = x[static_cast<std::size_t>(j)] - kP[i][j];
      apart += kA[i][j] * d * d;
    }
    sum -= kAlpha[i] * std::exp(-apart);
  }
  return sum;
}

double ackley(const std::vector<double>& x) {
  double squares = 0;
  double waves = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    double z = x[i] - 9 * std::sin(1.7 * static_cast<double>(i + 1));  // the minimum, moved
    squares += z * z;
    waves += std::cos(2 * kPi * z);
  }
  auto d = static_cast<double>(x.size());
  return -20 * std::exp(-0.2 * std::sqrt(squares / d)) - std::exp(waves / d) + 20 + std::numbers::e;
}

double levy(const std::vector<double>& x) {
  auto w = [&](std::size_t i) { return 1 + (x[i] - 1) / 4; };
  auto square = [](double v) { return v * v; };
  double sum = square(std::sin(kPi * w(0)));
  for (std::size_t i = 0; i + 1 < x.size(); ++i)
    sum += square(w(i) - 1) * (1 + 10 * square(std::sin(kPi * w(i) + 1)));
  double last = w(x.size() - 1);
  return sum + square(last - 1) * (1 + square(std::sin(2 * kPi * last)));
}

double rosenbrock(const std::vector<double>& x) {
  double sum = 0;
  for (std::size_t i = 0; i + 1 < x.size(); ++i) {
    double a = x[i + 1] - x[i] * x[i];
    sum += 100 * a * a + (1 - x[i]) * (1 - x[i]);
  }
  return sum;
}

struct Box {
  double low, high;
};

Problem on_box(const std::string& name, const std::vector<Box>& box, double optimum,
               Function function) {
  Problem problem;
  problem.name = name;
  problem.optimum = optimum;
  search::Space::Builder builder;
  for (std::size_t i = 0; i < box.size(); ++i) {
    std::string parameter = fmt::format("x{:02}", i);  // the order of names is that of numbers
    builder.add(parameter, search::real(box[i].low, box[i].high));
    problem.parameters.push_back(
        {{"name", parameter}, {"type", "real"}, {"low", box[i].low}, {"high", box[i].high}});
  }
  problem.space = builder.build();
  problem.evaluate = std::move(function);
  return problem;
}

/// Reals, a whole number on a log scale, an ordinal and a categorical that decides where the best
/// values of the others are. Minimum 0.
Problem mixed() {
  Problem problem;
  problem.name = "mixed";
  problem.space = search::Space::Builder()
                      .add("kind", search::choice({"a", "b", "c", "d"}))
                      .add("steps", search::integer(1, 1024, search::Prior::log_uniform))
                      .add("width", search::ordinal({16, 32, 64, 128, 256, 512}))
                      .add("x", search::real(-5, 5))
                      .add("y", search::real(-5, 5))
                      .build();
  problem.parameters = {
      {{"name", "kind"}, {"type", "categorical"}, {"count", 4}},
      {{"name", "steps"}, {"type", "integer"}, {"low", 1}, {"high", 1024}, {"log", true}},
      {{"name", "width"}, {"type", "ordinal"}, {"count", 6}},
      {{"name", "x"}, {"type", "real"}, {"low", -5}, {"high", 5}},
      {{"name", "y"}, {"type", "real"}, {"low", -5}, {"high", 5}}};
  problem.evaluate = [](const search::Point& point) {
    constexpr double kCentre[4] = {3, -2, 1.5, 0};
    constexpr double kWidth[4] = {0, 5, 3, 2};
    constexpr double kOffset[4] = {0.5, 1, 0, 2};
    auto kind = static_cast<std::size_t>(point[0]);
    double x = point[3] - kCentre[kind];
    double y = point[4] + point[3] / 2;
    double steps = std::log2(point[1]) - 5;
    return kOffset[kind] + x * x + y * y + 0.3 * steps * steps +
           0.4 * std::abs(point[2] - kWidth[kind]);
  };
  return problem;
}

/// Three families with parameters of their own, one of which depends on another inside its family.
/// Minimum 0, in `net` with three layers.
Problem conditional() {
  using search::equals;
  Problem problem;
  problem.name = "conditional";
  auto log = search::Prior::log_uniform;
  problem.space = search::Space::Builder()
                      .add("c", search::real(1e-3, 1e3, log))
                      .add("depth", search::integer(1, 30))
                      .add("dropout", search::real(0, 0.9))
                      .add("gamma", search::real(1e-4, 10, log))
                      .add("layers", search::integer(1, 4))
                      .add("lr", search::real(1e-5, 1, log))
                      .add("model", search::choice({"svm", "tree", "net"}))
                      .condition("c", equals("model", "svm"))
                      .condition("gamma", equals("model", "svm"))
                      .condition("depth", equals("model", "tree"))
                      .condition("layers", equals("model", "net"))
                      .condition("lr", equals("model", "net"))
                      .condition("dropout", search::in("layers", {3, 4}))
                      .build();
  auto needs = [](nlohmann::json parameter, const char* parent, nlohmann::json values) {
    parameter["parent"] = parent;
    parameter["values"] = std::move(values);
    return parameter;
  };
  problem.parameters = {
      {{"name", "model"}, {"type", "categorical"}, {"count", 3}},
      needs({{"name", "c"}, {"type", "real"}, {"low", 1e-3}, {"high", 1e3}, {"log", true}}, "model",
            {0}),
      needs({{"name", "gamma"}, {"type", "real"}, {"low", 1e-4}, {"high", 10}, {"log", true}},
            "model", {0}),
      needs({{"name", "depth"}, {"type", "integer"}, {"low", 1}, {"high", 30}}, "model", {1}),
      needs({{"name", "layers"}, {"type", "integer"}, {"low", 1}, {"high", 4}}, "model", {2}),
      needs({{"name", "lr"}, {"type", "real"}, {"low", 1e-5}, {"high", 1}, {"log", true}}, "model",
            {2}),
      needs({{"name", "dropout"}, {"type", "real"}, {"low", 0}, {"high", 0.9}}, "layers", {3, 4})};
  problem.evaluate = [](const search::Point& point) {
    auto square = [](double v) { return v * v; };
    auto model = static_cast<int>(point[6]);
    if (model == 0)
      return 0.3 + 0.1 * (square(std::log10(point[0]) - 1) + square(std::log10(point[3]) + 2));
    if (model == 1) return 0.2 + 0.01 * square(point[1] - 12);
    double sum = 0.15 * square(point[4] - 3) + 0.2 * square(std::log10(point[5]) + 2.5);
    return sum + (std::isnan(point[2]) ? 0.1 : square(point[2] - 0.4));
  };
  return problem;
}

}  // namespace

std::string fingerprint(const Problem& problem) {
  kolo::Random random(1);
  std::uint64_t hash = 0xcbf29ce484222325;
  for (int i = 0; i < 8; ++i) {
    // The last bits differ between mathematical libraries.
    auto value = static_cast<float>(problem.evaluate(problem.space->sample(random)));
    hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * 0x100000001b3;
  }
  return fmt::format("{:016x}", hash);
}

std::vector<Problem> synthetic_problems() {
  auto cube = [](std::size_t d, double low, double high) {
    return std::vector<Box>(d, {low, high});
  };
  std::vector<Problem> problems;
  problems.push_back(on_box("branin", {{-5, 10}, {0, 15}}, 0.39788735772973816, branin));
  problems.push_back(on_box("hartmann6", cube(6, 0, 1), -3.32236801141551, hartmann6));
  problems.push_back(on_box("ackley10", cube(10, -32.768, 32.768), 0, ackley));
  problems.push_back(on_box("ackley20", cube(20, -32.768, 32.768), 0, ackley));
  problems.push_back(on_box("levy10", cube(10, -10, 10), 0, levy));
  problems.push_back(on_box("rosenbrock5", cube(5, -5, 10), 0, rosenbrock));
  problems.push_back(mixed());
  problems.push_back(conditional());
  for (auto& problem : problems) problem.checksum = fingerprint(problem);
  return problems;
}

}  // namespace bench
