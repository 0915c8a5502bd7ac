#!/bin/bash
# Prints the size of the tree: lines of Go outside tests and of tests by room (a line above 120 columns counts as
# several), words of English pages, characters of Chinese pages, flags by command. With a commit as its argument, it
# adds the differences from that commit.
set -euo pipefail
cd "$(dirname "$0")/.."

counts() ( # of the tree in a folder, as lines of name, tab and value
	cd "$1"
	git ls-files '*.go' '*.md' | perl -CSD -ne '
		chomp; next if m{(^|/)testdata/} || !-e; my ($file, @at) = ($_, split m{/}); pop @at;
		open my $in, "<:encoding(UTF-8)", $file or die "$file: $!\n";
		if ($file =~ /\.md$/) {
			local $/; my $text = <$in>;
			if ($file =~ m{/zh/|\.zh\.md$}) { $sum{"docs: characters in Chinese"} += () = $text =~ /\p{Han}/g }
			else { $sum{"docs: words in English"} += () = $text =~ /\S+/g }
			next;
		}
		my $deep = @at && $at[0] =~ /^(internal|pipeline|reader|engine|transfer)$/;
		my $kind = $file =~ /_test\.go$/ ? "tests" : "outside tests";
		while (<$in>) {
			chomp; my $lines = int((length() + 119) / 120) || 1;
			$sum{"$kind: $_"} += $lines for @at ? join("/", @at[0 .. ($deep && $#at ? 1 : 0)]) : ".", "in sum";
		}
		END { print "$_\t$sum{$_}\n" for sort keys %sum }'
	"${GO:-go}" run ./cmd/tsimport man --markdown | perl -ne '
		if (/^##(#?) (.*)/) { $parent = $2 unless $1; $command = $1 ? "$parent $2" : $2 }
		if (defined $command && /^\*\*--/) { $sum{"flags: $_"}++ for $command, "in sum" }
		END { print "$_\t$sum{$_}\n" for sort keys %sum }'
)

if [ -z "${1:-}" ]; then
	counts . | awk -F '\t' '{ printf "%8d  %s\n", $2, $1 }'
	exit
fi
base=$(mktemp -d)
trap 'git worktree remove --force "$base/tree"; rm -rf "$base"' EXIT
git worktree add --quiet --detach "$base/tree" "$1"
counts "$base/tree" >"$base/before"
counts . | awk -F '\t' 'NR == FNR { was[$1] = $2; next } { printf "%8d %+7d  %s\n", $2, $2 - was[$1], $1; delete was[$1] }
	END { for (name in was) printf "%8d %+7d  %s\n", 0, -was[name], name }' "$base/before" -
