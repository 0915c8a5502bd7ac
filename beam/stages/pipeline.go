package stages

import (
	"context"
	"fmt"
	"reflect"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"example.com/tsimport/jobs/scaleout"
)

// Stage is a stage of the load with its number of tasks.
type Stage struct {
	Name  string
	Tasks int
}

// Of are the stages of a plan, in their order.
func Of(p *scaleout.Plan) (stages []Stage) {
	stages = append(stages, Stage{scaleout.StageRead, len(p.Splits)})
	if len(p.Shards) > 0 {
		stages = append(stages, Stage{scaleout.StageWrite, len(p.Shards)})
		if p.Verify {
			stages = append(stages, Stage{scaleout.StageVerify, len(p.Shards)})
		}
	}
	return append(stages, Stage{scaleout.StageFinish, 1})
}

// Build makes the pipeline: for each stage its numbers, spread over the workers, then the task of each number, and a barrier that the next stage's numbers
// come from. Grouping by one key is that barrier: no runner hands on a group before it is complete.
func Build(l Load, stages []Stage) *beam.Pipeline {
	p, root := beam.NewPipelineWithRoot()
	numbers := beam.ParDo(root.Scope("Plan"), &Numbers{Tasks: stages[0].Tasks}, beam.Impulse(root.Scope("Plan")))
	for i, stage := range stages {
		scope := root.Scope(stage.Name)
		if stage.Tasks > 1 {
			numbers = beam.Reshuffle(scope, numbers)
		}
		done := beam.ParDo(scope, &Task{Load: l, Stage: stage.Name, Of: stage.Tasks}, numbers)
		if i+1 < len(stages) {
			numbers = beam.ParDo(scope, &Barrier{Stage: stage.Name, Tasks: stage.Tasks, Next: stages[i+1].Tasks}, beam.GroupByKey(scope, done))
		}
	}
	return p
}

func init() {
	beam.RegisterType(reflect.TypeFor[Load]())
	register.DoFn2x0[[]byte, func(int)](&Numbers{})
	register.DoFn3x1[context.Context, int, func(int, int), error](&Task{})
	register.DoFn3x1[int, func(*int) bool, func(int), error](&Barrier{})
	register.Emitter1[int]()
	register.Emitter2[int, int]()
	register.Iter1[int]()
}

// Numbers makes the numbers of the first stage. They are not in the pipeline itself: a load has up to 100,000 splits.
type Numbers struct{ Tasks int }

// ProcessElement makes them.
func (n *Numbers) ProcessElement(_ []byte, emit func(int)) {
	for i := range n.Tasks {
		emit(i)
	}
}

// Task does tasks of one stage.
type Task struct {
	Load  Load
	Stage string
	Of    int // tasks of the stage
}

// ProcessElement does one task. What it hands on says that the task is done.
func (t *Task) ProcessElement(ctx context.Context, i int, emit func(int, int)) error {
	if err := t.Load.do(ctx, t.Stage, i, t.Of); err != nil {
		return fmt.Errorf("tsimport %s task %d of %d: %w", t.Stage, i, t.Of, err)
	}
	emit(0, i)
	return nil
}

// Barrier begins the next stage when all tasks of a stage are done.
type Barrier struct {
	Stage string
	Tasks int
	Next  int // tasks of the next stage
}

// ProcessElement gets the numbers of all tasks. One that a runner has lost must not pass unseen.
func (b *Barrier) ProcessElement(_ int, next func(*int) bool, emit func(int)) error {
	done := make([]bool, b.Tasks)
	n := 0
	for i := 0; next(&i); {
		if i >= 0 && i < b.Tasks && !done[i] {
			done[i] = true
			n++
		}
	}
	if n < b.Tasks {
		return fmt.Errorf("tsimport: the runner has handed on %d of %d tasks of the stage %s", n, b.Tasks, b.Stage)
	}
	for i := range b.Next {
		emit(i)
	}
	return nil
}
