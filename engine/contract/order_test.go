package contract

import (
	"net/http"
	"testing"
	"time"
)

// TestTheFirstRefusalIsTheAnswer mends a request that is wrong in every respect, one fault at a time.
func TestTheFirstRefusalIsTheAnswer(t *testing.T) {
	s := proving(t, "9.1")
	tb := s.newTable(t, tableOptions{})
	must(t, s.do(tb.put(tb.key("there", 1))))
	old := stamp(time.Now().Add(-time.Hour))
	broken := wireRow{key: wireKey("there", 1), wrongCRC: true}
	short := wireRow{key: wireKey("there", 1)[:1]}
	r := rawRequest{operation: "NoSuchThing", method: http.MethodGet, body: make([]byte, 5<<20+1), keyID: "nobody", secret: "wrong", instance: "nowhere",
		change: header("x-ots-apiversion", "")}
	for _, step := range []struct {
		want refusal
		mend func()
	}{
		{refusal{405, "OTSMethodNotAllowed", ""}, func() { r.method = "" }},
		{refusal{413, "OTSRequestBodyTooLarge", ""}, func() { r.body = []byte{0xff} }},
		{invalid("Missing header: x-ots-apiversion."), func() { r.change = header("x-ots-date", old) }},
		{authFailed("The AccessKeyID does not exist."), func() { r.keyID = "" }},
		{authFailed("Signature mismatch."), func() { r.secret = "" }},
		{authFailed("The instance is not found."), func() { r.instance = "" }},
		{authFailed("Mismatch between system time and x-ots-date: " + old + "."), func() { r.change = header("x-ots-contentmd5", "AAAA") }},
		{authFailed("Mismatch between MD5 value of request body and x-ots-contentmd5 in header."), func() { r.change = nil }},
		{invalid("Unsupported operation: NoSuchThing."), func() { r.operation = "PutRow" }},
		{invalid("Parse PBMessage from RawString failed."), func() { r.body = rawPut("1t", broken.encode(), 2) }},
		{invalid("Invalid table name: '1t'."), func() { r.body = rawPut("none", broken.encode(), 2) }},
		{invalid(""), func() { r.body = rawPut("no_such_table", short.encode(), 2) }},
		{noSuchTable, func() { r.body = rawPut(tb.name, short.encode(), 2) }},
		{invalidPK("Validate PK size fail. Input: 1, Meta: 2."), func() { r.body = rawPut(tb.name, wireRow{key: wireKey("there", 1)}.encode(), 2) }},
		{conditionFailed, func() { r.body = rawPut(tb.name, wireRow{key: wireKey("there", 1)}.encode(), 1) }},
		{accepted, func() {}},
	} {
		s.send(t, r).check(t, step.want)
		step.mend()
	}
}

func TestNamesAreCaseSensitive(t *testing.T) {
	s := proving(t, "3.4.1", "3.4.2", "3.1.4")
	lower := s.newTable(t, tableOptions{})
	upper := &table{service: s, name: "T" + lower.name[1:]}
	check(t, s.do(upper.put(upper.key("a", 1))), noSuchTable)
	must(t, s.create(newMeta(upper.name, "pk1", "PK1"), newOptions(-1, 1)))
	s.dropLater(t, upper.name)
	k := lower.key("a", 1)
	must(t, s.do(lower.put(k, c("c", 1), c("C", 2), c("Pk1", 3))))
	diff(t, lower.values(t, k).Cells, []cell{c("C", int64(2)), c("Pk1", int64(3)), c("c", int64(1))})
	check(t, s.do(upper.put(k, c("c", 1))), invalidPK("Validate PK name fail. Input: pk2, Meta: PK1."))
}
