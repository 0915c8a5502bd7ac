package open

import (
	"fmt"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
)

func TestAddressIsAcceptedOrRefusedWithAdvice(t *testing.T) {
	for arg, want := range map[string]string{
		"orders.csv": "", "-": "", "@list": "", "a:b.csv": "", `C:\a.csv`: "", "dir/x://y": "", "file:///a.csv": "",
		"file://localhost/a.csv": "", "https://h/a": "", "S3://b/k": "", "oss://b": "", "Postgres://h/d?table=t": "",
		"mariadb://h/d": "", "sqlite:a.db": "",
		"OTS://old@shop/orders":               "cannot be read: tsimport copy OTS://old@shop/orders TARGET --create",
		"jdbc:mysql://u:hunter2@h:3306/d?x=y": "write mysql://xxxxx@h:3306/d?table=TABLE",
		"jdbc:sqlite:/a.db":                   "write sqlite:/a.db?table=TABLE",
		"jdbc:oracle:thin:u/hunter2@h:1521:x": "jdbc:oracle: cannot be read: write CSV",
		"jdbc:db2://h/d":                      "jdbc: cannot be read",
		"gs://b/dt=1/a.csv":                   "write s3://b/dt=1/a.csv, with an HMAC key, ",
		"@gs://b/list":                        "s3://b/list",
		"s3a://b/k":                           "write s3://b/k",
		"KAFKA://u:hunter2@h:9092/topic":      "kafka:// cannot be read",
		"file:///a%20b.csv":                   "write the path",
		"file://host/a.csv":                   "write the path",
		"postgre://u:hunter2@h/d": "postgre:// is unknown; did you mean postgres?; tsimport reads files, " +
			"folders and http:// https:// oss:// s3:// postgres://",
		"orders+nothing://u:hunter2@h/a":          "orders+nothing:// is unknown; tsimport reads",
		"mongodb+srv://u:hunter2@h/?authSource=a": "mongoexport",
	} {
		err := Check(arg, "")
		conformance.True(t, (want == "") == (err == nil) &&
			(err == nil || strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "hunter2")),
			"%s: %v, want %q", arg, err, want)
	}
	err := Check("ots://shop/orders", "kept --instance i")
	conformance.Contains(t, err.Error(), "copy ots://shop/orders kept --instance i --create ", "%v", err)
}

func TestManualNamesEverySchemeOnce(t *testing.T) {
	for _, page := range []string{"inputs.md", "zh/inputs.md"} {
		text := conformance.Read(t, "../../docs", page)
		for _, s := range Schemes {
			for begin := range strings.FieldsSeq(s.Begins) {
				n := strings.Count(string(text), "`"+begin+"`")
				conformance.True(t, s.Way == "" || n == 1, "%s has %s %d times", page, begin, n)
			}
		}
	}
}

func TestReadingParametersAreCutFromAddress(t *testing.T) {
	for arg, want := range map[string]string{
		"postgres://u@h/d?table=t":                                        "postgres://u@h/d?table=t 4 0s",
		"postgres://u@h/d?sessions=1&table=t&sslmode=disable&max-lag=10s": "postgres://u@h/d?table=t&sslmode=disable 1 10s",
		"sqlite:a.db?sessions=64":                                         "sqlite:a.db 64 0s",
		"sqlite:a.db":                                                     "sqlite:a.db 4 0s",
		"postgres://u@h/d?table=sessions&key=max-lag":                     "postgres://u@h/d?table=sessions&key=max-lag 4 0s",
		"postgres://u@h/d?sessions=0":                                     "want 1 to 64",
		"postgres://u@h/d?sessions=65":                                    "want 1 to 64",
		"postgres://u@h/d?sessions=":                                      "want 1 to 64",
		"postgres://u@h/d?max-lag=1ms":                                    "want 1s or more",
		"postgres://u@h/d?max-lag=10":                                     "want 1s or more",
		"postgres://u@h/d?table=t&sessions=x&unknown=%%%&a=%20":           "want 1 to 64",
	} {
		address, reading := cutReading(arg)
		cfg, err := readingOf(reading)
		if err != nil {
			conformance.Contains(t, err.Error(), want, "%s: %v", arg, err)
			continue
		}
		conformance.Equal(t, fmt.Sprintf("%s %d %v", address, cfg.Sessions, cfg.MaxLag), want, "%s", arg)
	}
}
