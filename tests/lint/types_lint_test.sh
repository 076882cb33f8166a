#!/usr/bin/env bash
# The lint of types passes files whose types have names of their own, and names both places of a double.
#
#   types_lint_test.sh LINT
set -euo pipefail
lint="$1"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

cat >one.h <<'EOT'
namespace kolo::tune {
class Later;
struct Run : Base {
  struct Inner {};
};
enum class Kind { a, b };
}  // namespace kolo::tune
EOT
cat >other_namespace.h <<'EOT'
namespace kolo::jobs {
class Run final
    : public Base {};
}  // namespace kolo::jobs
EOT
cat >own.cc <<'EOT'
namespace kolo::tune {
namespace {
struct Run {};
}  // namespace
struct Later {};
}  // namespace kolo::tune
EOT
cat >program.cc <<'EOT'
namespace kolo::tune {
struct Run {};
}  // namespace kolo::tune
int main() { return 0; }
EOT
"$lint" one.h other_namespace.h own.cc program.cc

# refuses NAME LINE: the file from standard input is refused beside the others, with both places.
refuses() {
  local said
  cat >double.h
  if said="$("$lint" one.h other_namespace.h own.cc program.cc double.h)"; then
    printf 'a second %s was not refused\n' "$1"
    exit 1
  fi
  [[ "$said" == *":$2: $1 is a type in double.h:"* && "$said" != *$'\n'* ]] || {
    printf 'expected one finding about %s, found:\n%s\n' "$1" "$said"
    exit 1
  }
}

refuses kolo::tune::Run 3 <<<$'namespace kolo::tune {\nclass KOLO_EXPORT Run {\n};\n}  // namespace kolo::tune'
refuses kolo::tune::Kind 6 <<<$'namespace kolo::tune {\nenum class Kind : int { c };\n}  // namespace kolo::tune'
refuses kolo::jobs::Run 2 <<<$'namespace kolo::jobs {\nstruct Run\n    : Base {};\n}  // namespace kolo::jobs'
