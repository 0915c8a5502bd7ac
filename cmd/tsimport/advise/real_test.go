package advise

import (
	"os"
	"path/filepath"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader"
)

var must = conformance.Must

func TestMain(m *testing.M) { conformance.Main(m) }

// TestRealDataGetAnExpertsVerdicts has the verdicts that a person who knows the data gave.
func TestRealDataGetAnExpertsVerdicts(t *testing.T) {
	dir, judged := conformance.Dir(t), 0
	for name, want := range map[string]struct {
		file, verdicts, arrival, key string
		noHeader                     bool
	}{
		"green taxis": {file: "nyc-tlc/green_tripdata_2023-01.parquet", arrival: "lpep_pickup_datetime", verdicts: `
			VendorID: not recommended
			lpep_pickup_datetime: not recommended, fix hash prefix
			lpep_dropoff_datetime: not recommended, fix hash prefix
			PULocationID: not recommended, fix splice
			DOLocationID: usable, fix splice
			store_and_fwd_flag: not recommended
			trip_distance: not recommended
			total_amount: not recommended`, key: `key=splice(",", pad(DOLocationID, 3), pad(PULocationID, 3))`},
		"daily trips": {file: "nyc-taxi-daily/daily_trips_by_geography.csv", arrival: "date", verdicts: `
			car_type: not recommended
			date: not recommended, fix hash prefix
			geo: not recommended
			trips: not recommended
			monthly: not recommended
			monthly_is_estimated: not recommended`, key: "key=md5(date, 4) + text(date)"},
		"a shop's invoices": {file: "online-retail", arrival: "InvoiceDate", verdicts: `
			StockCode: recommended
			InvoiceNo: not recommended
			Description: not recommended
			Quantity: not recommended
			UnitPrice: not recommended
			CustomerID: not recommended
			Country: not recommended`, key: "StockCode"},
		"weather": {file: "nycflights13/weather.csv", arrival: "time_hour", verdicts: `
			origin: not recommended
			year: not recommended
			month: not recommended
			hour: not recommended
			humid: not recommended
			time_hour: not recommended, fix hash prefix`, key: "key=md5(time_hour, 4) + text(time_hour)"},
		"share prices": {file: "mosaic/stocks.csv", arrival: "Date", verdicts: `
			Symbol: not recommended
			Date: not recommended, fix hash prefix
			Volume: usable
			Open: not recommended`, key: "key=md5(Date, 4) + text(Date)"},
		"places of China": {file: "areacity/ok_data_level4.csv", verdicts: `
			name: recommended
			id: not recommended, fix hash prefix
			ext_id: not recommended, fix hash prefix
			deep: not recommended`, key: "name"},
		"registered users": {file: "kylo/csv/userdata1.csv", arrival: "registration_dttm", verdicts: `
			id: recommended
			email: not recommended
			ip_address: recommended
			gender: not recommended
			country: not recommended`, key: "id"},
		"weather of a city": {file: "mosaic/seattle-weather.csv", arrival: "date", verdicts: `
			date: not recommended, fix hash prefix
			weather: not recommended
			wind: not recommended`, key: "key=md5(date, 4) + text(date)"},
		"airports": {file: "openflights/airports.dat", noHeader: true, verdicts: `
			c1: not recommended, fix hash prefix
			c2: recommended
			c4: not recommended
			c7: not recommended
			c11: not recommended
			c14: not recommended`, key: "c2"},
	} {
		if _, err := os.Stat(filepath.Join(dir, "real", want.file)); err != nil && dir == conformance.Part(t) {
			continue // the part has only the small ones
		}
		judged++
		t.Run(name, func(t *testing.T) {
			r := run(t, Config{Input: Input{Options: reader.Options{NoHeader: want.noHeader}}}, filepath.Join(dir, "real", want.file))
			checkVerdicts(t, r, want.verdicts)
			conformance.Equal(t, r.Arrival.Column, want.arrival, "arrival")
			if r.Design == nil || r.Design.Keys[0] != want.key {
				t.Errorf("design %+v, want the partition key %s", r.Design, want.key)
			}
		})
	}
	if judged < 2 {
		t.Errorf("only %d files were judged", judged)
	}
}
