package sqldump

import (
	"bytes"
	"strings"
)

// Syntax is the syntax of names and texts in a database's statements.
type Syntax struct {
	Quote     byte // quote of names
	Backslash bool // whether a backslash escapes in all texts; otherwise only after E
	Dollars   bool // whether texts can be in $tag$ quotes
	Hash      bool // whether # begins a comment
}

// Token is a word, a name, a text or a punctuation mark in a statement.
type Token struct {
	Text   string // without a name's quotes, but with a text's
	Quoted bool   // whether it is a name in quotes, which is never a keyword
}

// Is reports whether the token is a certain keyword or punctuation mark.
func (t Token) Is(word string) bool { return !t.Quoted && strings.EqualFold(t.Text, word) }

// Lexer finds the end of a statement that is read line by line.
type Lexer struct {
	Syntax Syntax
	pos    int
	depth  int    // nesting depth of parentheses
	end    string // end of the current quote, dollar quote or comment; "" outside
	escape bool   // whether a backslash escapes the next byte before end
	nested int    // nesting depth of comments
}

// End scans text, the statement as far as it was read. It returns the offset after the semicolon, or -1 before the end.
func (l *Lexer) End(text []byte) int {
	for l.pos < len(text) {
		if l.end != "" {
			if !l.inside(text) {
				return -1
			}
			continue
		}
		c := text[l.pos]
		switch {
		case l.opens(text):
			continue
		case c == '(':
			l.depth++
		case c == ')':
			l.depth--
		case c == ';' && l.depth <= 0:
			l.pos++
			return l.pos
		}
		l.pos++
	}
	return -1
}

// opens enters the quote or comment at pos. It returns false if there is none.
func (l *Lexer) opens(text []byte) bool {
	rest := text[l.pos:]
	before := byte(' ')
	if l.pos > 0 {
		before = text[l.pos-1]
	}
	switch c := rest[0]; {
	case c == '\'':
		e := (before == 'E' || before == 'e') && (l.pos < 2 || !isWord(text[l.pos-2]))
		l.end, l.escape = "'", e || l.Syntax.Backslash
	case c == '"' || c == l.Syntax.Quote:
		l.end, l.escape = string(c), l.Syntax.Backslash && c == '"'
	case c == '$' && l.Syntax.Dollars && !isWord(before):
		tag := dollarTag(rest)
		if tag == "" {
			return false
		}
		l.end, l.escape = tag, false
		l.pos += len(tag) - 1
	case bytes.HasPrefix(rest, []byte("--")) || c == '#' && l.Syntax.Hash:
		l.end, l.escape = "\n", false
	case bytes.HasPrefix(rest, []byte("/*")):
		l.end, l.escape, l.nested = "*/", false, 1
		l.pos++
	default:
		return false
	}
	l.pos++
	return true
}

// inside moves to the end of the current quote or comment. It returns false if that is not in text.
func (l *Lexer) inside(text []byte) bool {
	rest := text[l.pos:]
	n := bytes.Index(rest, []byte(l.end))
	if l.escape {
		if e := bytes.IndexByte(rest, '\\'); e >= 0 && (n < 0 || e < n) {
			if e+1 == len(rest) {
				l.pos += e // the escaped byte has not been read yet
				return false
			}
			l.pos += e + 2
			return true
		}
	}
	if l.end == "*/" && l.Syntax.Dollars { // comments can be nested
		if open := bytes.Index(rest, []byte("/*")); open >= 0 && (n < 0 || open < n) {
			l.nested++
			l.pos += open + 2
			return true
		}
	}
	if n < 0 {
		l.pos = max(l.pos, len(text)-len(l.end)+1) // the end of text may be the start of l.end
		return false
	}
	l.pos += n + len(l.end)
	if l.nested--; l.end != "*/" || l.nested <= 0 {
		l.end, l.nested = "", 0
	}
	return true
}

func isWord(c byte) bool {
	return c == '_' || c == '$' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// dollarTag returns the dollar quote at the start of text, or "".
func dollarTag(text []byte) string {
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '$':
			return string(text[:i+1])
		case !isWord(c) || i == 1 && c >= '0' && c <= '9':
			return ""
		}
	}
	return ""
}

// Tokens returns the tokens of a statement, without comments.
func Tokens(statement []byte, s Syntax) (tokens []Token) {
	l := Lexer{Syntax: s}
	for l.pos < len(statement) {
		c := statement[l.pos]
		from := l.pos
		switch {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			l.pos++
			continue
		case l.opens(statement):
			for l.end != "" && l.inside(statement) {
				// A doubled quote stands for a quote in the text.
				if at := l.pos; l.end == "" && (c == '\'' || c == '"' || c == s.Quote) && at < len(statement) &&
					statement[at] == c {
					l.end = string(c)
					l.pos++
				}
			}
			if l.end != "" {
				l.pos, l.end = len(statement), ""
			}
			text := string(statement[from:l.pos])
			switch {
			case c == s.Quote && len(text) > 1:
				q := string(c)
				tokens = append(tokens, Token{strings.ReplaceAll(text[1:len(text)-1], q+q, q), true})
			case c == '\'' || c == '"' || c == '$':
				tokens = append(tokens, Token{text, true})
			}
			continue
		case isWord(c):
			for l.pos < len(statement) && isWord(statement[l.pos]) {
				l.pos++
			}
		default:
			l.pos++
		}
		tokens = append(tokens, Token{string(statement[from:l.pos]), false})
	}
	return tokens
}

// Items returns the items in the first parentheses, which commas separate, and the tokens after the parentheses.
func Items(tokens []Token) (items [][]Token, rest []Token) {
	depth := 0
	var item []Token
	for i, t := range tokens {
		switch {
		case t.Is("("):
			if depth++; depth == 1 {
				continue
			}
		case t.Is(")"):
			if depth--; depth == 0 {
				return append(items, item), tokens[i+1:]
			}
		case t.Is(",") && depth == 1:
			items, item = append(items, item), nil
			continue
		}
		if depth > 0 {
			item = append(item, t)
		}
	}
	return nil, nil
}

// Name returns the parts of the name at the start of tokens, nil if there is none, and the tokens after it.
func Name(tokens []Token) (parts []string, rest []Token) {
	for len(tokens) > 0 && (tokens[0].Quoted || isWord(tokens[0].Text[0])) {
		parts, tokens = append(parts, tokens[0].Text), tokens[1:]
		if len(tokens) < 2 || !tokens[0].Is(".") {
			return parts, tokens
		}
		tokens = tokens[1:]
	}
	return nil, tokens
}

// Words reports whether tokens begin with these keywords. It returns the tokens after them.
func Words(tokens []Token, words ...string) (rest []Token, ok bool) {
	for i, w := range words {
		if i >= len(tokens) || !tokens[i].Is(w) {
			return tokens, false
		}
	}
	return tokens[len(words):], true
}
