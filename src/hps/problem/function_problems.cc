// One table has a row for each problem: how to make its space, how to run it, and the best
// objective with a configuration that has it. Classical functions are minimised, so their optima
// stand in the table with the opposite sign, as searches see them. Run functions read x0, x1 … from
// the configuration until one is missing, so that one function serves spaces of any dimension. The
// table is made at the first use and never freed, because pointers into it must stay valid until
// the process ends.
#include "hps/problem/function_problems.h"

#include <cmath>

#include "base/errors.h"
#include "hps/problem/functions.h"

namespace kolo::hps {
namespace {

using functions::pi;
using functions::Vector;

std::string name_of(std::size_t i) { return "x" + std::to_string(i); }

/// x0, x1 … as many as there are: a run function serves problems of any dimension.
std::vector<double> variables(const RunningJob& job, std::size_t needed) {
  std::vector<double> x;
  while (const Value* value = job.parameters().find_path(name_of(x.size())))
    x.push_back(value->as_number());
  if (x.size() < needed)
    throw_error(ErrorCode::invalid_argument,
                "the configuration {} has {} of the variables x0, x1 …; this function needs {}",
                job.parameters().to_string(), x.size(), needed);
  return x;
}

template <double (*function)(Vector), std::size_t needed = 1>
RunResult run_negative(RunningJob& job) {
  return -function(variables(job, needed));
}

// Times a thousand, because a template takes no fractions.
template <std::size_t dimensions, int low, int high>
HpProblem box() {
  HpProblem problem;
  for (std::size_t i = 0; i < dimensions; ++i)
    problem.add_hyperparameter({low / 1000.0, high / 1000.0}, name_of(i));
  return problem;
}

HpProblem polynome2_problem() {
  HpProblem problem = box<10, -10'000, 10'000>();
  Value::Dict start;
  for (std::size_t i = 0; i < 10; ++i) start[name_of(i)] = 10.0;
  problem.add_starting_point(Value(std::move(start)));
  return problem;
}

HpProblem branin_problem() {
  HpProblem problem;
  problem.add_hyperparameter({-5.0, 10.0}, "x0");
  problem.add_hyperparameter({0.0, 15.0}, "x1");
  return problem;
}

HpProblem michalewicz_problem() {
  HpProblem problem;
  for (std::size_t i = 0; i < 5; ++i) problem.add_hyperparameter({0.0, pi}, name_of(i));
  return problem;
}

constexpr std::size_t kDtlzObjectives = 2;

HpProblem dtlz_problem() {
  HpProblem problem = box<5, 0, 1000>();
  problem.set_objectives(kDtlzObjectives);
  return problem;
}

template <int number, bool failures>
RunResult run_dtlz(RunningJob& job) {
  const std::vector<double> x = variables(job, kDtlzObjectives);
  if (failures)
    for (std::size_t i = kDtlzObjectives - 1; i < x.size(); ++i)
      if (x[i] < 0.25) return "F_distance";
  std::vector<double> values = functions::dtlz(number, x, kDtlzObjectives);
  for (double& value : values) value = -value;
  return values;
}

HpProblem sum_problem() {
  HpProblem problem;
  problem.add_hyperparameter({0, 10}, "x");
  problem.add_hyperparameter({0, 10}, "y");
  return problem;
}

HpProblem forbidden_problem() {
  HpProblem problem = sum_problem();
  problem.add_forbidden_clause(search::all_of({search::equals("x", 0), search::equals("y", 0)}));
  return problem;
}

RunResult run_sum(RunningJob& job) { return job["x"].as_number() + job["y"].as_number(); }

HpProblem conditional_problem() {
  HpProblem problem;
  problem.add_hyperparameter({"f1", "f2"}, "function");
  for (const std::string function : {"f1", "f2"}) {
    for (const std::string variable : {"_x", "_y"}) {
      problem.add_hyperparameter({0.0, 1.0}, function + variable);
      problem.add_condition(function + variable, search::equals("function", function));
    }
  }
  return problem;
}

RunResult run_conditional(RunningJob& job) {
  const std::string& function = job["function"].as_string();
  const double x = job[function + "_x"].as_number(), y = job[function + "_y"].as_number();
  return function == "f1" ? x + y : x * y;
}

Value all(std::size_t dimensions, double value) {
  Value::Dict x;
  for (std::size_t i = 0; i < dimensions; ++i) x[name_of(i)] = value;
  return Value(std::move(x));
}

Value at(std::initializer_list<double> values) {
  Value::Dict x;
  for (const double value : values) x.emplace(name_of(x.size()), value);
  return Value(std::move(x));
}

// 2 x_i² = x_(i-1), from 1.
Value dixon_price_best(std::size_t dimensions) {
  Value::Dict x;
  double value = 1;
  for (std::size_t i = 0; i < dimensions; ++i, value = std::sqrt(value / 2)) x[name_of(i)] = value;
  return Value(std::move(x));
}

// The mean difference is (b - a)/(d - 1) with a, b = (x - 1)² at the ends. It pays to move the
// first variable until a = d/(d - 1); all others stay at 1. The value is -d/(2 (d - 1)²).
Value saddle_best(std::size_t dimensions) {
  Value x = all(dimensions, 1);
  const auto d = static_cast<double>(dimensions);
  x.as_dict()["x0"] = 1 + std::sqrt(d / (d - 1));
  return x;
}

#define KOLO_DTLZ(number, front)                                                          \
  {"dtlz" #number, "DTLZ" #number ": 5 variables, 2 objectives; " front,                  \
   dtlz_problem,   run_dtlz<number, false>,                                               \
   std::nullopt,   Value()},                                                              \
  {                                                                                       \
    "dtlz" #number "_failures", "the same; fails when a distance variable is below 0.25", \
        dtlz_problem, run_dtlz<number, true>, std::nullopt, Value()                       \
  }

std::vector<FunctionProblem> make_table() {
  // Boxes that were symmetric around the optimum are moved by -4, as DeepHyper's suite does: a
  // search that tries the middle first would be done.
  return {
      {"polynome2", "sum of squares, 10 variables in ±10, begins in a corner", polynome2_problem,
       run_negative<functions::polynome2>, 0, all(10, 0)},
      {"linear", "sum, 10 variables in 1 … 100", box<10, 1'000, 100'000>,
       run_negative<functions::linear>, -10, all(10, 1)},
      {"ackley", "many local optima around one hole, 5 variables", box<5, -36'768, 28'768>,
       run_negative<functions::ackley>, 0, all(5, 0)},
      {"griewank", "a bowl with waves, 5 variables", box<5, -604'000, 596'000>,
       run_negative<functions::griewank>, 0, all(5, 0)},
      {"levy", "waves across a valley, 5 variables in ±10", box<5, -10'000, 10'000>,
       run_negative<functions::levy>, 0, all(5, 1)},
      {"dixonprice", "a bent valley, 10 variables in ±50", box<10, -50'000, 50'000>,
       run_negative<functions::dixon_price>, 0, dixon_price_best(10)},
      {"saddle", "a saddle at 1, 10 variables in ±50", box<10, -50'000, 50'000>,
       run_negative<functions::saddle>, 5.0 / 81, saddle_best(10)},
      {"branin", "three equal optima, 2 variables", branin_problem,
       run_negative<functions::branin, 2>, -0.39788735772973816, at({pi, 2.275})},
      {"easom", "flat but for one hole, 2 variables in ±100", box<2, -100'000, 100'000>,
       run_negative<functions::easom, 2>, 1, all(2, pi)},
      {"hartmann6D", "four hills, 6 variables in 0 … 1", box<6, 0, 1000>,
       run_negative<functions::hartmann6, 6>, 3.32236801141551,
       at({0.20168951, 0.15001069, 0.47687398, 0.27533243, 0.31165162, 0.65730053})},
      {"michal", "Michalewicz: steep valleys, 5 variables in 0 … pi", michalewicz_problem,
       run_negative<functions::michalewicz>, 4.687658179,
       at({2.20290552, 1.57079633, 1.28499157, 1.92305847, 1.72046977})},
      {"rosen", "Rosenbrock: a bent valley, 5 variables in -5 … 10", box<5, -5'000, 10'000>,
       run_negative<functions::rosenbrock, 2>, 0, all(5, 1)},
      {"schwefel", "the best optimum far from the second best, 5 variables in ±500",
       box<5, -500'000, 500'000>, run_negative<functions::schwefel>, -6.363783e-05,
       // The constant 418.9829 is rounded: not quite 0.
       all(5, 420.968746)},
      {"shekel", "ten holes, 4 variables in 0 … 10", box<4, 0, 10'000>,
       run_negative<functions::shekel, 4>, 10.536443153,
       at({4.00074687, 3.99950948, 4.00074687, 3.99950948})},
      KOLO_DTLZ(1, "a line behind many local fronts"),
      KOLO_DTLZ(2, "a quarter of a circle"),
      KOLO_DTLZ(3, "a quarter of a circle behind many local fronts"),
      KOLO_DTLZ(4, "a quarter of a circle, crowded at one end"),
      KOLO_DTLZ(5, "a curve"),
      KOLO_DTLZ(6, "a curve that is hard to come near"),
      KOLO_DTLZ(7, "a front in pieces"),
      {"toy_sum", "x + y, whole numbers 0 … 10", sum_problem, run_sum, 20,
       Value{{"x", 10}, {"y", 10}}},
      {"toy_forbidden", "x + y where 0, 0 is forbidden", forbidden_problem, run_sum, 20,
       Value{{"x", 10}, {"y", 10}}},
      {"toy_conditional", "f1 = x + y or f2 = x y, each with variables of its own",
       conditional_problem, run_conditional, 2,
       Value{{"function", "f1"}, {"f1_x", 1.0}, {"f1_y", 1.0}}},
  };
}

#undef KOLO_DTLZ

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

void take_suffix(std::string_view& text, std::string_view suffix) {
  if (text.ends_with(suffix)) text.remove_suffix(suffix.size());
}

}  // namespace

std::span<const FunctionProblem> function_problems() {
  static const auto* table = new std::vector<FunctionProblem>(make_table());
  return *table;
}

const FunctionProblem* find_function_problem(std::string_view name) {
  take_prefix(name, "deephyper.");
  if (!take_prefix(name, "benchmark.hps.")) return nullptr;
  take_suffix(name, ".Problem");
  take_suffix(name, ".run");
  // DeepHyper's modules: polynome2.problem.Problem, polynome2.model_run.run.
  take_suffix(name, ".problem");
  take_suffix(name, ".model_run");
  for (const FunctionProblem& problem : function_problems())
    if (problem.name == name) return &problem;
  return nullptr;
}

std::string full_name(const FunctionProblem& problem) {
  return "benchmark.hps." + std::string(problem.name);
}

}  // namespace kolo::hps
