package charset

import (
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
)

func TestEncodingsAreGuessed(t *testing.T) {
	for name, tt := range map[string]struct {
		enc  encoding.Encoding
		text string
		want string
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
			text, err := tt.enc.NewEncoder().String(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			if got := Guess([]byte(text)); got != tt.want {
				t.Errorf("guessed %q, want %q", got, tt.want)
			}
		})
	}
}

func TestUTF16WithoutAMarkIsGuessed(t *testing.T) {
	le := unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	be := unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	for text, enc := range map[string]encoding.Encoding{
		"id,v\n1,a\n": le, "id,v\n2,b\n": be, "编号,名称\n1,学生卡\n2,中国移动北京\n3,苹果\n": le, "编号,名称\n1,学生卡\n2,中国移动北京\n4,苹果\n": be,
	} {
		coded, err := enc.NewEncoder().String(text)
		if err != nil {
			t.Fatal(err)
		}
		want := map[encoding.Encoding]string{le: "utf-16le", be: "utf-16be"}[enc]
		if got := GuessUTF16([]byte(coded)); got != want {
			t.Errorf("%q: guessed %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{"id,v\n1,\x00\n2,a\x00b\n", "", "a", "\x00", "a,b\n"} {
		if got := GuessUTF16([]byte(text)); got != "" {
			t.Errorf("%q: guessed %q", text, got)
		}
	}
}
