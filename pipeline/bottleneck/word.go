package bottleneck

// Word names what limits the speed of a load.
type Word uint8

// The words, and the evidence for each.
const (
	None      Word = iota // nothing is known yet
	Partition             // rows wait because their partitions accept no more rows
	Instance              // the service throttles the whole instance
	Table                 // the table as a whole accepts no more rows, or is being created
	Index                 // like Partition, in most partitions of a table whose secondary indexes use capacity
	Link                  // the maximum number of requests is in flight, and rows wait for their answers
	Key                   // rows wait until an earlier row of their key is final
	Reader                // no rows wait: the input yields no more rows
	CPU                   // like Link, Reader or Disk, while the process uses all processors
	Disk                  // rows wait until spilled rows are read back or a checkpoint is written
	Ceiling               // the load's own limit: --max-rows-per-second, --max-wcu or --max-bytes-per-second
	Outage                // the service does not answer, or rows wait until unanswered attempts cannot be applied any more
	Source                // no rows wait: the source database does not answer
	count
)

// Words returns all words.
func Words() []Word {
	return []Word{Partition, Instance, Table, Index, Link, Key, Reader, CPU, Disk, Ceiling, Outage, Source}
}

var texts = [count]struct{ name, reason, advice string }{
	Partition: {"partition", "the table's partitions accept no more rows",
		"give the table a partition key that spreads, as tsimport advise proposes, or have it split before the load"},
	Instance: {"instance", "the service throttles the whole instance", "raise its limit, or load when others use less"},
	Table: {"table", "the table as a whole accepts no more rows, or is being created",
		"raise its reserved write throughput, or create it before the load"},
	Index: {"index", "each row is also written to the table's secondary indexes, which use part of its capacity",
		"drop the indexes and create them after the load"},
	Link: {"link", "all allowed requests are in flight, and their answers are slow",
		"raise --concurrency, or load from a machine closer to the service"},
	Key: {"key", "rows wait for earlier rows of the same key, which are written one after the other",
		"spread the rows over more keys; no flag makes one key faster"},
	Reader: {"reader", "the input does not deliver rows faster",
		"use input that is faster to read, such as local or uncompressed files, or several files"},
	CPU:  {"cpu", "this machine has no processor left", "use a machine with more processors or less other work"},
	Disk: {"disk", "rows wait for this machine's disk", "raise --memory, or put TMPDIR and --run-dir on a faster disk"},
	Ceiling: {"ceiling", "a limit set on the command line holds it back",
		"raise --max-wcu, --max-rows-per-second or --max-bytes-per-second"},
	Outage: {"outage", "the service, or a part of it, did not answer, or requests of a killed process may " +
		"still be applied", "wait; nothing is lost, and the load continues by itself"},
	Source: {"source", "the source database does not answer",
		"check the database; reading continues by itself if it answers within --retry-for"},
}

// String returns the word as reports, metrics and docs/tuning.md spell it.
func (w Word) String() string { return texts[w].name }

// Reason describes the limit in a clause.
func (w Word) Reason() string { return texts[w].reason }

// Advice tells in a clause how to remove the limit.
func (w Word) Advice() string { return texts[w].advice }

// Parse returns the word with the given name, or None.
func Parse(text string) Word {
	for _, w := range Words() {
		if texts[w].name == text {
			return w
		}
	}
	return None
}
