#!/usr/bin/env bash
# Makes the release in the folder dist: for each platform a static binary with its SBOM, deb and rpm packages for Linux,
# one image for all Linux platforms as an OCI layout in a tar file, and checksums. The same commit gives the same bytes:
# paths are trimmed, and the version and all times are the commit's. It builds a clone of the commit, without
# uncommitted changes, because Go stamps no version in a linked worktree. PLATFORMS selects platforms, DIST names
# another folder. BARE=1 makes only the binaries and needs no network.
set -euo pipefail
cd "$(dirname "$0")/.."
GO=${GO:-go}
DIST=$(realpath -m "${DIST:-dist}")
PLATFORMS=${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64}
CYCLONEDX=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
NFPM=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.44.2
export LC_ALL=C TZ=UTC
umask 022
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$DIST"
mkdir -p "$DIST" "$work/share"
[ -z "$(git status --porcelain)" ] || echo "dist: left out, because it is not committed: $(git status --porcelain | wc -l) files" >&2
git clone -q . "$work/src"
cd "$work/src"

# Tools are built for this machine, without the release's flags and target.
[ -n "${BARE:-}" ] || for tool in "$CYCLONEDX" "$NFPM"; do
	env -u GOOS -u GOARCH GOFLAGS= GOBIN="$work/tools" "$GO" install "$tool"
done
[ -n "${BARE:-}" ] || (cd packaging/oci && env -u GOOS -u GOARCH GOFLAGS= "$GO" build -o "$work/tools/oci" .)

build() { # OS ARCH FILE
	GOOS=$1 GOARCH=$2 CGO_ENABLED=0 "$GO" build -trimpath -buildvcs=true -ldflags '-s -w -buildid=' -o "$3" ./cmd/tsimport
}

# The program reports the same version on all platforms, so ask one that runs here.
build "$("$GO" env GOHOSTOS)" "$("$GO" env GOHOSTARCH)" "$work/tsimport"
"$work/tsimport" man >"$work/share/tsimport.1"
gzip -9n "$work/share/tsimport.1"
for shell in bash zsh fish powershell; do
	"$work/tsimport" completion "$shell" >"$work/share/completion.$shell"
done
full=$("$work/tsimport" --version | grep -oE 'v[0-9]+\.[0-9]+\.[0-9]+[^ ]*' | head -1 || true)
if [ -z "$full" ]; then
	echo "dist: the binary knows no version: $("$work/tsimport" --version)" >&2
	exit 1
fi
# deb and rpm sort such a version before the release that follows it: 1.2.3~20260102030405.abcdef123456.
VERSION=$(sed 's/^v//; s/-/~/; s/-/./g' <<<"$full")
export VERSION SHARE="$work/share"

images=()
for platform in $PLATFORMS; do
	os=${platform%/*} arch=${platform#*/}
	file=$DIST/tsimport-$os-$arch
	[ "$os" != windows ] || file=$file.exe
	build "$os" "$arch" "$file"
	[ -z "${BARE:-}" ] || continue
	# Leave out time and serial number, so that the same binary has the same list.
	"$work/tools/cyclonedx-gomod" bin -json -std -noserial -notimestamp -version "$full" -output "$file.cdx.json" "$file"
	if [ "$os" = linux ]; then
		images+=("$arch=$file")
		for kind in deb rpm; do
			ARCH=$arch BINARY=$file "$work/tools/nfpm" package --config packaging/nfpm.yaml --packager "$kind" \
				--target "$DIST/tsimport-$os-$arch.$kind" >/dev/null
		done
	fi
done
if [ ${#images[@]} -gt 0 ]; then
	"$work/tools/oci" . "$work/image" "$full" "${images[@]}"
	tar -C "$work/image" --sort=name --format=ustar --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
		--mode=a-x,u=rwX,go=rX -cf "$DIST/tsimport-linux.oci.tar" blobs index.json oci-layout
fi
cp LICENSE THIRD_PARTY_NOTICES "$DIST"
(cd "$DIST" && sha256sum -- * >"$work/sums" && mv "$work/sums" SHA256SUMS && chmod 644 SHA256SUMS)
echo "tsimport $full:"
(cd "$DIST" && du -b --apparent-size -- * | awk '{printf "%12d  %s\n", $1, $2}')
