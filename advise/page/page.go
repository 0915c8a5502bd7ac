package page

import (
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strconv"
	"sync"

	"tsimport/advise"
	"tsimport/advise/simulate"
)

//go:embed page.html
var text string

// page is made when it is needed: most commands write none.
var page = sync.OnceValue(func() *template.Template { return template.Must(template.New("page").Funcs(functions).Parse(text)) })

var functions = template.FuncMap{
	"percent": func(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) },
	"grouped": grouped,
	"size":    size,
	"width":   func(share float64) string { return strconv.FormatFloat(max(0.5, 100*share), 'f', 1, 64) },
	"class":   class,
	"int64":   func(n int) int64 { return int64(n) },
}

// Write writes the page.
func Write(w io.Writer, r *advise.Report) error {
	v := view{Report: r}
	for _, c := range r.Candidates {
		v.Cards = append(v.Cards, card{Candidate: c, Maps: maps(c)})
	}
	if err := page().Execute(w, v); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

type view struct {
	*advise.Report
	Cards []card
}

type card struct {
	*advise.Candidate
	Maps []heatMap
}

// heatMap is a drawing: how many rows each partition (a row of it) got in each part of the time (a column).
type heatMap struct {
	Title         string
	Columns, Rows int
	Cells         string // a byte each, column by column, base64; 255 is hottest times the even part, or more
}

// hottest is how many times the even part of rows a cell shows at most; all above look alike.
const hottest = 8

func maps(c *advise.Candidate) (all []heatMap) {
	if c.Heat == nil || len(c.Heat.Before.Rows) == 0 {
		return nil
	}
	all = append(all, draw(c.Column+" as it is", &c.Heat.Before))
	if c.Fix != nil && c.Heat.After != nil {
		all = append(all, draw("with the fix: "+c.Fix.Name, c.Heat.After))
	}
	return all
}

func draw(title string, h *simulate.Heat) heatMap {
	m := heatMap{Title: title, Columns: len(h.Rows), Rows: h.Partitions}
	var cells []byte
	for _, column := range h.Rows {
		total := 0
		for _, n := range column {
			total += int(n)
		}
		for _, n := range column {
			times := float64(n) * float64(h.Partitions) / float64(max(total, 1))
			cells = append(cells, byte(min(255, 255*times/hottest)))
		}
	}
	m.Cells = base64.StdEncoding.EncodeToString(cells)
	return m
}

func class(v advise.Verdict) string {
	switch v {
	case advise.Recommended:
		return "good"
	case advise.Usable:
		return "some"
	}
	return "bad"
}

// grouped writes a number with commas between its thousands.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func size(n int64) string {
	value, unit := float64(n), "bytes"
	for _, u := range []string{"KB", "MB", "GB", "TB", "PB"} {
		if value < 1024 {
			break
		}
		value, unit = value/1024, u
	}
	if unit == "bytes" {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.1f %s", value, unit)
}
