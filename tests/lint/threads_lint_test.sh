#!/usr/bin/env bash
# threads_lint.py finds what it is for: a guarded member read without its lock, and a standard mutex.
#
#   threads_lint_test.sh THREADS_LINT SOURCE_FOLDER
set -euo pipefail
lint="$1"
source_folder="$2"
clang="$(compgen -c clang++ | grep -xE 'clang\+\+(-[0-9]+)?' | sort -t- -k2n | tail -n 1)" || exit 77

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/src"
cd "$folder"

# expect STATUS WORDS BODY: the verdict on a class Counter whose count is guarded by mutex_.
expect() {
  local status=0 said
  cat >src/counter.cc <<END
#include "base/mutex.h"
class Counter {
 public:
  int read() { $3 }

 private:
  kolo::Mutex mutex_;
  int count_ KOLO_GUARDED_BY(mutex_) = 0;
};
int use() { return Counter().read(); }
END
  printf '[{"directory": "%s", "file": "%s/src/counter.cc", "command": "c++ -std=c++20 -I%s -c counter.cc"}]' \
    "$folder" "$folder" "$source_folder" >commands.json
  said="$("$lint" commands.json "$clang" src/counter.cc)" || status=$?
  if [[ "$status" != "$1" || "$said" != *"$2"* ]]; then
    printf 'expected status %s and "%s", got %s:\n%s\n' "$1" "$2" "$status" "$said" >&2
    exit 1
  fi
}

expect 0 '' 'kolo::MutexLock lock(mutex_); return count_;'
expect 1 "requires holding mutex 'mutex_'" 'return count_;'
expect 1 'src/counter.cc:4: use Mutex' 'static std::mutex other; kolo::MutexLock lock(mutex_); return count_;'
