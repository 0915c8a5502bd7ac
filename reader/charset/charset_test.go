package charset

import (
	"bytes"
	"flag"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"

	"example.com/tsimport/internal/conformance"
)

func find(t testing.TB, name string) Encoding {
	t.Helper()
	return conformance.Try(Find(name)).Must(t)
}

var names = []string{"gb18030", "gbk", "big5", "shift-jis", "euc-jp", "euc-kr", "iso-8859-1", "iso-8859-2",
	"iso-8859-15", "windows-1252", "windows-1251", "koi8-r", "ibm866", "macintosh", "ibm037"}

func TestEncodingNamesAreFound(t *testing.T) {
	for name, want := range map[string]string{
		"UTF-8": "utf-8", "utf8": "utf-8", "GB18030": "gb18030", "gbk": "gbk", "GB2312": "gbk", "cp936": "gbk",
		"UTF-16": "utf-16", "utf-16LE": "utf-16le", "UTF_16BE": "utf-16be", "big5": "big5", "Shift_JIS": "shift-jis",
		"sjis": "shift-jis", "euc-jp": "euc-jp", "EUC-KR": "euc-kr", "latin1": "iso-8859-1", "ISO-8859-1": "iso-8859-1",
		"iso_8859-15": "iso-8859-15", "windows-1252": "windows-1252", "cp1252": "windows-1252", "us-ascii": "us-ascii",
		"koi8-r": "koi8-r",
	} {
		e, err := Find(name)
		conformance.True(t, err == nil && e.Name() == want, "%s: %q, %v", name, e.Name(), err)
	}
	for _, name := range []string{"", "utf-32", "utf-7", "iso-2022-jp", "hz-gb-2312", "x-user-defined", "klingon"} {
		conformance.InALine(t, conformance.ErrorOf(Find(name)), "gb18030", "%s", name)
	}
}

func TestBOMsAreDetected(t *testing.T) {
	for head, want := range map[string]string{
		"\xEF\xBB\xBFa": "utf-8 3", "\xFF\xFEa\x00": "utf-16le 2", "\xFE\xFF\x00a": "utf-16be 2",
		"\x84\x31\x95\x33a": "gb18030 4", "\xFF\xFE\x00\x00": "", "\x00\x00\xFE\xFF": "", "abc": "", "": "",
	} {
		e, n, ok := DetectBOM([]byte(head))
		got := e.Name() + " " + string(rune('0'+n))
		conformance.True(t, ok == (want != "") && (!ok || got == want), "%q: %s %v", head, got, ok)
	}
	conformance.True(t, IsUTF32([]byte("\xFF\xFE\x00\x00")) && !IsUTF32([]byte("\xFF\xFEa\x00")), "UTF-32")
}

// TestCodePointsRoundTrip encodes every Unicode code point with x/text and decodes it here.
func TestCodePointsRoundTrip(t *testing.T) {
	for _, name := range append(names, "utf-16le", "utf-16be") {
		e := find(t, name)
		encoder := lookup(name).NewEncoder()
		var src [8]byte
		var buf [16]byte
		count := 0
		for r := rune(0); r <= utf8.MaxRune; r++ {
			if r >= 0xD800 && r < 0xE000 || r >= 0x30000 && r%97 != 0 && name != "gb18030" { // only gb18030 encodes all of them
				continue
			}
			encoder.Reset()
			n, _, err := encoder.Transform(buf[:], utf8.AppendRune(src[:0], r), true)
			if err != nil {
				continue
			}
			count++
			if name == "gb18030" && r >= 0xE000 && r < 0xF900 {
				continue // x/text encodes these as other characters; decoding is checked below
			}
			out, bad := e.Decode(nil, buf[:n])
			conformance.MustTrue(t, bad < 0 && string(out) == string(r), "%s: %U is % x: %q, %d", name, r, buf[:n], out, bad)
		}
		t.Logf("%s has %d code points", name, count)
		conformance.True(t, name != "gb18030" || count >= 1112064-2000, "gb18030 has only %d code points", count)
	}
}

var sequences = flag.Int("sequences", 5_000, "random sequences of bytes that are decoded in each encoding")

// TestDecodingAgreesWithXTextUnlessItReplaces tries all sequences of one or two bytes and random longer ones.
func TestDecodingAgreesWithXTextUnlessItReplaces(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, name := range names {
		e := find(t, name)
		decoder := lookup(name).NewDecoder()
		check := func(src []byte) {
			want := conformance.Try(decoder.Bytes(src)).Must(t)
			out, bad := e.Decode(nil, src)
			if name == "gb18030" && bad >= 0 {
				// x/text accepts the bytes 3A to 3F as digits.
				if again, err := lookup(name).NewEncoder().Bytes(want); err != nil || !bytes.Equal(again, src) {
					return
				}
			}
			if name == "gb18030" && bytes.ContainsFunc(out, func(r rune) bool {
				return r >= 0xE000 && r <= 0xE864 || r >= 0xFE10 && r <= 0xFE19 || r >= 0x9FB4 && r <= 0x9FBB
			}) {
				return // x/text lacks it; TestEveryPairOfGB18030IsACharacter checks it
			}
			genuine := bytes.Contains(src, []byte("\x84\x31\xA4\x37"))
			conformance.MustTrue(t, (bad >= 0 || bytes.Equal(out, want)) && (bad < 0 || bytes.Contains(want, []byte("\uFFFD"))),
				"%s: % x gives %q, bad at %d; x/text %q", name, src, out, bad, want)
			conformance.MustTrue(t, bad >= 0 || !bytes.Contains(out, []byte("\uFFFD")) || genuine, "%s: % x", name, src)
		}
		for a := range 256 {
			check([]byte{byte(a)})
			for b := range 256 {
				check([]byte{byte(a), byte(b)})
			}
		}
		for range *sequences {
			src := make([]byte, rng.IntN(8))
			for i := range src {
				src[i] = byte(rng.Uint32())
				if rng.IntN(3) == 0 {
					src[i] = "0\x81\x8f\xa1\x84\x31\x90\xfe9"[rng.IntN(9)]
				}
			}
			check(src)
		}
	}
}

func TestUndecodableBytesAreReportedWithTheirOffset(t *testing.T) {
	for _, c := range []struct {
		name, src, out string
		bad            int
	}{
		{"utf-8", "aé\xffb", "aé", 3},
		{"utf-8", "a\uFFFDb", "a\uFFFDb", -1},
		{"utf-8", "\xed\xa0\x80", "", 0},
		{"gb18030", "a\x84\x31\xa4\x37b", "a\uFFFDb", -1},
		{"gb18030", "\x90\x30\x81\x30\xe3\x32\x9a\x35", "\U00010000\U0010FFFF", -1},
		{"gb18030", "\xe3\x32\x9a\x36", "", 0},
		{"gb18030", "x\x81\x30\x81", "x", 1},
		{"gb18030", "x\x81\x30\x81,", "x", 1},
		{"gb18030", "x\x81", "x", 1},
		{"gb18030", "\x84\x31\xa4\x38", "\uFFFE", -1},
		{"gb18030", "\xaa\xa1\xaf\xfe\xf8\xa1\xfe\xfe\xa1\x40\xa7\xa0", "\uE000\uE233\uE234\uE4C5\uE4C6\uE765", -1},
		{"gb18030", "\x8f\x3d\x8f\x31", "", 0},
		{"gbk", "\xc4\xe3\xff", "你", 2},
		{"gbk", "\x81\x30\x81\x30", "", 0},
		{"big5", "\x88\x62", "Ê\u0304", -1},
		{"shift-jis", "\x83\x5cx\x80\x83", "ソx\u0080", 4},
		{"euc-jp", "\x8f\xb0\xa1\x8f\xb0", "丂", 3},
		{"euc-kr", "\xb0\xa1\xb0", "가", 2},
		{"us-ascii", "ab\x80", "ab", 2},
		{"iso-8859-1", "\x80\xe9\xff", "\u0080éÿ", -1},
		{"utf-16le", "a\x00\x3d\xd8\x00\xde", "a😀", -1},
		{"utf-16le", "a\x00\x3d\xd8b\x00", "a", 2},
		{"utf-16le", "\x00\xde\x3d\xd8", "", 0},
		{"utf-16be", "\x00a\xd8\x3d", "a", 2},
		{"utf-16be", "\x00a\x00", "a", 2},
		{"utf-16be", "\xff\xfd\x00\x00", "\uFFFD\x00", -1},
		{"utf-16", "\x00a", "", 0},
	} {
		out, bad := find(t, c.name).Decode(nil, []byte(c.src))
		conformance.Equal(t, string(out), c.out, "%s %q: out", c.name, c.src)
		conformance.Equal(t, bad, c.bad, "%s %q: bad", c.name, c.src)
	}
}

func TestSafeBytesAreNeverPartOfACharacter(t *testing.T) {
	for name, want := range map[string][3]bool{ // sets: ASCII; line ends, comma, quotes, tab; '|' and '\\'
		"utf-8": {true, true, true}, "iso-8859-1": {true, true, true}, "windows-1252": {true, true, true},
		"euc-jp": {true, true, true}, "euc-kr": {false, true, true}, "gb18030": {false, true, false},
		"gbk": {false, true, false}, "big5": {false, true, false}, "shift-jis": {false, true, false}, "utf-16le": {},
		"utf-16": {}, "ibm037": {},
	} {
		e := find(t, name)
		got := [3]bool{e.SafeBytes(ascii), e.SafeBytes([]byte("\n\r,;\"'\t \x01")), e.SafeBytes([]byte(`|\`))}
		conformance.Equal(t, got, want, "%s", name)
	}
	conformance.True(t, !find(t, "gb18030").SafeBytes([]byte("0")) && find(t, "gbk").SafeBytes([]byte("0")), "0")
}

func TestTranscodingKeepsUndecodableBytesInvalid(t *testing.T) {
	text := strings.Repeat("你好, wörld 😀\n", 5000)
	for _, c := range []struct{ name, src, want string }{
		{"utf-16le", "a\x00\x3d\xd8\n\x00b", "a\xff\xff\n\xff"},
		{"utf-16", "\xfe\xff\x00a", "a"},
		{"utf-16", "\xff\xfea\x00", "a"},
		{"utf-16le", "\xff\xfea\x00", "a"},
		{"utf-16", "", ""},
		{"gb18030", "\x84\x31\x95\x33\xc4\xe3\xff\n", "你\xff\n"},
		{"gb18030", "\x81\x30\x81", "\xff0\xff"},
		{"utf-8", "\xffa", "\xffa"},
	} {
		for _, wrap := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.DataErrReader} {
			got, err := io.ReadAll(find(t, c.name).NewReader(wrap(strings.NewReader(c.src))))
			conformance.True(t, err == nil && string(got) == c.want, "%s %q: %q, %v", c.name, c.src, got, err)
		}
	}
	for _, order := range []unicode.Endianness{unicode.LittleEndian, unicode.BigEndian} {
		src, _ := unicode.UTF16(order, unicode.UseBOM).NewEncoder().Bytes([]byte(text))
		got, err := io.ReadAll(iotest.OneByteReader(find(t, "utf-16").NewReader(bytes.NewReader(src))))
		conformance.True(t, err == nil && string(got) == text, "%d bytes of %d, %v", len(got), len(text), err)
	}
	for _, bad := range []string{"a\x00b\x00", "\xff\xfe\x00\x00a\x00\x00\x00"} {
		got, err := io.ReadAll(find(t, "utf-16").NewReader(strings.NewReader(bad)))
		conformance.True(t, err != nil, "%q gives %q", bad, got)
	}
}

func TestRealFilesRoundTrip(t *testing.T) {
	conformance.Run(t, filesDecodeToTheEndAndBack)
}

func filesDecodeToTheEndAndBack(t *testing.T, dir string) {
	counts := map[string]int{}
	for _, f := range conformance.Files(t, dir) {
		name := strings.TrimSuffix(f.Encoding, "-bom")
		if f.Compression != "none" || f.Format == "parquet" ||
			!slices.Contains([]string{"gb18030", "utf-16le", "utf-16be", "latin1"}, name) {
			continue
		}
		data := conformance.Read(t, dir, f.Path)
		e := find(t, name)
		if found, n, ok := DetectBOM(data); ok != strings.HasSuffix(f.Encoding, "-bom") || ok && found != e {
			t.Errorf("%s: BOM of %s, %v, manifest says %s", f.Path, found.Name(), ok, f.Encoding)
		} else {
			data = data[n:]
		}
		out, bad := e.Decode(nil, data)
		streamed, err := io.ReadAll(e.NewReader(bytes.NewReader(data)))
		if bad >= 0 || !utf8.Valid(out) || err != nil || !bytes.Equal(out, streamed) {
			t.Errorf("%s: bad at %d of %d, %v", f.Path, bad, len(data), err)
			continue
		}
		counts[f.Encoding]++
		back, err := lookup(e.Name()).NewEncoder().Bytes(out)
		conformance.True(t, e.form != legacy || err == nil && bytes.Equal(back, data), "%s: %v", f.Path, err)
	}
	for _, name := range []string{"gb18030", "gb18030-bom", "utf-16le-bom", "utf-16be-bom", "latin1"} {
		conformance.True(t, counts[name] != 0, "no file is in %s: %v", name, counts)
	}
}

func FuzzDecode(f *testing.F) {
	all := append([]string{"utf-8", "utf-16le", "utf-16be", "us-ascii"}, names...)
	for i := range all {
		f.Add(uint8(i), []byte("a,\x81\x30\x81\x30\xc4\xe3\x8f\xb0\xa1\xff"))
	}
	f.Fuzz(func(t *testing.T, which uint8, src []byte) {
		e := find(t, all[int(which)%len(all)])
		out, bad := e.Decode(nil, src)
		conformance.MustTrue(t, utf8.Valid(out) && bad < len(src), "%s: %q, bad at %d of %d", e.Name(), out, bad, len(src))
		if bad >= 0 {
			again, end := e.Decode(nil, src[:bad])
			conformance.MustTrue(t, end < 0 && bytes.Equal(again, out), "%s: good bytes do not decode alone", e.Name())
		}
		if e.IsUTF8() {
			return
		}
		streamed, err := io.ReadAll(e.NewReader(iotest.HalfReader(bytes.NewReader(src))))
		if _, n, ok := DetectBOM(src); err != nil || ok && n > 0 {
			return
		}
		conformance.MustTrue(t, bytes.HasPrefix(streamed, out) && (bad >= 0) == bytes.Contains(streamed, []byte{Undecodable}),
			"%s: % x streamed gives %q, else %q, bad at %d", e.Name(), src, streamed, out, bad)
		if !e.SafeBytes(ascii) || e.IsUTF8() {
			return
		}
		// Splitting at a safe byte and decoding the parts must give the same text.
		var joined []byte
		for i, part := range bytes.Split(src, []byte(",")) {
			if i > 0 {
				joined = append(joined, ',')
			}
			var end int
			if joined, end = e.Decode(joined, part); end >= 0 {
				conformance.MustTrue(t, bad >= 0, "%s: a part of % x does not decode", e.Name(), src)
				return
			}
		}
		conformance.MustTrue(t, bad < 0 && slices.Equal(joined, out), "%s: parts of % x give %q", e.Name(), src, joined)
	})
}

func TestEveryPairOfGB18030IsACharacter(t *testing.T) {
	e := find(t, "gb18030")
	for a := 0x81; a <= 0xFE; a++ {
		for b := 0x40; b <= 0xFE; b++ {
			_, bad := e.Decode(nil, []byte{byte(a), byte(b)})
			conformance.True(t, bad < 0 || b == 0x7F, "%02X%02X is none", a, b)
		}
	}
	for pair, want := range map[string]rune{
		"\xA6\xD9": 0xFE10, "\xA6\xDA": 0xFE12, "\xA6\xF3": 0xFE19, "\xFE\x59": 0x9FB4, "\xFE\x61": 0x9FB5,
		"\xFE\xA0": 0x9FBB, "\xA2\xAB": 0xE766, "\xA2\xE3": 0x20AC, "\xA2\xE4": 0xE76D, "\xA6\xB9": 0xE785,
		"\xD7\xFE": 0xE814, "\xFE\x91": 0xE855, // the first six are from GB 18030-2022
	} {
		got, _ := e.Decode(nil, []byte(pair))
		conformance.Equal(t, string(got), string(want), "%X is %U, want %U", pair, []rune(string(got)), want)
	}
}

func TestEncodingsAreGuessed(t *testing.T) {
	for name, tt := range map[string]struct {
		enc        encoding.Encoding
		text, want string
	}{
		"one Chinese name":     {simplifiedchinese.GB18030, "id,姓名\n1,张伟\n", "gb18030"},
		"Chinese":              {simplifiedchinese.GBK, "订单编号,商品名称,数量\n1,苹果手机壳,3\n2,学生卡充值,10\n3,中国移动北京分公司,1\n", "gb18030"},
		"Chinese of four":      {simplifiedchinese.GB18030, "名称\n1,学生\U0001f4b3卡\n", "gb18030"},
		"traditional":          {traditionalchinese.Big5, "訂單編號,商品名稱,數量\n1,蘋果手機殼,3\n2,學生卡儲值,10\n", "big5"},
		"Japanese, Shift-JIS":  {japanese.ShiftJIS, "注文,商品\n1,りんごのケース\n2,カードのチャージです\n", "shift-jis"},
		"Japanese, EUC":        {japanese.EUCJP, "注文,商品\n1,りんごのケース\n2,カードのチャージです\n", "euc-jp"},
		"Korean":               {korean.EUCKR, "주문,상품\n1,사과 휴대폰 케이스\n2,학생 카드 충전\n", "euc-kr"},
		"Western":              {charmap.Windows1252, "id,nom\n1,Café crème à emporter\n2,Übergröße\n", "windows-1252"},
		"Russian, Windows":     {charmap.Windows1251, "ид,имя\n1,Привет из города\n2,Студенческая карта\n", "windows-1251"},
		"Russian, KOI8":        {charmap.KOI8R, "ид,имя\n1,Привет из города\n2,Студенческая карта\n", "koi8-r"},
		"UTF-8":                {encoding.Nop, "id,姓名\n1,张伟\n", ""},
		"UTF-8 with one fault": {encoding.Nop, "id,姓名\n1,张伟\n2,\xff\n", ""},
		"UTF-8 that is cut":    {encoding.Nop, "id,姓\xe5\xa7", ""},
		"ASCII":                {encoding.Nop, "id,v\n", ""},
		"binary":               {encoding.Nop, "\x80\x81\x02\xff\xfe\x00\x90", ""},
	} {
		t.Run(name, func(t *testing.T) {
			conformance.Equal(t, Guess([]byte(conformance.Try(tt.enc.NewEncoder().String(tt.text)).Must(t))), tt.want, "guessed")
		})
	}
}

func TestUTF16WithoutMarkIsGuessed(t *testing.T) {
	le := unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	be := unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	for text, enc := range map[string]encoding.Encoding{
		"id,v\n1,a\n": le, "id,v\n2,b\n": be, "编号,名称\n1,学生卡\n2,中国移动北京\n3,苹果\n": le, "编号,名称\n1,学生卡\n2,中国移动北京\n4,苹果\n": be,
	} {
		coded := conformance.Try(enc.NewEncoder().String(text)).Must(t)
		want := map[encoding.Encoding]string{le: "utf-16le", be: "utf-16be"}[enc]
		conformance.Equal(t, GuessUTF16([]byte(coded)), want, "%q: guessed", text)
	}
	for _, text := range []string{"id,v\n1,\x00\n2,a\x00b\n", "", "a", "\x00", "a,b\n"} {
		conformance.Equal(t, GuessUTF16([]byte(text)), "", "%q: guessed", text)
	}
}

var ascii = func() (all []byte) {
	for b := range byte(0x80) {
		all = append(all, b)
	}
	return all
}()
