package commands

import (
	"bytes"
	"strings"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
)

func TestAnEndpointWithoutEncryptionIsWarnedOf(t *testing.T) {
	for _, tt := range []struct{ endpoint, token, want string }{
		{"http://t.cn-hangzhou.ots.aliyuncs.com", "", "rows are not encrypted"},
		{"http://t.cn-hangzhou.ots.aliyuncs.com", "sts", "neither rows nor the security token are encrypted"},
		{"http://192.0.2.7:80", "sts", "neither rows nor the security token are encrypted"},
		{"https://t.cn-hangzhou.ots.aliyuncs.com", "sts", ""},
		{"http://localhost:8087", "sts", ""},
		{"http://127.0.0.1:8087", "sts", ""},
		{"http://[::1]:8087", "sts", ""},
	} {
		var shown bytes.Buffer
		warnOfPlainHTTP(&shown, tt.endpoint, &common.DefaultCredentialsProvider{AccessKeyID: "id", AccessKeySecret: "secret", SecurityToken: tt.token})
		got := shown.String()
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) || tt.want != "" && !strings.Contains(got, "warning: the endpoint "+tt.endpoint+" is http: "+tt.want) {
			t.Errorf("%s with the token %q: %q", tt.endpoint, tt.token, got)
		}
	}
}
