#!/usr/bin/env bash
# Runs a binary as the Dockerfile's image does, without a daemon: in a root file system that holds the binary, CA certificates and an
# empty /data, under a user with no name. It loads a file into the embedded store and verifies it. Needs root.
# usage: packaging/emptyroot.sh [BINARY]
set -euo pipefail
cd "$(dirname "$0")/.."
binary=${1:-dist/tsimport-linux-amd64}
certificates=${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}
user=$(sed -n 's/^USER //p' Dockerfile)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
install -D -m 755 "$binary" "$root/usr/bin/tsimport"
install -D -m 644 "$certificates" "$root/etc/ssl/certs/ca-certificates.crt"
install -d -o "${user%:*}" -g "${user#*:}" "$root/data" "$root/data/tmp"
install -D -m 644 examples/student-cards.csv "$root/in/student-cards.csv"
inside() {
	# chroot starts in /, WORKDIR is /data: unshare sets both.
	env -i $(sed -n 's/^ENV //p' Dockerfile) unshare --root="$root" --wd=/data --setgid="${user#*:}" --setuid="${user%:*}" /usr/bin/tsimport "$@"
}
keys=(--table student_cards --pk CardID --pk DeviceID --pk OrderNumber)
inside --version
inside load /in/student-cards.csv "${keys[@]}"
inside verify /in/student-cards.csv "${keys[@]}"
echo "holds:"
(cd "$root" && find . -path ./data -prune -o -type f -print | sort)
