#!/usr/bin/env bash
# Runs each file of the release, without a daemon, in a root file system that holds only its content and an input: the
# image by its own manifest, layers and configuration; a binary, deb or rpm as the Dockerfile's user, with an empty
# /data. Each loads a file into the embedded store and verifies it. Files for other machines are skipped and reported.
# Needs root, jq, dpkg-deb and bsdtar.
# usage: packaging/emptyroot.sh [FILE...]
set -euo pipefail
cd "$(dirname "$0")/.."
arch=$("${GO:-go}" env GOHOSTARCH)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

unpack_image() {
	local blobs=$work/layout/blobs/sha256 index manifest config layer layers
	rm -rf "$work/layout"
	mkdir "$work/layout"
	tar -xf "$file" -C "$work/layout"
	(cd "$blobs" && for digest in *; do echo "$digest  $digest"; done | sha256sum --quiet -c)
	digest() { jq -er --arg arch "$arch" "$1 | ltrimstr(\"sha256:\")" "$2" || { echo "no $1 for linux/$arch" >&2 && exit 1; }; }
	index=$(digest '.manifests[].digest' "$work/layout/index.json")
	manifest=$(digest '.manifests[] | select(.platform == {os: "linux", architecture: $arch}).digest' "$blobs/$index")
	config=$blobs/$(digest .config.digest "$blobs/$manifest")
	layers=$(digest '.layers[].digest' "$blobs/$manifest")
	for layer in $layers; do tar -xzpf "$blobs/$layer" -C "$root"; done
	user=$(jq -er .config.User "$config") folder=$(jq -er .config.WorkingDir "$config")
	mapfile -t env < <(jq -r '.config.Env[]' "$config")
	mapfile -t program < <(jq -r '.config.Entrypoint[]' "$config")
}

inside() {
	# chroot starts in /; unshare also sets the working directory.
	env -i "${env[@]}" unshare --root="$root" --wd="$folder" --setgid="${user#*:}" --setuid="${user%:*}" "${program[@]}" "$@"
}

keys=(--table student_cards --pk CardID --pk DeviceID --pk OrderNumber)
[ $# -gt 0 ] || set -- "${DIST:-dist}"/tsimport-*
for file; do
	root=$work/root folder=/data program=(/usr/bin/tsimport)
	rm -rf "$root"
	install -d -m 755 "$root"
	user=$(sed -n 's/^USER //p' Dockerfile)
	read -ra env < <(sed -n 's/^ENV //p' Dockerfile)
	[[ $file != *.cdx.json ]] || continue
	echo "$file: $(stat -c %s "$file") bytes"
	case $file in
	*.oci.tar) unpack_image ;;
	*linux-"$arch".deb) dpkg-deb -x "$file" "$root" ;;
	*linux-"$arch".rpm) bsdtar -xf "$file" -C "$root" ;;
	*linux-"$arch") install -D -m 755 "$file" "$root/usr/bin/tsimport" ;;
	*) echo "not run: it is not for linux/$arch" && continue ;;
	esac
	(cd "$root" && find . -type f -printf '%12s  %P\n' | sort -k 2)
	[ -d "$root/data" ] || install -d -o "${user%:*}" -g "${user#*:}" "$root/data" "$root/data/tmp"
	install -D -m 644 examples/student-cards.csv "$root/in/student-cards.csv"
	inside --version
	inside load /in/student-cards.csv "${keys[@]}"
	inside verify /in/student-cards.csv "${keys[@]}"
done
