package tsimport_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"example.com/tsimport"
)

func Example() {
	ctx := context.Background()
	target, stop := engine() // or tsimport.Target{Endpoint: "https://…", Instance: "…"}
	defer stop()

	loader, err := tsimport.Open(ctx, target, "readings", tsimport.LoaderOptions{
		Create: true,
		PK:     []string{"meter:string", "at:integer"},
	})
	if err != nil {
		log.Fatal(err)
	}
	for hour := range int64(24) {
		err := loader.Put(ctx, tsimport.Row{Columns: []tsimport.Column{
			tsimport.String("meter", "m-17"),
			tsimport.Int64("at", 1700000000+3600*hour),
			tsimport.Float64("kwh", 1.5),
		}})
		if err != nil {
			log.Fatal(err)
		}
	}
	counts, err := loader.Close(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d of %d rows written\n", counts.Written, counts.Accepted)
	// Output:
	// 24 of 24 rows written
}

// Done receives each row's outcome. A program that reads from a queue would acknowledge the row's message there.
func ExampleLoader_Put() {
	ctx := context.Background()
	target, stop := engine()
	defer stop()
	loader, err := tsimport.Open(ctx, target, "users", tsimport.LoaderOptions{Create: true, PK: []string{"id:integer"}})
	if err != nil {
		log.Fatal(err)
	}

	for _, columns := range [][]tsimport.Column{
		{tsimport.Int64("id", 1), tsimport.String("name", "Ada")},
		{tsimport.String("id", "two"), tsimport.String("name", "Grace")},
	} {
		err := loader.Put(ctx, tsimport.Row{Columns: columns, Done: func(o tsimport.Outcome) {
			if o.End == tsimport.Rejected {
				fmt.Printf("row %d: %s, column %s: %s\n", o.Number, o.Code, o.Column, o.Message)
			}
		}})
		if err != nil {
			log.Fatal(err)
		}
	}
	counts, err := loader.Close(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d written, %d rejected\n", counts.Written, counts.Rejected)
	// Output:
	// row 2: WrongType, column id: the key column is integer
	// 1 written, 1 rejected
}

// An update writes only the columns of its row. Rows may have different columns, and a cell may have several versions.
func ExampleLoaderOptions_update() {
	ctx := context.Background()
	target, stop := engine()
	defer stop()
	loader, err := tsimport.Open(ctx, target, "users", tsimport.LoaderOptions{
		Create: true, PK: []string{"id:integer"}, MaxVersions: 10,
		Mode: "update", OnNull: "delete",
	})
	if err != nil {
		log.Fatal(err)
	}
	now := time.Now()
	for _, columns := range [][]tsimport.Column{
		{tsimport.Int64("id", 1), tsimport.Bool("active", true)},
		{tsimport.Int64("id", 1), tsimport.Null("active")}, // deletes the column
		{tsimport.Int64("id", 2), tsimport.Int64("score", 7).At(now), tsimport.Int64("score", 5).At(now.Add(-time.Hour))},
	} {
		if err := loader.Put(ctx, tsimport.Row{Columns: columns}); err != nil {
			log.Fatal(err)
		}
	}
	counts, err := loader.Close(ctx)
	fmt.Println(counts.Written, err)
	// Output:
	// 3 <nil>
}

// Flush waits until all rows put so far have outcomes. It returns an error if rows without a Done were rejected.
func ExampleLoader_Flush() {
	ctx := context.Background()
	target, stop := engine()
	defer stop()
	loader, err := tsimport.Open(ctx, target, "users", tsimport.LoaderOptions{Create: true, PK: []string{"id:integer"}})
	if err != nil {
		log.Fatal(err)
	}
	defer loader.Close(ctx)

	if err := loader.Put(ctx, tsimport.Row{Columns: []tsimport.Column{tsimport.Null("id")}}); err != nil {
		log.Fatal(err)
	}
	var rejected *tsimport.RejectedError
	if err := loader.Flush(ctx); errors.As(err, &rejected) {
		fmt.Println(rejected.Rows, rejected.First.Code)
	}
	// Output:
	// 1 NullKey
}

func ExampleLoad() {
	target, stop := engine()
	defer stop()
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "users.csv")
	if err := os.WriteFile(file, []byte("id,name\n1,Ada\n2,Grace\n"), 0o600); err != nil {
		log.Fatal(err)
	}

	summary, err := tsimport.Load(context.Background(), tsimport.Request{
		From: []string{file}, Table: "users", Target: target,
		Mapping:  tsimport.Mapping{PK: []string{"id:integer"}},
		NewTable: tsimport.NewTable{Create: true},
		Running:  tsimport.Running{RunDir: filepath.Join(dir, "run")},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d read, %d written, %d rejected\n", summary.Read, summary.Written, summary.Rejected)
	// Output:
	// 2 read, 2 written, 0 rejected
}

func ExampleLoad_database() {
	target, stop := engine()
	defer stop()
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "shop.db")
	db, err := sql.Open("sqlite", file)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := db.Exec("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO users VALUES (1, 'Ada'), " +
		"(2, 'Grace')"); err != nil {
		log.Fatal(err)
	}
	if err := db.Close(); err != nil {
		log.Fatal(err)
	}

	// To load from a database, use postgres://HOST/DATABASE?table=users or mysql://HOST/DATABASE?table=users instead.
	summary, err := tsimport.Load(context.Background(), tsimport.Request{
		From: []string{"sqlite:" + file + "?table=users"}, Table: "users", Target: target,
		NewTable: tsimport.NewTable{Create: true},
		Running:  tsimport.Running{RunDir: filepath.Join(dir, "run")},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d read, %d written\n", summary.Read, summary.Written)
	// Output:
	// 2 read, 2 written
}

func ExampleLoad_archive() {
	target, stop := engine()
	defer stop()
	run, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(run)
	summary, err := tsimport.Load(context.Background(), tsimport.Request{
		// made by tsimport export --format archive
		From: []string{"e2e/compatibility/testdata/an-archive/archive"}, Table: "restored", Target: target,
		NewTable: tsimport.NewTable{Create: true},
		Running:  tsimport.Running{RunDir: filepath.Join(run, "run")},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(summary.Read == summary.Written, summary.Rejected)
	// Output:
	// true 0
}

func ExampleOpen_missing() {
	target, stop := engine()
	defer stop()
	_, err := tsimport.Open(context.Background(), target, "orders", tsimport.LoaderOptions{})
	fmt.Println(errors.Is(err, tsimport.ErrTableMissing))
	// Output:
	// true
}

func ExampleCopy() {
	ctx := context.Background()
	target, stop := engine() // source and target may also be different instances, even in different regions
	defer stop()
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	loader, err := tsimport.Open(ctx, target, "users", tsimport.LoaderOptions{Create: true, PK: []string{"id:integer"},
		MaxVersions: 10})
	if err != nil {
		log.Fatal(err)
	}
	now := time.Now()
	for _, columns := range [][]tsimport.Column{
		{tsimport.Int64("id", 1), tsimport.Int64("score", 7).At(now), tsimport.Int64("score", 5).At(now.Add(-time.Hour))},
		{tsimport.Int64("id", 2), tsimport.Int64("score", 3)},
		{tsimport.Int64("id", 3), tsimport.Int64("score", 9)},
	} {
		if err := loader.Put(ctx, tsimport.Row{Columns: columns}); err != nil {
			log.Fatal(err)
		}
	}
	if _, err := loader.Close(ctx); err != nil {
		log.Fatal(err)
	}

	summary, err := tsimport.Copy(ctx, tsimport.CopyRequest{
		Source: target, From: "users",
		Target: target, Table: "best",
		Scan:     tsimport.Scan{Where: "score > 5"},
		NewTable: tsimport.NewTable{Create: true},
		Running:  tsimport.Running{RunDir: filepath.Join(dir, "run")},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d read, %d written\n", summary.Read, summary.Written)
	// Output:
	// 2 read, 2 written
}
