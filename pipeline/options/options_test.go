package options

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"example.com/tsimport/internal/conformance"
)

func TestNamesWithCommasAndEqualSignsAreQuoted(t *testing.T) {
	for text, want := range map[string]string{"a=b": "a b", `"a=b"=c`: "a=b c", `"say ""x"""=c`: `say "x" c`,
		`a=b=c`: "a b=c", "a": "refused", `"a"`: "refused", `"=b`: "refused"} {
		from, to, ok := CutRename(text)
		got := from + " " + to
		conformance.True(t, ok == (want != "refused") && (!ok || got == want), "%s: %q, %v, want %s", text, got, ok, want)
	}
	names, err := ParseList(`a,"b,c",`)
	conformance.True(t, err == nil && slices.Equal(names, []string{"a", "b,c", ""}), "%q, %v", names, err)
	names, err = ParseList("")
	conformance.True(t, err == nil && names != nil && len(names) == 0, "an empty list means no column: %q, %v", names, err)
	for _, bad := range []string{`"a`, "a\nb", `a"b`} {
		names, err := ParseList(bad)
		conformance.True(t, err != nil, "%q is the list %q", bad, names)
	}
}

func TestTypesInOneFlagAreSplitAtCommas(t *testing.T) {
	for text, want := range map[string]string{"a=double,b=integer": "a=double b=integer",
		"a=timestamp(,Asia/Shanghai,ns),b=binary(hex),c=string": "a=timestamp(,Asia/Shanghai,ns) b=binary(hex) c=string",
		"a,b=integer": "a,b=integer", "a=b=double": "a=b=double", "a=double,b": "a=double,b",
		"a=doubel,b=integer": "a=doubel,b=integer"} {
		conformance.Equal(t, strings.Join(cutTypes(text), " "), want, "%s", text)
	}
}

func TestSizesAreReadInPowersOfTwoAndTen(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "4096": 4096, "17b": 17, "1k": 1 << 10, "512M": 512 << 20,
		"2G": 2 << 30, "1t": 1 << 40, "128MiB": 128 << 20, "1GiB": 1 << 30, "3kib": 3 << 10, "1TiB": 1 << 40, "1kB": 1000,
		"20MB": 20e6, "1GB": 1e9, "2TB": 2e12, "1.5GiB": 3 << 29, "10 MiB": 10 << 20, ".5k": 512} {
		got, err := ParseSize(text)
		conformance.True(t, got == want && err == nil, "%q is %d, %v; want %d", text, got, err, want)
	}
}

func TestInvalidSizesAreRefused(t *testing.T) {
	for _, text := range []string{"", " ", "M", "-1", "-1M", "+1", "1e3", "0x10", "1_000", "NaN", "Inf", "1.2.3", "1 2",
		"12 parsecs", "7EB", "9999999T", "9223372036854775808"} {
		n, err := ParseSize(text)
		conformance.Refused(t, err, `"`+text+`"`, "%q is %d", text, n)
	}
}

func TestMemoryIsMachineOrSmallestCgroupLimit(t *testing.T) {
	meminfo := "MemTotal:       24684092 kB\nMemFree:        1 kB\n"
	const machine = 24684092 << 10
	for name, tt := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"nothing is known":  {nil, 0},
		"no control groups": {map[string]string{"proc/meminfo": meminfo}, machine},
		"version 2": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "1073741824\n"}, 1 << 30},
		"version 2, no max": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a\n",
			"sys/fs/cgroup/a/memory.max": "max\n"}, machine},
		"a group around it": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/memory.max": "1000\n", "sys/fs/cgroup/a/b/memory.max": "2000\n"}, 1000},
		"the path of a host": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/docker/1234\n",
			"sys/fs/cgroup/memory.max": "536870912\n"}, 512 << 20},
		"a path above": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/../..\n",
			"sys/fs/cgroup/memory.max": "7000\n"}, 7000},
		"version 1": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory,rdma:/x\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "4096\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":   "9223372036854771712\n"}, 4096},
		"a limit above what there is": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "4:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, machine},
		"broken files": {map[string]string{"proc/meminfo": "MemTotal: much\n", "proc/self/cgroup": "gibberish\n0::\n"}, 0},
	} {
		root := fstest.MapFS{}
		for path, text := range tt.files {
			root[path] = &fstest.MapFile{Data: []byte(text)}
		}
		conformance.Equal(t, machineMemory(root), tt.want, "%s: bytes", name)
	}
}

func TestDefaultMemoryIsQuarterOfMachineWithinBounds(t *testing.T) {
	for machine, want := range map[int64]int64{0: 1 << 30, 1 << 40: 1 << 30, 4 << 30: 1 << 30, 2 << 30: 512 << 20,
		1 << 20: 16 << 20} {
		conformance.Equal(t, defaultMemory(machine), want, "of %d bytes it takes", machine)
	}
}

// Each option of a request has a field, and each default is a value that a zero field stands for.
func TestZeroRequestHasDefaults(t *testing.T) {
	r := conformance.Try(Request{}.withDefaults()).Must(t)
	for _, o := range everyOption {
		conformance.True(t, !o.InRequest() || o.Default == "" || r.IsSet(o.Name) != o.ByDialect,
			"%s is set: %v, want %v", o.Name, o.ByDialect, !o.ByDialect)
	}
}

func TestAmbiguousZerosAreRefused(t *testing.T) {
	for name, given := range map[string]string{"mode": "", "concurrency": "0", "retry-for": "0s", "batch-bytes": "0",
		"ttl": "0", "max-errors": "", "delimiter": "", "when": "", "returned-keys": "", "memory": "0"} {
		r := new(Command)
		err := Find(name).Set(r, []string{given})
		conformance.True(t, err != nil && strings.HasPrefix(err.Error(), "--"+name), "--%s %q: %v", name, given, err)
	}
	r := new(Command)
	for name, set := range map[string]string{"quote": "", "columns": "", "settle": "0s", "max-wcu": "0",
		"create": "false"} {
		conformance.Equal(t, Find(name).Set(r, []string{set}), nil, "%s=%s", name, set)
	}
	conformance.True(t, r.Quote == "none" && r.Columns != nil, "%+v", r)
}

// A machine that receives a request can carry it out, but does not learn secrets.
func TestRequestRoundTrip(t *testing.T) {
	var r Command
	values := map[Kind]string{Plain: "text", Switch: "true", Whole: "7", Number: "2.5", Size: "3MiB", Duration: "90s",
		Texts: "a", List: `a,"b,c"`, Lists: "d", Renamings: `"x=y"=z`, Typings: "a=integer"}
	for _, o := range everyOption {
		value := values[o.Kind]
		if byName[o.Name].Values != nil {
			value = byName[o.Name].Values[0]
		}
		if o == byName[o.Name] { // other options with the name have the same field
			conformance.Must(t, o.Set(&r, []string{value}))
		}
		conformance.True(t, o != byName[o.Name] || r.IsSet(o.Name), "%s is not set", o.Name)
	}
	r.AccessKeyID, r.AccessKeySecret, r.SecurityToken = "who", "secret", "secret"
	text, err := json.Marshal(r)
	conformance.MustTrue(t, err == nil && !strings.Contains(string(text), "secret"), "%v: %s", err, text)
	again := conformance.Try(ReadCommand(text)).Must(t)
	r.AccessKeyID, r.AccessKeySecret, r.SecurityToken = "", "", ""
	conformance.True(t, reflect.DeepEqual(*again, r) && again.RetryFor == 90*time.Second && again.Rename["x=y"] == "z",
		"%+v\nwas\n%+v", again, r)
}

// If fields cannot be quoted, a text in quotes is taken literally.
func TestQuotedNullTextsApplyToQuotedFields(t *testing.T) {
	quoted, literal := `["NULL" "\""] ["N" ""]`, `["NULL" "\"N\"" "\"\"" "\""] []`
	for _, tt := range []struct{ dialect, quote, want string }{
		{"", "", quoted}, {"", "'", quoted}, {"", "none", literal}, {"auto", "", quoted}, {"mysql", "", literal},
	} {
		r := new(Request)
		r.Dialect, r.Quote, r.Null = tt.dialect, tt.quote, []string{"NULL", `"N"`, `""`, `"`}
		to, err := Read(r)
		got := fmt.Sprintf("%q %q", to.Convert.Nulls, to.Convert.QuotedNulls)
		conformance.True(t, err == nil && got == tt.want, "%+v: %s, %v", tt, got, err)
	}
}
