#!/usr/bin/env bash
# threads_lint.py finds what it is for: a guarded member read without its lock, also in a file with libtorch, and a
# standard mutex. A file with libtorch that this build does not have is named.
#
#   threads_lint_test.sh THREADS_LINT ROOT [LIBTORCH_HEADERS]
#
# LIBTORCH_HEADERS are the folders with libtorch's headers, separated by semicolons; none = there is no libtorch.
set -euo pipefail
lint="$1"
root="$2"
torch_headers="${3:-}"
clang="$(compgen -c clang++ | grep -xE 'clang\+\+(-[0-9]+)?' | sort -t- -k2n | tail -n 1)" || exit 77

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/src"
cd "$folder"

# expect STATUS WORDS FILE…: the verdict on the files, as commands.json has them compiled.
expect() {
  local status=0 said
  said="$("$lint" commands.json "$clang" "${@:3}")" || status=$?
  if [[ "$status" != "$1" || "$said" != *"$2"* ]]; then
    printf 'expected status %s and "%s", got %s:\n%s\n' "$1" "$2" "$status" "$said" >&2
    exit 1
  fi
}

# compiled FILE FLAGS: one entry of commands.json.
compiled() {
  printf '{"directory": "%s", "file": "%s", "command": "c++ -std=c++20 -I%s/src -I%s/include %s -c it"}' \
    "$folder" "$folder/$1" "$root" "$root" "$2"
}

# counter BODY: a class Counter whose count is guarded by mutex_.
counter() {
  cat >src/counter.cc <<END
#include "base/mutex.h"
class Counter {
 public:
  int read() { $1 }

 private:
  kolo::Mutex mutex_;
  int count_ KOLO_GUARDED_BY(mutex_) = 0;
};
int use() { return Counter().read(); }
END
}

printf '[%s]' "$(compiled src/counter.cc '')" >commands.json
counter 'return count_;'
expect 1 "requires holding mutex 'mutex_'" src/counter.cc
counter 'static std::mutex other; kolo::MutexLock lock(mutex_); return count_;'
expect 1 'src/counter.cc:4: use Mutex' src/counter.cc
counter 'kolo::MutexLock lock(mutex_); return count_;'
expect 0 '' src/counter.cc

cp "$root/src/train/elastic/rank_owned.cc" src/
expect 0 'libtorch is not in this build: src/rank_owned.cc' src/counter.cc src/rank_owned.cc

[[ -n "$torch_headers" ]] || exit 0
# Two files that are read together; the lock is taken out of one.
torch_flags="$(printf -- '-isystem %s ' ${torch_headers//;/ })"
sed '/MutexLock lock/d' "$root/src/train/elastic/rank_owned.cc" >src/rank_owned.cc
printf '#include <torch/torch.h>\n' | cat - src/counter.cc >src/tensor_counter.cc
printf '[%s, %s]' "$(compiled src/rank_owned.cc "$torch_flags")" "$(compiled src/tensor_counter.cc "$torch_flags")" \
  >commands.json
expect 1 "reading variable 'owned' requires holding mutex 'all.mutex'" \
  src/rank_owned.cc src/tensor_counter.cc
