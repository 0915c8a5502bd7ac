package advise

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/bench"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader"
	"pgregory.net/rapid"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	conformance.Must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func run(t *testing.T, c Config, files ...string) *Report {
	t.Helper()
	c.Input.Args = files
	r := conformance.Try(Run(t.Context(), c)).Must(t)
	for _, c := range r.Candidates {
		conformance.True(t, c.GrownBytes >= c.LargestBytes, "%s: %d to %d bytes", c.Column, c.LargestBytes, c.GrownBytes)
	}
	return r
}

func candidate(t *testing.T, r *Report, name string) *Candidate {
	t.Helper()
	for _, c := range r.Candidates {
		if c.Column == name {
			return c
		}
	}
	t.Fatalf("no candidate %s", name)
	return nil
}

// checkVerdicts compares the verdicts of a report with COLUMN: VERDICT[, fix NAME]; …
func checkVerdicts(t *testing.T, r *Report, want string) {
	t.Helper()
	for one := range strings.SplitSeq(want, ";") {
		name, verdict, _ := strings.Cut(strings.TrimSpace(one), ": ")
		c := candidate(t, r, name)
		got := string(c.Verdict)
		if c.Fix != nil && strings.Contains(verdict, ", fix ") {
			got += ", fix " + c.Fix.Name
		}
		conformance.Equal(t, got, verdict, "%s: %s", name, c.Reason)
	}
}

func TestStudentCardVerdictsDoNotDependOnFileOrder(t *testing.T) {
	// Shares of the capacity that the baseline of tsbench spread used, with a million rows each.
	measured := map[bench.Order]map[string]float64{
		bench.Arrival: {"CardID": 1.00, "DeviceID": 1.00, "OrderNumber": 0.04, "SellerID": 0.12},
		bench.Sorted:  {"CardID": 0.04, "DeviceID": 0.99, "OrderNumber": 0.99, "SellerID": 0.12},
		bench.Random:  {"CardID": 0.97, "DeviceID": 0.99, "OrderNumber": 0.99, "SellerID": 0.12},
	}
	for order, loads := range measured {
		t.Run(string(order), func(t *testing.T) {
			var text strings.Builder
			conformance.Must(t, (bench.StudentCards{Rows: 130_000, Order: order, Seed: 3}).WriteCSV(t.Context(), &text))
			r := run(t, Config{}, write(t, "cards.csv", text.String()))
			checkVerdicts(t, r, `CardID: recommended; DeviceID: recommended; SellerID: not recommended, fix splice;
				OrderNumber: not recommended, fix hash prefix; OrderTime: not recommended, fix hash prefix;
				Amount: not recommended; Item: not recommended`)
			conformance.Equal(t, r.Arrival.Column, "OrderTime", "arrival")
			for name, want := range loads {
				if c := candidate(t, r, name); c.Load < want-0.1 || c.Load > want+0.1 {
					t.Errorf("%s: a load in file order is said to use %.3f, measured were %.2f", name, c.Load, want)
				}
			}
			few := candidate(t, r, "Item")
			conformance.True(t, few.Load > 0 && few.Load <= 16./32, "16 values use %.3f of 32 partitions", few.Load)
			fixed := candidate(t, r, "OrderNumber")
			want := "key=md5(OrderNumber, 4) + text(OrderNumber)"
			conformance.True(t, fixed.Fix.Expression == want && fixed.Share <= 0.07 && fixed.Fix.Share >= 0.9,
				"OrderNumber: live %.3f, after %s %.3f", fixed.Share, fixed.Fix.Expression, fixed.Fix.Share)
			conformance.True(t, slices.Equal(r.Design.Keys, []string{"CardID", "OrderNumber", "DeviceID"}) &&
				r.Design.Unique == "unique in this file; later rows may repeat it", "design %v: %s", r.Design.Keys, r.Design.Unique)
		})
	}
}

func purchases(rows int) string {
	random := rand.New(rand.NewPCG(7, 7))
	var b strings.Builder
	b.WriteString("DeviceID,SellerID,CardID,Amount\n")
	for range rows {
		device := random.IntN(500)
		fmt.Fprintf(&b, "%d,S%d,%d,%d.5\n", device, device%10, 100000+random.IntN(5000), random.IntN(90))
	}
	return b.String()
}

func TestSpliceWithDependentColumnDoesNotHelp(t *testing.T) {
	r := run(t, Config{Growth: 5e6}, write(t, "p.csv", purchases(20000)))
	checkVerdicts(t, r, `DeviceID: usable, fix splice; DeviceID+SellerID: not recommended;
		DeviceID+SellerID+CardID: recommended`)
	run(t, Config{Candidates: []string{"SellerID+CardID"}}, write(t, "p.csv", purchases(20000)))
	device, seller := candidate(t, r, "DeviceID"), candidate(t, r, "DeviceID+SellerID")
	card := candidate(t, r, "DeviceID+SellerID+CardID")
	conformance.True(t, device.Over10GB && seller.GrownBytes == device.GrownBytes && !card.Over10GB,
		"largest values: %d bytes, with seller %d, with card %d", device.GrownBytes, seller.GrownBytes, card.GrownBytes)
	conformance.Contains(t, seller.Reason, "each DeviceID has one SellerID", "the seller's reason")
	conformance.Equal(t, device.Fix.Expression, `key=splice(",", pad(DeviceID, 3), SellerID, pad(CardID, 6))`, "fix")
	r = run(t, Config{}, write(t, "p.csv", purchases(20000)))
	conformance.True(t, candidate(t, r, "DeviceID").Verdict == Recommended && len(r.Candidates) == 4,
		"without growth: %d candidates, DeviceID %s", len(r.Candidates), candidate(t, r, "DeviceID").Verdict)
}

func TestNearlyUniqueColumnCountsAsDependent(t *testing.T) {
	var b strings.Builder
	b.WriteString("DeviceID,SellerID,CardID\n")
	for i := range 20000 {
		fmt.Fprintf(&b, "%d,S%d,%d\n", i*7919%20000, i%10, i*31%3000)
	}
	r := run(t, Config{Growth: 1e9, Candidates: []string{"DeviceID"}}, write(t, "d.csv", b.String()))
	checkVerdicts(t, r, `DeviceID: usable, fix splice; DeviceID+SellerID: not recommended;
		DeviceID+SellerID+CardID: recommended`)
	conformance.Contains(t, candidate(t, r, "DeviceID+SellerID").Reason, "hardly any DeviceID occurs twice", "reason")
}

func TestColumnProblemsAreNamed(t *testing.T) {
	var b strings.Builder
	b.WriteString("id,half,flag,same,price,zip,code,visits,long\n")
	for i := range 5000 {
		half := ""
		if i%2 == 0 {
			half = fmt.Sprintf("h%d", i)
		}
		at := i * 2477 % 5000
		fmt.Fprintf(&b, "u%d,%s,%d,one,%d.%02d,%05d,x%d,%d,%s\n", at, half, i%2, at, i%100, at, at, at,
			strings.Repeat("l", 1020)+fmt.Sprint(at+10000))
	}
	r := run(t, Config{}, write(t, "f.csv", b.String()))
	checkVerdicts(t, r, `id: recommended; half: not recommended; flag: not recommended; same: not recommended;
		price: not recommended; zip: recommended; visits: usable; long: not recommended, fix hash`)
	for name, part := range map[string]string{
		"half": "50 % of the rows have no half", "flag": "only 2 values", "same": "has 1 value", "price": "decimal numbers",
		"visits": "counts or measurements", "long": "1,025 bytes",
	} {
		conformance.Contains(t, strings.ReplaceAll(candidate(t, r, name).Reason, "1025", "1,025"), part, "%s", name)
	}
	c := candidate(t, run(t, Config{Candidates: []string{"visits"}}, r.Files[0]), "visits")
	conformance.True(t, c.Verdict == Recommended, "visits, asked for by name: %s: %s", c.Verdict, c.Reason)
}

func TestDigitTextsOfDifferentLengthsArePadded(t *testing.T) {
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, "{\"user\":\"%d\",\"n\":%d}\n", i*2477%5000, i)
	}
	c := candidate(t, run(t, Config{}, write(t, "u.jsonl", b.String())), "user")
	if c.Verdict != Usable || !c.DigitsAsText || c.Fix == nil || c.Fix.Expression != "key=pad(int(user), 4)" {
		t.Errorf("user is %s, digits as text %v, fix %+v", c.Verdict, c.DigitsAsText, c.Fix)
	}
}

func TestUnsortableTimesStillGiveArrivalOrder(t *testing.T) {
	var rows []string
	start := time.Date(2023, 11, 1, 0, 0, 0, 0, time.UTC)
	for i := range 6000 {
		at := start.Add(time.Duration(i) * 20 * time.Minute)
		rows = append(rows, fmt.Sprintf("%d,%s\n", 10000+i, at.Format("1/2/2006 15:04")))
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	r := run(t, Config{}, write(t, "t.csv", "id,created\n"+strings.Join(rows, "")))
	c := candidate(t, r, "id")
	conformance.True(t, r.Arrival.Column == "created" && c.Monotonic == "increasing" && c.Verdict == NotRecommended &&
		c.Load >= 0.3, "arrival by %q, id is %s, %s, load %v", r.Arrival.Column, c.Monotonic, c.Verdict, c.Load)
}

func TestInputOrderIsArrivalOrderWithoutTimes(t *testing.T) {
	var b strings.Builder
	b.WriteString("id,shop\n")
	for i := range 5000 {
		fmt.Fprintf(&b, "%d,s%d\n", i, i*2477%5000)
	}
	path := write(t, "o.csv", b.String())
	r := run(t, Config{}, path)
	conformance.True(t, r.Arrival.Column == "" && strings.Contains(r.Arrival.How, "input order") &&
		candidate(t, r, "id").Monotonic == "increasing", "arrival %+v, id %s", r.Arrival, candidate(t, r, "id").Monotonic)
	conformance.True(t, len(r.Notes) != 0 && strings.Contains(r.Notes[0], "in the order of id"), "notes %q", r.Notes)
	r = run(t, Config{ArrivalBy: "shop"}, path)
	if c := candidate(t, r, "id"); c.Monotonic != "no" || c.Verdict != Recommended || r.Arrival.Column != "shop" {
		t.Errorf("by shop, id is %s and %s", c.Monotonic, c.Verdict)
	}
}

func TestLongInputIsSampledInBlocks(t *testing.T) {
	var text strings.Builder
	conformance.Must(t, (bench.StudentCards{Rows: 80000, Seed: 3}).WriteCSV(t.Context(), &text))
	r := run(t, Config{Memory: 16 << 20}, write(t, "cards.csv", text.String()))
	conformance.True(t, r.Rows == 80000 && r.RowsKept <= 16<<20/4/(9*8) && r.RowsKept >= 16384 &&
		strings.Contains(strings.Join(r.Notes, ";"), "of 80000 rows"), "%d of %d rows kept; %q", r.RowsKept, r.Rows, r.Notes)
	checkVerdicts(t, r, `CardID: recommended; DeviceID: recommended; SellerID: not recommended;
		OrderNumber: not recommended`)
	c := candidate(t, r, "CardID")
	conformance.True(t, c.Distinct >= 3900 && c.Distinct <= 4100, "%d cards counted, there are 4000", c.Distinct)
	conformance.Contains(t, r.Design.Unique, "sampled rows of 80000", "unique")
}

func TestDuplicateKeysAreReported(t *testing.T) {
	var b strings.Builder
	b.WriteString("user,kind\n")
	for i := range 4000 {
		fmt.Fprintf(&b, "u%d,k%d\n", i%1000*37%1000, i%2)
	}
	r := run(t, Config{}, write(t, "d.csv", b.String()))
	conformance.Equal(t, strings.HasPrefix(r.Design.Unique, "3000 of all rows share"), true, "unique: %s", r.Design.Unique)
}

func TestRejectedRecordsAreNotCountedButFirstIsShown(t *testing.T) {
	r := run(t, Config{}, write(t, "r.csv", "id,n\na,1\nb\nc,2\n"))
	conformance.True(t, r.Rows == 2 && r.Rejected == 1 && strings.Contains(r.FirstReject, "1 fields, the header has 2"),
		"%d rows, %d rejected: %s", r.Rows, r.Rejected, r.FirstReject)
}

func TestStandardInputIsReadOnce(t *testing.T) {
	c := Config{Input: Input{Args: []string{"-"}}}
	c.Input.Find.Stdin = strings.NewReader(purchases(20000))
	r, err := Run(t.Context(), c)
	conformance.True(t, err == nil && r.Rows == 2e4 && candidate(t, r, "CardID").Verdict == Recommended, "%v, %+v", err, r)
}

func TestInvalidRequestsAreRefused(t *testing.T) {
	file := write(t, "a.csv", "id,price\na,1.5\n")
	for want, c := range map[string]Config{
		`--candidates names "nobody"`:   {Candidates: []string{"nobody"}},
		`--arrival-by names column "x"`: {ArrivalBy: "x"},
		"has no useful order":           {ArrivalBy: "price"},
		"no such file":                  {Input: Input{Args: []string{file + "x"}}},
		"accept no row of":              {Input: Input{Args: []string{write(t, "e.csv", "id\n")}}},
		"has no column":                 {Input: Input{Args: []string{file, write(t, "b.csv", "id\nb\n")}}},
	} {
		if c.Input.Args == nil {
			c.Input.Args = []string{file}
		}
		_, err := Run(t.Context(), c)
		conformance.True(t, errors.As(err, new(*UsageError)) && strings.Contains(err.Error(), want),
			"%v, want a usage error with %q", err, want)
	}
}

func TestInterruptedRunReturnsItsCause(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	why := errors.New("stopped by hand")
	stop(why)
	_, err := Run(ctx, Config{Input: Input{Args: []string{write(t, "p.csv", purchases(100))}}})
	conformance.True(t, errors.Is(err, why), "%v", err)
}

func TestColumnsWhoseNamesAreNotIdentifiersAreQuoted(t *testing.T) {
	for name, want := range map[string]string{"CardID": "CardID", "订单号": `col("订单号")`, "a b": `col("a b")`,
		"text": `col("text")`, `q"`: `col("q\"")`} {
		conformance.Equal(t, identifier(name), want, "%s written", name)
	}
}

func TestOversizedValueIsSplicedEvenIfItSpreadsSlightlyLess(t *testing.T) {
	path := write(t, "p.csv", purchases(20000))
	for _, candidates := range [][]string{nil, {"DeviceID"}, {"DeviceID+SellerID"}} {
		r := run(t, Config{Growth: 5e6, Candidates: candidates}, path)
		name := "DeviceID"
		if candidates != nil {
			name = candidates[0]
		}
		c := candidate(t, r, name)
		conformance.True(t, c.Over10GB && c.Fix != nil && c.Fix.Name == "splice" &&
			strings.Contains(c.Fix.Expression, "pad(CardID, 6)"), "%s: %+v", name, c.Fix)
		for _, c := range r.Candidates {
			parts := strings.Split(c.Column, "+")
			slices.Sort(parts)
			conformance.Equal(t, len(slices.Compact(parts)), len(c.parts), "%s is proposed", c.Column)
		}
	}
	// Which of two nearly equal shares is larger does not affect the verdict on size.
	for _, share := range []float64{0.7, 0.75, 1} {
		s := &survey{report: &Report{}}
		c := &Candidate{cause: fewValues, Share: share, Fix: &Fix{Share: 0.72}}
		s.keep(c)
		conformance.True(t, c.Fix != nil, "a fix of .72 is dropped for few values that are used to %.2f", share)
	}
}

func TestEveryFixAndSpliceHasACompleteCommand(t *testing.T) {
	r := run(t, Config{Growth: 5e6}, write(t, "p.csv", purchases(20000)))
	triple := candidate(t, r, "DeviceID+SellerID+CardID")
	conformance.True(t, triple.Verdict == Recommended && triple.Key != nil &&
		triple.Key.Keys[0] == `key=splice(",", pad(DeviceID, 3), SellerID, pad(CardID, 6))`, "%+v", triple.Key)
	for _, c := range r.Candidates {
		if f := c.Fix; f != nil && (f.Keys[0] != f.Expression || !slices.Contains(f.Command, f.Expression) ||
			len(f.Keys) > maxKeyColumns) {
			t.Errorf("%s: %q", c.Column, f.Command)
		}
	}
	all := 0
	r.EachKey(func(*Key) { all++ })
	conformance.True(t, all >= 3, "%d keys", all)
}

func TestColdValuesGetATablePerPeriod(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	for _, tt := range []struct {
		days      int
		unix      bool
		lifetime  int // number of rows within which a cohort's rows arrive
		want, why string
	}{
		{300, false, 40, "c_{month(bought_at)}", "occur for a while"},
		{20, false, 40, "c_{day(bought_at)}", "occur for a while"},
		{300, true, 40, `c_{month(bought_at, "s")}`, "occur for a while"},
		{300, false, 20000, "c_{month(bought_at)}", "many of its values"}, // half of the values are idle at any time
		{300, false, 0, "", ""},
	} {
		var b strings.Builder
		b.WriteString("cohort,card,bought_at\n")
		start := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
		for i := range 20000 {
			at := start.Add(time.Duration(tt.days) * 24 * time.Hour / 20000 * time.Duration(i))
			when := at.Format("2006-01-02 15:04:05")
			if tt.unix {
				when = fmt.Sprint(at.Unix())
			}
			cohort := random.IntN(100)
			if tt.lifetime > 0 {
				cohort = (i + random.IntN(tt.lifetime)) / 200
			}
			fmt.Fprintf(&b, "%d,u%d,%s\n", cohort, random.IntN(9000), when)
		}
		r := run(t, Config{}, write(t, "c.csv", b.String()))
		c := candidate(t, r, "cohort")
		got := ""
		if c.Fix != nil {
			got = c.Fix.Table
		}
		if got != tt.want || tt.want != "" && (!strings.Contains(c.Fix.Why, tt.why) ||
			!slices.Contains(c.Fix.Command, tt.want) || c.Fix.Keys[0] != "card") {
			t.Errorf("%+v: %s, %s: fix %+v", tt, c.Verdict, c.Reason, c.Fix)
		}
		conformance.True(t, r.Design != nil && r.Design.Keys[0] == "card", "%+v: %+v", tt, r.Design)
	}
}

func TestPaddingThatMergesValuesIsNotProposed(t *testing.T) {
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, "{\"user\":\"%d\"}\n{\"user\":\"0%d\"}\n", i*2477%5000, i*2477%5000)
	}
	conformance.Equal(t, candidate(t, run(t, Config{}, write(t, "u.jsonl", b.String())), "user").Fix, nil, "fix")
}

func TestAmbiguousNamesForPkAreRenamed(t *testing.T) {
	var b strings.Builder
	b.WriteString("user=id,n:o\n")
	for i := range 4000 {
		fmt.Fprintf(&b, "u%d,%d\n", i*2477%1000, i*31%4000)
	}
	d := run(t, Config{}, write(t, "n.csv", b.String())).Design
	conformance.True(t, d != nil && slices.Equal(d.Keys, []string{`user_id_key=col("user=id")`, `n_o_key=col("n:o")`}),
		"%+v", d)
}

func TestCodesPreserveTextOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 12), 0, 20)
		text := rapid.SliceOfN(rapid.Byte(), 0, 12)
		sample, a, b := texts.Draw(t, "sample"), text.Draw(t, "a"), text.Draw(t, "b")
		for _, large := range []bool{true, false} {
			book := buildCodebook(sample, large)
			if got, want := cmp.Compare(book.code(a), book.code(b)), bytes.Compare(a, b); got != 0 && got != want {
				t.Fatalf("%q and %q are in order %d, their codes in order %d", a, b, want, got)
			}
		}
	})
}

func TestCodesDistinguishSecondsOfDaysOutsideTheSample(t *testing.T) {
	start := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	text := func(at time.Time) []byte { return at.AppendFormat(nil, time.RFC3339) }
	var sample [][]byte
	for i := range 3600 {
		sample = append(sample, text(start.Add(time.Duration(i)*time.Second)))
	}
	book := newCodebook(sample)
	for _, later := range []time.Duration{0, 26 * time.Hour, 400 * 24 * time.Hour} {
		a, b := book.code(text(start.Add(later))), book.code(text(start.Add(later+time.Second)))
		conformance.True(t, a < b, "after %v: the code of the next second is %d, after %d", later, b, a)
	}
}

func TestCodesLookPastALongSharedPrefix(t *testing.T) {
	var sample [][]byte
	for i := range 1000 {
		sample = append(sample, fmt.Appendf(nil, "https://shop.example.com/item/%04d", i))
	}
	book := newCodebook(sample)
	seen := map[uint64]bool{}
	for _, text := range sample {
		seen[book.code(text)] = true
	}
	conformance.Equal(t, len(seen), len(sample), "codes")
}

func TestMain(m *testing.M) { conformance.Main(m) }

// TestVerdictsOnRealDataMatchExpert compares verdicts with the opinions of an expert who knows the data.
func TestVerdictsOnRealDataMatchExpert(t *testing.T) {
	dir, judged := conformance.Dir(t), 0
	for name, want := range map[string]struct {
		file, verdicts, arrival, key string
		noHeader                     bool
	}{
		"green taxis": {file: "nyc-tlc/green_tripdata_2023-01.parquet", arrival: "lpep_pickup_datetime", verdicts: `
			VendorID: not recommended; lpep_pickup_datetime: not recommended, fix hash prefix;
			lpep_dropoff_datetime: not recommended, fix hash prefix; PULocationID: not recommended, fix splice;
			DOLocationID: usable, fix splice; store_and_fwd_flag: not recommended; trip_distance: not recommended;
			total_amount: not recommended`, key: `key=splice(",", pad(DOLocationID, 3), pad(PULocationID, 3))`},
		"daily trips": {file: "nyc-taxi-daily/daily_trips_by_geography.csv", arrival: "date", verdicts: `
			car_type: not recommended; date: not recommended, fix hash prefix; geo: not recommended; trips: not recommended;
			monthly: not recommended; monthly_is_estimated: not recommended`, key: "key=md5(date, 4) + text(date)"},
		"a shop's invoices": {file: "online-retail", arrival: "InvoiceDate", verdicts: `StockCode: recommended;
			InvoiceNo: not recommended; Description: not recommended; Quantity: not recommended; UnitPrice: not recommended;
			CustomerID: not recommended; Country: not recommended`, key: "StockCode"},
		"weather": {file: "nycflights13/weather.csv", arrival: "time_hour", verdicts: `origin: not recommended;
			year: not recommended; month: not recommended; hour: not recommended; humid: not recommended;
			time_hour: not recommended, fix hash prefix`, key: "key=md5(time_hour, 4) + text(time_hour)"},
		"share prices": {file: "mosaic/stocks.csv", arrival: "Date", verdicts: `Symbol: not recommended;
			Date: not recommended, fix hash prefix; Volume: usable; Open: not recommended`,
			key: "key=md5(Date, 4) + text(Date)"},
		"places of China": {file: "areacity/ok_data_level4.csv", verdicts: `name: recommended;
			id: not recommended, fix hash prefix; ext_id: not recommended, fix hash prefix; deep: not recommended`, key: "name"},
		"registered users": {file: "kylo/csv/userdata1.csv", arrival: "registration_dttm", verdicts: `id: recommended;
			email: not recommended; ip_address: recommended; gender: not recommended; country: not recommended`, key: "id"},
		"weather of a city": {file: "mosaic/seattle-weather.csv", arrival: "date", verdicts: `
			date: not recommended, fix hash prefix; weather: not recommended; wind: not recommended`,
			key: "key=md5(date, 4) + text(date)"},
		"airports": {file: "openflights/airports.dat", noHeader: true, verdicts: `c1: not recommended, fix hash prefix;
			c2: recommended; c4: not recommended; c7: not recommended; c11: not recommended; c14: not recommended`, key: "c2"},
	} {
		if _, err := os.Stat(filepath.Join(dir, "real", want.file)); err != nil && dir == conformance.Part(t) {
			continue // only small files are present
		}
		judged++
		t.Run(name, func(t *testing.T) {
			input := Input{Options: reader.Options{NoHeader: want.noHeader}}
			r := run(t, Config{Input: input}, filepath.Join(dir, "real", want.file))
			checkVerdicts(t, r, want.verdicts)
			conformance.Equal(t, r.Arrival.Column, want.arrival, "arrival")
			conformance.True(t, r.Design != nil && r.Design.Keys[0] == want.key, "%+v, want the key %s", r.Design, want.key)
		})
	}
	conformance.True(t, judged >= 2, "only %d files were judged", judged)
}

// TestRowsAreCountedByRange compares counts by partition, and by ranges that are joined as they grow, with the rows.
func TestRowsAreCountedByRange(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 9))
		var rows []int64
		for n := 1 + random.IntN(3000); len(rows) < n; {
			rows = append(rows, random.Int64N(1+random.Int64N(int64(n))))
		}
		slices.Sort(rows)
		var bounds []table.Value
		for b := int64(0); seed%2 == 0 && len(bounds) < 300; b += 1 + random.Int64N(20) {
			bounds = append(bounds, table.Value{Type: table.Integer, Int: b})
		}
		l, most := newLies(bounds), map[int64]int64{}
		for _, n := range rows {
			l.add(table.Value{Type: table.Integer, Int: n}, 10*n)
			most[n] += 10 * n
		}
		l.endValue()
		begun := int64(0)
		for i, r := range l.ranges {
			conformance.Equal(t, r.From, strconv.FormatInt(rows[begun], 10), "first value of a range")
			if begun > 0 && rows[begun] == rows[begun-1] {
				t.Fatalf("seed %d: a range begins within the rows of %d", seed, rows[begun])
			}
			size := int64(0)
			for _, n := range rows[begun : begun+r.Rows] {
				size += 10 * n
			}
			conformance.Equal(t, r.Bytes, size, "bytes of a range")
			begun += r.Rows
			conformance.Equal(t, l.ends[i], begun, "rows up to the end of a range")
		}
		conformance.Equal(t, begun, int64(len(rows)), "rows of all ranges")
		conformance.True(t, len(l.ranges) <= mostRanges, "seed %d: %d ranges", seed, len(l.ranges))
		for _, v := range l.top {
			n, _ := strconv.ParseInt(v.Value, 10, 64)
			conformance.Equal(t, v.Bytes, most[n], "bytes of a value")
			delete(most, n)
		}
		for n, size := range most {
			conformance.True(t, size <= l.top[len(l.top)-1].Bytes, "seed %d: %d with %d bytes is not on top", seed, n, size)
		}
	}
}
