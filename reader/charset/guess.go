package charset

import "unicode/utf8"

// Guess returns the likely encoding of text, for advice to users. It returns "" for UTF-8, and if no encoding is
// likely. It looks for the most common characters of each language, because almost any bytes are valid Latin-1.
func Guess(text []byte) string {
	wide, bad := 0, 0 // multi-byte UTF-8 characters; bytes that are not UTF-8
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			if i > 0 || len(text) >= utf8.UTFMax { // the first byte of a short text may begin an incomplete character
				bad++
			}
		case n > 1:
			wide++
		}
		i += n
	}
	if bad == 0 || wide > bad {
		return "" // a damaged value in UTF-8 text proves nothing
	}
	best, most := "", 0.5
	for _, c := range candidates {
		if share := c.share(text); share > most {
			best, most = c.name, share
		}
	}
	return best
}

type candidate struct {
	name  string
	share func(text []byte) float64 // share of common characters among non-ASCII ones; 0 if undecodable
}

// candidates is in order of preference: the first of equal shares wins.
var candidates = []candidate{
	{"euc-kr", shareKorean},
	{"euc-jp", shareEUCJP},
	{"gb18030", func(text []byte) float64 { return sharePairs(text, true, isTrail, commonChinese) }},
	{"big5", func(text []byte) float64 { return sharePairs(text, false, isTrail, commonBig5) }},
	{"shift-jis", shareShiftJIS},
	{"windows-1251", func(text []byte) float64 { return shareCyrillic(text, 0xE0) }},
	{"koi8-r", func(text []byte) float64 { return shareCyrillic(text, 0xC0) }},
	{"windows-1252", shareLatin},
}

func isTrail(b byte) bool { return b >= 0x40 && b != 0x7F && b != 0xFF }

// commonChinese accepts roughly GB 2312's first level, which has 3,755 characters in phonetic order, and punctuation.
func commonChinese(a, b byte) bool {
	return b >= 0xA1 && (a >= 0xB0 && a <= 0xD7 || a == 0xA1 || a == 0xA3)
}

// commonBig5 accepts roughly Big5's first level, which has 5,401 characters in stroke order, and punctuation.
func commonBig5(a, b byte) bool {
	return (b <= 0x7E || b >= 0xA1) && (a >= 0xA4 && a <= 0xC6 || a == 0xA1 || a == 0xA2)
}

// sharePairs returns the share of common characters among the pairs in text. four allows four-byte characters.
func sharePairs(text []byte, four bool, trail func(byte) bool, common func(a, b byte) bool) float64 {
	pairs, good := 0, 0
	for i := 0; i < len(text); i++ {
		a := text[i]
		switch {
		case a < 0x80:
			continue
		case a == 0x80 || a == 0xFF:
			return 0
		case i+1 == len(text):
			continue // the last character is incomplete
		}
		b := text[i+1]
		if four && b >= '0' && b <= '9' {
			if i+3 < len(text) && (text[i+2] < 0x81 || text[i+3] < '0' || text[i+3] > '9') {
				return 0
			}
			i += 3
			continue
		}
		if !trail(b) {
			return 0
		}
		pairs++
		if common(a, b) {
			good++
		}
		i++
	}
	return ratio(good, pairs)
}

func ratio(good, all int) float64 {
	if all == 0 {
		return 0
	}
	return float64(good) / float64(all)
}

func isHigh(b byte) bool { return b >= 0xA1 && b != 0xFF }

// shareKorean looks for Hangul, which is in the first third of the area that GB 2312 uses for Chinese characters.
func shareKorean(text []byte) float64 {
	pairs := 0
	share := sharePairs(text, false, isHigh, func(a, _ byte) bool {
		pairs++
		return a >= 0xB0 && a <= 0xC8 || a == 0xA1 || a == 0xA3
	})
	if pairs < 10 || share < 0.98 {
		return 0
	}
	return share
}

// shareEUCJP looks for kana, the most frequent characters in Japanese.
func shareEUCJP(text []byte) float64 {
	kana, pairs := 0, 0
	share := sharePairs(text, false, isHigh, func(a, _ byte) bool {
		pairs++
		if a == 0xA4 || a == 0xA5 {
			kana++
		}
		return a >= 0xB0 && a <= 0xCF || a == 0xA4 || a == 0xA5 || a == 0xA1 || a == 0xA3
	})
	if ratio(kana, pairs) < 0.2 {
		return 0
	}
	return share
}

func shareShiftJIS(text []byte) float64 {
	kana, pairs := 0, 0
	for i := 0; i < len(text); i++ {
		a := text[i]
		switch {
		case a < 0x80:
			continue
		case a >= 0xA1 && a <= 0xDF: // half-width katakana
			continue
		case a == 0x80 || a == 0xA0 || a > 0xFC:
			return 0
		case i+1 == len(text):
			continue
		}
		b := text[i+1]
		if b < 0x40 || b == 0x7F || b > 0xFC {
			return 0
		}
		pairs++
		if a == 0x82 && b >= 0x9F && b <= 0xF1 || a == 0x83 && b <= 0x96 {
			kana++
		}
		i++
	}
	if ratio(kana, pairs) < 0.2 {
		return 0
	}
	return 0.9
}

// shareCyrillic returns the share of letters among non-ASCII bytes if most letters are lower case (small to small+31).
func shareCyrillic(text []byte, small byte) float64 {
	high, letters, lower, words := 0, 0, 0, 0
	for i, b := range text {
		if b < 0x80 {
			continue
		}
		high++
		if b >= 0xC0 {
			letters++
			if b >= small && int(b) < int(small)+32 {
				lower++
			}
		}
		if i == 0 || text[i-1] < 0x80 {
			words++
		}
	}
	if ratio(lower, letters) < 0.7 || words == 0 || high < 2*words {
		return 0
	}
	return 0.95 * ratio(letters, high)
}

// shareLatin returns the share of non-ASCII bytes with only ASCII letters as neighbours, as accented letters have.
func shareLatin(text []byte) float64 {
	high, alone := 0, 0
	for i, b := range text {
		if b < 0x80 {
			continue
		}
		high++
		before, after := i > 0 && text[i-1] >= 0x80, i+1 < len(text) && text[i+1] >= 0x80
		if !before && !after && b >= 0xA0 {
			alone++
		}
	}
	return 0.9 * ratio(alone, high)
}

// GuessUTF16 returns utf-16le or utf-16be if text has many zero bytes, nearly all of them at odd or at even offsets.
func GuessUTF16(text []byte) string {
	var nul [2]int
	for i, b := range text {
		if b == 0 {
			nul[i%2]++
		}
	}
	pairs := len(text) / 2
	for parity, name := range []string{1: "utf-16le", 0: "utf-16be"} {
		n, other := nul[parity], nul[1-parity]
		if other*50 <= n && pairs >= 2 && (n*10 >= pairs*9 || n >= 8 && n*5 >= pairs) {
			return name
		}
	}
	return ""
}
