package commands

import (
	"slices"

	"example.com/tsimport/jobs/job"
)

// goneFlag is a flag that earlier versions had.
type goneFlag struct {
	name, instead string
	of            string // the only command that had it, or does not have it any more; "" is any
	value         string // the only one that is gone; "" is all
}

// toManifests takes the place of the flags that said how Kubernetes runs a load.
const toManifests = "tsimport manifests JOBDIR | kubectl apply -f - runs a planned load (docs/many-machines.md)"

const (
	toPatch = "patch it in with kubectl patch --local or Kustomize (docs/many-machines.md)"
	toWork  = "tsimport work takes any tasks that are open: start one in each place (docs/many-machines.md)"
)

// goneFlags are answered with what takes their place.
var goneFlags = []goneFlag{
	{name: "raise-write", instead: "change the table's throughput before and after with tsimport table update --reserved-write (docs/how-to/slow-loads.md)"},
	{name: "request", instead: "rows are sent by BatchWriteRow, which is as fast"},
	{name: "runner", instead: toManifests + "; for Flink see docs/flink.md"},
	{name: "apply", instead: toManifests},
	{name: "image", instead: toManifests},
	{name: "k8s-name", instead: toManifests},
	{name: "k8s-namespace", instead: toManifests},
	{name: "k8s-secret", instead: toManifests},
	{name: "k8s-service-account", instead: toManifests},
	{name: "k8s-volume", instead: toManifests},
	{name: "k8s-cpu", instead: toManifests},
	{name: "k8s-memory", instead: toManifests},
	{name: "namespace", of: "manifests", instead: "give it to kubectl: tsimport manifests JOBDIR | kubectl apply --namespace NAME -f -"},
	{name: "service-account", of: "manifests", instead: toPatch},
	{name: "cpu", of: "manifests", instead: toPatch},
	{name: "stage", of: "work", instead: toWork},
	{name: "index", of: "work", instead: toWork},
	{name: "quoted-null", instead: `a null text in double quotes, '"TEXT"', is that of a quoted field`},
	{name: "quoted-empty", instead: `the null text '""' makes quoted empty fields null`},
	{name: "batch-rows", instead: "--batch-bytes bounds requests; of rows they have 200, as many as the service takes"},
	{name: "log-format", instead: "set TSIMPORT_LOG_FORMAT=json"},
	{name: "push-metrics", instead: "send a --metrics-file to the Pushgateway: curl --data-binary @FILE URL/metrics/job/NAME (docs/observing.md)"},
	{name: "reserved-read", instead: "tsimport table update --reserved-read"},
	{name: "reserved-write", instead: "tsimport table create or table update --reserved-write"},
	{name: "temp-dir", instead: "set TMPDIR"},
	{name: "indexes", instead: "the indexes of the source are made after the rows; a table that tsimport table create has made gets none"},
	{name: "partition-wcu", instead: "each partition is measured, which fills it as well; --max-wcu holds a load back"},
	{name: "max-deviation", instead: "a new table takes timestamps of any age where --version-column gives them; tsimport table create --max-deviation makes another"},
	{name: "save-job", instead: "write the flags as keys of a job (docs/jobs.md)"},
	{name: "source-connections", instead: "say it in the address of the database: &sessions=N"},
	{name: "replica-max-lag", instead: "say it in the address of the database: &max-lag=10s"},
	{name: "infer", instead: "--types strict rejects the few values that are not of a column's type"},
	{name: "oss-endpoint", instead: "set OSS_ENDPOINT"},
	{name: "oss-region", instead: "set OSS_REGION"},
	{name: "s3-endpoint", instead: "set AWS_ENDPOINT_URL"},
	{name: "s3-region", instead: "set AWS_REGION"},
	{name: "reload-renamed", instead: "tsimport files forget NAME, with the name that the table has taken the content under; with --path-columns such inputs are loaded"},
	{name: "header", instead: "a header that looks like data is named: --no-header --skip-lines 1 --names A,B"},
	{name: "header-line", instead: "--skip-lines N skips the N lines above the header"},
	{name: "ignore-ts", instead: `remove them from the lines first: sed 's/,"TS":[0-9]*//g'`},
	{name: "priority", instead: "hold the load back with --max-wcu"},
	{name: "temp-max", instead: "set TMPDIR to a folder of a file system of the size that may be used"},
	{name: "compress", value: "auto", instead: "on compresses all requests, for slow links"},
	{name: "pre-split", instead: "a new table begins with as many ranges as its inputs ask for; tsimport table create makes one with one"},
	{name: "split-size", instead: "the inputs are divided by their size and --workers"},
	{name: "through", of: "copy", instead: archiveInstead},
	{name: "returned-keys", of: "copy", instead: archiveInstead},
	{name: "mark-column", of: "copy", instead: archiveInstead},
	{name: "look-first", of: "copy", instead: archiveInstead},
	{name: "verbose", instead: "--status and SIGUSR1 show the partitions of a running load; tsimport inspect shows all columns"},
	{name: "v", instead: "--status and SIGUSR1 show the partitions of a running load; tsimport inspect shows all columns"},
}

// goneCommands are answered likewise.
var goneCommands = map[string]string{
	"bench compare":     "benchstat a.txt b.txt compares files of bench write --benchfmt (go install golang.org/x/perf/cmd/benchstat@latest)",
	"bench client":      ofMaintainers + "client",
	"bench null-server": ofMaintainers + "null-server",
	"bench read-input":  "tsimport load --dry-run --json FILE with the load's other flags has the same figures",
	"bench spread":      ofMaintainers + "spread",
}

const ofMaintainers = "it is for maintainers: in the source, go run ./cmd/tsbench "

const archiveInstead = "the service numbers the rows of an archive: tsimport export --table SOURCE --format archive -o FOLDER, then tsimport load FOLDER --table TARGET --returned-keys FILE"

// checkGone returns an error for a command that is gone, with any flags.
func checkGone(args []string) error {
	if len(args) < 3 {
		return nil
	}
	if instead := goneCommands[args[1]+" "+args[2]]; instead != "" {
		return usagef("tsimport %s %s is gone: %s", args[1], args[2], instead)
	}
	return nil
}

func findGone(command, name string) *goneFlag {
	if i := slices.IndexFunc(goneFlags, func(g goneFlag) bool { return g.name == name && (g.of == "" || g.of == command) }); i >= 0 {
		return &goneFlags[i]
	}
	return nil
}

// jobVocabulary is the keys of a job file.
func jobVocabulary() *job.Vocabulary {
	gone := map[string]string{}
	for _, g := range goneFlags {
		if g.of == "" && g.value == "" {
			gone[g.name] = "it is gone: " + g.instead
		}
	}
	return job.NewVocabulary(gone)
}
