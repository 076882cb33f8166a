#!/usr/bin/env bash
# The lint of documents passes a good page and refuses each kind of bad one, by name and line.
#
#   docs_lint_test.sh LINT
set -euo pipefail
lint="$1"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

# page NAME: writes NAME.md from standard input, below a heading and a first paragraph.
page() { { printf '# Title\n\nWhat the page is for.\n\n'; cat; } >"$1.md"; }

# refuses NAME LINE WORDS: the lint fails on NAME.md and says WORDS about that line, and nothing else.
refuses() {
  local said
  if said="$("$lint" "$1.md")"; then
    printf '%s.md was not refused\n' "$1"
    exit 1
  fi
  if [[ "$said" != "$1.md:$2: "*"$3"* || "$said" == *$'\n'* ]]; then
    printf '%s.md: expected one finding about line %s with "%s", found:\n%s\n' "$1" "$2" "$3" "$said"
    exit 1
  fi
}

wide="$(printf 'wide %.0s' {1..30})"

page good <<EOT
Links: [a heading](#second-part), [another page](other.md#title), [the web](https://example.org).

[$wide]($PWD)

## Second part

| a | b \\| c |
|---|---|
| $wide | \`x \\| y\` |

\`\`\`
$wide | not | a table [nor](a-link)
\`\`\`

Make room for more; there is no room left.
EOT
page other </dev/null
"$lint" good.md other.md

page width <<<"$wide"
refuses width 5 '100 are allowed'

# Columns are characters, not bytes.
page umlauts <<<"$(printf 'äöü %.0s' {1..25})"
"$lint" umlauts.md

page table <<'EOT'
| a | b |
|---|---|
| `x|y` | z |
EOT
refuses table 7 '3 cells in a table of 2 columns'

page headless <<'EOT'
| a | b |
| c | d |
EOT
refuses headless 6 'a table without'

page link <<<'[gone](gone.md)'
refuses link 5 'the link to gone.md leads nowhere'

page anchor <<<'[there](other.md#nowhere)'
refuses anchor 5 'no heading for the anchor #nowhere'

page own_anchor <<<'[here](#nowhere)'
refuses own_anchor 5 'no heading for the anchor #nowhere'

page titles <<<'# Another title'
refuses titles 5 'a second heading of the first level'

printf 'Text without a heading.\n' >heading.md
refuses heading 1 'does not begin with a heading'

printf '# Title\n\n```\ncode\n```\n' >paragraph.md
refuses paragraph 1 'no paragraph after the heading'

page words <<<'Each room of the tree is a library.'
refuses words 5 'write module'

page house <<<'This is how the house is built.'
refuses house 5 'architecture'
