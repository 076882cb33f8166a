// Data-parallel training by hand: every rank fits the same line to its own share of the points.
//
// The model is y = a·x + b, the points lie on y = 3x - 1 with a little noise. Each step averages
// the gradient over the ranks, so all ranks keep the same weights without ever sending them.
//
//   kolo run -np 2 build/release/bin/kolo_average_weights
//   prints, from rank 0:  a = 3.00, b = -1.00 after 200 steps on 2 ranks
#include <kolo/kolo.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

struct Point {
  float x, y;
};

/// This rank's share of 1000 points: every size-th, beginning with its own number.
std::vector<Point> my_points() {
  std::vector<Point> points;
  for (int i = kolo::rank(); i < 1000; i += kolo::size()) {
    float x = static_cast<float>(i) / 500.0F - 1.0F;
    float noise = 0.01F * std::sin(static_cast<float>(i) * 12.9898F);
    points.push_back({x, 3.0F * x - 1.0F + noise});
  }
  return points;
}

}  // namespace

int main() {
  try {
    kolo::init();
    std::vector<Point> points = my_points();

    // Two weights; their gradient lives in shared memory and is averaged in place.
    float a = 0, b = 0;
    kolo::Buffer<float> gradient = kolo::world().allocate<float>(2);
    for (int step = 0; step < 200; ++step) {
      gradient[0] = gradient[1] = 0;
      for (const Point& p : points) {
        float error = a * p.x + b - p.y;
        gradient[0] += error * p.x / static_cast<float>(points.size());
        gradient[1] += error / static_cast<float>(points.size());
      }
      kolo::world().allreduce(gradient.span(), kolo::ReduceOp::average);
      a -= 0.5F * gradient[0];
      b -= 0.5F * gradient[1];
    }

    if (kolo::rank() == 0)
      std::printf("a = %.2f, b = %.2f after 200 steps on %d ranks\n", a, b, kolo::size());
    bool close = std::abs(a - 3.0F) < 0.05F && std::abs(b + 1.0F) < 0.05F;
    kolo::shutdown();
    return close ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const kolo::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return EXIT_FAILURE;
  }
}
