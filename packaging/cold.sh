#!/usr/bin/env bash
# Measures a first build: in a clone of the commit, with empty caches, the modules are downloaded, the command is built
# stripped, and the first command in README.md loads its rows. CPU time is printed by owner of the compiled packages, as
# the go command counts it. CGO_ENABLED=1 includes code in C.
set -euo pipefail
cd "$(dirname "$0")/.."
GO=${GO:-go}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone -q . "$work/src"
cd "$work/src"
export CGO_ENABLED=${CGO_ENABLED:-0} GOCACHE=$work/cache GOMODCACHE=$work/modules GOPATH=$work/path GOFLAGS=-modcacherw
read -ra load < <(sed -n 's|^go run ./cmd/tsimport \(load .*\)|\1|p' README.md)

took() { # NAME COMMAND...: writes its seconds of CPU and elapsed time to the file NAME
	local TIMEFORMAT='%U %S %R' name=$1
	{ time "${@:2}" >"$work/said" 2>&1 || { cat "$work/said" >&2; exit 1; }; } 2>"$work/$name"
	awk -v name="$name" '{ printf "%-9s %6.1f s of CPU, %6.1f s by the clock\n", name, $1 + $2, $3 }' "$work/$name"
}

took download "$GO" list -deps ./cmd/tsimport
took build "$GO" build -ldflags '-s -w' -debug-actiongraph="$work/actions" -o tsimport ./cmd/tsimport
took load ./tsimport "${load[@]}"
awk '{ cpu += $1 + $2; clock += $3 } END { printf "%-9s %6.1f s of CPU, %6.1f s by the clock\n", "build+load", cpu, clock }' "$work/build" "$work/load"
find "$work/modules/cache/download" -type f -printf '%s\n' | awk '{ sum += $1 } END { printf "%d MB downloaded, ", sum / 1e6 }'
echo "$(($(stat -c %s tsimport) / 1000000)) MB of stripped binary"
perl -MJSON::PP -0777 -ne '
	for (@{decode_json($_)}) {
		my ($cpu, $package) = ((($_->{CmdUser} || 0) + ($_->{CmdSys} || 0)) / 1e9, $_->{Package} || "");
		my $owner = $_->{Mode} eq "link" ? "link" : $package =~ m{^example\.com/tsimport} ? "tsimport" : $package =~ m{^(github\.com/[^/]+|[^/]+\.[^/]+)} ? $1 : "standard library";
		$cpu{$owner} += $cpu; $count{$owner}++; $sum += $cpu;
	}
	print "\nCPU s  packages\n";
	printf "%5.1f  %5d  %s\n", $cpu{$_}, $count{$_}, $_ for grep { $cpu{$_} >= 0.5 } sort { $cpu{$b} <=> $cpu{$a} } keys %cpu;
	printf "%5.1f         all\n", $sum;
' "$work/actions"
