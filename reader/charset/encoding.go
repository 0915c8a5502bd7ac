package charset

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
)

// Encoding is a text encoding. The zero value is UTF-8.
type Encoding struct {
	form  form
	table *table // for the form legacy
}

type form uint8

const (
	utf8Form form = iota
	utf16LE
	utf16BE
	utf16Any // the BOM decides the byte order
	legacy   // decoded by a table
)

var formNames = [...]string{utf8Form: "utf-8", utf16LE: "utf-16le", utf16BE: "utf-16be", utf16Any: "utf-16"}

// aliases maps names that the WHATWG and IANA indexes lack, or read as another encoding, as they do latin1.
var aliases = map[string]string{
	"latin1": "iso-8859-1", "l1": "iso-8859-1", "latin-1": "iso-8859-1", "ansi": "windows-1252", "ascii": "us-ascii",
	"cp936": "gbk", "ms936": "gbk", "windows-936": "gbk", "gb2312": "gbk", "euc-cn": "gbk", "gb18030-2005": "gb18030",
	"gb18030-2022": "gb18030", "gb-18030": "gb18030", "sjis": "shift-jis", "shiftjis": "shift-jis", "cp932": "shift-jis",
	"windows-31j": "shift-jis", "ms932": "shift-jis", "eucjp": "euc-jp", "euckr": "euc-kr", "cp949": "euc-kr",
	"uhc": "euc-kr", "cp950": "big5", "big5-hkscs": "big5", "utf8": "utf-8", "utf-8-sig": "utf-8", "utf8-bom": "utf-8",
	"utf-8-bom": "utf-8", "utf16": "utf-16", "utf16le": "utf-16le", "utf16be": "utf-16be", "utf-16-le": "utf-16le",
	"utf-16-be": "utf-16be", "ucs-2": "utf-16", "ucs-2le": "utf-16le", "ucs-2be": "utf-16be",
}

const some = "utf-8, gb18030, gbk, utf-16, utf-16le, utf-16be, big5, shift-jis, euc-jp, euc-kr, iso-8859-1 to -16, " +
	"windows-1250 to -1258, koi8-r, macintosh"

// Find returns the encoding with a name, in any case and with _ or -. latin1 is ISO 8859-1, not windows-1252.
func Find(name string) (Encoding, error) {
	label := strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), "_", "-")
	if to, ok := aliases[label]; ok {
		label = to
	}
	for f, n := range formNames {
		if n == label {
			return Encoding{form: form(f)}, nil
		}
	}
	switch {
	case strings.HasPrefix(label, "utf-32"), strings.HasPrefix(label, "utf32"), strings.HasPrefix(label, "utf-7"),
		label == "cesu-8",
		strings.HasPrefix(label, "iso-2022"), strings.HasPrefix(label, "hz"), label == "replacement",
		label == "x-user-defined":
		return Encoding{}, fmt.Errorf("encoding %s is not supported; use, for example, %s", name, some)
	case label == "us-ascii":
		return Encoding{legacy, tableOf(label, nil)}, nil
	}
	enc := lookup(label)
	if enc == nil {
		return Encoding{}, fmt.Errorf("encoding %q is unknown; use, for example, %s", name, some)
	}
	canonical, err := ianaindex.MIME.Name(enc)
	if err != nil {
		canonical = label
	}
	return Encoding{legacy, tableOf(strings.ReplaceAll(strings.ToLower(canonical), "_", "-"), enc)}, nil
}

func lookup(label string) encoding.Encoding {
	for _, name := range []string{label, strings.ReplaceAll(label, "-", "_")} {
		if enc, err := ianaindex.IANA.Encoding(name); err == nil && enc != nil {
			return enc
		}
		if enc, err := ianaindex.MIME.Encoding(name); err == nil && enc != nil {
			return enc
		}
		if enc, err := htmlindex.Get(name); err == nil {
			return enc
		}
	}
	return nil
}

// tables caches tables by canonical name, because making one is expensive.
var tables sync.Map

func tableOf(name string, enc encoding.Encoding) *table {
	t, known := tables.Load(name)
	if !known {
		t, _ = tables.LoadOrStore(name, newTable(name, enc))
	}
	return t.(*table)
}

// DetectBOM returns the encoding and length of the byte order mark at the start of head. ok is false for UTF-32.
func DetectBOM(head []byte) (e Encoding, bomLen int, ok bool) {
	switch {
	case bytes.HasPrefix(head, []byte{0xEF, 0xBB, 0xBF}):
		return Encoding{}, 3, true
	case IsUTF32(head):
		return Encoding{}, 0, false
	case bytes.HasPrefix(head, []byte{0xFF, 0xFE}):
		return Encoding{form: utf16LE}, 2, true
	case bytes.HasPrefix(head, []byte{0xFE, 0xFF}):
		return Encoding{form: utf16BE}, 2, true
	case bytes.HasPrefix(head, []byte{0x84, 0x31, 0x95, 0x33}):
		e, err := Find("gb18030")
		return e, 4, err == nil
	}
	return Encoding{}, 0, false
}

// IsUTF32 reports whether a file begins with UTF-32's byte order mark. As UTF-16, those bytes would be a BOM and a NUL.
func IsUTF32(head []byte) bool {
	return bytes.HasPrefix(head, []byte{0xFF, 0xFE, 0, 0}) || bytes.HasPrefix(head, []byte{0, 0, 0xFE, 0xFF})
}

// Name returns the encoding's canonical name, in lower case.
func (e Encoding) Name() string {
	if e.form == legacy {
		return e.table.name
	}
	return formNames[e.form]
}

// IsUTF8 reports whether e is UTF-8, which needs no decoding.
func (e Encoding) IsUTF8() bool { return e.form == utf8Form }

// MultiByte reports whether e is a multi-byte encoding other than Unicode's.
func (e Encoding) MultiByte() bool { return e.form == legacy && e.table.pairs != nil }

// CountUTF8 returns the number of non-ASCII characters in head, or 0 if it is not UTF-8. The last may be cut off.
func CountUTF8(head []byte) (wide int) {
	for i := 0; i < len(head); {
		r, n := utf8.DecodeRune(head[i:])
		if r == utf8.RuneError && n == 1 {
			if utf8.FullRune(head[i:]) {
				return 0
			}
			return wide
		}
		if n > 1 {
			wide++
		}
		i += n
	}
	return wide
}

// SafeBytes reports whether each ASCII character in set always stands for itself and is never part of another
// character. All are safe in UTF-8, EUC-JP and single-byte encodings. Line ends, commas, quotes and tabs are safe in
// all but UTF-16 and EBCDIC. '|' and '\' are unsafe in GB18030, GBK, Big5 and Shift-JIS, and letters in EUC-KR (CP949).
func (e Encoding) SafeBytes(set []byte) bool {
	return !slices.ContainsFunc(set, func(b byte) bool {
		return b >= 0x80 || e.form != utf8Form && (e.form != legacy || !e.table.ascii || e.table.trail[b])
	})
}
