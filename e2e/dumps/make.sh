#!/usr/bin/env bash
# Makes the dumps in made/ with Debian's PostgreSQL, MariaDB and SQLite from the values in values.txt. PROGRAM.hex has
# the contents according to each program's own functions: row, v and w in hexadecimal, a dash for null. Run it as root
# on a disposable machine, because it installs packages and runs servers in a temporary folder.
set -eu
cd "$(dirname "$0")"
for one in postgres:postgresql mariadbd:mariadb-server sqlite3:sqlite3; do
	if ! command -v "${one%%:*}" >/dev/null && ! ls /usr/lib/postgresql/*/bin/"${one%%:*}" >/dev/null 2>&1; then
		DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${one##*:}"
	fi
done
PATH=$PATH:$(ls -d /usr/lib/postgresql/*/bin | tail -1)
dir=$(mktemp -d)
chmod 755 "$dir"
stop() {
	[ ! -f "$dir/pg/postmaster.pid" ] || as postgres pg_ctl -D "$dir/pg" -m immediate stop >/dev/null || true
	[ ! -S "$dir/my/sock" ] || mariadb-admin --no-defaults -S "$dir/my/sock" shutdown || true
	rm -rf "$dir"
}
trap stop EXIT
as() { user=$1; shift; (cd "$dir" && runuser -u "$user" -- env PATH="$PATH" "$@"); }
values=$(grep -v '^#' values.txt)
mkdir -p made

# rows prints a statement for each row. $1 is an expression that makes a text of hexadecimal digits, which replace @.
# $2, if given, is used for values with a NUL; if it is empty, they are left out.
rows() {
	echo "$values" | awk -v make="$1" -v nul="${2-$1}" '
		function value(h) {
			if (h == "-") return "NULL"
			if (h == "\047\047") h = ""
			t = make
			for (i = 1; i < length(h); i += 2) if (substr(h, i, 2) == "00") t = nul
			if (t == "") return t
			gsub(/@/, h, t)
			return t
		}
		{ v[NR] = $1 }
		END { for (n = 1; n < NR; n++) {
			a = value(v[n]); b = value(v[n+1])
			if (a != "" && b != "") print "INSERT INTO t VALUES (" n ", " a ", " b ");"
		} }'
}

# The shell of SQLite cannot print texts with a NUL, so they are blobs, which only the mode "quote" prints.
rm -f "$dir/s.db"
{
	echo 'CREATE TABLE t (id INTEGER PRIMARY KEY, v, w);'
	rows "CAST(X'@' AS TEXT)" "X'@'"
	echo "INSERT INTO t VALUES (1000, 12, -7), (1001, '12', 9223372036854775807);"
} | sqlite3 "$dir/s.db"
texts="FROM t WHERE typeof(v) <> 'blob' AND typeof(w) <> 'blob' ORDER BY id"
hex() { echo "CASE WHEN $1 IS NULL THEN '-' WHEN $1 = '' THEN '''''' ELSE hex($1) END"; }
sqlite3 -separator ' ' "$dir/s.db" "SELECT id, $(hex v), $(hex w), typeof(v), typeof(w) FROM t ORDER BY id" >made/sqlite.hex
sqlite3 -csv -header "$dir/s.db" "SELECT * $texts" >made/sqlite.csv
sqlite3 -quote -header "$dir/s.db" 'SELECT * FROM t ORDER BY id' >made/sqlite-quote.txt

# Texts in PostgreSQL cannot contain a NUL.
mkdir "$dir/pg"
chown postgres "$dir/pg"
as postgres initdb -D "$dir/pg" -E UTF8 --locale=C.UTF-8 >/dev/null
as postgres pg_ctl -D "$dir/pg" -o "-k $dir/pg -c listen_addresses=" -w -l "$dir/pg/log" start >/dev/null
pg() { as postgres psql -h "$dir/pg" -X -q -v ON_ERROR_STOP=1 "$@"; }
{
	echo 'CREATE TABLE t (id integer PRIMARY KEY, v text, w text);'
	rows "convert_from('\\\\x@'::bytea, 'UTF8')" ""
} | pg
pg -A -t -F ' ' -c "SELECT id, CASE v WHEN '' THEN '''''' ELSE coalesce(encode(convert_to(v, 'UTF8'), 'hex'), '-') END,
	CASE w WHEN '' THEN '''''' ELSE coalesce(encode(convert_to(w, 'UTF8'), 'hex'), '-') END FROM t ORDER BY id" >made/postgres.hex
pg -c 'COPY t TO STDOUT WITH (HEADER)' >made/postgres.txt
pg -c 'COPY t TO STDOUT WITH (FORMAT csv, HEADER)' >made/postgres.csv
pg -c "COPY t TO STDOUT WITH (DELIMITER '|', NULL 'nil')" >made/postgres-bar.txt
as postgres pg_dump -h "$dir/pg" -a -t t | sed -n '/^COPY /,/^\\\.$/p' | sed 1d >made/postgres-dump.txt

# MariaDB reads and writes files like MySQL.
mkdir "$dir/my" "$dir/out"
chown mysql "$dir/my" "$dir/out"
mariadb-install-db --no-defaults --user=mysql --datadir="$dir/my" >/dev/null 2>&1
mariadbd --no-defaults --user=mysql --datadir="$dir/my" --socket="$dir/my/sock" --skip-networking --secure-file-priv= >"$dir/my.log" 2>&1 &
for _ in $(seq 600); do mariadb-admin --no-defaults -S "$dir/my/sock" ping >/dev/null 2>&1 && break; sleep 0.1; done
my() { mariadb --no-defaults -S "$dir/my/sock" --default-character-set=utf8mb4 "$@"; }
{
	echo 'CREATE DATABASE d CHARACTER SET utf8mb4; USE d;'
	echo 'CREATE TABLE t (id INT PRIMARY KEY, v TEXT, w TEXT);'
	rows "X'@'"
} | my
my -N -B d -e "SELECT CONCAT_WS(' ', id, CASE LENGTH(v) WHEN 0 THEN '\\'\\'' ELSE IFNULL(HEX(v), '-') END, CASE LENGTH(w) WHEN 0 THEN '\\'\\'' ELSE IFNULL(HEX(w), '-') END) FROM t ORDER BY id" >made/mysql.hex
# The client writes null and the text NULL alike, so that text is left out.
my --batch d -e "SELECT * FROM t WHERE NOT (v <=> BINARY 'NULL' OR w <=> BINARY 'NULL') ORDER BY id" >made/mysql-batch.txt
my --batch -N d -e "SELECT * FROM t WHERE NOT (v <=> BINARY 'NULL' OR w <=> BINARY 'NULL') ORDER BY id" >made/mysql-batch-names.txt
mariadb-dump --no-defaults -S "$dir/my/sock" --default-character-set=utf8mb4 --tab="$dir/out" d t
cp "$dir/out/t.txt" made/mysql-tab.txt
my d -e "SELECT * INTO OUTFILE '$dir/out/o.csv' CHARACTER SET utf8mb4 FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' FROM t ORDER BY id"
cp "$dir/out/o.csv" made/mysql-outfile.csv
chown "$(stat -c %u:%g values.txt)" made/*
ls -l made
