#!/bin/sh
# Changes the module path, here and in the modules in packaging: make rename PATH=host/name.
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
(cd packaging/k8s && GOFLAGS=-mod=mod go mod tidy)
echo "the module is $new now; look through git diff, and run the tests"
