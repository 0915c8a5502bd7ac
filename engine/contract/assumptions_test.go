package contract

import (
	"crypto/md5"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/internal/conformance"
)

// assumption is what tsimport assumes about the real service. Its name is a section of docs/internals/real-service.md.
type assumption struct {
	name string
	// ask describes the service's behaviour in a few words, and reports whether tsimport assumes it.
	ask func(t *testing.T, s *service) (answer string, asAssumed bool)
}

var assumptions = []assumption{
	{"signed answers", askSignedAnswers},
	{"answers to signature v4", askSignedAnswersV4},
	{"date of answers", askDate},
	{"equal timestamps", askEqualTimestamps},
	{"put after delete", askPutAfterDelete},
	{"lower edge of timestamps", askLowerEdge},
	{"update keeps other columns", askUpdateKeeps},
	{"new table", askNewTable},
	{"creation time", askCreationTime},
	{"partition bounds", askPartitionBounds},
	{"pre-split", askPreSplit},
	{"split points", askSplitPoints},
	{"auto-increment order", askAutoIncrementOrder},
	{"increment with a condition", askIncrementWithCondition},
	{"size of a body", askBodySize},
	{"idle connections", askIdleConnections},
	{"compressed requests", askCompressed},
}

// TestAssumptions checks the unverified statements of docs/internals/real-service.md. The embedded store must behave as
// assumed. A real instance's answers are only printed, because the page covers each of them.
func TestAssumptions(t *testing.T) {
	s := openService(t)
	for _, a := range assumptions {
		t.Run(strings.ReplaceAll(a.name, " ", "-"), func(t *testing.T) {
			answer, asAssumed := a.ask(t, s)
			verdict := "as assumed"
			if !asAssumed {
				verdict = "not as assumed: see docs/internals/real-service.md"
			}
			t.Logf("%s | %s | %s", a.name, answer, verdict)
			conformance.True(t, asAssumed || s.real, "the embedded store does not behave as assumed")
		})
	}
}

// TestAlternativeAnswersAreRecognized asks stores that behave differently, to show that each question tells them apart.
func TestAlternativeAnswersAreRecognized(t *testing.T) {
	t.Parallel()
	for name, others := range map[string][]server.Simulation{
		"equal timestamps": {{Choices: server.Choices{FirstWriteWins: true}}},
		"put after delete": {{Choices: server.Choices{DeletionsHideEarlier: true}}},
		"pre-split": {{Config: sim.Config{Answers: sim.Answers{PreSplit: sim.PreSplitIgnored}}},
			{Config: sim.Config{Answers: sim.Answers{PreSplit: sim.PreSplitRefused}}}},
	} {
		i := slices.IndexFunc(assumptions, func(a assumption) bool { return a.name == name })
		for _, other := range others {
			answer, asAssumed := assumptions[i].ask(t, serviceWith(t, server.Options{Simulation: &other}))
			conformance.True(t, !asAssumed, "%+v: %q is taken for the assumed answer", other, answer)
		}
	}
}

func TestAllAssumptionsAreDocumented(t *testing.T) {
	text := conformance.Try(os.ReadFile(filepath.Join("..", "..", "docs", "internals", "real-service.md"))).Must(t)
	var sections, names []string
	for line := range strings.Lines(string(text)) {
		if title, ok := strings.CutPrefix(line, "### "); ok {
			sections = append(sections, strings.ToLower(strings.TrimSpace(title)))
		}
	}
	for _, a := range assumptions {
		names = append(names, a.name)
	}
	slices.Sort(sections)
	slices.Sort(names)
	diff(t, sections, names)
}

func askSignedAnswers(t *testing.T, s *service) (string, bool) {
	good := s.ask(t, "ListTable", nil)
	bad := s.ask(t, "DescribeTable", message{}.text(1, "no_such_table_of_tsimport"))
	checked := func(a *answer, operation string) string {
		sum := md5.Sum(a.body)
		switch a.header.Get("x-ots-contentmd5") {
		case "":
			return "no MD5"
		case base64.StdEncoding.EncodeToString(sum[:]):
		default:
			return "another MD5"
		}
		switch a.header.Get("Authorization") {
		case "":
			return "an MD5 without a signature"
		case "OTS " + s.keyID + ":" + sign(s.secret, canonical(a.header)+"/"+operation):
			return "an MD5 and a signature"
		}
		return "an MD5 and a signature of another kind"
	}
	answer := fmt.Sprintf("a result carries %s, a refusal %s", checked(good, "ListTable"), checked(bad, "DescribeTable"))
	const signed = "an MD5 and a signature"
	return answer, checked(good, "ListTable") == signed && checked(bad, "DescribeTable") == signed
}

// askSignedAnswersV4 takes the region from the endpoint, INSTANCE.REGION.ots.aliyuncs.com.
func askSignedAnswersV4(t *testing.T, s *service) (string, bool) {
	region, day := "cn-hangzhou", time.Now().UTC().Format("20060102")
	if parts := strings.Split(s.endpoint, "."); s.real && len(parts) > 2 {
		region = parts[1]
	}
	key := keyV4(s.secret, day, region)
	a := s.send(t, rawRequest{operation: "ListTable", after: v4("ListTable", key, day, region)})
	if a.status != 0 { // of the last refusal
		return fmt.Sprintf("a request of region %s is answered with HTTP %d", region, a.status), false
	}
	given := strings.TrimPrefix(a.header.Get("Authorization"), "OTS "+s.keyID+":")
	for name, secret := range map[string]string{"the derived key": key, "the secret": s.secret} {
		if given == sign(secret, canonical(a.header)+"/ListTable") {
			return "the answer is signed with " + name, secret == key
		}
	}
	return fmt.Sprintf("the answer is signed with neither the derived key nor the secret: %q", given), false
}

func askDate(t *testing.T, s *service) (string, bool) {
	a := s.ask(t, "ListTable", nil)
	date := a.header.Get("x-ots-date")
	at, err := time.Parse("2006-01-02T15:04:05.999999Z", date)
	if err != nil {
		return fmt.Sprintf("x-ots-date is %q, Date %q", date, a.header.Get("Date")), false
	}
	return fmt.Sprintf("x-ots-date is %q; this clock differs by %v", date, time.Until(at).Round(time.Millisecond)), true
}

func serviceTime(t *testing.T, s *service) int64 {
	a := s.ask(t, "ListTable", nil)
	at, err := time.Parse("2006-01-02T15:04:05.999999Z", a.header.Get("x-ots-date"))
	if err != nil {
		at = time.Now()
	}
	return at.UnixMilli()
}

func askEqualTimestamps(t *testing.T, s *service) (string, bool) {
	tb := s.newTable(t, tableOptions{versions: 2})
	at := serviceTime(t, s)
	var answers []string
	for i, pair := range [][2]any{{int64(2), int64(1)}, {int64(1), int64(2)}, {"b", "a"}, {"a", "b"}} {
		k := tb.key("same", i)
		must(t, tb.do(tb.update(k, setAt("c", pair[0], at))))
		must(t, tb.do(tb.update(k, setAt("c", pair[1], at))))
		cells := tb.get(t, k, versions(2)).Cells
		if len(cells) != 1 || cells[0].Value != pair[1] {
			answers = append(answers, fmt.Sprintf("%v then %v gives %v", pair[0], pair[1], cells))
		}
	}
	if answers != nil {
		return strings.Join(answers, "; "), false
	}
	return "the later write replaces the earlier one", true
}

func askPutAfterDelete(t *testing.T, s *service) (string, bool) {
	tb := s.newTable(t, tableOptions{versions: 3})
	at := serviceTime(t, s)
	k := tb.key("deleted", 1)
	must(t, tb.do(tb.update(k, setAt("c", "old", at), setAt("other", "x", at))))
	must(t, tb.do(tb.update(k, drop("c"))))
	must(t, tb.do(tb.update(k, setAt("c", "new", at-1000))))
	for _, c := range tb.get(t, k).Cells {
		if c.Name == "c" && c.Value == "new" {
			return "a cell put after a delete is there, though its timestamp is earlier", true
		}
	}
	return "a cell put after a delete with an earlier timestamp is not there", false
}

func askLowerEdge(t *testing.T, s *service) (string, bool) {
	const deviation = 1000 // seconds
	tb := s.newTable(t, tableOptions{versions: 2, deviation: deviation})
	now := serviceTime(t, s)
	inside := tb.do(tb.update(tb.key("edge", 1), setAt("c", "x", now-deviation*1000+30_000)))
	outside := tb.do(tb.update(tb.key("edge", 2), setAt("c", "x", now-deviation*1000-30_000)))
	later := tb.do(tb.update(tb.key("edge", 3), setAt("c", "x", now+deviation*1000+30_000)))
	early, late := refusalOf(outside), refusalOf(later)
	answer := fmt.Sprintf("30 s inside: %v; 30 s too early: %v; 30 s too late: %v", refusalOf(inside), early, late)
	return answer, inside == nil && early.code == "OTSParameterInvalid" && late.code == "OTSParameterInvalid"
}

func askUpdateKeeps(t *testing.T, s *service) (string, bool) {
	tb := s.newTable(t, tableOptions{})
	k := tb.key("update", 1)
	must(t, tb.do(tb.put(k, c("a", 1), c("b", 2))))
	must(t, tb.do(tb.update(k, set("a", 3))))
	if cells := tb.get(t, k).Cells; len(cells) == 2 {
		return "UpdateRow leaves the columns that it does not name", true
	}
	return "UpdateRow replaces the whole row", false
}

// askNewTable writes to a table right after CreateTable until it accepts a row.
func askNewTable(t *testing.T, s *service) (string, bool) {
	tb := &table{service: s, name: newTableName()}
	meta := &tablestore.TableMeta{TableName: tb.name}
	meta.AddPrimaryKeyColumn("pk1", tablestore.PrimaryKeyType_STRING)
	must(t, s.create(meta, newOptions(-1, 1)))
	s.dropLater(t, tb.name)
	begun, met := time.Now(), []string{}
	waits := []string{"OTSTableNotReady", "OTSPartitionUnavailable", "OTSObjectNotExist", "OTSServerUnavailable"}
	for {
		err := tb.do(tb.put(tb.key("a")))
		if err == nil {
			return fmt.Sprintf("takes rows %v after CreateTable; before: %v", time.Since(begun).Round(100*time.Millisecond),
				met), time.Since(begun) < 90*time.Second
		}
		code := refusalOf(err).code
		if !slices.Contains(met, code) {
			met = append(met, code)
		}
		if !slices.Contains(waits, code) || time.Since(begun) > 3*time.Minute {
			return fmt.Sprintf("%v after CreateTable: %v", time.Since(begun).Round(time.Second), met), false
		}
		time.Sleep(200 * time.Millisecond) // the service does not report when the table is ready
	}
}

func (s *service) described(t testing.TB, table string) parsed {
	t.Helper()
	a := s.ask(t, "DescribeTable", message{}.text(1, table))
	a.check(t, accepted)
	return parseOf(t, a.body)
}

func askCreationTime(t *testing.T, s *service) (string, bool) {
	const creationTime = 9 // of DescribeTableResponse
	tb := s.newTable(t, tableOptions{})
	first, again := s.described(t, tb.name).number(creationTime), s.described(t, tb.name).number(creationTime)
	if first != again {
		return fmt.Sprintf("creation_time is %d, then %d", first, again), false
	}
	must(t, s.deleteTable(tb.name))
	meta := newMeta(tb.name, "pk1", "pk2")
	err := s.create(meta, newOptions(-1, 1))
	for ; refusalOf(err).code == "OTSObjectAlreadyExist"; err = s.create(meta, newOptions(-1, 1)) {
		time.Sleep(time.Second) // a real instance may take some time to delete a table
	}
	must(t, err)
	next := s.described(t, tb.name).number(creationTime)
	return fmt.Sprintf("creation_time is %d, and %d for the table made again", first, next), first > 0 && next > first
}

func askPartitionBounds(t *testing.T, s *service) (string, bool) {
	const shardSplits = 6 // of DescribeTableResponse
	tb := s.newTable(t, tableOptions{})
	n := len(s.described(t, tb.name)[shardSplits])
	// A table of one partition may have no bounds; one with several would show more.
	return fmt.Sprintf("a new table names %d bounds in shard_splits", n), true
}

func askPreSplit(t *testing.T, s *service) (string, bool) {
	name := newTableName()
	create := newCreate(name)
	bounds := [][]byte{infMin}
	for i := range 9 {
		bounds = append(bounds, textBound(string(rune('a'+i))))
	}
	create.more = partitions(append(bounds, infMax)...)
	a := s.ask(t, "CreateTable", create.body())
	if a.refusal != accepted {
		return fmt.Sprintf("CreateTable with ten ranges: %v", a.refusal), false
	}
	s.dropLater(t, name)
	for range 60 { // the service may say for a while that a new table is missing
		if a = s.ask(t, "DescribeTable", message{}.text(1, name)); a.refusal == accepted || !s.real {
			break
		}
		time.Sleep(time.Second)
	}
	n := len(parseOf(t, a.body)[6])
	return fmt.Sprintf("a table made with ten ranges names %d bounds in shard_splits", n), n == 9
}

func askSplitPoints(t *testing.T, s *service) (string, bool) {
	tb := s.newTable(t, tableOptions{})
	r, err := s.ComputeSplitPointsBySize(&tablestore.ComputeSplitPointsBySizeRequest{TableName: tb.name, SplitSize: 1})
	if err != nil {
		return fmt.Sprint(refusalOf(err)), false
	}
	var locations []string
	for _, split := range r.Splits {
		locations = append(locations, split.Location)
	}
	return fmt.Sprintf("%d splits at %q", len(r.Splits), locations), len(r.Splits) > 0
}

func askAutoIncrementOrder(t *testing.T, s *service) (string, bool) {
	tb := s.newNumberedTable(t)
	last := int64(0)
	for i := range 20 {
		n := tb.number(t, "k", c("i", i))
		if n <= last {
			return fmt.Sprintf("number %d came after %d", n, last), false
		}
		last = n
		// A backward read must begin with the newest row immediately after the write.
		rows, _ := tb.scan(t, tablestore.BACKWARD, tb.key("k", maxKey), tb.key("k", minKey), 1)
		if len(rows) == 0 || rows[0].Key[1] != n {
			return fmt.Sprintf("a read backwards does not begin with the newest number %d", n), false
		}
	}
	return "numbers rise, and a read backwards begins with the newest", true
}

func askIncrementWithCondition(t *testing.T, s *service) (string, bool) {
	tb := s.newTable(t, tableOptions{})
	k := tb.key("count", 1)
	once := func() refusal {
		u := tb.update(k, add("n", 5), set("mark", "run/1"))
		mark := tablestore.NewSingleColumnCondition("mark", tablestore.CT_EQUAL, "run/1")
		mark.FilterIfMissing = true // a row without a mark does not match
		not := tablestore.NewCompositeColumnCondition(tablestore.LO_NOT)
		not.AddFilter(mark)
		u.SetColumnCondition(not)
		row := tb.rows(t, u)[0] // in a batch, as a load writes it
		return refusal{code: row.Error.Code, message: row.Error.Message}
	}
	first, second := once(), once()
	var n any
	for _, c := range tb.get(t, k).Cells {
		if c.Name == "n" {
			n = c.Value
		}
	}
	return fmt.Sprintf("first: %q, repeated: %q, sum %v", first.code, second.code, n), first == accepted &&
		second.code == conditionFailed.code && n == int64(5)
}

func askBodySize(t *testing.T, s *service) (string, bool) {
	tb := s.newTable(t, tableOptions{})
	var answers []string
	taken := true
	for _, mib := range []int{3, 6} {
		changes := several(mib, func(i int) change { return tb.put(tb.key("size", i), c("v", text(1<<20-100))) })
		_, err := s.batch(changes...)
		answers = append(answers, fmt.Sprintf("%d MiB of rows: %v", mib, refusalOf(err)))
		if code := refusalOf(err).code; mib == 3 && err != nil || mib == 6 && code != "OTSParameterInvalid" &&
			code != "OTSRequestBodyTooLarge" {
			taken = false
		}
	}
	return strings.Join(answers, "; "), taken
}

// askCompressed sends two compressed requests: one states the right size of the original, the other a wrong one.
func askCompressed(t *testing.T, s *service) (string, bool) {
	tb := s.newTable(t, tableOptions{})
	body := message{}.text(1, tb.name)
	var answers []string
	taken := true
	for _, size := range []int{len(body), len(body) + 1} {
		a := s.send(t, compressed(t, body, size))
		answers = append(answers, fmt.Sprintf("%d bytes said to be %d: %v", len(body), size, a.refusal))
		taken = taken && (a.code == "") == (size == len(body))
	}
	return strings.Join(answers, "; "), taken
}

// askIdleConnections reuses a connection that has been idle for as long as tsimport may leave one idle.
func askIdleConnections(t *testing.T, s *service) (string, bool) {
	if !s.real {
		return "not asked of the embedded store: it takes half a minute", true
	}
	wait := 25 * time.Second
	s.ask(t, "ListTable", nil).check(t, accepted)
	time.Sleep(wait) // the connection must be idle
	s.ask(t, "ListTable", nil).check(t, accepted)
	return fmt.Sprintf("a connection is still taken after %v", wait), true
}
