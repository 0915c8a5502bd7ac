package faults

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/tsimport/engine/wire"
)

// names maps names of actions, as used in plans, flags and counts, to actions.
var names = map[string]Action{
	"refuse": Refuse, "drop-before": DropBefore, "drop-after": DropAfter, "error-after": AnswerErrorAfter,
	"apply-late": ApplyLate, "bad-body": BadBody, "truncate-body": TruncateBody, "reset-body": ResetBody,
	"refuse-rows": RefuseRows, "page-after": PageAfter, "redirect": Redirect, "flip-bit": FlipBit, "hang": Hang,
}

func (a Action) String() string {
	for name, action := range names {
		if action == a {
			return name
		}
	}
	return "none"
}

// Actions returns the names of all actions in order.
func Actions() []string {
	return slices.Sorted(maps.Keys(names))
}

// rowWrites lists the operations that fail by default.
var rowWrites = []string{"BatchWriteRow", "PutRow", "UpdateRow", "DeleteRow", "BulkImport"}

// requestCodes are the transient errors of whole requests, rowCodes those of single rows.
var (
	requestCodes = []string{
		wire.CodeServerBusy, wire.CodePartitionUnavailable, wire.CodeServerUnavailable, wire.CodeTimeout,
		wire.CodeInternalServerError,
		wire.CodeNotEnoughCapacityUnit, wire.CodeCapacityUnitExhausted, wire.CodeRowOperationConflict, wire.CodeTableNotReady,
	}
	rowCodes = []string{wire.CodeNotEnoughCapacityUnit, wire.CodeCapacityUnitExhausted, wire.CodeServerBusy,
		wire.CodePartitionUnavailable}
)

// defaultLate is the default delay of ApplyLate.
const defaultLate = time.Second

// Random makes a share of the requests fail.
type Random struct {
	Rate       float64       // share of the requests, 0…1
	Kinds      []string      // names of actions, or "action:code"; none means every action but hang
	Delay      time.Duration // for apply-late; 0 means a second
	Operations []string      // none means the operations that write rows
	Seed       uint64
}

// Plan returns the plan that r describes. The same seed gives the same faults for the same request numbers.
func (r Random) Plan() (*Plan, error) {
	if !(r.Rate >= 0 && r.Rate <= 1) {
		return nil, fmt.Errorf("the fault rate must be from 0 to 1, not %g", r.Rate)
	}
	if r.Delay < 0 {
		return nil, fmt.Errorf("the fault delay must not be negative")
	}
	kinds := r.Kinds
	if len(kinds) == 0 {
		kinds = slices.DeleteFunc(Actions(), func(kind string) bool { return kind == Hang.String() })
	}
	choices := make([]Fault, len(kinds))
	for i, kind := range kinds {
		var err error
		if choices[i], err = parse(kind); err != nil {
			return nil, err
		}
		choices[i].Delay = cmp.Or(r.Delay, defaultLate)
	}
	return &Plan{Random: &r, Only: only(r.Operations), Decide: func(q Request) Fault {
		rng := rand.New(rand.NewPCG(r.Seed, uint64(q.N)))
		if rng.Float64() >= r.Rate {
			return Fault{}
		}
		return choices[rng.IntN(len(choices))].drawn(rng)
	}}, nil
}

// Step is the fault of one request.
type Step struct {
	N      int    // number, from 0, of the request among those that the plan counts
	Action string // name of an action, or "action:code"
	Code   string
	Delay  time.Duration // for apply-late; 0 means at once
}

// Scripted makes a plan in which only the requests in steps fail.
func Scripted(steps []Step, operations []string) (*Plan, error) {
	byNumber := make(map[int]Fault, len(steps))
	for _, s := range steps {
		f, err := parse(s.Action)
		if err != nil {
			return nil, err
		}
		_, twice := byNumber[s.N]
		switch {
		case s.N < 0 || twice:
			return nil, fmt.Errorf("step of request %d: request numbers must be distinct and not negative", s.N)
		case s.Delay < 0:
			return nil, fmt.Errorf("step of request %d: the delay must not be negative", s.N)
		}
		f.Code, f.Delay = cmp.Or(s.Code, f.Code), s.Delay
		byNumber[s.N] = f
	}
	return &Plan{Steps: steps, Operations: operations, Only: only(operations), Decide: func(q Request) Fault {
		return byNumber[q.N].drawn(rand.New(rand.NewPCG(0, uint64(q.N))))
	}}, nil
}

// parse returns the fault of "action" or "action:code".
func parse(kind string) (Fault, error) {
	name, code, _ := strings.Cut(kind, ":")
	a, ok := names[name]
	if !ok {
		return Fault{}, fmt.Errorf("unknown fault %q; want one of %s", name, strings.Join(Actions(), ", "))
	}
	if a == BadBody || a == PageAfter {
		if status, err := strconv.Atoi(code); code != "" && (err != nil || status < 200 || status > 599) {
			return Fault{}, fmt.Errorf("fault %q: want an HTTP status of 200 to 599 after the colon, such as 429", kind)
		}
	}
	return Fault{Action: a, Code: code}, nil
}

func only(operations []string) func(string) bool {
	if len(operations) == 0 {
		operations = rowWrites
	}
	return func(op string) bool { return slices.Contains(operations, op) }
}

// drawn draws the values that the fault leaves open: the code, the bit and the rows.
func (f Fault) drawn(rng *rand.Rand) Fault {
	switch f.Action {
	case Refuse:
		if f.Code == "" {
			f.Code = requestCodes[rng.IntN(len(requestCodes))]
		}
	case FlipBit:
		f.Bit = rng.Uint64()
	case RefuseRows:
		code, seed := f.Code, rng.Uint64()
		if code == "" {
			code = rowCodes[rng.IntN(len(rowCodes))]
		}
		f.RowCode = func(row int) string {
			if rand.New(rand.NewPCG(seed, uint64(row))).Uint64()&1 == 0 {
				return ""
			}
			return code
		}
	}
	return f
}
