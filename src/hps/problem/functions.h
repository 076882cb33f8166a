// Functions of several variables that are hard to minimise in known ways. Surjanovic and Bingham's
// "Virtual Library of Simulation Experiments" collects their definitions and optima; those of
// several objectives are of Deb, Thiele, Laumanns and Zitzler, "Scalable Test Problems for
// Evolutionary Multiobjective Optimization" (2005).
#pragma once

#include <cstddef>
#include <numbers>
#include <span>
#include <vector>

namespace kolo::hps::functions {

using Vector = std::span<const double>;
using std::numbers::pi;

double polynome2(Vector x);
double linear(Vector x);
double ackley(Vector x);
double griewank(Vector x);
double levy(Vector x);
double dixon_price(Vector x);
double saddle(Vector x);
double branin(Vector x);
double easom(Vector x);
/// As published. DeepHyper's suite has the rescaled form -(2.58 + …)/1.94, whose least value is
/// -3.0425, and measures regret against the -3.32237 of this one, which it can never reach.
double hartmann6(Vector x);
double michalewicz(Vector x);
double rosenbrock(Vector x);
double schwefel(Vector x);
double shekel(Vector x);

/// DTLZ number 1 … 7. The first `objectives` - 1 variables say where on the front, the others are
/// distances from it: 0 at 0.5 (in 6 and 7: at 0).
std::vector<double> dtlz(int number, Vector x, std::size_t objectives);

}  // namespace kolo::hps::functions
