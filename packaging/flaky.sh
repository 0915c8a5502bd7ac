#!/usr/bin/env bash
# Finds flaky tests: runs all default tests COUNT times, and those of the given rooms, which start goroutines, MORE
# times with -short, next to one busy process per processor. Prints which tests failed and how often.
set -euo pipefail
cd "$(dirname "$0")/.."
GO=${GO:-go} COUNT=${COUNT:-3} MORE=${MORE:-20}
work=$(mktemp -d)
burners=()
trap 'kill "${burners[@]}" 2>/dev/null; rm -rf "$work"' EXIT
"$GO" test -run '^$' ./... >/dev/null # compiles
for _ in $(seq "$(nproc)"); do
	while :; do :; done &
	burners+=($!)
done

runs() { # N ARGUMENT...: runs tests N times
	echo "== go test -count $*"
	"$GO" test -timeout 6h -count "$@" 2>&1 | tee "$work/said" | grep -vE '^(ok|\?) ' || true
	# The names of failed tests precede the line of their package. A package that crashed names none.
	awk -v times="$1" '/^--- FAIL: / { failed[++n] = $3 }
		/^FAIL\t/ { if (!n) failed[++n] = "ended without a verdict"; for (i = 1; i <= n; i++) print $2 ": " failed[i] " (of " times ")"; n = 0 }' "$work/said" >>"$work/failed"
}
runs "$COUNT" ./...
runs "$MORE" -short "$@"

echo
if [ -s "$work/failed" ]; then
	echo "failed, times, in which room:"
	sort "$work/failed" | uniq -c | sort -rn
	exit 1
fi
echo "nothing failed"
