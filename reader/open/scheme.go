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

// Scheme is a kind of addresses. It is that of a database if it has a Table, and of files if it has neither that nor Instead.
type Scheme struct {
	Begins string // what its addresses begin with, such as "mysql:// mariadb://"
	Database
	// Instead says how to get at what is not read. ADDRESS stands for the address, BARE for it without jdbc: and parameters, REST for what
	// follows its ://, and TARGET for the table that a load writes.
	Instead string
}

// Schemes are all kinds of addresses. A new one is its room and one line.
var Schemes = []Scheme{
	{Begins: "http:// https:// oss:// s3://"},
	{Begins: "postgres:// postgresql://", Database: database(postgres.Parse, postgres.ParseQuery, postgres.List)},
	{Begins: "mysql:// mariadb://", Database: database(mysql.Parse, mysql.ParseQuery, mysql.List)},
	{Begins: "sqlite:", Database: database(sqlite.Parse, noQueriesOfSQLite, sqlite.List)},

	{Begins: "ots://", Instead: "tsimport copy ADDRESS TARGET --create copies the table"},
	{Begins: "jdbc:mysql:// jdbc:mariadb:// jdbc:postgresql:// jdbc:sqlite:", Instead: "write BARE?table=TABLE"},
	{Begins: "file://", Instead: "write the path, with each %20 as the character that it means"},
	{Begins: "s3a:// s3n://", Instead: "write s3://REST"},
	{Begins: "gs:// gcs://", Instead: "write s3://REST, with AWS_ENDPOINT_URL=https://storage.googleapis.com, AWS_REGION=auto and an HMAC key; " +
		"or fetch the files with gcloud storage cp"},
	{Begins: "cos:// cosn:// obs:// tos:// minio:// r2:// b2://", Instead: "write s3://REST, with AWS_ENDPOINT_URL=URL of the store's S3 interface"},
	{Begins: "abfs:// abfss:// wasb:// wasbs:// az:// azure:// adl://", Instead: "write the https:// address of the file with its SAS token, " +
		"or fetch the files with azcopy copy"},
	{Begins: "hdfs:// webhdfs:// viewfs://", Instead: "fetch the files with hdfs dfs -get, or pipe one: hdfs dfs -cat FILE | tsimport load -"},
	{Begins: "ftp:// ftps:// sftp:// scp:// ssh://", Instead: "pipe the file: curl -s URL | tsimport load -, or ssh HOST cat FILE | tsimport load -"},
	{Begins: "kafka:// pulsar:// amqp:// mqtt:// nats://", Instead: "have a consumer write JSON lines to files or a pipe: " +
		"kcat -C -e -b BROKER -t TOPIC | tsimport load -"},
	{Begins: "odps:// maxcompute://", Instead: "write files: UNLOAD FROM TABLE INTO LOCATION 'oss://…' STORED AS PARQUET, or tunnel download"},
	{Begins: "oracle:// jdbc:oracle:", Instead: "write CSV with SQLcl: SET SQLFORMAT csv, SPOOL FILE, SELECT * FROM TABLE"},
	{Begins: "sqlserver:// mssql:// jdbc:sqlserver:", Instead: "write a file with tabs: bcp TABLE out FILE -c -C 65001; load it with --delimiter '\\t' --no-header"},
	{Begins: "mongodb:// mongodb+srv://", Instead: "pipe its JSON lines: mongoexport --uri URI -c NAME --jsonFormat canonical | tsimport load -"},
	{Begins: "redis:// rediss://", Instead: "have a client that scans the keys write JSON lines, and load those"},
	{Begins: "hive:// hive2:// jdbc:hive2:", Instead: "write files: INSERT OVERWRITE DIRECTORY '…' STORED AS PARQUET SELECT * FROM TABLE"},
	{Begins: "clickhouse:// jdbc:clickhouse:", Instead: "pipe it: clickhouse-client -q 'SELECT * FROM TABLE FORMAT Parquet' > FILE, and load FILE"},
	{Begins: "cassandra:// scylla://", Instead: "write CSV: dsbulk unload, or COPY TABLE TO 'FILE' WITH HEADER = true in cqlsh"},
	{Begins: "hbase:// phoenix:// jdbc:phoenix:", Instead: "write Parquet with a job of Spark, and load that"},
	{Begins: "dynamodb://", Instead: "export the table to S3 (aws dynamodb export-table-to-point-in-time), and load its manifest-summary.json"},
	{Begins: "bigquery:// bq:// snowflake:// redshift:// duckdb:", Instead: "unload the table to Parquet, and load the files"},
	{Begins: "jdbc:", Instead: "write the table to CSV, JSON lines or Parquet with the database's own export, and load that"},
}

// schemeOf is the scheme of an address, and what the address has of what begins one. A path, and what is not known, has none.
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

// Check refuses an address whose rows are not read, and says how to get at them: into the table target, where one is known.
func Check(address, target string) error {
	address = input.Path(strings.TrimPrefix(address, "@"))
	of, begin := schemeOf(address)
	if name := input.SchemeOf(address); begin == "" && name != "" {
		var all, read string
		for _, s := range Schemes {
			all += " " + s.Begins
			if s.Instead == "" {
				read += " " + s.Begins
			}
		}
		hint := suggest.Hint(name, strings.Fields(strings.NewReplacer(":", "", "/", "").Replace(all)))
		return fmt.Errorf("%s:// is not known%s; read are files, folders and%s", input.Redact(name), hint, read)
	}
	if of.Instead == "" {
		return nil
	}
	shown := input.Redact(address)
	bare, _, _ := strings.Cut(strings.TrimPrefix(shown, "jdbc:"), "?")
	_, rest, _ := strings.Cut(shown, "://")
	fill := strings.NewReplacer("ADDRESS", suggest.Arg(shown), "BARE", bare, "REST", rest, "TARGET", cmp.Or(target, "TARGET"))
	return fmt.Errorf("%s is not read here: %s", begin, fill.Replace(of.Instead))
}
