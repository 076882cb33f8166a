// A recursive-descent parser that turns the text into nested closures. There is one parse_…
// function for each level of precedence, the weakest first: choice, or, and, not, comparison, sum,
// product, sign, operand. Each returns a function of the configuration, so that an expression is
// parsed once and evaluated for every trial.
//
// Integers stay integers as long as the result is exact; where it overflows, the result is a
// double. A result that is not finite is an error, and so is a text that is too long: a few lines
// that each double the text of the line before would take all memory.
#include "search/space/expression.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "base/errors.h"

namespace kolo::search {
namespace {

using Compiled = std::function<Value(const ConfigView&)>;

[[noreturn]] void refuse(const std::string& what) {
  throw_error(ErrorCode::invalid_argument, "eval: {}", what);
}

Value finite(double number, const char* operation) {
  if (!std::isfinite(number)) refuse(std::string(operation) + " has no finite result");
  return number;
}

bool truth(const Value& value) {
  if (value.is_bool()) return value.as_bool();
  if (value.is_number()) return value.as_number() != 0;
  if (value.is_string()) return !value.as_string().empty();
  return !value.is_nothing();
}

using WholeOperation = bool (*)(std::int64_t, std::int64_t, std::int64_t*);

bool add_whole(std::int64_t a, std::int64_t b, std::int64_t* r) {
  return !__builtin_add_overflow(a, b, r);
}
bool subtract_whole(std::int64_t a, std::int64_t b, std::int64_t* r) {
  return !__builtin_sub_overflow(a, b, r);
}
bool multiply_whole(std::int64_t a, std::int64_t b, std::int64_t* r) {
  return !__builtin_mul_overflow(a, b, r);
}

Value joined(const std::string& left, const std::string& right) {
  constexpr std::size_t kLongest = 64U << 10;
  if (left.size() + right.size() > kLongest)
    refuse(fmt::format("'+' makes a text of {} bytes; at most {} are allowed",
                       left.size() + right.size(), kLongest));
  return left + right;
}

Value arithmetic(char operation, const Value& left, const Value& right) {
  if (operation == '+' && left.is_string() && right.is_string())
    return joined(left.as_string(), right.as_string());
  const bool whole = left.is_integer() && right.is_integer();
  const double a = left.as_number(), b = right.as_number();
  std::int64_t result = 0;
  const auto whole_or = [&](WholeOperation exact, double rounded) -> Value {
    if (whole && exact(left.as_integer(), right.as_integer(), &result)) return result;
    return finite(rounded, "arithmetic");
  };
  switch (operation) {
    case '+': return whole_or(add_whole, a + b);
    case '-': return whole_or(subtract_whole, a - b);
    case '*': return whole_or(multiply_whole, a * b);
    case '/': return finite(a / b, "division");
    case '^': {
      const double power = std::pow(a, b);
      if (whole && b >= 0 && std::abs(power) < 9e15) return static_cast<std::int64_t>(power);
      return finite(power, "**");
    }
    default: break;
  }
  if (b == 0) refuse("division by zero");
  const double quotient = std::floor(a / b);
  const double number = operation == 'd' ? quotient : a - quotient * b;
  if (whole && std::abs(number) < 9e15) return static_cast<std::int64_t>(number);
  return finite(number, "division");
}

Value rounded(const Value& value, double (*round)(double)) {
  if (value.is_integer()) return value;
  const double number = round(value.as_number());
  if (!(std::abs(number) < 9.2e18)) refuse("a number too large to be whole");
  return static_cast<std::int64_t>(number);
}

Value extreme(const std::vector<Value>& values, bool largest) {
  const auto order = [](const Value& a, const Value& b) { return a.as_number() < b.as_number(); };
  return largest ? *std::max_element(values.begin(), values.end(), order)
                 : *std::min_element(values.begin(), values.end(), order);
}

// One row for each function that an expression may call, with its smallest and largest number of
// arguments.
struct Function {
  std::string_view name;
  std::size_t least, most;
  Value (*call)(const std::vector<Value>& values, const ConfigView& config);
};

using Values = std::vector<Value>;
constexpr Function kFunctions[] = {
    {"abs", 1, 1,
     [](const Values& v, const ConfigView&) {
       // The least whole number has no counterpart.
       if (v[0].is_integer() && v[0].as_integer() != std::numeric_limits<std::int64_t>::min())
         return Value(std::abs(v[0].as_integer()));
       return Value(std::abs(v[0].as_number()));
     }},
    {"ceil", 1, 1, [](const Values& v, const ConfigView&) { return rounded(v[0], std::ceil); }},
    {"exp", 1, 1,
     [](const Values& v, const ConfigView&) { return finite(std::exp(v[0].as_number()), "exp"); }},
    {"float", 1, 1, [](const Values& v, const ConfigView&) { return Value(v[0].as_number()); }},
    {"floor", 1, 1, [](const Values& v, const ConfigView&) { return rounded(v[0], std::floor); }},
    {"int", 1, 1, [](const Values& v, const ConfigView&) { return rounded(v[0], std::trunc); }},
    {"log", 1, 1,
     [](const Values& v, const ConfigView&) { return finite(std::log(v[0].as_number()), "log"); }},
    {"log10", 1, 1,
     [](const Values& v, const ConfigView&) {
       return finite(std::log10(v[0].as_number()), "log10");
     }},
    {"log2", 1, 1,
     [](const Values& v, const ConfigView&) {
       return finite(std::log2(v[0].as_number()), "log2");
     }},
    {"max", 1, 100, [](const Values& v, const ConfigView&) { return extreme(v, true); }},
    {"min", 1, 100, [](const Values& v, const ConfigView&) { return extreme(v, false); }},
    {"random", 0, 0,
     [](const Values&, const ConfigView& config) { return Value(config.random()); }},
    {"round", 1, 1,
     [](const Values& v, const ConfigView&) { return rounded(v[0], std::nearbyint); }},
    {"sqrt", 1, 1,
     [](const Values& v, const ConfigView&) {
       return finite(std::sqrt(v[0].as_number()), "sqrt");
     }},
};

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {
    if (text_.size() > kLongest)
      refuse("the expression has " + std::to_string(text_.size()) + " characters; at most " +
             std::to_string(kLongest) + " are allowed");
    skip_blanks();
  }

  Compiled parse() {
    Compiled whole = parse_choice();
    if (at_ != text_.size()) fail("does not belong here");
    return whole;
  }

 private:
  // Every term is one call deeper when it is evaluated.
  static constexpr std::size_t kLongest = 10'000;
  static constexpr int kDeepest = 100;

  // Counts nesting while it lives: a text of a million brackets must not overflow the stack.
  struct Level {
    explicit Level(Parser& parser) : depth(parser.depth_) {
      if (++depth > kDeepest) refuse("the expression is nested too deeply");
    }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    ~Level() { --depth; }
    int& depth;
  };

  [[noreturn]] void fail(const char* why) const {
    throw_error(ErrorCode::invalid_argument, "eval '{}': character {}: '{}' {}", text_, at_ + 1,
                text_.substr(at_, 10), why);
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n'))
      ++at_;
  }

  // Consumes the token if it comes next. A word counts only as a whole: "or" is not the beginning
  // of "order".
  bool accept(std::string_view token) {
    if (std::string_view(text_).substr(at_, token.size()) != token) return false;
    if (is_letter(token[0]) && at_ + token.size() < text_.size() &&
        is_word(text_[at_ + token.size()]))
      return false;
    at_ += token.size();
    skip_blanks();
    return true;
  }

  static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_word(char c) { return is_letter(c) || is_digit(c); }
  [[nodiscard]] char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  Compiled parse_choice() {
    const Level level(*this);
    Compiled yes = parse_or();
    if (!accept("if")) return yes;
    Compiled condition = parse_or();
    if (!accept("else")) fail("where 'else' is needed");
    return [yes = std::move(yes), condition = std::move(condition),
            no = parse_choice()](const ConfigView& config) {
      return truth(condition(config)) ? yes(config) : no(config);
    };
  }

  Compiled parse_or() {
    Compiled left = parse_and();
    while (accept("or"))
      left = [left = std::move(left), right = parse_and()](const ConfigView& config) {
        return Value(truth(left(config)) || truth(right(config)));
      };
    return left;
  }

  Compiled parse_and() {
    Compiled left = parse_not();
    while (accept("and"))
      left = [left = std::move(left), right = parse_not()](const ConfigView& config) {
        return Value(truth(left(config)) && truth(right(config)));
      };
    return left;
  }

  Compiled parse_not() {
    const Level level(*this);
    if (accept("not"))
      return
          [inner = parse_not()](const ConfigView& config) { return Value(!truth(inner(config))); };
    return parse_comparison();
  }

  Compiled parse_comparison() {
    Compiled left = parse_sum();
    const auto compare = [&](auto test) -> Compiled {
      return [left = std::move(left), right = parse_sum(), test](const ConfigView& config) {
        return Value(test(left(config), right(config)));
      };
    };
    if (accept("<=")) return compare([](const Value& a, const Value& b) { return !(b < a); });
    if (accept(">=")) return compare([](const Value& a, const Value& b) { return !(a < b); });
    if (accept("==")) return compare([](const Value& a, const Value& b) { return a == b; });
    if (accept("!=")) return compare([](const Value& a, const Value& b) { return !(a == b); });
    if (accept("<")) return compare([](const Value& a, const Value& b) { return a < b; });
    if (accept(">")) return compare([](const Value& a, const Value& b) { return b < a; });
    return left;
  }

  static Compiled binary(char operation, Compiled left, Compiled right) {
    return [operation, left = std::move(left), right = std::move(right)](const ConfigView& config) {
      return arithmetic(operation, left(config), right(config));
    };
  }

  Compiled parse_sum() {
    Compiled left = parse_product();
    while (here() == '+' || here() == '-') {
      const char operation = here();
      accept(std::string_view(&operation, 1));
      left = binary(operation, std::move(left), parse_product());
    }
    return left;
  }

  Compiled parse_product() {
    Compiled left = parse_sign();
    while (true) {
      if (accept("//"))
        left = binary('d', std::move(left), parse_sign());
      else if (accept("/"))
        left = binary('/', std::move(left), parse_sign());
      else if (accept("%"))
        left = binary('%', std::move(left), parse_sign());
      else if (accept("*"))
        left = binary('*', std::move(left), parse_sign());
      else
        return left;
    }
  }

  // The sign binds weaker than the power on its right, as in Python: -2 ** 2 is -4.
  Compiled parse_sign() {
    const Level level(*this);
    if (accept("-"))
      return binary(
          '-', [](const ConfigView&) { return Value(0); }, parse_sign());
    if (accept("+")) return parse_sign();
    Compiled base = parse_operand();
    if (accept("**")) return binary('^', std::move(base), parse_sign());
    return base;
  }

  Compiled parse_operand() {
    if (accept("(")) {
      Compiled inner = parse_choice();
      if (!accept(")")) fail("where ')' is needed");
      return inner;
    }
    if (is_digit(here()) || here() == '.') return parse_number();
    if (here() == '"' || here() == '\'') return parse_text();
    if (is_letter(here())) return parse_name();
    fail("where a value is needed");
  }

  Compiled parse_number() {
    const char* begin = text_.data() + at_;
    const char* end = text_.data() + text_.size();
    double number = 0;
    const auto read = std::from_chars(begin, end, number);
    if (read.ec != std::errc()) fail("is not a number");
    std::int64_t whole = 0;
    const auto read_whole = std::from_chars(begin, end, whole);
    const bool is_whole = read_whole.ec == std::errc() && read_whole.ptr == read.ptr;
    at_ += static_cast<std::size_t>(read.ptr - begin);
    skip_blanks();
    return [value = is_whole ? Value(whole) : Value(number)](const ConfigView&) { return value; };
  }

  Compiled parse_text() {
    const std::size_t end = text_.find(here(), at_ + 1);
    if (end == std::string::npos) fail("has no end");
    Value value = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    skip_blanks();
    return [value](const ConfigView&) { return value; };
  }

  Compiled parse_name() {
    std::string path;
    while (true) {
      while (is_word(here())) path += text_[at_++];
      if (here() != '.' || at_ + 1 >= text_.size() || !is_word(text_[at_ + 1])) break;
      path += '/';
      ++at_;
    }
    skip_blanks();
    if (accept("(")) return parse_call(path);
    if (path == "true" || path == "True") return [](const ConfigView&) { return Value(true); };
    if (path == "false" || path == "False") return [](const ConfigView&) { return Value(false); };
    for (const std::string_view prefix : {"spec/config/", "config/"})
      if (path.starts_with(prefix)) {
        path = path.substr(prefix.size());
        break;
      }
    return [path](const ConfigView& config) { return config.at(path); };
  }

  Compiled parse_call(const std::string& name) {
    const auto* function = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                        [&](const Function& known) { return known.name == name; });
    if (function == std::end(kFunctions)) refuse("the function '" + name + "' is unknown");
    std::vector<Compiled> arguments;
    if (!accept(")")) {
      do arguments.push_back(parse_choice());
      while (accept(","));
      if (!accept(")")) fail("where ')' is needed");
    }
    if (arguments.size() < function->least || arguments.size() > function->most)
      refuse("the function '" + name + "' does not take this number of arguments");
    return [call = function->call, arguments](const ConfigView& config) {
      std::vector<Value> values;
      for (const Compiled& argument : arguments) values.push_back(argument(config));
      return call(values, config);
    };
  }

  const std::string& text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

SampleFunction compile_expression(const std::string& text) { return Parser(text).parse(); }

}  // namespace kolo::search
