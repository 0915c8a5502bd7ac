#!/usr/bin/env bash
# Compares a load by one process without a job directory, by 1, 2, 4 and 8 processes with one, and by one process of a
# job planned for eight. A load writes ROWS rows of 12 columns with unordered keys to 64 partitions of UNITS units per
# second (0 means no limit), with a latency of LATENCY. Each process has CONCURRENCY requests in flight, few enough that
# processors are not the limit.
set -euo pipefail
cd "$(dirname "$0")/.."
ROWS=${ROWS:-400000} UNITS=${UNITS:-1200} LATENCY=${LATENCY:-100ms} CONCURRENCY=${CONCURRENCY:-4} GO=${GO:-go}
dir=$(mktemp -d) server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$dir"' EXIT
"$GO" build -o "$dir/tsimport" ./cmd/tsimport
cd "$dir"
awk -v rows="$ROWS" 'BEGIN {
	srand(1)
	print "id,a,b,c,d,e,f,g,h,i,j,k"
	for (n = 0; n < rows; n++) {
		id = sprintf("%08x%08x", rand() * 2^32, rand() * 2^32)
		printf "%s,%d,%d,name %d,%.3f,%d,x%d,y%d,2026-01-%02d,%d,%d,%d\n", id, n, n * 7, n % 1000, n / 7, n % 13, n % 17, n % 19, 1 + n % 28, n % 2, n % 3, n % 5
		if (n % int(rows / 2000 + 1) == 0) print id >"sample"
	}
}' >rows.csv

field() { # FILE NAME: prints a number of a summary
	grep -oE "\"$2\": ?[0-9.]+" "$1" | head -1 | grep -oE '[0-9.]+$'
}

printf '%-32s %8s %8s %8s %12s %10s %12s\n' processes seconds reading writing 'µs of CPU' requests throttled
for run in '0 0' '1 1' '2 2' '4 4' '8 8' '8 1'; do
	read -r planned processes <<<"$run"
	rm -f ready
	./tsimport serve --memory --any-credentials --quiet --listen 127.0.0.1:0 --partitions 64 --sample-file sample --partition-wcu "$UNITS" --latency "$LATENCY" >ready &
	server=$!
	until grep -qs url= ready; do sleep 0.1; done
	load=(./tsimport load rows.csv --endpoint "$(sed 's/^url=\([^ ]*\).*/\1/' ready)" --instance tsimport --table t --create --pk id --concurrency "$CONCURRENCY" --quiet)
	export TABLESTORE_ACCESS_KEY_ID=tsimport-local TABLESTORE_ACCESS_KEY_SECRET=tsimport-local-secret
	out=run-$planned-$processes began=$(date +%s.%N) cpu=all_cpu_seconds name="$processes, planned for $planned"
	if [ "$planned" = 0 ]; then
		cpu=cpu_seconds name='one load without a job directory'
		"${load[@]}" --run-dir "$out"
	else
		"${load[@]}" --job-dir "$out" --workers "$planned"
		workers=()
		for ((i = 0; i < processes; i++)); do
			./tsimport work --job-dir "$out" --quiet &
			workers+=($!)
		done
		wait "${workers[@]}"
	fi
	seconds=$(awk -v began="$began" -v now="$(date +%s.%N)" 'BEGIN { printf "%.1f", now - began }')
	kill "$server"
	wait "$server" || true
	server=
	s=$out/summary.json
	[ "$(field "$s" written)" = "$ROWS" ] || { echo "$name: $(field "$s" written) of $ROWS rows are written" >&2; exit 1; }
	awk -v name="$name" -v seconds="$seconds" -v rows="$ROWS" -v r="$(field "$s" read_seconds)" -v w="$(field "$s" write_seconds)" -v cpu="$(field "$s" "$cpu")" \
		-v requests="$(field "$s" requests)" -v throttled="$(field "$s" throttled)" -v sent="$(field "$s" rows_sent)" \
		'BEGIN { printf "%-32s %8s %8.1f %8.1f %12.2f %10d %10.2f %%\n", name, seconds, r, w, cpu / rows * 1e6, requests, 100 * throttled / sent }'
done
