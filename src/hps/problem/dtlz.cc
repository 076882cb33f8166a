// DTLZ: fronts of known form for any number of objectives M. The first M - 1 variables are the
// position on the front, the k others the distance g from it. Cost: O(M² + k).
#include <cmath>

#include "hps/problem/functions.h"

namespace kolo::hps::functions {
namespace {

constexpr double kOffset = 0.5;  // where the distance is 0

// Many local fronts (1 and 3).
double rugged_distance(Vector rest) {
  double sum = static_cast<double>(rest.size());
  for (const double value : rest) {
    const double away = value - kOffset;
    sum += away * away - std::cos(20 * pi * away);
  }
  return 100 * sum;
}

double round_distance(Vector rest) {
  double sum = 0;
  for (const double value : rest) sum += (value - kOffset) * (value - kOffset);
  return sum;
}

// The front of 1: a plane, the objectives summing to 0.5.
std::vector<double> on_plane(Vector position, double g) {
  const std::size_t objectives = position.size() + 1;
  std::vector<double> values(objectives, 0.5 * (1 + g));
  for (std::size_t m = 0; m < objectives; ++m) {
    for (std::size_t i = 0; i + m + 1 < objectives; ++i) values[m] *= position[i];
    if (m > 0) values[m] *= 1 - position[objectives - 1 - m];
  }
  return values;
}

// The front of 2 … 6: a sphere of radius 1, by angles.
std::vector<double> on_sphere(const std::vector<double>& angles, double g) {
  const std::size_t objectives = angles.size() + 1;
  std::vector<double> values(objectives, 1 + g);
  for (std::size_t m = 0; m < objectives; ++m) {
    for (std::size_t i = 0; i + m + 1 < objectives; ++i) values[m] *= std::cos(angles[i]);
    if (m > 0) values[m] *= std::sin(angles[objectives - 1 - m]);
  }
  return values;
}

// Angles in proportion to the positions; a power crowds them at one end (4).
std::vector<double> plain_angles(Vector position, double power = 1) {
  std::vector<double> angles;
  for (const double value : position) angles.push_back(std::pow(value, power) * pi / 2);
  return angles;
}

// Away from the front all but the first angle turn to 45 degrees (5 and 6): the front is a curve.
std::vector<double> bent_angles(Vector position, double g) {
  std::vector<double> angles;
  for (const double value : position) angles.push_back(pi / (4 * (1 + g)) * (1 + 2 * g * value));
  if (!angles.empty()) angles[0] = position[0] * pi / 2;
  return angles;
}

// A front in 2^(M-1) pieces (7).
std::vector<double> in_pieces(Vector position, Vector rest) {
  double sum = 0;
  for (const double value : rest) sum += value;
  const double g = 1 + 9 * sum / static_cast<double>(rest.size());
  std::vector<double> values(position.begin(), position.end());
  double height = static_cast<double>(position.size() + 1);
  for (const double value : position) height -= value / (1 + g) * (1 + std::sin(3 * pi * value));
  values.push_back((1 + g) * height);
  return values;
}

}  // namespace

std::vector<double> dtlz(int number, Vector x, std::size_t objectives) {
  const Vector position = x.first(objectives - 1), rest = x.subspan(objectives - 1);
  switch (number) {
    case 1: return on_plane(position, rugged_distance(rest));
    case 2: return on_sphere(plain_angles(position), round_distance(rest));
    case 3: return on_sphere(plain_angles(position), rugged_distance(rest));
    case 4: return on_sphere(plain_angles(position, 100), round_distance(rest));
    case 5: {
      const double g = round_distance(rest);
      return on_sphere(bent_angles(position, g), g);
    }
    case 6: {
      double g = 0;
      for (const double value : rest) g += std::pow(value, 0.1);
      return on_sphere(bent_angles(position, g), g);
    }
    default: return in_pieces(position, rest);
  }
}

}  // namespace kolo::hps::functions
