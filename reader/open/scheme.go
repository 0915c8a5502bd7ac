package open

import (
	"cmp"
	"fmt"
	"strings"

	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/mysql"
	"example.com/tsimport/reader/postgres"
	"example.com/tsimport/reader/sqlite"
)

// Scheme is a kind of address: of files, of a Database, or of something unreadable, with a Way to load its rows.
type Scheme struct {
	Begins string // beginnings of its addresses, such as "mysql:// mariadb://"
	Database
	// Way says how to load rows that cannot be read directly. ADDRESS stands for the address, BARE for the address without
	// jdbc: and parameters, REST for the part after ://, and TARGET for the table to write.
	Way string
}

// Schemes lists all kinds of addresses. A new kind needs a package and a line here.
var Schemes = []Scheme{
	{Begins: "http:// https:// oss:// s3://"},
	{Begins: "postgres:// postgresql://", Database: database(postgres.Parse, postgres.ParseQuery, postgres.List)},
	{Begins: "mysql:// mariadb://", Database: database(mysql.Parse, mysql.ParseQuery, mysql.List)},
	{Begins: "sqlite:", Database: database(sqlite.Parse, noQueriesOfSQLite, sqlite.List)},

	{Begins: "ots://", Way: "tsimport copy ADDRESS TARGET --create copies the table"},
	{Begins: "jdbc:mysql:// jdbc:mariadb:// jdbc:postgresql:// jdbc:sqlite:", Way: "write BARE?table=TABLE"},
	{Begins: "file://", Way: "write the path, with each %20 as the character that it means"},
	{Begins: "s3a:// s3n://", Way: "write s3://REST"},
	{Begins: "gs:// gcs://", Way: "write s3://REST, with an HMAC key, AWS_REGION=auto and " +
		"AWS_ENDPOINT_URL=https://storage.googleapis.com; or fetch the files with gcloud storage cp"},
	{Begins: "cos:// cosn:// obs:// tos:// minio:// r2:// b2://", Way: "write s3://REST, and set AWS_ENDPOINT_URL"},
	{Begins: "abfs:// abfss:// wasb:// wasbs:// az:// azure:// adl://", Way: "write the https:// address of the file " +
		"with its SAS token, or fetch the files with azcopy copy"},
	{Begins: "hdfs:// webhdfs:// viewfs://", Way: "hdfs dfs -get FILE, or hdfs dfs -cat FILE | tsimport load -"},
	{Begins: "ftp:// ftps:// sftp://", Way: "curl -s URL | tsimport load -"},
	{Begins: "scp:// ssh://", Way: "ssh HOST cat FILE | tsimport load -"},
	{Begins: "kafka:// pulsar:// amqp:// mqtt:// nats://", Way: "have a consumer write JSON lines: " +
		"kcat -C -e -b BROKER -t TOPIC | tsimport load -"},
	{Begins: "odps:// maxcompute://", Way: "UNLOAD FROM TABLE INTO LOCATION 'oss://…' STORED AS PARQUET, and load that"},
	{Begins: "oracle:// jdbc:oracle:", Way: "write CSV with SQLcl: SET SQLFORMAT csv, SPOOL FILE, SELECT …"},
	{Begins: "sqlserver:// mssql:// jdbc:sqlserver:", Way: "bcp TABLE out FILE -c -C 65001, " +
		"and load that with --delimiter '\\t' --no-header"},
	{Begins: "mongodb:// mongodb+srv://", Way: "mongoexport --uri URI -c NAME --jsonFormat canonical | tsimport load -"},
	{Begins: "redis:// rediss://", Way: "have a client that scans the keys write JSON lines, and load those"},
	{Begins: "hive:// hive2:// jdbc:hive2:", Way: "INSERT OVERWRITE DIRECTORY '…' STORED AS PARQUET SELECT …; load that"},
	{Begins: "clickhouse:// jdbc:clickhouse:", Way: "clickhouse-client -q 'SELECT … FORMAT Parquet' > FILE; load that"},
	{Begins: "cassandra:// scylla://", Way: "dsbulk unload, or COPY TABLE TO 'FILE' WITH HEADER = true in cqlsh"},
	{Begins: "hbase:// phoenix:// jdbc:phoenix:", Way: "write Parquet with a job of Spark, and load that"},
	{Begins: "dynamodb://", Way: "export the table to S3, and load the manifest-summary.json of the export"},
	{Begins: "bigquery:// bq:// snowflake:// redshift:// duckdb:", Way: "unload the table to Parquet, and load that"},
	{Begins: "jdbc:", Way: "have the database write CSV, JSON lines or Parquet, and load that"},
}

// schemeOf returns an address's scheme and the prefix that identifies it, "" for paths and unknown schemes.
func schemeOf(address string) (of *Scheme, begin string) {
	for i := range Schemes {
		for begin := range strings.FieldsSeq(Schemes[i].Begins) {
			if len(address) >= len(begin) && strings.EqualFold(address[:len(begin)], begin) {
				return &Schemes[i], begin
			}
		}
	}
	return new(Scheme), ""
}

// Check refuses an address that cannot be read, and says how to load its rows into target, which may be "".
func Check(address, target string) error {
	address = input.Path(strings.TrimPrefix(address, "@"))
	of, begin := schemeOf(address)
	if name := input.SchemeOf(address); begin == "" && name != "" {
		var all, read string
		for _, s := range Schemes {
			all += " " + s.Begins
			if s.Way == "" {
				read += " " + s.Begins
			}
		}
		hint := suggest.Hint(name, strings.Fields(strings.NewReplacer(":", "", "/", "").Replace(all)))
		return fmt.Errorf("%s:// is unknown%s; tsimport reads files, folders and%s", input.Redact(name), hint, read)
	}
	if of.Way == "" {
		return nil
	}
	shown := input.Redact(address)
	bare, _, _ := strings.Cut(strings.TrimPrefix(shown, "jdbc:"), "?")
	_, rest, _ := strings.Cut(shown, "://")
	target = cmp.Or(target, "TARGET")
	fill := strings.NewReplacer("ADDRESS", suggest.Arg(shown), "BARE", bare, "REST", rest, "TARGET", target)
	return fmt.Errorf("%s cannot be read: %s", begin, fill.Replace(of.Way))
}
