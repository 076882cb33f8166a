#!/usr/bin/env bash
# The check of spelling finds words of prose, by line, and leaves code, names and addresses alone.
#
#   spelling_lint_test.sh LINT
set -euo pipefail
lint="$1"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

cat >good.md <<'EOT'
# Optimisers and optimizers

libtorch's hyperparameters, in both ways to write; `recieve` is code, `KoloRecieve` and OpenBLAS are
names, and [this](https://example.org/recieve) is an address.

    kolo
```
recieve
```
EOT
"$lint" good.md

cat >bad.md <<'EOT'
# A page

This one was recieved well.
EOT
if said="$("$lint" good.md bad.md)"; then echo 'a misspelled word was not found'; exit 1; fi
[[ "$said" == "bad.md:3: 'recieved' is misspelled"* && "$said" != *$'\n'* ]] || { echo "unexpected: $said"; exit 1; }
