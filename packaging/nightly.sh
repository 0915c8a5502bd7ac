#!/usr/bin/env bash
# Runs the sweeps in turn, each for at most its share of NIGHT, such as 8h (the default) or 90m. A failure stops neither
# its sweep nor the others. At the end it prints a table of what each did and found. Their output is in dist/nightly.
# The exit code is 1 if anything was found.
set -euo pipefail
cd "$(dirname "$0")/.."
NIGHT=${NIGHT:-8h} SEED=${SEED:-$(date +%Y%m%d)} MAKE=${MAKE:-make}
logs=dist/nightly
mkdir -p "$logs"
case $NIGHT in
*h) night=$((${NIGHT%h} * 3600)) ;;
*m) night=$((${NIGHT%m} * 60)) ;;
*) echo "NIGHT=$NIGHT is not a number of hours or minutes, as 8h or 90m" >&2; exit 2 ;;
esac
# The sweeps and their shares, in minutes of an eight-hour night.
sweeps=(fuzz 60 metamorphic 75 composition 30 model 30 crash 90 hostile 30 outages 20 nights 30 scaleout 60 mutants 55)
fuzzers=$(git grep -hE '^func Fuzz' -- '*_test.go' | wc -l)
found=0
table=$(printf '%-12s %8s  %8s  %s' sweep minutes 'rooms ok' found)
for ((i = 0; i < ${#sweeps[@]}; i += 2)); do
	sweep=${sweeps[i]} share=$((sweeps[i + 1] * night / 480)) log=$logs/${sweeps[i]}.log began=$SECONDS code=0
	echo "== make $sweep, up to $((share / 60)) minutes"
	timeout --kill-after=1m "$share" "$MAKE" --ignore-errors "$sweep" SEED="$SEED" N=5 FUZZTIME="$((share * 3 / 4 / fuzzers + 1))s" >"$log" 2>&1 || code=$?
	what=$( (grep -oE '^ *--- FAIL: [^ ]+|^panic: .*|^FAIL.*\[.* failed\]|.* SURVIVES$' "$log" || true) | sed 's/^ *--- FAIL: //' | sort -u | head -5 | paste -sd ';' | sed 's/;/; /g')
	if [ -z "$what" ] && grep -qE '^make: .* Error [0-9]+ \(ignored\)' "$log" && [ "$code" -ne 124 ]; then
		what="failed, see $log"
	fi
	[ -z "$what" ] || found=1
	[ "$code" -ne 124 ] || what="stopped by the clock${what:+; $what}"
	[ "$code" -eq 0 ] || [ "$code" -eq 124 ] || { found=1; what="exit code $code${what:+; $what}"; }
	row=$(printf '%-12s %8d  %8d  %s' "$sweep" $(((SECONDS - began + 59) / 60)) "$(grep -cE '^ok ' "$log" || true)" "${what:-nothing}")
	echo "$row"
	table+=$'\n'$row
done
echo
echo "$table"
exit $found
