package server

import (
	"context"

	"example.com/tsimport/engine/faults"
)

type faultsJSON struct {
	Rate       *float64   `json:"rate,omitempty"`
	Kinds      []string   `json:"kinds,omitempty"`
	Seed       uint64     `json:"seed,omitempty"`
	Delay      millis     `json:"delay_ms,omitempty"`
	Operations []string   `json:"operations,omitempty"`
	Plan       []stepJSON `json:"plan,omitempty"`
}

type stepJSON struct {
	N      int    `json:"n"`
	Action string `json:"action"`
	Code   string `json:"code,omitempty"`
	Delay  millis `json:"delay_ms,omitempty"`
}

// plan returns the requested plan, or nil if no faults are requested.
func (j *faultsJSON) plan() (*faults.Plan, error) {
	for _, name := range j.Operations {
		if operations[name] == nil {
			return nil, badRequest("there is no operation %q", name)
		}
	}
	switch {
	case j.Plan != nil && (j.Rate != nil || j.Kinds != nil):
		return nil, badRequest(`give either "plan", or "rate" and "kinds"`)
	case j.Plan != nil:
		steps := make([]faults.Step, len(j.Plan))
		for i, s := range j.Plan {
			steps[i] = faults.Step{N: s.N, Action: s.Action, Code: s.Code, Delay: s.Delay.duration()}
		}
		return faults.Scripted(steps, j.Operations)
	case j.Rate == nil && j.Kinds != nil:
		return nil, badRequest(`"rate" is missing`)
	case j.Rate == nil:
		return nil, nil
	}
	p, err := faults.Random{
		Rate: *j.Rate, Kinds: j.Kinds, Delay: j.Delay.duration(), Operations: j.Operations, Seed: j.Seed,
	}.Plan()
	if err != nil || *j.Rate == 0 {
		return nil, err
	}
	return p, nil
}

// shown returns a plan in the form of a request, or nil if the plan was made by hand.
func shown(p *faults.Plan) *faultsJSON {
	switch {
	case p.Random != nil:
		r := p.Random
		return &faultsJSON{Rate: &r.Rate, Kinds: r.Kinds, Seed: r.Seed, Delay: millisOf(r.Delay), Operations: r.Operations}
	case p.Steps != nil:
		j := &faultsJSON{Operations: p.Operations, Plan: make([]stepJSON, len(p.Steps))}
		for i, step := range p.Steps {
			j.Plan[i] = stepJSON{N: step.N, Action: step.Action, Code: step.Code, Delay: millisOf(step.Delay)}
		}
		return j
	}
	return nil
}

func (s *Server) adminSetFaults(ctx context.Context, _ string, j *faultsJSON) (any, error) {
	p, err := j.plan()
	if err != nil {
		return nil, err
	}
	s.SetFaults(p)
	return s.adminFaults(ctx, "", nil)
}

// adminEndFaults turns faults off and resets their counts.
func (s *Server) adminEndFaults(context.Context, string, []byte) (any, error) {
	s.SetFaults(nil)
	s.lastPlan.Store(nil)
	return struct{}{}, nil
}

func (s *Server) adminFaults(context.Context, string, []byte) (any, error) {
	state := struct {
		Set      *faultsJSON    `json:"set"` // null when faults are off, or set by a program
		On       bool           `json:"on"`
		Requests int            `json:"requests"`
		Late     int            `json:"late"`
		Done     map[string]int `json:"done"`
	}{Done: map[string]int{}}
	if p := s.Faults(); p != nil {
		state.On, state.Set = true, shown(p)
	}
	if p := s.lastPlan.Load(); p != nil {
		state.Requests, state.Late = p.Requests(), p.Late()
		for action, n := range p.Done() {
			state.Done[action.String()] = n
		}
	}
	return state, nil
}
