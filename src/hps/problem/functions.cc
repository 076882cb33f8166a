#include "hps/problem/functions.h"

#include <array>
#include <cmath>
#include <numeric>

namespace kolo::hps::functions {
namespace {

double square(double value) { return value * value; }

double sum_of_squares(Vector x) {
  return std::accumulate(x.begin(), x.end(), 0.0,
                         [](double sum, double value) { return sum + value * value; });
}

}  // namespace

double polynome2(Vector x) { return sum_of_squares(x); }

double linear(Vector x) { return std::accumulate(x.begin(), x.end(), 0.0); }

double ackley(Vector x) {
  const auto d = static_cast<double>(x.size());
  double cosines = 0;
  for (const double value : x) cosines += std::cos(2 * pi * value);
  return -20 * std::exp(-0.2 * std::sqrt(sum_of_squares(x) / d)) - std::exp(cosines / d) + 20 +
         std::numbers::e;
}

double griewank(Vector x) {
  double product = 1;
  for (std::size_t i = 0; i < x.size(); ++i)
    product *= std::cos(x[i] / std::sqrt(static_cast<double>(i + 1)));
  return sum_of_squares(x) / 4000 - product + 1;
}

double levy(Vector x) {
  const auto z = [&](std::size_t i) { return 1 + (x[i] - 1) / 4; };
  const std::size_t last = x.size() - 1;
  double sum = square(std::sin(pi * z(0)));
  for (std::size_t i = 0; i < last; ++i)
    sum += square(z(i) - 1) * (1 + 10 * square(std::sin(pi * z(i) + 1)));
  return sum + square(z(last) - 1) * (1 + square(std::sin(2 * pi * z(last))));
}

double dixon_price(Vector x) {
  double sum = square(x[0] - 1);
  for (std::size_t i = 1; i < x.size(); ++i)
    sum += static_cast<double>(i + 1) * square(2 * x[i] * x[i] - x[i - 1]);
  return sum;
}

double saddle(Vector x) {
  // The mean of the differences of neighbours is that of the two ends.
  const double difference = x.size() < 2 ? 0
                                         : (square(x.back() - 1) - square(x.front() - 1)) /
                                               static_cast<double>(x.size() - 1);
  double fourth = 0;
  for (const double value : x) fourth += square(square(value - 1));
  return difference + 0.5 * fourth / static_cast<double>(x.size());
}

double branin(Vector x) {
  constexpr double b = 5.1 / (4 * pi * pi), c = 5 / pi, r = 6, s = 10, t = 1 / (8 * pi);
  return square(x[1] - b * x[0] * x[0] + c * x[0] - r) + s * (1 - t) * std::cos(x[0]) + s;
}

double easom(Vector x) {
  return -std::cos(x[0]) * std::cos(x[1]) * std::exp(-square(x[0] - pi) - square(x[1] - pi));
}

double hartmann6(Vector x) {
  static constexpr std::array<double, 4> alpha{1.0, 1.2, 3.0, 3.2};
  static constexpr double a[4][6] = {{10, 3, 17, 3.5, 1.7, 8},
                                     {0.05, 10, 17, 0.1, 8, 14},
                                     {3, 3.5, 1.7, 10, 17, 8},
                                     {17, 8, 0.05, 10, 0.1, 14}};
  static constexpr double p[4][6] = {{0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886},
                                     {0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991},
                                     {0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650},
                                     {0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381}};
  double sum = 0;
  for (std::size_t i = 0; i < alpha.size(); ++i) {
    double exponent = 0;
    for (std::size_t j = 0; j < 6; ++j) exponent += a[i][j] * square(x[j] - p[i][j]);
    sum += alpha[i] * std::exp(-exponent);
  }
  return -sum;
}

double michalewicz(Vector x) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    sum += std::sin(x[i]) * std::pow(std::sin(static_cast<double>(i + 1) * x[i] * x[i] / pi), 20);
  return -sum;
}

double rosenbrock(Vector x) {
  double sum = 0;
  for (std::size_t i = 0; i + 1 < x.size(); ++i)
    sum += 100 * square(x[i + 1] - x[i] * x[i]) + square(1 - x[i]);
  return sum;
}

double schwefel(Vector x) {
  double sum = 418.9829 * static_cast<double>(x.size());
  for (const double value : x) sum -= value * std::sin(std::sqrt(std::abs(value)));
  return sum;
}

double shekel(Vector x) {
  static constexpr std::array<double, 10> beta{0.1, 0.2, 0.2, 0.4, 0.4, 0.6, 0.3, 0.7, 0.5, 0.5};
  // The first and third coordinate of the centres are the same, and the second and fourth.
  static constexpr double centre[2][10] = {{4, 1, 8, 6, 3, 2, 5, 8, 6, 7},
                                           {4, 1, 8, 6, 7, 9, 3, 1, 2, 3.6}};
  double sum = 0;
  for (std::size_t i = 0; i < beta.size(); ++i) {
    double distance = beta[i];
    for (std::size_t j = 0; j < 4; ++j) distance += square(x[j] - centre[j % 2][i]);
    sum += 1 / distance;
  }
  return -sum;
}

}  // namespace kolo::hps::functions
