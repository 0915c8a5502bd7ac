package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"tsimport/engine/sim"
)

// ask sends a request to the admin API of a server on a port.
func ask(t *testing.T, url, method, path, body string) (status int, answer map[string]any) {
	t.Helper()
	r, err := http.NewRequest(method, url+"/_engine/"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, answer
}

func TestTheClockOfTheDataIsMovedOverHTTP(t *testing.T) {
	s := open(t, Options{InMemory: true})
	web := httptest.NewServer(s)
	defer web.Close()
	if status, got := ask(t, web.URL, http.MethodPost, "clock", `{"advance": "36h"}`); status != http.StatusOK || got["ahead_ms"] != float64(36*3600*1000) {
		t.Errorf("%d %v", status, got)
	}
	for _, bad := range []string{`{"advance": "-1s"}`, `{"advance": "soon"}`, `{"advance": "900000h"}`, `{"set": "36h"}`, `{}`} {
		if status, got := ask(t, web.URL, http.MethodPost, "clock", bad); status != http.StatusBadRequest {
			t.Errorf("%s: %d %v", bad, status, got)
		}
	}
	if status, got := ask(t, web.URL, http.MethodGet, "clock", ""); status != http.StatusOK || got["ahead_ms"] != float64(36*3600*1000) {
		t.Errorf("%d %v", status, got)
	}
	// A cell of today is of the past now, and of beyond the deviation of a day.
	c := sdk(web.URL, nil)
	createTable(t, c, "t", 1)
	old := put("t", key("a", 1))
	old.AddColumnWithTimestamp("c", "v", time.Now().UnixMilli())
	_, err := c.PutRow(&tablestore.PutRowRequest{PutRowChange: old})
	if err == nil || !strings.Contains(err.Error(), "Invalid timestamp. Cell:c.") {
		t.Errorf("%v", err)
	}
}

func TestAResetLeavesAServerAsItWasAtTheStart(t *testing.T) {
	s := open(t, Options{InMemory: true, Simulation: &Simulation{Config: sim.Config{Partitions: 4}}})
	web := httptest.NewServer(s)
	defer web.Close()
	c := sdk(web.URL, nil)
	for range 2 {
		createTable(t, c, "t", 1)
		if _, err := c.BatchWriteRow(batchOf(3)); err != nil {
			t.Fatal(err)
		}
		if err := s.Advance(time.Hour); err != nil {
			t.Fatal(err)
		}
		if status, got := ask(t, web.URL, http.MethodPost, "faults", `{"rate": 1, "kinds": ["reset"]}`); status != http.StatusOK && status != http.StatusBadRequest {
			t.Errorf("%d %v", status, got)
		}
		if status, got := ask(t, web.URL, http.MethodPost, "reset", ""); status != http.StatusOK || got["tables"] != float64(1) {
			t.Errorf("%d %v", status, got)
		}
		if got := s.store.Tables(); len(got) > 0 || s.Faults() != nil || s.ahead.Load() != 0 || len(s.sim.all()) > 0 || !s.sim.on.Load() {
			t.Errorf("tables %q, faults %v, simulated %d", got, s.Faults(), len(s.sim.all()))
		}
	}
	if status, got := ask(t, web.URL, http.MethodPost, "reset", `{"tables": 1}`); status != http.StatusBadRequest {
		t.Errorf("%d %v", status, got)
	}
}

func TestTheAdminAPIIsThereForThoseWhoAskForIt(t *testing.T) {
	s := open(t, Options{InMemory: true, NoAdmin: true})
	web := httptest.NewServer(s)
	defer web.Close()
	for _, path := range []string{"", "stats", "reset", "clock"} {
		if status, got := ask(t, web.URL, http.MethodGet, path, ""); status != http.StatusNotFound || !strings.Contains(got["error"].(string), "--admin") {
			t.Errorf("%s: %d %v", path, status, got)
		}
	}
	if _, err := sdk(web.URL, nil).ListTable(); err != nil {
		t.Error(err)
	}
}

func TestAnyCredentialsAreTaken(t *testing.T) {
	s := open(t, Options{InMemory: true, AnyCredentials: true})
	web := httptest.NewServer(s)
	defer web.Close()
	for _, who := range [][3]string{{"another", "LTAI5tExample", "not the secret"}, {DefaultInstance, DefaultAccessKeyID, DefaultAccessKeySecret}, {"x", DefaultAccessKeyID, "wrong"}} {
		c := tablestore.NewClient(web.URL, who[0], who[1], who[2])
		if _, err := c.ListTable(); err != nil {
			t.Errorf("%q: %v", who, err)
		}
	}
	// What makes a request unreadable is refused as ever.
	res, err := http.Post(web.URL+"/ListTable", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusBadRequest {
		t.Error(res.Status)
	}
}

func TestInstancesHaveTablesOfTheirOwnAlsoAfterARestart(t *testing.T) {
	dir := t.TempDir()
	for name, o := range map[string]Options{"named": {More: []string{"second", "third"}}, "any": {AnyCredentials: true}} {
		for attempt := range 2 {
			s, err := Open(filepath.Join(dir, name), o)
			if err != nil {
				t.Fatal(err)
			}
			web := httptest.NewServer(s)
			for _, instance := range []string{DefaultInstance, "second", "third"} {
				c := tablestore.NewClient(web.URL, instance, DefaultAccessKeyID, DefaultAccessKeySecret)
				if attempt == 0 {
					createTable(t, c, "of_"+instance, 1)
				}
				list, err := c.ListTable()
				if want := []string{"of_" + instance}; err != nil || !slices.Equal(list.TableNames, want) {
					t.Errorf("%s, %s: %v, %v, want %v", name, instance, list, err, want)
				}
			}
			c := tablestore.NewClient(web.URL, "fourth", DefaultAccessKeyID, DefaultAccessKeySecret)
			if _, err := c.ListTable(); (err == nil) != o.AnyCredentials {
				t.Errorf("%s: an instance that was not named: %v", name, err)
			}
			web.Close()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
