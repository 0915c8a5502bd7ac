package page

import (
	"bufio"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"sync"
)

// Page is the content of a page, from top to bottom.
type Page struct {
	Title  string
	State  string // a word or two beside the title; may be ""
	Tone   Tone   // colour of State
	Lead   []string
	Facts  []Fact
	Charts []Chart
	Heat   *Heat // may be nil
	Tables []Table
}

// Tone is the colour of a State.
type Tone string

const (
	Good    Tone = "good"
	Warning Tone = "some"
	Bad     Tone = "bad"
)

// Fact is an important number at the top of the page.
type Fact struct {
	Name, Value, Note string
}

// Chart plots numbers over time, with a point every Every seconds. NaN leaves a gap.
type Chart struct {
	Title  string   `json:"-"`
	Unit   string   `json:"unit"` // unit of the values: "" for plain numbers, "s" for seconds of latency, "B" for bytes
	Every  Number   `json:"every"`
	Log    bool     `json:"log"` // logarithmic vertical axis
	Series []Series `json:"series"`
}

// Series is one line of a chart.
type Series struct {
	Name   string `json:"name"`
	Values Values `json:"values"`
}

type Number float64

type Values []float64

// Heat holds counts, such as numbers of rows, by time and partition. The page shows them per second.
type Heat struct {
	Title      string
	Unit       string
	Every      float64   // length of an interval in seconds
	Partitions []string  // lower bounds of the partitions, in key order
	Counts     [][]int64 // counts by interval and partition
}

// Table is a table of text. Columns of numbers are aligned to the right.
type Table struct {
	Title   string
	Columns []string
	Numbers []bool // whether a column holds numbers; columns beyond the end do not
	Rows    [][]string
	Note    string
}

// Wide reports whether the table needs the whole width of the page.
func (t Table) Wide() bool { return len(t.Columns) > 5 }

// Right reports whether a column holds numbers.
func (t Table) Right(column int) bool { return column < len(t.Numbers) && t.Numbers[column] }

//go:embed page.html
var pageHTML string

//go:embed page.js
var pageJS string

//go:embed uplot/uPlot.iife.min.js
var uplotJS string

//go:embed uplot/uPlot.min.css
var uplotCSS string

// languageJS sets a valid language for uPlot's number formats in browsers that report an invalid one.
const languageJS = `try { new Intl.NumberFormat(navigator.language) } catch (e) { Object.defineProperty(navigator, "language", { value: "en" }) }
`

// pageTemplate is parsed on first use, because most commands write no page.
var pageTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page").Funcs(template.FuncMap{
		"script": func() template.JS { return template.JS(languageJS + uplotJS + "\n" + pageJS) },
		"style":  func() template.CSS { return template.CSS(uplotCSS) },
	}).Parse(pageHTML))
})

func Write(w io.Writer, p *Page) error {
	whole := bufio.NewWriterSize(w, 64<<10) // a template writes its pieces one by one
	err := pageTemplate().Execute(whole, view{Page: p, Data: data{p.Charts, heatOf(p.Heat)}})
	if err = cmp.Or(err, whole.Flush()); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

type view struct {
	*Page
	Data data
}
