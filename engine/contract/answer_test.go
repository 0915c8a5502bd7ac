package contract

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"encoding/base64"
	endian "encoding/binary" // binary is the path of tsimport
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"google.golang.org/protobuf/encoding/protowire"
)

// tableOfRows creates a table with two rows: ("a", 1) has column s and two versions of column v, ("b", 2) no columns.
func tableOfRows(t *testing.T, s *service) (tb *table, rows [][]byte) {
	tb = s.newTable(t, tableOptions{versions: 2})
	at := time.Now().Add(-time.Minute).UnixMilli()
	tb.load(t, tb.put(tb.key("a", 1), v("v", 1, at), v("v", 2, at+1), v("s", "text", at)), tb.put(tb.key("b", 2)))
	return tb, [][]byte{wireRow{key: wireKey("a", 1), cells: []wireCell{
		{name: "s", value: vText("text"), ts: at, stamped: true},
		{name: "v", value: vInt(2), ts: at + 1, stamped: true}, {name: "v", value: vInt(1), ts: at, stamped: true},
	}}.body(), wireRow{key: wireKey("b", 2)}.body()}
}

func behindHeader(rows ...[]byte) []byte {
	return append([]byte(plainHeader), bytes.Join(rows, nil)...)
}

// skipFields skips bytewise comparisons on a real instance, whose answers may have additional fields.
func skipFields(t *testing.T, s *service) {
	t.Helper()
	if s.real {
		t.Skip("a real instance may answer with more fields")
	}
}

func (s *service) checkAnswer(t *testing.T, operation string, body, want message) {
	t.Helper()
	a := s.ask(t, operation, body)
	a.check(t, accepted)
	a.checkSigned(t, s, operation)
	diff(t, a.body, []byte(want))
}

// TestAnswersOfReadsAreExact compares bodies byte by byte, because a difference that one SDK ignores may break another.
func TestAnswersOfReadsAreExact(t *testing.T) {
	s := proving(t, "1.9.2", "1.10.2", "2.4.1", "2.4.2", "2.4.3", "2.4.4", "2.4.6", "2.6.1", "3.11.1", "3.11.6", "3.11.8",
		"4.1.4", "4.1.5", "4.1.7")
	skipFields(t, s)
	tb, rows := tableOfRows(t, s)
	name := message{}.text(1, tb.name)
	plain := func(pk1 string, pk2 int64) []byte { return wireRow{key: wireKey(pk1, pk2)}.encode() }
	a, b, none := plain("a", 1), plain("b", 2), plain("z", 1)
	least := wireRow{key: []wireCell{{name: "pk1", value: vInfMin}, {name: "pk2", value: vInfMin}}}.encode()
	most := wireRow{key: []wireCell{{name: "pk1", value: vInfMax}, {name: "pk2", value: vInfMax}}}.encode()
	scan := name.int(2, 0).bytes(7, least).bytes(8, most)
	ok := func(row []byte) message { return append(message{}.int(1, 1), consumed(3, 1, 0).bytes(4, row)...) }
	short := wireRow{key: wireKey("a", 1)[:1]}.encode()
	lost := func(code, message_ string) message {
		return append(message{}.int(1, 0).bytes(2, message{}.text(1, code).text(2, message_)), consumed(3, 1, 0)...)
	}
	other, unit := newTableName(), consumed(1, 1, 0)
	one, both := unit.bytes(2, behindHeader(rows[0])), unit.bytes(2, behindHeader(rows...))
	for what, v := range map[string]struct {
		operation  string
		body, want message
	}{
		"a row":                   {"GetRow", name.bytes(2, a).int(5, 2), one},
		"a row without columns":   {"GetRow", name.bytes(2, b).int(5, 2), unit.bytes(2, behindHeader(rows[1]))},
		"a row that is not there": {"GetRow", name.bytes(2, none).int(5, 2), unit.bytes(2, nil)},
		"a row of no column":      {"GetRow", name.bytes(2, a).text(3, "x").int(5, 2), unit.bytes(2, nil)},
		"a key column of it":      {"GetRow", name.bytes(2, a).text(3, "pk2").int(5, 2), unit.bytes(2, a)},
		"a version of the time 0": {"GetRow", name.bytes(2, a).bytes(4, message{}.int(3, 0)), unit.bytes(2, a)},
		"a range":                 {"GetRange", scan.int(5, 2), both},
		"a range up to its limit": {"GetRange", scan.int(5, 2).int(6, 1), one.bytes(3, b)},
		"a range just as long":    {"GetRange", scan.int(5, 2).int(6, 2), both},
		"a range backward": {"GetRange", name.int(2, 1).bytes(7, most).bytes(8, least).int(5, 2).int(6, 1),
			unit.bytes(2, behindHeader(rows[1])).bytes(3, a)},
		"an empty range":       {"GetRange", name.int(2, 0).bytes(7, none).bytes(8, most).int(5, 2), unit.bytes(2, nil)},
		"a range of no column": {"GetRange", scan.text(3, "x").int(5, 2), unit.bytes(2, nil)},
		"a range with a hint":  {"GetRange", scan.int(5, 2).int(15, 1), both},
		"a batch": {"BatchGetRow", message{}.bytes(1, name.bytes(2, b).bytes(2, none).bytes(2, short).bytes(2, a).int(6, 2)).
			bytes(1, message{}.text(1, other).bytes(2, a).int(6, 1)),
			message{}.bytes(1, name.bytes(2, ok(behindHeader(rows[1]))).bytes(2, ok(nil)).
				bytes(2, lost("OTSInvalidPK", "Validate PK size fail. Input: 1, Meta: 2.")).bytes(2, ok(behindHeader(rows[0])))).
				bytes(1, message{}.text(1, other).bytes(2, lost("OTSObjectNotExist", "Requested table does not exist.")))},
		"a batch without keys": {"BatchGetRow", message{}.bytes(1, name.int(6, 2)), message{}.bytes(1, name)},
	} {
		t.Run(what, func(t *testing.T) { s.checkAnswer(t, v.operation, v.body, v.want) })
	}
}

func TestAnswersOfWritesAreExact(t *testing.T) {
	s := proving(t, "1.1.2", "1.9.2", "1.10.2", "2.4.5", "3.9.1", "4.1.2", "4.1.3", "4.1.7")
	skipFields(t, s)
	tb := s.newTable(t, tableOptions{})
	missing := newTableName()
	name := message{}.text(1, tb.name)
	ignoring, there := message{}.int(1, 0), message{}.int(1, 1)
	put := wireRow{key: wireKey("a", 1), cells: []wireCell{{name: "c", value: vInt(1)}}}.encode()
	gone := wireRow{key: wireKey("a", 1), marker: true}.encode()
	short := wireRow{key: wireKey("a", 1)[:1]}.encode()
	add := wireRow{key: wireKey("a", 1), cells: []wireCell{{name: "c", value: vInt(1), op: 4}}}.encode()
	added, nothing, keyOnly := name.bytes(2, add).bytes(3, ignoring), message{}.int(1, 0), message{}.int(1, 1)
	key := wireRow{key: wireKey("a", 1)}.encode()
	row := func(op int64, row []byte, condition message) message {
		return message{}.int(1, op).bytes(2, row).bytes(3, condition)
	}
	ok := func(read, write int64) message { return append(message{}.int(1, 1), consumed(3, read, write)...) }
	lost := func(code, text string, read, write int64) message {
		return append(message{}.int(1, 0).bytes(2, message{}.text(1, code).text(2, text)), consumed(3, read, write)...)
	}
	for _, v := range []struct {
		what, operation string
		body, want      message
	}{
		{"a put", "PutRow", name.bytes(2, put).bytes(3, ignoring), consumed(1, 0, 1)},
		{"a put's key", "PutRow", name.bytes(2, put).bytes(3, there).bytes(4, keyOnly), consumed(1, 1, 1).bytes(2, key)},
		{"a put that answers nothing", "PutRow", name.bytes(2, put).bytes(3, ignoring).bytes(4, nothing), consumed(1, 0, 1)},
		{"an update", "UpdateRow", added, consumed(1, 0, 1)},
		{"an update that answers its key", "UpdateRow", added.bytes(4, keyOnly), consumed(1, 0, 1).bytes(2, key)},
		{"an update asked for no column", "UpdateRow", added.bytes(4, message{}.int(1, 2)), consumed(1, 0, 1).bytes(2, key)},
		{"a deletion that answers its key", "DeleteRow", name.bytes(2, gone).bytes(3, there).bytes(4, keyOnly),
			consumed(1, 1, 1).bytes(2, key)},
		{"a deletion of nothing", "DeleteRow", name.bytes(2, gone).bytes(3, ignoring), consumed(1, 0, 1)},
		{"a batch", "BatchWriteRow",
			message{}.bytes(1, name.bytes(2, row(1, put, there)).bytes(2, row(1, short, ignoring))).
				bytes(1, message{}.text(1, missing).bytes(2, row(3, gone, ignoring))),
			message{}.bytes(1, name.bytes(2, lost("OTSConditionCheckFail", "Condition check failed.", 1, 1)).
				bytes(2, lost("OTSInvalidPK", "Validate PK size fail. Input: 1, Meta: 2.", 0, 1))).
				bytes(1, message{}.text(1, missing).bytes(2, lost("OTSObjectNotExist", "Requested table does not exist.", 0, 1)))},
		{"a good row", "BatchWriteRow", message{}.bytes(1, name.bytes(2, row(1, put, ignoring))),
			message{}.bytes(1, name.bytes(2, ok(0, 1)))},
	} {
		t.Run(v.what, func(t *testing.T) { s.checkAnswer(t, v.operation, v.body, v.want) })
	}
}

func TestAnswersAboutTablesAreExact(t *testing.T) {
	s := proving(t, "1.1.2", "1.1.3", "1.10.2", "3.6.1", "3.6.6")
	skipFields(t, s)
	from := time.Now().Add(-time.Minute)
	name := newTableName()
	r := newCreate(name)
	r.meta = r.meta.bytes(3, message{}.text(1, "d").int(2, 4))
	r.throughput = message{}.int(1, 0).int(2, 0)
	a := s.ask(t, "CreateTable", r.body())
	a.check(t, accepted)
	s.dropLater(t, name)
	diff(t, len(a.body), 0)

	d := s.ask(t, "DescribeTable", message{}.text(1, name))
	d.check(t, accepted)
	created := parseOf(t, d.body).number(9)
	at := time.UnixMicro(created)
	conformance.True(t, !at.Before(from) && !at.After(time.Now().Add(time.Minute)), "created at %v", at)
	// Field 2 is the time of the last increase.
	reserved := message{}.bytes(1, message{}.int(1, 0).int(2, 0))
	options := message{}.int(1, -1).int(2, 1).int(5, 86400).int(6, 1).int(7, 0)
	stream := message{}.int(1, 0)
	want := func(increased int64) []byte {
		described := message{}.bytes(1, r.meta).bytes(2, reserved.int(2, increased))
		return described.bytes(3, options).int(4, 1).bytes(5, stream).int(9, created)
	}
	increased := want(created / 1_000_000)
	conformance.True(t, bytes.Equal(d.body, increased), "got  %x\nwant %x", d.body, increased)
	u := s.ask(t, "UpdateTable", message{}.text(1, name).bytes(3, message{}.int(2, 7)))
	u.check(t, accepted)
	diff(t, u.body, []byte(message{}.bytes(1, reserved.int(2, created/1_000_000)).bytes(2,
		message{}.int(1, -1).int(2, 7).int(5, 86400).int(6, 1).int(7, 0)).bytes(3, stream)))
	l := s.ask(t, "ListTable", nil)
	conformance.True(t, bytes.Contains(l.body, message{}.text(1, name)), "%q does not list %s", l.body, name)
	x := s.ask(t, "DeleteTable", message{}.text(1, name))
	x.check(t, accepted)
	diff(t, len(x.body), 0)
}

func TestSplitPointsCutTableBySize(t *testing.T) {
	s := proving(t, "2.4.6", "4.1.6", "5.2.1", "5.2.2")
	skipFields(t, s)
	tb := s.newTable(t, tableOptions{})
	for i := range 8 { // two rows of half a megabyte per partition key
		k := string(rune('a' + i))
		tb.load(t, tb.put(tb.key(k, 1), c("c", text(1<<19))), tb.put(tb.key(k, 2), c("c", text(1<<19))))
	}
	ask := func(size, unit int64, limit int) message {
		m := message{}.text(1, tb.name).int(2, size).int(3, unit)
		if limit > 0 {
			m = m.int(4, int64(limit))
		}
		return m
	}
	for what, v := range map[string]struct {
		body   message
		points string
	}{
		"by a megabyte":       {ask(1, 1<<20, 0), "bcdefgh"},
		"by two":              {ask(2, 1<<20, 0), "ceg"},
		"by two of 1.5":       {ask(2, 3<<19, 0), "dg"},
		"more than there is":  {ask(100, 1<<20, 0), ""},
		"at most three":       {ask(1, 1<<20, 3), "bcd"},
		"by the usual 100 MB": {message{}.text(1, tb.name).int(2, 1), ""},
	} {
		t.Run(what, func(t *testing.T) {
			parts := int64(len(v.points) + 1)
			want := consumed(1, parts, 0).bytes(2, message{}.text(1, "pk1").int(2, 2)).bytes(2,
				message{}.text(1, "pk2").int(2, 1))
			for _, p := range strings.Split(v.points, "") {
				want = want.bytes(3, wireRow{key: []wireCell{{name: "pk1", value: vText(p)}}}.encode())
			}
			want = want.bytes(4, message{}.text(1, "partition-0000000000000000000001").int(2, 2*parts)) // zigzag
			s.checkAnswer(t, "ComputeSplitPointsBySize", v.body, want)
		})
	}
	for want, body := range map[string]message{
		"The split_size should be greater than 0.":                          ask(0, 1<<20, 0),
		"The split_size_unit_in_byte should be greater equal than: 1048576": ask(1, 1<<20-1, 0),
	} {
		s.ask(t, "ComputeSplitPointsBySize", body).check(t, invalid(want))
	}
	t.Run("as the SDK reads it", func(t *testing.T) {
		r, err := s.ComputeSplitPointsBySize(&tablestore.ComputeSplitPointsBySizeRequest{TableName: tb.name, SplitSize: 1,
			SplitSizeUnitInByte: ptr[int64](1 << 20)})
		must(t, err)
		diff(t, len(r.Splits) > 0, true)
	})
}

// message builds protobuf messages for requests that the SDK cannot send. Its methods return a new message.
type message []byte

func (m message) int(field int, v int64) message {
	m = endian.AppendUvarint(slices.Clip(m), uint64(field)<<3)
	return endian.AppendUvarint(m, uint64(v))
}

func (m message) bytes(field int, b []byte) message {
	m = endian.AppendUvarint(slices.Clip(m), uint64(field)<<3|2)
	m = endian.AppendUvarint(m, uint64(len(b)))
	return append(m, b...)
}

func (m message) text(field int, s string) message { return m.bytes(field, []byte(s)) }

// parsed is a decoded answer: the values of each field, with numbers as varints.
type parsed map[protowire.Number][][]byte

func parse(b []byte) (parsed, error) {
	p := parsed{}
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return p, protowire.ParseError(n)
		}
		value := b[n:]
		if n = protowire.ConsumeFieldValue(field, kind, value); n < 0 {
			return p, protowire.ParseError(n)
		}
		b, value = value[n:], value[:n]
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(value)
		}
		p[field] = append(p[field], value)
	}
	return p, nil
}

func parseOf(t testing.TB, b []byte) parsed {
	t.Helper()
	p := conformance.Try(parse(b)).Must(t)
	return p
}

// bytes returns the last value of a field, and number the same value as an integer. If it is missing, it is nil or 0.
func (p parsed) bytes(field protowire.Number) []byte {
	if n := len(p[field]); n > 0 {
		return p[field][n-1]
	}
	return nil
}

func (p parsed) number(field protowire.Number) int64 {
	v, _ := protowire.ConsumeVarint(p.bytes(field))
	return int64(v)
}

// rawRequest is a request as sent over the wire. Only operation must be set for the service to accept it.
type rawRequest struct {
	operation        string
	method           string // "" means POST
	body             []byte
	keyID            string // "" means the service's
	secret, instance string
	change           func(http.Header) // before signing
	after            func(http.Header) // after signing
}

type answer struct {
	refusal
	header http.Header
	body   []byte
}

func (s *service) ask(t testing.TB, operation string, body []byte) *answer {
	t.Helper()
	return s.send(t, rawRequest{operation: operation, body: body})
}

func (s *service) send(t testing.TB, r rawRequest) *answer {
	t.Helper()
	url := s.endpoint + "/" + r.operation
	req, err := http.NewRequestWithContext(t.Context(), cmp.Or(r.method, http.MethodPost), url, bytes.NewReader(r.body))
	must(t, err)
	sum := md5.Sum(r.body)
	req.Header.Set("x-ots-date", time.Now().UTC().Format("2006-01-02T15:04:05.000Z"))
	req.Header.Set("x-ots-apiversion", "2015-12-31")
	req.Header.Set("x-ots-accesskeyid", cmp.Or(r.keyID, s.keyID))
	req.Header.Set("x-ots-instancename", cmp.Or(r.instance, s.instance))
	req.Header.Set("x-ots-contentmd5", base64.StdEncoding.EncodeToString(sum[:]))
	if r.change != nil {
		r.change(req.Header)
	}
	req.Header.Set("x-ots-signature", sign(cmp.Or(r.secret, s.secret), "/"+r.operation+"\nPOST\n\n"+canonical(req.Header)))
	if r.after != nil {
		r.after(req.Header)
	}
	resp := conformance.Try((&http.Client{Transport: s.transport}).Do(req)).Must(t)
	defer resp.Body.Close()
	a := &answer{header: resp.Header}
	a.body = conformance.Try(io.ReadAll(resp.Body)).Must(t)
	if resp.StatusCode != http.StatusOK {
		p, err := parse(a.body)
		conformance.True(t, err == nil && len(p) <= len(p[1])+len(p[2]), "status %d: %q, %v", resp.StatusCode, a.body, err)
		a.refusal = refusal{resp.StatusCode, string(p.bytes(1)), string(p.bytes(2))}
	}
	return a
}

// canonical returns the x-ots headers without the signature, in lower case, sorted, one per line.
func canonical(h http.Header) string {
	lines := map[string]string{}
	for name, values := range h {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-ots-") && name != "x-ots-signature" {
			lines[name] = strings.TrimSpace(values[0])
		}
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		b.WriteString(name + ":" + lines[name] + "\n")
	}
	return b.String()
}

func sign(secret, text string) string {
	mac := hmac.New(sha1.New, []byte(secret))
	io.WriteString(mac, text)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func (a *answer) check(t testing.TB, want refusal) {
	t.Helper()
	conformance.True(t, want.matches(a.refusal), "got  %+v\nwant %+v", a.refusal, want)
}

// checkSigned fails the test unless the answer has an MD5, an id, a date, a content type and the service's signature.
func (a *answer) checkSigned(t testing.TB, s *service, operation string) {
	t.Helper()
	sum := md5.Sum(a.body)
	got, want := a.header.Get("x-ots-contentmd5"), base64.StdEncoding.EncodeToString(sum[:])
	conformance.Equal(t, got, want, "MD5 of the answer: got")
	got, want = a.header.Get("Authorization"), "OTS "+s.keyID+":"+sign(s.secret, canonical(a.header)+"/"+operation)
	conformance.Equal(t, got, want, "signature of the answer: got")
	at, err := time.Parse("2006-01-02T15:04:05.999999Z", a.header.Get("x-ots-date"))
	conformance.True(t, err == nil && time.Since(at).Abs() <= 15*time.Minute, "date of the answer: %v, %v", at, err)
	conformance.True(t, a.header.Get("x-ots-requestid") != "" && a.header.Get("x-ots-contenttype") != "", "%v", a.header)
}
