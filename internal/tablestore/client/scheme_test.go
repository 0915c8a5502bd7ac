package client

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
)

func TestAnEndpointOfTheOtherSchemeIsNotAPassingFault(t *testing.T) {
	nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	plain, secure := httptest.NewServer(nothing), httptest.NewTLSServer(nothing)
	defer plain.Close()
	defer secure.Close()
	for _, endpoint := range []string{"https" + strings.TrimPrefix(plain.URL, "http"), "http" + strings.TrimPrefix(secure.URL, "https")} {
		a := admin(t, Target{Endpoint: endpoint, Instance: "i", Credentials: &common.DefaultCredentialsProvider{AccessKeyID: "a", AccessKeySecret: "b"}})
		_, err := a.Describe("t")
		if !WrongScheme(err) || !strings.Contains(err.Error(), "https://") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}
