package wire

import (
	"bytes"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"testing/quick"

	"github.com/google/go-cmp/cmp"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Vectors of rows, by the number under which tablestore's semantics list them.
const (
	v05 = "7500000001030403000000706b3105060000000301000000610a1909ea"
	v06 = "7500000001030403000000706b3105060000000301000000610a190809ed"
	v13 = "7500000001030403000000706b3105060000000301000000610a190203040100000069050900000000fbffffffffffffff0adf030401000000640509000000010000000000000a400afe03040100000074050200000002010ae103040100000066050200000002000a9203040100000073050b000000030600000068c3a96c6c6f0a5003040100000062050800000007030000000102030ab20304020000006573050500000003000000000a400304020000006562050500000007000000000a78092a"
	v14 = "7500000001030403000000706b3105060000000301000000610a190203040100000076050800000003030000006e6577070168e5cf8b0100000a0c03040100000076050800000003030000006f6c64070068e5cf8b0100000a2f0956"
	v15 = "7500000001030403000000706b3105060000000301000000610a19020304010000006105090000000001000000000000000a1e0304010000006206010ad8030401000000630603070068e5cf8b0100000a0e0304010000006e0509000000000a0000000000000006040aa9096c"
	v16 = "7500000001030403000000706b3105060000000301000000610a1902030401000000760509000000000200000000000000070168e5cf8b0100000a35030401000000760509000000000100000000000000070068e5cf8b0100000a20094e01030403000000706b3105060000000301000000620a100957"

	vCreate = "0a180a02743112070a03756964100212090a037365711001180112060a04080010001a0d08ffffffffffffffffff011001"
	vPut    = "0a02743112327500000001030403000000706b3105060000000301000000610a19020304010000006305060000000301000000760ade09f41a02080022020801"
	vGet    = "0a027431121d7500000001030403000000706b3105060000000301000000610a1909ea2801"
	vRange  = "0a02743110001a0163280130643a2975000000010304030000007569640501000000090a1d0304030000007365710501000000090a8509c44229750000000103040300000075696405010000000a0a1403040300000073657105010000000a0a8c0943"
	vBatch  = "0a9b010a027431123a080112327500000001030403000000706b3105060000000301000000610a19020304010000006305060000000301000000760ade09f41a0208001231080212297500000001030403000000706b3105060000000301000000620a10020304010000006306010acd09a61a02080112260803121e7500000001030403000000706b3105060000000301000000630a1708093b1a020802"
)

func TestCRCVectors(t *testing.T) {
	for text, want := range map[string]byte{"": 0, "a": 0x20, "pk0": 0x95, "123456789": 0xf4, "\xff": 0xf3, "\x01\x00\x00\x00": 0x16} {
		if got := crc8(0, []byte(text)); got != want {
			t.Errorf("%q: %02x, want %02x", text, got, want)
		}
	}
	for v, want := range map[int64]byte{1: 0x13, -1: 0xd7, 1700000000000: 0x9d} {
		if got := crc8Int64(0, v); got != want {
			t.Errorf("%d: %02x, want %02x", v, got, want)
		}
	}
}

func TestCRCBySlicesIsCRCByBytes(t *testing.T) {
	f := func(start byte, b []byte) bool {
		want := start
		for _, c := range b {
			want = crc8Byte(want, c)
		}
		return crc8(start, b) == want
	}
	if err := quick.Check(f, nil); err != nil {
		t.Error(err)
	}
}

// cells is rows as texts, for comparing.
func cells(cs []Cell) (texts []string) {
	for i := range cs {
		c := &cs[i]
		s := string(c.Name) + " " + c.Type.String() + " " + hex.EncodeToString(c.Value)
		if c.Stamped {
			s += " stamped"
		}
		texts = append(texts, s+strings.Repeat("!", int(c.Op)))
	}
	return texts
}

func TestRowVectorsDecode(t *testing.T) {
	for name, v := range map[string]struct {
		hex        string
		key, cells []string
		deleted    bool
	}{
		"V05 key":       {v05, []string{"pk1 VT_STRING 61"}, nil, false},
		"V06 delete":    {v06, []string{"pk1 VT_STRING 61"}, nil, true},
		"V07 one":       {"75000000010304020000006964050900000000" + "01000000000000000a0a0982", []string{"id VT_INTEGER 0100000000000000"}, nil, false},
		"V07 minus one": {"75000000010304020000006964050900000000ffffffffffffffff0ace093b", []string{"id VT_INTEGER ffffffffffffffff"}, nil, false},
		"V08 binary":    {"7500000001030401000000620508000000070300000000ff800aa4094c", []string{"b VT_BLOB 00ff80"}, nil, false},
		"V08 empty":     {"7500000001030403000000706b31050500000003000000000ac70986", []string{"pk1 VT_STRING "}, nil, false},
		"V09 two":       {"7500000001030403000000756964050d0000000308000000757365722d3030310ad80304030000007365710509000000002a000000000000000a880960", []string{"uid VT_STRING 757365722d303031", "seq VT_INTEGER 2a00000000000000"}, nil, false},
		"V10 minimum":   {"75000000010304030000007569640501000000090a1d0304030000007365710501000000090a8509c4", []string{"uid VT_INF_MIN ", "seq VT_INF_MIN "}, nil, false},
		"V11 auto":      {"750000000103040300000075696405060000000301000000750af503040300000073657105010000000b0a8b020304010000006305090000000007000000000000000aa409e6", []string{"uid VT_STRING 75", "seq VT_AUTO_INCREMENT "}, []string{"c VT_INTEGER 0700000000000000"}, false},
		"V14 versions":  {v14, []string{"pk1 VT_STRING 61"}, []string{"v VT_STRING 6e6577 stamped", "v VT_STRING 6f6c64 stamped"}, false},
		"V15 update":    {v15, []string{"pk1 VT_STRING 61"}, []string{"a VT_INTEGER 0100000000000000", "b VT_NONE !", "c VT_NONE  stamped!!!", "n VT_INTEGER 0a00000000000000!!!!"}, false},
		"V25 extension": {"7500000001030403000000706b3105060000000301000000610a190b180000000c130000000d010000000e00401e18240a06000f0700000009ea", []string{"pk1 VT_STRING 61"}, nil, false},
	} {
		var d Decoder
		row, err := d.Row(unhex(t, v.hex))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff([][]string{v.key, v.cells}, [][]string{cells(row.Key), cells(row.Cells)}); diff != "" || row.Delete != v.deleted {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestRowsSurviveTheRoundTrip(t *testing.T) {
	for _, v := range []string{v05, v13, v14} {
		var d Decoder
		row, err := d.Row(unhex(t, v))
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(AppendRow(AppendHeader(nil), row.Key, row.Cells)); got != v {
			t.Errorf("got  %s\nwant %s", got, v)
		}
	}
}

func integer(v byte) []byte { return []byte{v, 0, 0, 0, 0, 0, 0, 0} }

func TestResponseRowVector(t *testing.T) {
	name := []byte("v")
	b := AppendRow(AppendHeader(nil), []Cell{{Name: []byte("pk1"), Type: String, Value: []byte("a")}}, []Cell{
		{Name: name, Type: Integer, Value: integer(2), Timestamp: 1700000000001, Stamped: true},
		{Name: name, Type: Integer, Value: integer(1), Timestamp: 1700000000000, Stamped: true},
	})
	b = AppendRow(b, []Cell{{Name: []byte("pk1"), Type: String, Value: []byte("b")}}, nil)
	if got := hex.EncodeToString(b); got != v16 {
		t.Errorf("got  %s\nwant %s", got, v16)
	}
}

func TestResponseVectors(t *testing.T) {
	uid := KeyColumn{Name: "uid", Type: KeyString}
	point := func(s string) []byte {
		return AppendRow(AppendHeader(nil), []Cell{{Name: []byte("uid"), Type: String, Value: []byte(s)}}, nil)
	}
	autoRow := AppendRow(AppendHeader(nil), []Cell{
		{Name: []byte("uid"), Type: String, Value: []byte("u")},
		{Name: []byte("seq"), Type: Integer, Value: unhex(t, "01401e18240a0600")},
	}, nil)
	for name, v := range map[string]struct {
		got  []byte
		want string
	}{
		"V24 PutRow": {AppendWrite(nil, &Outcome{Consumed: Capacity{0, 1}, Row: autoRow}),
			"0a060a04080010011236750000000103040300000075696405060000000301000000750af503040300000073657105090000000001401e18240a06000a6d09b0"},
		"V25 error": {AppendError(nil, Fail(CodeConditionCheckFail)),
			"0a154f5453436f6e646974696f6e436865636b4661696c1217436f6e646974696f6e20636865636b206661696c65642e"},
		"V25 batch": {AppendBatch(nil, []TableOutcomes{{[]byte("t1"), []Outcome{{Consumed: Capacity{0, 1}}, {Err: Fail(CodeServerBusy)}}}}, false),
			"0a360a027431120a08011a060a04080010011224080012200a0d4f545353657276657242757379120f53657276657220697320627573792e"},
		"V25 splits": {AppendSplitPoints(nil, Capacity{3, 0}, []KeyColumn{uid, {Name: "seq", Type: KeyInteger}}, [][]byte{point("m"), point("t")}, []Location{{"A", 2}, {"B", 1}}),
			"0a060a040803100012070a03756964100212070a0373657110011a1d7500000001030403000000756964050600000003010000006d0abd09a61a1d750000000103040300000075696405060000000301000000740af2093e22050a0141100422050a01421002"},
		"V25 describe": {AppendDescribeTable(nil, &TableDescription{Name: "t1", Key: []KeyColumn{uid}, LastIncrease: 1700000000, TTL: -1, MaxVersions: 1, Deviation: 86400, AllowUpdate: true, Splits: [][]byte{point("m")}}),
			"0a0d0a02743112070a037569641002120c0a04080010001080e2cfaa061a1508ffffffffffffffffff0110012880a3053001380020012a020800321d7500000001030403000000756964050600000003010000006d0abd09a6"},
	} {
		if got := hex.EncodeToString(v.got); got != v.want {
			t.Errorf("%s\ngot  %s\nwant %s", name, got, v.want)
		}
	}
}

func TestRequestVectorsDecode(t *testing.T) {
	var r WriteRequest
	if err := r.DecodeRow(PutRow, unhex(t, vPut)); err != nil {
		t.Error(err)
	} else if c := &r.rows[0]; string(r.Tables[0].Name) != "t1" || c.Return != ReturnKey || c.DataBytes != 6 {
		t.Errorf("%+v", c)
	}
	r.Reset()
	if err := r.DecodeBatch(unhex(t, vBatch)); err != nil {
		t.Fatal(err)
	}
	got := []any{}
	for _, c := range r.Tables[0].Changes {
		got = append(got, c.Op, c.Expect, string(c.Row.Key[0].Value))
	}
	if d := cmp.Diff([]any{PutRow, Ignore, "a", UpdateRow, ExpectExist, "b", DeleteRow, ExpectNotExist, "c"}, got); d != "" {
		t.Error(d)
	}
	if g, err := DecodeGetRow(unhex(t, vGet)); err != nil || g.Selection.MaxVersions.Value != 1 {
		t.Error(g, err)
	}
	if g, err := DecodeGetRange(unhex(t, vRange)); err != nil || g.Limit != 100 || g.Start[0].Type != InfMin || string(g.Selection.Columns[0]) != "c" {
		t.Error(g, err)
	}
	c, err := DecodeCreateTable(unhex(t, vCreate))
	if err != nil || c.Options.TTL.Value != -1 || !c.Key[1].AutoIncrement {
		t.Error(c, err)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}

func TestFiltersAndConditionsAreHandedOverAsTheyCame(t *testing.T) {
	filter := unhex(t, "08011216080412036167651a0900120000000000000020012801")
	if g, err := DecodeGetRow(appendBytes(unhex(t, vGet), 7, filter)); err != nil || !bytes.Equal(g.Selection.Filter, filter) {
		t.Error(g, err)
	}
	condition := unhex(t, "0801121a08011216080112037665721a0900030000000000000020012801")
	var r WriteRequest
	if err := r.DecodeRow(PutRow, appendBytes(unhex(t, vPut), 3, condition)); err != nil {
		t.Fatal(err)
	}
	if c := r.Tables[0].Changes[0]; c.Expect != ExpectExist || !bytes.Equal(c.Condition, condition[4:]) || !c.Conditional() {
		t.Errorf("%+v", c)
	}
}

func TestPartOfTheKeyIsAnsweredWhenColumnsAreNamed(t *testing.T) {
	all := unhex(t, vRange) // names column c
	for _, v := range []struct {
		body []byte
		part bool
	}{
		{all, false},
		{appendInt(bytes.Clone(all), 16, 1), false},
		{appendInt(bytes.Clone(all), 16, 0), true},
	} {
		if g, err := DecodeGetRange(v.body); err != nil || g.KeyPart != v.part {
			t.Errorf("%x: %+v, %v", v.body, g, err)
		}
	}
	row := AppendRow(AppendHeader(nil), nil, []Cell{{Name: []byte("c"), Type: Boolean, Value: []byte{1}}})
	if want := append([]byte{header, 0, 0, 0, tagData, tagCell}, row[6:]...); !bytes.Equal(row, want) {
		t.Errorf("a row without a key: %x", row)
	}
}

func TestMalformedRowsAreRefused(t *testing.T) {
	for _, v := range []string{
		"", "75000000", "7500000001", "7400000001030403000000706b3105060000000301000000610a1909ea",
		"7500000001030403000000706b3105060000000301000000610a1909ea01",
		"7500000001030403000000706b3105060000000301000000610a190203040100000063050a2e09e0", // V26
		"7500000001030403000000706b31050a0000000301000000610a1909ea",
		"75000000010304ffffffff706b3105060000000301000000610a1909ea",
		"7500000001030403000000706b3105060000000301000000610a18" + "09ea",
		"7500000001030403000000706b3105060000000301000000610a1909eb",
		"7500000001030403000000706b3105060000000301000000610a19",
	} {
		var d Decoder
		if _, err := d.Row(unhex(t, v)); err == nil || err.Code != CodeParameterInvalid {
			t.Errorf("%s: %v", v, err)
		}
	}
}

func TestEveryPrefixOfARowIsRefused(t *testing.T) {
	for _, v := range []string{v06, v13, v15} {
		b := unhex(t, v)
		for n := range b {
			var d Decoder
			if _, err := d.Row(b[:n]); err == nil {
				t.Errorf("%d of %d bytes were taken", n, len(b))
			}
		}
	}
}

func vectorHeader() http.Header {
	h := http.Header{}
	h.Set(HeaderAccessKeyID, "AKID")
	h.Set(HeaderAPIVersion, APIVersion)
	h.Set(HeaderMD5, "sNnO8EJ2mwgU0Z/k1zqY2g==")
	h.Set(HeaderDate, "2024-01-02T03:04:05.678Z")
	h.Set(HeaderInstance, "inst1")
	return h
}

func TestSignatureVectors(t *testing.T) {
	h := vectorHeader()
	h.Set(HeaderMD5, "1B2M2Y8AsgTpgAmY7PhCfg==")
	if got := Sign("SECRET", "/ListTable", h); got != "recwIvE/YvPTs4S6SqbpKO37NjU=" {
		t.Error("V19", got)
	}
	h = vectorHeader()
	if got := Sign("SECRET", "/DescribeTable", h); got != "3ZheUr9dgkM/tf/6BtUJ4vWiBoo=" {
		t.Error("V20", got)
	}
	h.Set("x-ots-ststoken", "STSTOKEN")
	if got := Sign("SECRET", "/DescribeTable", h); got != "ARycI4mCYMhslCxcV8aK1OkvJeE=" {
		t.Error("V21 token", got)
	}
	h = vectorHeader()
	h.Set("x-ots-sdk-traceid", "11111111-2222-3333-4444-555555555555")
	if got := Sign("SECRET", "/DescribeTable", h); got != "YHLn39eQLx2hr5VAbT4SFTaKpTI=" {
		t.Error("V21 trace", got)
	}
	h = vectorHeader()
	h.Set(HeaderSignDate, "20240102")
	h.Set(HeaderSignRegion, "cn-hangzhou")
	derived := DeriveKeyV4("SECRET", "20240102", "cn-hangzhou")
	if derived != "IZDMB83uzREXmisVFfurjqqp4KESaOxyAYsAkSNIKDE=" {
		t.Error("V22 key", derived)
	}
	if got := SignV4(derived, "/DescribeTable", h); got != "NxgaaElkvzyaEgARJOFUiVvOyVQd7KdfoveeO+wL2+M=" {
		t.Error("V22", got)
	}
	r := http.Header{}
	r.Set(HeaderMD5, "1B2M2Y8AsgTpgAmY7PhCfg==")
	r.Set(HeaderContentType, "protocol buffer")
	r.Set(HeaderDate, "2024-01-02T03:04:05.678Z")
	r.Set(HeaderRequestID, "0005d6a8-0001-0002-0003-000000000001")
	if got := SignResponse("SECRET", "/DeleteTable", r); got != "+Rf1N8Q5n0ftmj2sFhd/J2N9Fis=" {
		t.Error("V23", got)
	}
}
