#!/bin/sh
# Prints the licenses of what the binary is linked from, for THIRD_PARTY_NOTICES: `make notices` writes it, `make check` compares.
set -eu
GO=${GO:-go}
export CGO_ENABLED=1 GOOS=linux GOARCH=amd64 LC_ALL=C
echo "Third-party software in tsimport. Made by notices.sh; do not edit."
modules=$("$GO" list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/tsimport | sort -u)
{ echo "$modules"; echo "Go $("$GO" env GOVERSION | sed 's/\([0-9]*\.[0-9]*\).*/\1/') $("$GO" env GOROOT)"; } | while read -r path version dir; do
	[ -n "$path" ] || continue
	printf '\n%s\n%s %s\n%s\n' "--------" "$path" "$version" "--------"
	found=
	for file in "$dir"/[Ll][Ii][Cc][Ee][Nn][CcSs][Ee]* "$dir"/COPYING* "$dir"/NOTICE* "$dir"/PATENTS*; do
		[ -f "$file" ] || continue
		found=1
		echo
		tr -d '\r' < "$file"
	done
	[ -n "$found" ] || { echo "no license found for $path in $dir" >&2; exit 1; }
done
