#!/bin/sh
# Gives the module another path, here and in the modules of beam and packaging/k8s: make rename PATH=host/name.
set -eu
cd "$(dirname "$0")/.."
new=${1:-}
old=$(go list -m)
case $new in
*[!a-z0-9./~_-]* | /* | */ | "") new= ;;
*.*/*) ;;
*) new= ;;
esac
[ -n "$new" ] || { echo "rename: want a path with a host, such as example.com/tsimport, in PATH=" >&2; exit 2; }
git grep -lzIF -e "$old" | OLD=$old NEW=$new xargs -0 perl -pi -e 's{\Q$ENV{OLD}\E(?![\w.~-])}{$ENV{NEW}}g'
gofmt -w $(git ls-files '*.go')
for module in beam packaging/k8s; do (cd "$module" && GOFLAGS=-mod=mod go mod tidy); done
echo "the module is $new now; look through git diff, and run the tests"
