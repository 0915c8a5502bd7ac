package reader

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/convert"
	"example.com/tsimport/reader/record"
)

func packed(text string) string { return string(gzipped([]byte(text))) }

func deflated(text string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	w.Write([]byte(text))
	w.Close()
	return b.String()
}

func tarred(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	must(t, w.WriteHeader(&tar.Header{Name: "a.csv", Size: int64(len(text)), Mode: 0o644}))
	w.Write([]byte(text))
	w.Close()
	return b.String()
}

func zipped(t *testing.T, name, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	conformance.Try(w.Create(name)).Must(t).Write([]byte(text))
	w.Close()
	return b.String()
}

// hadoop frames a snappy block as Hadoop's codec does.
func hadoop(text string) string {
	block := s2.EncodeSnappy(nil, []byte(text))
	b := binary.BigEndian.AppendUint32(nil, uint32(len(text)))
	return string(append(binary.BigEndian.AppendUint32(b, uint32(len(block))), block...))
}

func utf16(t *testing.T, text string, order unicode.Endianness) string {
	t.Helper()
	return conformance.Try(unicode.UTF16(order, unicode.IgnoreBOM).NewEncoder().String(text)).Must(t)
}

const someRows = "id,v\n1,a\n2,b\n3,c\n"

func TestFilesWithoutRowsAreRefusedByName(t *testing.T) {
	bson := "\x16\x00\x00\x00\x02id\x00\x06\x00\x00\x00hello\x00\x00\x00"
	bson = string(binary.LittleEndian.AppendUint32(nil, uint32(len(bson)))) + bson[4:]
	lzmaHead := "\x5d\x00\x00\x80\x00" + strings.Repeat("\xff", 8) // as every encoder writes it
	random := strings.Repeat("\x00\x9c\x13\xfe\x01abc\x00\x00\x17", 50)
	for name, tt := range map[string]struct{ content, want, way string }{
		"a.db":            {"SQLite format 3\x00\x10\x00" + random, "a SQLite database", "?table=NAME"},
		"a.avro":          {"Obj\x01\x04\x14avro.codec" + random, "an Avro file", "avro-tools tojson"},
		"a.orc":           {"ORC\x0a\x0b\x00" + random, "an ORC file", "pyarrow.orc"},
		"a.arrow":         {"ARROW1\x00\x00" + random, "its end marker is missing", "cut short"},
		"a.feather":       {"FEA1\x00\x00" + random, "a Feather file of version 1", "pyarrow"},
		"a.arrows":        {"\xff\xff\xff\xff\x80\x00\x00\x00" + random, "open ", "damaged metadata"},
		"a.bson":          {bson, "BSON", "bsondump"},
		"secret.parquet":  {"PARE\x15\x04" + random, "encrypted Parquet", "unencrypted"},
		"damaged.parquet": {"XAR1\x15\x04" + random, "its name says Parquet", "--format csv"},
		"a.parquet.gz":    {packed("PAR1\x15\x04" + random), "Parquet inside a compressed file", "unpack it"},
		"a.pdf":           {"%PDF-1.7\n%\xe2\xe3", "a PDF document", "CSV"},
		"a.png":           {"\x89PNG\r\n\x1a\n\x00\x00", "a PNG picture", "CSV"},
		"a.xls":           {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + strings.Repeat("\x00", 500), ".xls workbook", "soffice"},
		"a.xlsx":          {zipped(t, "[Content_Types].xml", "<Types/>"), ".xlsx workbook", "save the sheet as CSV"},
		"a.zip":           {zipped(t, "a.csv", someRows), "zip", "unzip -p"},
		"a.deflate":       {deflated(someRows), "zlib data", "zlib.decompress"},
		"a.snappy":        {hadoop(someRows), "framing of Hadoop", "hadoop fs -text"},
		"a.csv.lz":        {"LZIP\x01\x0c\x00\x34\x99\x8b" + random, "lzip", "decompress it: lzip -dc "},
		"a.csv.lzma":      {lzmaHead + random, "lzma", "decompress it: xz --format=lzma -dc "},
		"a.csv.lzma.gz":   {packed(lzmaHead + random), "lzma inside gzip", "decompress it first; then decompress it: xz"},
		"a.tar.gz":        {packed(tarred(t, someRows)), "tar inside gzip", "tar -xf"},
		"a.tar":           {tarred(t, someRows), "tar", "tar -xf"},
		"a.dump": {strings.Replace(tarred(t, someRows), "a.csv\x00\x00", "toc.dat", 1), "a pg_dump archive (tar)",
			"pg_restore -f dump.sql"},
		"a.csv.gz.gz": {packed(packed(someRows)), "gzip inside gzip", "decompress it once"},
		"a.db.gz":     {packed("SQLite format 3\x00" + random), "a SQLite database inside gzip", "decompress it first"},
		"a.json-seq":  {"\x1e{\"id\":1}\n\x1e{\"id\":2}\n", "a JSON text sequence", "tr -d"},
		"le.csv":      {utf16(t, someRows, unicode.LittleEndian), "looks like utf-16le", "--encoding utf-16le"},
		"be.csv": {utf16(t, "编号,名称\n1,学生卡\n2,中国移动北京\n3,苹果\n", unicode.BigEndian), "looks like utf-16be",
			"--encoding utf-16be"},
		"le.csv.gz":     {packed(utf16(t, someRows, unicode.LittleEndian)), "looks like utf-16le", "--encoding utf-16le"},
		"a.bin":         {random, "the file is not text", "--format csv"},
		"bin.gz":        {packed(random), "the file is not text", "--format csv"},
		"a.xml":         {"<?xml version=\"1.0\"?><a/>", "XML", "convert"},
		"404.csv":       {"\n<!DOCTYPE html>\n<html></html>", "a web page", "error"},
		"in a space.db": {"SQLite format 3\x00\x10\x00" + random, "a SQLite database", "'sqlite:FILE?"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(t.Context(), itemOf(t, name, []byte(tt.content)), Options{})
			if err == nil {
				s.Close()
				t.Fatalf("it is read as %v with columns %q", s.Format, s.Columns)
			}
			conformance.True(t, strings.Contains(err.Error(), tt.want) && strings.Contains(err.Error(), tt.way), "%v", err)
			conformance.True(t, !strings.Contains(err.Error(), "\n"), "more than a line: %v", err)
		})
	}
}

func TestUnusualTextsAreRead(t *testing.T) {
	for name, content := range map[string]string{
		"orc.csv": "ORC,v\n1,2\n", "pare.csv": "PARE,v\n", "gif.csv": "GIF89a,v\n1,2\n", "fea.csv": "FEA1,b\n1,2\n",
		"obj.csv": "Obj,b\n", "nul.csv": "id,v\n1,a\x00b and so on\n2,c\n3,d\n", "hive.txt": "x\x01y\n\x02\x03\x01z\n",
		"zip.csv": "PK,v\n1,2\n", "minus.csv": "-- a,b\n1,2\n", "xls.xls": "a\tb\n1\t2\n",
	} {
		opened(t, itemOf(t, name, []byte(content)), Options{})
	}
}

func TestTextsInOtherEncodingsAreNotBinaryFiles(t *testing.T) {
	latin := func(text string) string {
		return conformance.Try(charmap.Windows1252.NewEncoder().String(text)).Must(t)
	}
	pretty := "[\n\t{\"id\": 1},\n\t{\"id\": 2}\n]\n"
	for name, tt := range map[string]struct{ content, encoding string }{
		"pretty.json":     {"\xff\xfe" + utf16(t, pretty, unicode.LittleEndian), ""},
		"said.json":       {utf16(t, pretty, unicode.LittleEndian), "utf-16le"},
		"short.csv":       {"\xff\xfe" + utf16(t, "i\nO\n", unicode.LittleEndian), ""},
		"be.csv":          {utf16(t, "i\nO\n是学\n间\n的的不\n", unicode.BigEndian), "utf-16be"},
		"orcamento.csv":   {latin("ORCAMENTO;DESCRIÇÃO\n1;2\n"), "windows-1252"},
		"pares.csv":       {latin("PARES;NÃO\n1;2\n"), "windows-1252"},
		"gif.csv":         {latin("GIF8;ÇÇ\n"), "windows-1252"},
		"hive.txt":        {"ORC\x01a\n1\x012\n", ""},
		"duck.csv":        {"id,name\nDUCK,Donald and his nephews\n", ""},
		"squares.csv":     {"x^2,y\n" + strings.Repeat("\x83J,\x82\xa4\x82\xa2\x83R\n", 20), "shift-jis"},
		"squares.utf8.gz": {packed("x^2,y\n1,2\n"), ""},
	} {
		opened(t, itemOf(t, name, []byte(tt.content)), Options{Encoding: tt.encoding})
	}
}

func TestAGivenFormatIsBelieved(t *testing.T) {
	opened(t, itemOf(t, "a.parquet", []byte("SQLite format 3\x00,b\n1,2\n")), Options{Format: CSV})
}

func TestWholeFileSnappyOfJSONLinesIsRead(t *testing.T) {
	text := strings.Repeat("{\"id\":1,\"v\":\"some text\"}\n", 40)
	for _, name := range []string{"log_1453.snappy", "log", "a.json.snappy"} {
		got := readAll(itemOf(t, name, s2.EncodeSnappy(nil, []byte(text))), Options{})
		conformance.True(t, got.err == nil && got.rows == 40 && got.bad == 0, "%s: %+v", name, got)
	}
}

// reasonsOf returns why values of a source are refused as strings.
func reasonsOf(t *testing.T, name, content string, o Options) (reasons []string) {
	t.Helper()
	s, err := Open(t.Context(), itemOf(t, name, []byte(content)), o)
	if err != nil {
		return []string{err.Error()}
	}
	defer s.Close()
	var columns []table.Column
	for _, c := range s.Columns {
		columns = append(columns, table.Column{Name: c, Source: c, Type: table.String})
	}
	c, err := convert.New(s.Columns, columns, convert.Options{Decode: s.Decode(), EncodingHint: s.EncodingHint})
	must(t, err)
	must(t, conformance.ErrorOf(s.Sample(1<<20, s.Columns, func(rec *record.Record) {
		if _, why := c.Convert(rec); why != nil {
			reasons = append(reasons, why.Error())
		}
	})))
	return reasons
}

func TestAnotherEncodingIsNamedInTheError(t *testing.T) {
	gb := func(text string) string {
		return conformance.Try(simplifiedchinese.GB18030.NewEncoder().String(text)).Must(t)
	}
	const advice = "looks like gb18030: --encoding gb18030"
	long := "id,name\n" + strings.Repeat("1,plain\n", headBytes/8)
	for name, tt := range map[string]struct {
		content string
		o       Options
		want    int
	}{
		"header.csv":    {gb("编号,姓名\n1,张伟\n"), Options{}, 1},
		"values.csv":    {gb("id,name\n1,张伟\n2,李娜\n"), Options{}, 2},
		"values.jsonl":  {gb("{\"id\":0,\"n\":\"x\"}\n{\"id\":1,\"n\":\"张伟\"}\n{\"id\":2,\"n\":\"李娜\"}\n"), Options{}, 2},
		"late.csv":      {long + gb("2,张伟\n"), Options{}, 0},
		"misstated.csv": {gb("id,name\n1,学生卡充值\n"), Options{Encoding: "shift-jis"}, 0},
	} {
		reasons := reasonsOf(t, name, tt.content, tt.o)
		conformance.True(t, len(reasons) == tt.want || tt.want <= 0, "%s: %q", name, reasons)
		for _, r := range reasons {
			conformance.Contains(t, r, advice, "%s", name)
		}
	}
}
