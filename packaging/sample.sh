#!/usr/bin/env bash
# Draws sixty pieces of prose by SEED: 20 comments, 20 messages, 10 names of tests and 10 lines of pages.
set -euo pipefail
cd "$(dirname "$0")/.."
SEED=${SEED:-1}
drawn() { # N: draws N lines of the input
	sort | shuf -n "$1" --random-source=<(openssl enc -aes-128-ctr -pass "pass:$SEED" -nosalt </dev/zero 2>/dev/null)
}
code=(-- '*.go' ':!*/testdata/*')
git grep -nE '^[[:space:]]*// [A-Z].{30}' "${code[@]}" | drawn 20
git grep -nE '(usagef|Errorf|errors\.New|Warn|Note)\("' "${code[@]}" ':!*_test.go' | drawn 20
git grep -nE '^func (Test|Fuzz|Benchmark)[A-Z]' -- '*_test.go' | drawn 10
git grep -nE '^[A-Z][a-z].{60}' -- 'docs/*.md' ':!docs/zh/*' | drawn 10
