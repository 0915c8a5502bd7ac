package address

import (
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
)

func TestAddressRoundTrip(t *testing.T) {
	for text, want := range map[string]Address{
		"ots://shop/orders":        {"", "shop", "orders"},
		"ots://old@shop-2/orders":  {"old", "shop-2", "orders"},
		"OTS://old_eu@shop/o_2026": {"old_eu", "shop", "o_2026"},
	} {
		a, err := Parse(text)
		conformance.True(t, err == nil && a == want && Is(text), "%s is %+v, %v", text, a, err)
		back, err := Parse(a.String())
		conformance.True(t, err == nil && back == a, "%s is shown as %s", text, a)
	}
}

func TestOtherArgumentsAreRefusedWithoutShowingSecrets(t *testing.T) {
	for _, text := range []string{"orders", "ots://", "ots://shop", "ots://shop/", "ots:///orders", "ots://shop/a/b",
		"ots://key:hunter2@shop/orders", "ots://a b/c", "ots://shop/orders?x=1", "oss://bucket/x"} {
		a, err := Parse(text)
		conformance.True(t, err != nil && !strings.Contains(err.Error(), "hunter2"), "%s is %+v, %v", text, a, err)
	}
	conformance.True(t, !Is("orders") && !Is("ots"), "a name is an address")
}

func TestProfileHasItsOwnVariables(t *testing.T) {
	conformance.Equal(t, Variable("TABLESTORE_ENDPOINT", "old_eu"), "TABLESTORE_ENDPOINT_OLD_EU", "variable")
	conformance.Equal(t, Variable("TABLESTORE_ENDPOINT", ""), "TABLESTORE_ENDPOINT", "variable")
}

func TestEndpointOfOtherInstance(t *testing.T) {
	const shop = "https://shop.cn-hangzhou.ots.aliyuncs.com"
	for _, tt := range []struct{ instance, endpoint, of, want string }{
		{"stock", shop, "shop", "https://stock.cn-hangzhou.ots.aliyuncs.com"},
		{"shop", shop, "shop", shop},
		{"stock", "http://127.0.0.1:8080", "shop", "http://127.0.0.1:8080"},
		{"stock", shop, "", shop},
		{"stock", shop, "other", shop},
	} {
		conformance.Equal(t, EndpointOf(tt.instance, tt.endpoint, tt.of), tt.want, "%+v", tt)
	}
}
