#!/usr/bin/env bash
# Makes the release of the commit twice, in DIST (dist by default) and in a clone at another path, with a separate cache
# if COLD is set, and compares all files. PLATFORMS selects platforms, by default those of Linux.
set -euo pipefail
cd "$(dirname "$0")/.."
export PLATFORMS=${PLATFORMS:-linux/amd64 linux/arm64}
DIST=$(realpath -m "${DIST:-dist}")
export DIST
if [ -n "$(git status --porcelain)" ]; then
	echo "the clone is made of the commit: commit or remove what git status shows" >&2
	exit 2
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone -q . "$work/another path"
bash packaging/dist.sh
if [ -n "${COLD:-}" ]; then export GOCACHE=$work/cache; fi
(cd "$work/another path" && DIST=$work/second bash packaging/dist.sh >/dev/null)
diff -r "$DIST" "$work/second"
echo "both builds are equal: $(find "$DIST" -type f | wc -l) files"
