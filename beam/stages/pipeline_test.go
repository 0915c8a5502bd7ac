package stages

import (
	"testing"

	"example.com/tsimport/jobs/scaleout"
)

func iter(numbers ...int) func(*int) bool {
	return func(n *int) bool {
		if len(numbers) == 0 {
			return false
		}
		*n, numbers = numbers[0], numbers[1:]
		return true
	}
}

func TestTheNextStageBeginsWhenEachTaskIsDone(t *testing.T) {
	for name, c := range map[string]struct {
		done []int
		pass bool
	}{
		"all":                   {[]int{2, 0, 1}, true},
		"all, and some twice":   {[]int{2, 0, 2, 1, 0}, true},
		"one is missing":        {[]int{2, 0}, false},
		"one twice for another": {[]int{2, 0, 2}, false},
		"one that there is not": {[]int{0, 1, 3}, false},
		"none":                  {nil, false},
	} {
		var next []int
		err := (&Barrier{Stage: "read", Tasks: 3, Next: 2}).ProcessElement(0, iter(c.done...), func(i int) { next = append(next, i) })
		if pass := err == nil; pass != c.pass || pass != (len(next) == 2) {
			t.Errorf("%s: %v, and then the tasks %v", name, err, next)
		}
	}
}

func TestStagesOfAPlan(t *testing.T) {
	splits, shards := make([]scaleout.Split, 3), make([]scaleout.Shard, 2)
	for name, c := range map[string]struct {
		plan scaleout.Plan
		want []Stage
	}{
		"with shards":    {scaleout.Plan{Splits: splits, Shards: shards}, []Stage{{"read", 3}, {"write", 2}, {"finish", 1}}},
		"compared":       {scaleout.Plan{Splits: splits, Shards: shards, Verify: true}, []Stage{{"read", 3}, {"write", 2}, {"verify", 2}, {"finish", 1}}},
		"without shards": {scaleout.Plan{Splits: splits, Direct: true}, []Stage{{"read", 3}, {"finish", 1}}},
	} {
		got := Of(&c.plan)
		if len(got) != len(c.want) {
			t.Errorf("%s: %v", name, got)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
		}
	}
}
