package sqltable

import "testing"

func TestPlacesKeepKeys(t *testing.T) {
	key := [][]byte{{}, []byte("é\x00"), []byte("12")}
	got, err := placeValues(appendPlace(nil, key))
	if err != nil || len(got) != 3 || string(got[0]) != "" || got[0] == nil || string(got[1]) != "é\x00" || string(got[2]) != "12" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := placeValues([]byte{5, 'a'}); err == nil {
		t.Error("a truncated place was read")
	}
}
