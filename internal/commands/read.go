package commands

import (
	"context"
	_ "time/tzdata" // time zones of --type timestamp(…) on machines that have none

	"github.com/urfave/cli/v2"

	"tsimport/pipeline/options"
	"tsimport/pipeline/plan"
	"tsimport/reader/input"
)

const inputsHelp = "A FILE is a file, a folder, a glob with **, - for standard input, @list.txt with a name on each line,\n" +
	"http(s)://…, oss://bucket/prefix or s3://bucket/prefix. Format and compression (gzip, zstd, bzip2, xz, lz4, snappy) are detected from the content."

// readFlags are the flags of the commands that read inputs.
func readFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "format", Usage: "csv, jsonl, parquet, arrow, dynamodb (exports of DynamoDB), mongodb (mongoexport), pg_dump, mysqldump or auto", Value: "auto"},
		&cli.StringFlag{Name: "source-table", Usage: "dump of a database: load `TABLE` or SCHEMA.TABLE (default: the only one with rows)"},
		&cli.StringFlag{Name: "dialect", Usage: "`NAME` of the program that wrote the file: mysql, postgres, clickhouse, hive, excel, sqlite and others (docs/dumps.md); or auto: detect delimiter, quote and escape from the text, and refuse ambiguous files"},
		&cli.StringFlag{Name: "delimiter", Usage: "`TEXT` between fields, one or more characters; \\t and \\x01 are understood (default: a comma, a tab in .tsv files)"},
		&cli.StringFlag{Name: "quote", Usage: "`CHAR` around fields, or none", Value: `"`},
		&cli.StringFlag{Name: "escape", Usage: "`CHAR` that makes the next character literal (a doubled quote inside quotes always works), or none", Value: "none"},
		&cli.StringFlag{Name: "comment", Usage: "lines that begin with `TEXT` are not records"},
		&cli.StringFlag{Name: "record-end", Usage: "`TEXT` that ends a record instead of a line end, such as '&|' or \\x02 (default: a line end)"},
		&cli.BoolFlag{Name: "no-header", Usage: "the first record is data; columns are named c1, c2, … or by --names"},
		&cli.IntFlag{Name: "skip-lines", Usage: "skip the first `N` lines; the header is below them"},
		&cli.StringFlag{Name: "names", Usage: "with --no-header: the columns' names `A,B,C`"},
		&cli.StringFlag{Name: "encoding", Usage: "text encoding: utf-8, gb18030, gbk, utf-16le, utf-16be, big5, shift-jis, latin1, windows-1252, …; a ! after it forces it on text that contradicts it"},
		&cli.StringFlag{Name: "ragged", Usage: "records with too few or too many fields: reject, pad (missing ones are null) or truncate (surplus ones are dropped)", Value: "reject"},
		&cli.BoolFlag{Name: "trim", Usage: "drop spaces and tabs around unquoted fields and around quotes"},
		textsFlag("null", "`TEXT` of an unquoted field that means null, in addition to an empty field; may be repeated"),
		textsFlag("quoted-null", "`TEXT` of a quoted field that means null; may be repeated"),
		&cli.StringFlag{Name: "empty", Usage: "load an unquoted empty field as null or string", Value: "null"},
		&cli.StringFlag{Name: "quoted-empty", Usage: "load a quoted empty field as string or null", Value: "string"},
		&cli.BoolFlag{Name: "flatten", Usage: "load nested values of JSON lines, Parquet and Arrow as columns a.b.c instead of JSON text"},
		&cli.BoolFlag{Name: "path-columns", Usage: "add a column for each folder named name=value to the records below it"},
	}
}

// storesOf is how objects are reached: where the environment says, with the command's keys.
func storesOf(c *cli.Context) (o input.Options) {
	o.OSS.Credentials = ossCredentials(c)
	return o
}

// ossCredentials are the keys of Tablestore.
func ossCredentials(c *cli.Context) func(context.Context) (id, secret, token string, err error) {
	return func(context.Context) (id, secret, token string, err error) {
		provider, err := findCredentials(c)
		if err != nil {
			return "", "", "", err
		}
		keys := provider.GetCredentials()
		return keys.GetAccessKeyID(), keys.GetAccessKeySecret(), keys.GetSecurityToken(), nil
	}
}

// givenFlags are the flags of a command as options.
type givenFlags struct{ *cli.Context }

func (g givenFlags) Texts(name string) []string { return textsOf(g.Context, name) }

// parseRead reads readFlags.
func parseRead(c *cli.Context) (plan.Read, error) {
	r, err := options.Read(givenFlags{c})
	if err == nil {
		completeRead(c, &r)
	}
	return r, err
}

// completeRead adds what only the command knows of reading inputs.
func completeRead(c *cli.Context, r *plan.Read) {
	r.Find.NotData = notData(c)
	r.Find.OSS.Credentials = ossCredentials(c)
}
