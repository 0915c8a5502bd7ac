#!/usr/bin/env bash
# Makes what is released, in the folder dist: a static binary with its SBOM for each platform, deb and rpm for those of Linux,
# one image for all of Linux as an OCI layout in a tar, and the sums of all. The same commit gives the same bytes: paths are
# trimmed, the version is that of the commit, and all times are the commit's. What is built is a clone of the commit: changes
# that are not committed are left out, and Go stamps no version in a linked worktree. PLATFORMS names some platforms, DIST
# another folder. With BARE=1 there are binaries alone, which needs no network.
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

# Tools are built for this machine, without the flags and the target of what is released.
[ -n "${BARE:-}" ] || for tool in "$CYCLONEDX" "$NFPM"; do
	env -u GOOS -u GOARCH GOFLAGS= GOBIN="$work/tools" "$GO" install "$tool"
done
[ -n "${BARE:-}" ] || (cd packaging/oci && env -u GOOS -u GOARCH GOFLAGS= "$GO" build -o "$work/tools/oci" .)

build() { # OS ARCH FILE
	GOOS=$1 GOARCH=$2 CGO_ENABLED=0 "$GO" build -trimpath -buildvcs=true -ldflags '-s -w -buildid=' -o "$3" ./cmd/tsimport
}

# What the program says of itself is the same on all platforms, so one that runs here is asked.
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
# A version that deb and rpm order before the release it leads to: 1.2.3~20260102030405.abcdef123456.
VERSION=$(sed 's/^v//; s/-/~/; s/-/./g' <<<"$full")
export VERSION SHARE="$work/share"

images=()
for platform in $PLATFORMS; do
	os=${platform%/*} arch=${platform#*/}
	file=$DIST/tsimport-$os-$arch
	[ "$os" != windows ] || file=$file.exe
	build "$os" "$arch" "$file"
	[ -z "${BARE:-}" ] || continue
	# Neither time nor number: the same binary has the same list.
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
