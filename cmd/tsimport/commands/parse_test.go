package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/urfave/cli/v2"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/reader/open"
)

var must = conformance.Must

// given calls do with the context that flags have for arguments.
func given(t *testing.T, of options.Commands, flags []cli.Flag, args []string, do func(c *call) error) error {
	t.Helper()
	read := func(l *line) error {
		in := new(invocation)
		must(t, in.takeEnvironment(l))
		c, err := in.typed(l, of)
		if err != nil {
			return err
		}
		return do(c)
	}
	app := &cli.App{Flags: flags, Action: read, Writer: io.Discard, ErrWriter: io.Discard, ExitErrHandler: func(*cli.Context, error) {}}
	return app.Run(append([]string{"tsimport"}, args...))
}

// says reports whether an error is what is wanted of it: nil where nothing is, else one line that holds the text.
func says(err error, want string) bool {
	if want == "" {
		return err == nil
	}
	return err != nil && strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "\n")
}

func TestSharesAndPercentagesAreReadExactly(t *testing.T) {
	for text, want := range map[string]float64{"1%": 0.01, "0.01": 0.01, "100%": 0, "1": 0, "0.5": 0.5} {
		if got, err := parseShare(text); err != nil || got != want {
			t.Errorf("share %q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, bad := range []string{"", "0", "0%", "-1%", "101%", "1.01", "NaN", "x", "%"} {
		if got, err := parseShare(bad); err == nil {
			t.Errorf("share %q is mistaken for %v", bad, got)
		}
	}
	for text, want := range map[string]float64{"0%": 0, "1%": 0.01, "99.5%": 0.995} {
		if got, err := parseThrottled(text); err != nil || got != want {
			t.Errorf("throttled %q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, bad := range []string{"", "1", "100%", "-1%", "NaN%", "%"} {
		if got, err := parseThrottled(bad); err == nil {
			t.Errorf("throttled %q is mistaken for %v", bad, got)
		}
	}
}

func TestSimulationsAreReadOrRefused(t *testing.T) {
	for text, want := range map[string]string{
		"": "0s 0s 0", "10s": "10s 1s 0", "10s:2s": "10s 2s 0", "10s:2s:32": "10s 2s 32",
		"x": "--splits", "0s": "--splits", "10s:x": "--splits", "10s:1s:x": "--splits", "10s:1s:2:3": "--splits", "-1s": "--splits",
	} {
		s, err := parseSplits(text)
		if strings.HasPrefix(want, "--") != (err != nil) || err == nil && fmt.Sprint(s.Every, s.Unavailable, s.MaxPartitions) != want || err != nil && !says(err, want) {
			t.Errorf("splits %q: %+v, %v", text, s, err)
		}
	}
	for text, want := range map[string]string{"": "0 0s", "6": "6 500ms", "6:2s": "6 2s", "x": "--moves", "6:": "--moves", "6:x": "--moves"} {
		m, err := parseMoves(text)
		if strings.HasPrefix(want, "--") != (err != nil) || err == nil && fmt.Sprint(m.PerMinute, m.Unavailable) != want || err != nil && !says(err, want) {
			t.Errorf("moves %q: %+v, %v", text, m, err)
		}
	}
	if slow, err := parseSlow([]string{"7:0.1", "0:2"}); err != nil || len(slow) != 2 || slow[7] != 0.1 || slow[0] != 2 {
		t.Errorf("slow: %v, %v", slow, err)
	}
	for _, bad := range []string{"7", "x:1", "7:x", ""} {
		if slow, err := parseSlow([]string{bad}); !says(err, "--slow") {
			t.Errorf("slow %q: %v, %v", bad, slow, err)
		}
	}
}

func TestKeysOfTablesAreReadOrRefused(t *testing.T) {
	for text, want := range map[string]string{"id:double": "string, integer or binary", "id:text": "want string, integer", ":string": "without a name", "": "without a name", "id": "give the type too",
		"id:auto": "cannot be auto", "id:string=upper(a)": "a table has no expressions"} {
		var said bytes.Buffer
		code := Run([]string{"tsimport", "table", "create", "t", "--store", filepath.Join(t.TempDir(), "store"), "--pk", text}, io.Discard, &said)
		if code != exitcode.Usage || !strings.Contains(said.String(), want) {
			t.Errorf("--pk %q: exit code %d, %s; want %q", text, code, &said, want)
		}
	}
}

func TestColumnFlagsAreReadOrRefused(t *testing.T) {
	for args, want := range map[string]string{
		"--type a=integer": "", "--type a=timestamp": "", "--type a=binary(hex)": "",
		"--type a": "want name=type", "--type =integer": "want name=type", "--type a=text": "--type a=text", "--type a=timestamp(": "--type a=timestamp(",
		"--rename a=b --rename a=c": "given twice", "--rename a=": "want old=new", "--rename =b": "want old=new",
		"--types x": "want table, strict or infer",
	} {
		err := given(t, options.Load, flagsOf(options.Load), strings.Fields(args), func(c *call) error {
			columns, err := options.Columns(&c.given.Request)
			if err != nil {
				return err
			}
			a := columns.Types["a"]
			if strings.HasSuffix(args, "integer") != (a.Type == table.Integer && a.Time == nil) || strings.Contains(args, "timestamp") != (a.Time != nil) || strings.HasSuffix(args, "(hex)") != (a.Type == table.Binary && a.Hex) {
				return fmt.Errorf("the type is %+v", a)
			}
			return nil
		})
		conformance.Equal(t, says(err, want), true, "%s: %v, want %q", args, err, want)
	}
}

func TestDialectFlagsAreReadOrRefused(t *testing.T) {
	for args, want := range map[string]string{
		"":                                       "",
		`--delimiter ; --quote ' --escape \`:     "",
		`--delimiter \x01 --quote none`:          "",
		"--dialect auto":                         "",
		"--dialect auto --delimiter ;":           "give either it or them",
		"--dialect oracle":                       "want auto, mysql",
		"--delimiter ,, --quote ab":              "--quote",
		`--delimiter \q`:                         "--delimiter",
		"--quote é":                              "single-byte",
		`--delimiter " --quote "`:                "--delimiter, --quote",
		"--names a,b":                            "--names needs --no-header",
		"--no-header --names a,b":                "",
		"--skip-lines -1":                        "0 or more",
		"--skip-lines 3":                         "",
		"--dialect mysql --escape none":          "",
		"--format xml":                           "--format",
		`--no-header --names a,"b`:               "--names",
		"--dialect postgres-csv --delimiter \\t": "",
	} {
		err := given(t, options.Looking, flagsOf(options.Looking), strings.Fields(args), func(c *call) error {
			r, err := parseRead(c)
			if err != nil {
				return err
			}
			d := r.Dialect
			got := fmt.Sprintf("%q %q %q %v %d %v", d.Delimiter, string(d.Quote), string(d.Escape), r.Sniff, r.HeaderLine, r.Names)
			if want, ok := map[string]string{
				`--delimiter ; --quote ' --escape \`:     `";" "'" "\\" false 1 []`,
				`--delimiter \x01 --quote none`:          `"\x01" "\x00" "\x00" false 1 []`,
				"--dialect auto":                         `"" "\x00" "\x00" true 1 []`,
				"--no-header --names a,b":                `"" "\x00" "\x00" false 1 [a b]`,
				"--skip-lines 3":                         `"" "\x00" "\x00" false 4 []`,
				"--dialect mysql --escape none":          `"\t" "\x00" "\x00" false 1 []`,
				"--dialect postgres-csv --delimiter \\t": `"\t" "\"" "\x00" false 1 []`,
			}[args]; ok && got != want {
				return fmt.Errorf("read as %s, want %s", got, want)
			}
			return nil
		})
		conformance.Equal(t, says(err, want), true, "%s: %v, want %q", args, err, want)
	}
}

func TestOrdersAndSyncsAreReadOrRefused(t *testing.T) {
	if noSync, err := parseSync("none"); err != nil || !noSync {
		t.Error(noSync, err)
	}
	if noSync, err := parseSync("always"); err != nil || noSync {
		t.Error(noSync, err)
	}
	if _, err := parseSync("sometimes"); !says(err, "want always or none") {
		t.Error(err)
	}
}

func TestTheBuiltInKeyIsNotOfferedToOtherMachines(t *testing.T) {
	for address, refused := range map[string]bool{"127.0.0.1:0": false, "[::1]:0": false, "localhost:0": false, "0.0.0.0:0": true, ":0": true, "192.0.2.1:80": true, "no address": false} {
		if err := checkPublicKey(address, server.Options{AccessKeySecret: server.DefaultAccessKeySecret}); (err != nil) != refused {
			t.Errorf("%s with the built-in key: %v", address, err)
		}
		if err := checkPublicKey(address, server.Options{AccessKeySecret: "own"}); err != nil {
			t.Errorf("%s with a key of its own: %v", address, err)
		}
	}
}

func TestASecretIsTheFirstLineOfItsFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "secret")
	for text, want := range map[string]string{
		"s3cret": "s3cret", "s3cret\r\nmore\n": "s3cret", strings.Repeat("x", maxSecretBytes): strings.Repeat("x", maxSecretBytes),
		"": "refused", "\ns3cret\n": "refused", strings.Repeat("x", maxSecretBytes+1): "refused",
	} {
		put(t, name, text)
		got, err := readSecret(name)
		if (err != nil) != (want == "refused") || err == nil && got != want || err != nil && text != "" && strings.Contains(err.Error(), strings.TrimSpace(text)) {
			t.Errorf("%.20q: %.20q, %v", text, got, err)
		}
	}
	if _, err := readSecret(name + "missing"); !says(err, "--access-key-secret-file") {
		t.Error(err)
	}
}

func TestHalfAnAccessKeyIsRefused(t *testing.T) {
	c := new(invocation).again(t.Context(), new(options.Command), io.Discard, nil, newDisplay(io.Discard))
	for _, family := range []string{"TABLESTORE", "ALIBABA_CLOUD"} {
		for _, half := range []string{"_ACCESS_KEY_ID", "_ACCESS_KEY_SECRET"} {
			for _, n := range []string{"TABLESTORE_ACCESS_KEY_ID", "TABLESTORE_ACCESS_KEY_SECRET", "ALIBABA_CLOUD_ACCESS_KEY_ID", "ALIBABA_CLOUD_ACCESS_KEY_SECRET"} {
				t.Setenv(n, "")
			}
			t.Setenv(family+half, "x")
			if _, err := findCredentials(c); !says(err, "only one of them is set") {
				t.Errorf("%s%s: %v", family, half, err)
			}
		}
	}
	t.Setenv("TABLESTORE_ACCESS_KEY_ID", "id")
	t.Setenv("TABLESTORE_ACCESS_KEY_SECRET", "secret")
	ended, end := context.WithCancel(t.Context())
	c.Context = ended
	end() // a signal that comes just here
	p, err := findCredentials(c)
	if err != nil || p.GetCredentials().GetAccessKeyID() != "id" || p.GetCredentials().GetAccessKeySecret() != "secret" {
		t.Error(p, err)
	}
}

func TestPlainHTTPToAnotherMachineIsWarnedOf(t *testing.T) {
	for endpoint, want := range map[string]string{
		"https://x.example": "", "http://localhost:80": "", "http://127.0.0.2": "", "http://[::1]:80": "", "http://[::ffff:127.0.0.1]": "",
		"http://x.example": "rows are not encrypted", "http://t.cn-hangzhou.ots.aliyuncs.com": "rows are not encrypted", "http://192.0.2.1": "rows are not encrypted",
	} {
		for token, more := range map[string]string{"": want, "t": strings.Replace(want, "rows are not", "neither rows nor the security token are", 1)} {
			var b bytes.Buffer
			warnOfPlainHTTP(newDisplay(&b), endpoint, &common.DefaultCredentialsProvider{AccessKeyID: "a", AccessKeySecret: "b", SecurityToken: token})
			if more != "" {
				more = "warning: the endpoint " + endpoint + " is http: " + more
			}
			if got := b.String(); (got == "") != (more == "") || !strings.Contains(got, more) {
				t.Errorf("%s, token %q: %q", endpoint, token, got)
			}
		}
	}
}

func TestLinesOfASampleAreItsKeys(t *testing.T) {
	name := filepath.Join(t.TempDir(), "keys")
	for text, want := range map[string]string{"a\r\nb\n\nc": "a b c", "": "no partition-key values", "\n\r\n": "no partition-key values"} {
		put(t, name, text)
		lines, err := readLines(name)
		if err == nil && strings.Join(lines, " ") != want || err != nil && !says(err, want) {
			t.Errorf("%q: %q, %v", text, lines, err)
		}
	}
	if _, err := readLines(name + "missing"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestALineOfAListIsRefusedAsTheAddressIs(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, address := range []string{"kafka://h/t", "gs://b/o.csv", "postgre://h/d", "jdbc:mysql://h/d", "postgres://h/d?table=t"} {
		put(t, "list", "# inputs\n"+address+"\n")
		want := "it does not name files" // a table is read by itself
		if err := open.Check(address, "t"); err != nil {
			want = err.Error()
		}
		for _, command := range []string{"load -t t --pk id --create", "check -t t --pk id", "inspect"} {
			var said bytes.Buffer
			args := append([]string{"tsimport"}, strings.Fields(command)...)
			if code := Run(append(args, "@list"), io.Discard, &said); code != 2 || !strings.Contains(said.String(), "list line 2: ") || !strings.Contains(strings.ReplaceAll(said.String(), "TARGET", "t"), strings.ReplaceAll(want, "TARGET", "t")) {
				t.Errorf("%s of a list with %s: exit code %d, %s, want %s", command, address, code, &said, want)
			}
		}
	}
}

func TestProcessesAreForALoadThatIsPlanned(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "in.csv", "id\n1\n")
	for flags, want := range map[string]string{"--workers 3": "or give --job-dir too", "--workers 0": "--workers 0: want 1 to 4096", "--workers 0 --job-dir d": "--workers 0: want 1 to 4096"} {
		var said bytes.Buffer
		if code := Run(append([]string{"tsimport", "load", "in.csv", "-t", "t", "--pk", "id", "-q"}, strings.Fields(flags)...), io.Discard, &said); code != 2 || !strings.Contains(said.String(), want) {
			t.Errorf("%s: exit code %d, %s", flags, code, &said)
		}
	}
	t.Setenv("TSIMPORT_WORKERS", "3") // of all loads of a shell
	if code := Run([]string{"tsimport", "load", "in.csv", "-t", "t", "--pk", "id", "-q"}, io.Discard, io.Discard); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
