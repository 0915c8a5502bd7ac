// Importer is a program of another module. It puts rows into the table readings from several goroutines, loads a file into the same
// table, and reads all of them back with the official SDK. It ends with an error unless everything adds up.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport"
)

const (
	putters = 4
	each    = 2500
)

func main() {
	log.SetFlags(0)
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, file string) error {
	target := tsimport.Target{} // from the environment
	if _, err := tsimport.Open(ctx, target, "missing", tsimport.LoaderOptions{}); !errors.Is(err, tsimport.ErrTableMissing) {
		return fmt.Errorf("open a missing table: %w", err)
	}
	loader, err := tsimport.Open(ctx, target, "readings", tsimport.LoaderOptions{Create: true, PK: []string{"meter:string"}})
	if err != nil {
		return err
	}
	var written, rejected atomic.Int64
	done := func(o tsimport.Outcome) {
		switch o.End {
		case tsimport.Written:
			written.Add(1)
		case tsimport.Rejected:
			rejected.Add(1)
		}
	}
	var group sync.WaitGroup
	failed := make(chan error, putters)
	for p := range putters {
		group.Go(func() {
			for n := range each {
				columns := []tsimport.Column{tsimport.String("meter", fmt.Sprintf("put-%d-%d", p, n)), tsimport.Int64("n", int64(n))}
				if n%100 == 99 {
					columns[0] = tsimport.Null("meter")
				}
				if err := loader.Put(ctx, tsimport.Row{Columns: columns, Done: done}); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	summary, fileErr := tsimport.Load(ctx, tsimport.Request{From: []string{file}, Table: "readings", Target: target})
	group.Wait()
	counts, err := loader.Close(ctx)
	select {
	case failure := <-failed:
		return failure
	default:
	}
	if err := errors.Join(err, fileErr); err != nil {
		return err
	}
	want := tsimport.Counts{Accepted: putters * each, Written: putters * each * 99 / 100, Rejected: putters * each / 100}
	if counts != want || written.Load() != want.Written || rejected.Load() != want.Rejected {
		return fmt.Errorf("the loader counts %+v, want %+v; told of %d written and %d rejected rows", counts, want, written.Load(), rejected.Load())
	}
	if summary.Read != summary.Written {
		return fmt.Errorf("the file: %+v", summary)
	}
	put, loaded, err := readBack()
	if err != nil {
		return err
	}
	if put != counts.Written || loaded != summary.Written {
		return fmt.Errorf("the table has %d of %d rows that were put and %d of %d rows of the file", put, counts.Written, loaded, summary.Written)
	}
	fmt.Printf("%d put, %d loaded\n", put, loaded)
	return nil
}

// readBack counts the rows of the table that were put, whose values it checks, and those of the file. Others may be there.
func readBack() (put, loaded int64, err error) {
	client := tablestore.NewClient(os.Getenv("TABLESTORE_ENDPOINT"), os.Getenv("TABLESTORE_INSTANCE"), os.Getenv("TABLESTORE_ACCESS_KEY_ID"), os.Getenv("TABLESTORE_ACCESS_KEY_SECRET"))
	from, to := new(tablestore.PrimaryKey), new(tablestore.PrimaryKey)
	from.AddPrimaryKeyColumnWithMinValue("meter")
	to.AddPrimaryKeyColumnWithMaxValue("meter")
	for from != nil {
		page, err := client.GetRange(&tablestore.GetRangeRequest{RangeRowQueryCriteria: &tablestore.RangeRowQueryCriteria{
			TableName: "readings", StartPrimaryKey: from, EndPrimaryKey: to, Direction: tablestore.FORWARD, MaxVersion: 1,
		}})
		if err != nil {
			return 0, 0, err
		}
		for _, row := range page.Rows {
			key := row.PrimaryKey.PrimaryKeys[0].Value.(string)
			var p, n int
			if strings.HasPrefix(key, "program-") {
				loaded++
			}
			if _, err := fmt.Sscanf(key, "put-%d-%d", &p, &n); err != nil {
				continue
			}
			put++
			if got := row.Columns[0].Value; got != int64(n) {
				return 0, 0, fmt.Errorf("row %s has n = %v, want %s", key, got, strconv.Itoa(n))
			}
		}
		from = page.NextStartPrimaryKey
	}
	return put, loaded, nil
}
