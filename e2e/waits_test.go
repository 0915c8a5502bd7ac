//go:build e2e

package e2e

import (
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
)

// silent starts a server that accepts connections but never answers. taken gets a value for every connection.
func silent(t *testing.T) (address string, taken <-chan struct{}) {
	t.Helper()
	l := conformance.Try(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	met := make(chan struct{}, 1000)
	go func() {
		var all []net.Conn
		for {
			c, err := l.Accept()
			if err != nil {
				for _, c := range all {
					c.Close()
				}
				return
			}
			all = append(all, c)
			met <- struct{}{}
		}
	}()
	t.Cleanup(func() { l.Close() })
	return l.Addr().String(), met
}

// TestSIGTERMEndsEveryWait stops each command while it waits for a silent server, and logs how long it takes to end.
func TestSIGTERMEndsEveryWait(t *testing.T) {
	t.Parallel()
	const service = "TABLESTORE_ENDPOINT=http://SERVER TABLESTORE_INSTANCE=i TABLESTORE_ACCESS_KEY_ID=a " +
		"TABLESTORE_ACCESS_KEY_SECRET=b"
	for name, line := range map[string]string{
		"load": service + " load in.csv --table t --pk id",
		"load, a state": service + " AWS_ENDPOINT_URL=http://SERVER AWS_REGION=r AWS_ACCESS_KEY_ID=a " +
			"AWS_SECRET_ACCESS_KEY=b load in.csv --table t --pk id --only-new --state s3://states/x",
		"load, http": "load http://SERVER/in.csv --table t --pk id --store store",
		"load, s3": "AWS_ENDPOINT_URL=http://SERVER AWS_REGION=r AWS_ACCESS_KEY_ID=a AWS_SECRET_ACCESS_KEY=b " +
			"load s3://bucket/in.csv --table t --pk id --store store",
		"load, postgres":        "load postgres://u@SERVER/db?table=t&sslmode=disable --table t --store store",
		"load, mysql":           "load mysql://u@SERVER/db?table=t --table t --store store",
		"load, a job directory": service + " load in.csv --table t --pk id --job-dir jobs",
		"copy":                  service + " copy s t",
		"sync":                  service + " sync in.csv --table t --pk id",
		"verify":                service + " verify in.csv --table t --pk id",
		"export":                service + " export --table t",
		"export, an archive":    service + " export --table t --format archive -o archive",
		"run":                   service + " run job.yaml",
		"run, a plan":           service + " run job.yaml --plan",
		"age":                   service + " age --policy policy.json --table t_{month}",
		"table list":            service + " table list",
		"table create":          service + " table create t --pk id:string",
		"table drop":            service + " table drop t --yes",
		"inspect":               "inspect http://SERVER/in.csv",
		"check":                 "check http://SERVER/in.csv --pk id",
		"advise":                "advise http://SERVER/in.csv",
		"tables":                "tables postgres://u@SERVER/db?sslmode=disable",
		"bench write":           service + " bench write --duration 1s",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, taken := silent(t)
			words := strings.Fields(strings.ReplaceAll(line, "SERVER", server))
			first := 0
			for strings.Contains(words[first], "=") {
				first++
			}
			p := newPlace(t, words[:first]...)
			p.write("in.csv", "id,n\n1,1\n")
			p.write("job.yaml", "version: 1\nloads:\n  t: {from: in.csv, pk: [id]}\n")
			p.write("policy.json", `{"period": "month", "classes": [{}]}`)
			r := p.start(words[first:]...)
			select {
			case <-taken:
			case <-r.ended:
				t.Fatalf("exit code %d: %s", r.wait(), &r.said)
			}
			begun := time.Now()
			r.signal(syscall.SIGTERM)
			conformance.Equal(t, r.wait(), 128+int(syscall.SIGTERM), "exit code: %s", &r.said)
			t.Logf("SIGTERM was obeyed within %v", time.Since(begun).Round(10*time.Millisecond))
		})
	}
}
