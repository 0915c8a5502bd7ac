package commands

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/lifecycle"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/transfer/lifecycle/apply"
)

// printAges shows a plan or its outcome, one line per table.
func printAges(c *call, plan *apply.Plan, _ *target, _ error) error {
	if len(plan.Items) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(results(c), 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "TABLE\tAGE\tCLASS\tSTATE\tCHANGES\n")
	for _, i := range plan.Items {
		fmt.Fprintf(w, "%s\t%d\t%d (%s)\t%s\t%s\n", i.Have.Name, i.Age, i.Class.Number, i.Class.Ages(), i.State,
			changesText(plan, i))
	}
	return w.Flush()
}

func changesText(plan *apply.Plan, i *apply.Item) string {
	var parts []string
	for _, s := range i.Settings() {
		parts = append(parts, settingText(s))
	}
	switch {
	case i.Export != nil:
		parts = append(parts, fmt.Sprintf("exported to %s (%s rows)", plan.File(i), words.Grouped(i.Export.Rows)))
	case i.Exports():
		parts = append(parts, "export to "+i.Class.Archive)
	}
	how := ""
	if i.Class.Drop {
		how = " without an archive"
	}
	switch {
	case i.Dropped:
		parts = append(parts, "dropped"+how)
	case i.Drop:
		parts = append(parts, "drop"+how)
	}
	text := cmp.Or(strings.Join(parts, ", "), "-")
	if i.Note != "" {
		text += "; note: " + i.Note
	}
	if i.Err != nil {
		text += "; " + client.OneLine(i.Err.Error())
	}
	return text
}

func settingText(s lifecycle.Setting) string {
	show := func(v int) string {
		switch {
		case s.Name == "ttl" && v == -1:
			return "never"
		case s.Name == "ttl":
			return fmt.Sprintf("%d s", v)
		}
		return fmt.Sprint(v)
	}
	return fmt.Sprintf("%s %s → %s", strings.NewReplacer(".", " ", "_", " ").Replace(s.Name), show(s.From), show(s.To))
}

type agesJSON struct {
	Policy      string     `json:"policy"`
	Template    string     `json:"template"`
	Target      string     `json:"target"`
	Now         string     `json:"now"`
	Apply       bool       `json:"apply"`
	DropExpired bool       `json:"drop_expired"`
	Tables      []tableAge `json:"tables"`
	Others      []string   `json:"others"` // tables whose names only resemble the template
	Error       string     `json:"error,omitempty"`
	ExitCode    int        `json:"exit_code"`
}

type tableAge struct {
	Table   string              `json:"table"`
	Period  string              `json:"period"`
	Age     int                 `json:"age"`
	Class   int                 `json:"class"`
	State   apply.State         `json:"state"`
	Changes []lifecycle.Setting `json:"changes"`
	Expired bool                `json:"expired"`
	Export  *exportedAge        `json:"export,omitempty"` // complete, verified export
	Drop    bool                `json:"drop"`             // requested and permitted
	Dropped bool                `json:"dropped"`
	Note    string              `json:"note,omitempty"`
	Error   string              `json:"error,omitempty"`
}

type exportedAge struct {
	File   string `json:"file"`
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

func printAgesJSON(c *call, plan *apply.Plan, t *target, result error) error {
	out := agesJSON{Policy: c.String("policy"), Template: plan.Template.String(), Target: t.name,
		Now:   plan.Now.In(plan.Policy.Zone).Format(time.RFC3339),
		Apply: c.Bool("apply"), DropExpired: plan.DropExpired, Tables: []tableAge{},
		Others: append([]string{}, plan.Others...), ExitCode: exitcode.Of(result)}
	if exit := new(exitError); result != nil && !errors.As(result, &exit) {
		out.Error = client.OneLine(result.Error())
	}
	for _, i := range plan.Items {
		a := tableAge{Table: i.Have.Name, Period: i.Period.String(), Age: i.Age, Class: i.Class.Number, State: i.State,
			Changes: append([]lifecycle.Setting{}, i.Settings()...), Expired: i.Expired(), Drop: i.Drop, Dropped: i.Dropped,
			Note: i.Note}
		if i.Export != nil {
			a.Export = &exportedAge{plan.File(i), i.Export.Rows, i.Export.Bytes, i.Export.SHA256}
		}
		if i.Err != nil {
			a.Error = client.OneLine(i.Err.Error())
		}
		out.Tables = append(out.Tables, a)
	}
	return printJSON(c, out)
}
