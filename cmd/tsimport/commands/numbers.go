package commands

import (
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline"
)

// numbersHelp says what an auto-increment key column is good for.
const numbersHelp = "The service fills an auto-increment key column (--pk NAME:auto, never the first) with rising numbers, in input order for each\n" +
	"value of the columns before it. It suits a stream of rows per partition key that is read in order. It does not suit finding\n" +
	"one row, for which you must know the number (--returned-keys), or ids for a whole table: numbers have gaps and are unique\n" +
	"only within a partition-key value."

// sayNumbers tells of rows that were sent more than once.
func sayNumbers(say words.Say, r *pipeline.Report) {
	if r.ReturnedKeys != "" && !r.DryRun {
		say.Line("keys of the rows: %s", r.ReturnedKeys)
	}
	if r.Found > 0 || r.SurplusDeleted > 0 {
		say.Line("%s rows of unknown outcome were already in the table, %s surplus copies were deleted", words.Grouped(r.Found), words.Grouped(r.SurplusDeleted))
	}
	if r.MaybeTwice > 0 {
		say.Warn("%s rows were sent again after a lost answer and may be in the table twice (--at-least-once)", words.Grouped(r.MaybeTwice))
	}
	if r.ExtraVersions > 0 {
		say.Warn("%s updates that were sent again may have left one version more: their timestamps had become too old for the table (its maximum deviation)", words.Grouped(r.ExtraVersions))
	}
	if r.MaybeApplied > 0 {
		what := "be in the table"
		if r.Deletes {
			what = "have been deleted"
		}
		say.Warn("%s rejected rows may %s: the service never acknowledged or refused them (maybe_applied in rejects.jsonl)", words.Grouped(r.MaybeApplied), what)
	}
}
