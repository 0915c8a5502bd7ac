package accesskey

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aliyun/credentials-go/credentials"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/tablestore/client"
)

// givesKeys responds like a key server, with a token that is valid for last.
func givesKeys(w http.ResponseWriter, last time.Duration) {
	fmt.Fprintf(w, `{"Code":"Success","AccessKeyId":"id","AccessKeySecret":"s","SecurityToken":"t","Expiration":%q}`,
		time.Now().Add(last).UTC().Format("2006-01-02T15:04:05Z"))
}

// onlyServer sets the environment so that only a key server can give keys.
func onlyServer(t *testing.T, url string) {
	for _, family := range []string{"TABLESTORE", "ALIBABA_CLOUD"} {
		for _, of := range []string{"_ACCESS_KEY_ID", "_ACCESS_KEY_SECRET", "_SECURITY_TOKEN"} {
			t.Setenv(family+of, "")
		}
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("ALIBABA_CLOUD_ECS_METADATA_DISABLED", "true")
	t.Setenv("ALIBABA_CLOUD_CREDENTIALS_URI", url)
}

func TestFindWaitsForKeyServer(t *testing.T) {
	asked := 0
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked < 4 {
			http.Error(w, `{"AccessKeySecret":"top"}`, http.StatusInternalServerError)
			return
		}
		givesKeys(w, time.Hour)
	}))
	defer web.Close()
	onlyServer(t, web.URL+"?token=secret")
	var said []string
	p, err := Find(t.Context(), func(text string) { said = append(said, text) })
	conformance.MustTrue(t, err == nil && p.GetCredentials().GetAccessKeyID() == "id", "%v after %q", err, said)
	text := strings.Join(said, "\n")
	if !strings.Contains(text, "ALIBABA_CLOUD_CREDENTIALS_URI names gives no access key: get credentials from GET "+
		web.URL) || strings.Contains(text, "secret") || strings.Contains(text, "top") {
		t.Errorf("it says %s", text)
	}
}

func TestWaitForKeyServerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var said []string
		err := await(t.Context(), "VARIABLE", func() error { return errors.New("connection refused") },
			func(text string) { said = append(said, text) })
		conformance.Equal(t, strings.Join(said, "; "), "waiting: the server that VARIABLE names gives no access key: "+
			"connection refused; retrying for up to 2m0s", "said")
		if took := time.Since(begun); !errors.As(err, new(*DownError)) || took < client.Patience ||
			took > client.Patience+10*time.Second || !strings.Contains(err.Error(),
			"VARIABLE names gave no access key for 2m0s: connection refused") {
			t.Errorf("%v after %v", err, took)
		}
		ctx, stop := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { stop(errors.New("the user stopped")) })
		err = await(ctx, "VARIABLE", func() error { return errors.New("refused") }, nil)
		conformance.True(t, err != nil && err.Error() == "the user stopped", "%v", err)
	})
}

func TestExpiringTokenIsCachedForSeconds(t *testing.T) {
	asked := 0
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		givesKeys(w, time.Minute)
	}))
	defer web.Close()
	onlyServer(t, web.URL)
	chain := conformance.Try(newChain()).Must(t)
	p := newChainProvider(chain, func() (credentials.Credential, error) { return newChain() })
	asked = 0
	for range 1000 {
		conformance.MustEqual(t, p.GetCredentials().GetSecurityToken(), "t", "token")
	}
	conformance.True(t, asked <= 2, "the server was asked %d times for 1,000 requests", asked)
	before := asked
	p.Refresh()
	p.GetCredentials()
	conformance.True(t, asked != before, "keys that were refused are kept")
}
